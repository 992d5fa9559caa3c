"""Every server that ships here, with every rule that it can answer with; no server is imported for more than that."""

from collections.abc import Mapping

from mcp_ops.gate import GATE_RULES, Rule
from mcp_ops.github import rules as github_rules
from mcp_ops.servers import ops

OWN_RULES: Mapping[str, tuple[Rule, ...]] = {ops.NAME: ops.RULES, "github": (*GATE_RULES, *github_rules.RULES)}


def all_rules() -> tuple[Rule, ...]:
    """Return the rules of all of them, each once."""
    return tuple(dict.fromkeys(rule for rules in OWN_RULES.values() for rule in rules))
