"""The page on models says what the code does."""

from pathlib import Path

import pytest

from mcp_ops.agent.observations import CONTEXT_BUDGET, OBSERVATION_BUDGET, TEXT_BUDGET
from mcp_ops.agent.protocols.native import SCHEMA_BUDGET
from mcp_ops.agent.protocols.wording import DESCRIPTION_BUDGET, REPLY_BUDGET
from mcp_ops.agent.turns import MAX_CALLS_A_TURN
from mcp_ops.llm import DEFAULT_MODELS, anthropic, openai
from mcp_ops.llm.providers import PATIENT
from mcp_ops.llm.sending import RetryPolicy
from mcp_ops.llm.strict_json import MAX_DEPTH
from mcp_ops.llm.tool_names import LONGEST

PAGE = (Path(__file__).parent.parent / "docs/models.md").read_text("utf-8")


@pytest.mark.covers("D9")
def test_the_page_names_each_provider_its_default_model_and_its_address() -> None:
    addresses = {"anthropic": anthropic.BASE_URL, "openai": openai.BASE_URL}
    for provider, model in DEFAULT_MODELS.items():
        [row] = [line for line in PAGE.splitlines() if f"`LLM_PROVIDER={provider}`" in line]
        assert f"`{model}`" in row
        assert f"`{addresses[provider]}`" in row


def test_the_page_has_the_limits_of_the_code() -> None:
    rows = [line.split("|")[1].strip() for line in PAGE.splitlines() if line.startswith("| ")]
    budgets = (OBSERVATION_BUDGET, TEXT_BUDGET, REPLY_BUDGET, DESCRIPTION_BUDGET, CONTEXT_BUDGET)
    assert [row for row in rows if row.isdecimal()] == [str(budget) for budget in budgets]
    for sentence in (
        f"{anthropic.MAX_TOKENS} tokens",
        f"more than {LONGEST} characters",
        f"longer than {SCHEMA_BUDGET} bytes",
        f"deeper than {MAX_DEPTH} levels",
        f"more than {MAX_CALLS_A_TURN} calls",
        f"up to {RetryPolicy().attempts} times",
        f"at most {RetryPolicy().longest_wait:g} s",
        f"one request may take {PATIENT.request_seconds:g} s and be silent for {PATIENT.silent_seconds:g} s",
        f"all requests of one turn {PATIENT.total_seconds:g} s",
    ):
        assert sentence in PAGE, sentence
