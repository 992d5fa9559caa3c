"""What the environment and `--server` say to `mcp-ops agent`."""

import os
from typing import get_args

import pytest

from mcp_ops.cli.agent.handover import DESCRIPTOR, handed_over
from mcp_ops.cli.agent.model import choose_model
from mcp_ops.cli.agent.servers import Wanted, read_servers, targets_of
from mcp_ops.cli.arguments import TOOL_CLASSES, build_parser
from mcp_ops.cli.errors import CommandError
from mcp_ops.llm import DEFAULT_MODELS
from mcp_ops.trace.events import ToolClassName

ANTHROPIC = {"ANTHROPIC_API_KEY": "sk-ant-0123456789abcdef"}
OPENAI = {"OPENAI_API_KEY": "sk-0123456789abcdef0123"}


@pytest.mark.covers("D13")
class TestTheModel:
    @pytest.mark.parametrize(
        ("environ", "kind", "name"),
        [
            (ANTHROPIC, "AnthropicLLM", DEFAULT_MODELS["anthropic"]),
            (OPENAI, "OpenAILLM", DEFAULT_MODELS["openai"]),
            ({**ANTHROPIC, **OPENAI, "LLM_PROVIDER": "openai"}, "OpenAILLM", DEFAULT_MODELS["openai"]),
            ({**ANTHROPIC, **OPENAI, "LLM_PROVIDER": "anthropic"}, "AnthropicLLM", DEFAULT_MODELS["anthropic"]),
            ({**ANTHROPIC, "OPENAI_API_KEY": ""}, "AnthropicLLM", DEFAULT_MODELS["anthropic"]),
            ({**OPENAI, "LLM_MODEL": "gpt-mini"}, "OpenAILLM", "gpt-mini"),
            (
                {"LLM_PROVIDER": "openai", "OPENAI_BASE_URL": "http://127.0.0.1:9"},
                "OpenAILLM",
                DEFAULT_MODELS["openai"],
            ),
        ],
    )
    def test_one_key_is_enough_and_two_want_a_provider(self, environ: dict[str, str], kind: str, name: str) -> None:
        chosen = choose_model(environ)
        assert type(chosen.model).__name__ == kind
        assert chosen.model.name == name
        assert chosen.key is None or chosen.key not in repr(chosen)

    @pytest.mark.parametrize(
        ("environ", "sentence"),
        [
            ({}, "no model: set ANTHROPIC_API_KEY or OPENAI_API_KEY"),
            ({**ANTHROPIC, **OPENAI}, "are both set; say which with LLM_PROVIDER=anthropic"),
            ({**OPENAI, "LLM_PROVIDER": "anthropic"}, "LLM_PROVIDER is anthropic, and ANTHROPIC_API_KEY is not set"),
            ({**OPENAI, "LLM_PROVIDER": "OpenAI"}, "LLM_PROVIDER is 'OpenAI'; write anthropic or openai"),
            ({**OPENAI, "OPENAI_BASE_URL": "http://models.example"}, "http"),
        ],
    )
    def test_what_does_not_fit_together_is_one_sentence_without_a_key(
        self, environ: dict[str, str], sentence: str
    ) -> None:
        with pytest.raises(CommandError) as caught:
            choose_model(environ)
        assert sentence in str(caught.value)
        assert "0123456789" not in str(caught.value)


@pytest.mark.covers("D7")
class TestServers:
    def test_the_default_is_the_github_server(self) -> None:
        assert read_servers(()) == [Wanted("github", ("github",), own=True)]

    def test_ours_are_named_by_their_first_word_and_others_by_name(self) -> None:
        read = read_servers(["ops --workspace '/a b'", "web=npx -y x", "python s.py", "github --extended"])
        assert read == [
            Wanted("ops", ("ops", "--workspace", "/a b"), own=True),
            Wanted("web", ("npx", "-y", "x"), own=False),
            Wanted("server3", ("python", "s.py"), own=False),
            Wanted("github", ("github", "--extended"), own=True),
        ]

    @pytest.mark.parametrize("text", ["/usr/bin/github", "./ops --workspace x", "githubx"])
    def test_a_program_that_is_called_like_ours_is_not_ours(self, text: str) -> None:
        assert not read_servers([text])[0].own

    @pytest.mark.parametrize(
        ("texts", "sentence"),
        [
            ([""], "has no command"),
            (["web="], "has no command"),
            (["web='x"], "no closing quotation"),
            (["github=evil"], "is the name of a server that ships here"),
            (["http://127.0.0.1:8000/mcp"], "no address"),
            (["web=https://x.example"], "no address"),
            (["github", "github"], "two servers are called github"),
        ],
    )
    def test_a_wrong_one_is_one_sentence(self, texts: list[str], sentence: str) -> None:
        with pytest.raises(CommandError, match=sentence):
            read_servers(texts)

    def test_only_the_github_server_is_given_the_file_of_variables(self) -> None:
        targets = targets_of(read_servers(["github", "ops --workspace x", "web=x"]), 77)
        assert [target.server.descriptors for target in targets] == [(77,), (), ()]
        assert [dict(target.server.env) for target in targets] == [{"PATH": os.environ["PATH"]}] * 3
        assert [target.own for target in targets] == [True, True, False]


@pytest.mark.parametrize("text", ["", "x", "-1", "987654", "1e3"])
def test_a_descriptor_that_is_none_is_not_used(text: str) -> None:
    assert handed_over({DESCRIPTOR: text}) is None


def test_the_command_line_knows_every_class_of_a_tool() -> None:
    assert get_args(ToolClassName) == TOOL_CLASSES
    args = build_parser().parse_args(["agent", "x", "--tool-class", "a=b=mutating"])
    assert args.tool_class == [("a=b", "mutating")]
