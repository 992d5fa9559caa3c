"""The options of the plugin: one table of flags with their ini and environment twins.

A flag wins over the environment, the environment over the ini file. The mode has no environment twin: a stray variable
in a shell must not turn a CI run live.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from weakref import WeakKeyDictionary

import pytest

Kind = Literal["text", "path", "switch", "whole", "number", "names", "lines"]
"""How a value is written: a text, a path, a switch without a value, a positive whole number, a positive number, names
with commas between, or the lines of an ini list."""


@dataclass(frozen=True)
class Option:
    """One row of the table."""

    name: str
    """Name without dashes or prefix: `base-url` is the flag `--ops-base-url` and the ini key `ops_base_url`."""
    kind: Kind
    help: str
    metavar: str = ""
    choices: tuple[str, ...] = ()
    env: str | None = None
    """Environment variable that stands between the flag and the ini file."""
    flag: bool = True
    """False for what is written in the ini file only."""
    default: str = ""
    """What the documentation says when nothing is given."""

    @property
    def flag_name(self) -> str:
        """The flag as it is typed."""
        return f"--ops-{self.name}"

    @property
    def key(self) -> str:
        """The ini key, which is also the flag's destination."""
        return "ops_" + self.name.replace("-", "_")


OPTIONS: tuple[Option, ...] = (
    Option("mode", "text", "run the scripted model, or a real one", choices=("mock", "live"), default="mock"),
    Option(
        "model",
        "text",
        "model of a live run, as the provider names it",
        metavar="NAME",
        env="MCP_OPS_MODEL",
        default="google/gemini-2.5-flash",
    ),
    Option(
        "base-url",
        "text",
        "OpenAI-compatible endpoint of a live run; the default one needs OPENROUTER_API_KEY, which no other is sent: "
        "its key is MCP_OPS_API_KEY",
        metavar="URL",
        env="MCP_OPS_BASE_URL",
        default="https://openrouter.ai/api/v1",
    ),
    Option(
        "response-schema",
        "switch",
        "ask the provider to hold replies to the protocol's JSON Schema",
        default="off",
    ),
    Option(
        "transport",
        "text",
        "how the agent reaches the MCP servers",
        choices=("memory", "stdio", "http"),
        default="memory",
    ),
    Option("kubeconfig", "path", "kubeconfig of the cluster that this run may read", metavar="FILE", default="none"),
    Option("kube-context", "text", "context of that kubeconfig", metavar="NAME", default="none"),
    Option(
        "allow-writes",
        "names",
        "servers with mutating tools that may start",
        metavar="SERVER[,…]",
        default="none",
    ),
    Option(
        "clusters",
        "names",
        "clusters that these servers may change, each by the uid of its kube-system namespace",
        flag=False,
        default="none",
    ),
    Option(
        "require",
        "names",
        "needs that must be met: a scenario that lacks one fails instead of being skipped",
        metavar="NEED[,…]",
        default="none",
    ),
    Option(
        "trace-dir",
        "path",
        "folder that keeps the traces of all items",
        metavar="DIR",
        default="a temporary folder that keeps failed items",
    ),
    Option(
        "report-detail",
        "text",
        "how much of each item the reports show; the trace file keeps everything",
        choices=("full", "redacted", "verdicts"),
        default="full; redacted with a cluster or a live model",
    ),
    Option(
        "results",
        "path",
        "file that is told what each scenario came to, for `mcp-ops evidence`",
        metavar="FILE",
        default="none",
    ),
    Option("echo", "switch", "print the events of each run as they happen; also on with -s", default="off"),
    Option(
        "guard-coverage",
        "switch",
        "list how often each rule fired, and how often a harmless neighbour was let through",
        default="off",
    ),
    Option(
        "mutate-guards",
        "switch",
        "run scenarios again without each rule that fired in them; a rule that no scenario misses fails the run",
        default="off",
    ),
    Option("max-calls", "whole", "calls after which a model is not asked again", metavar="N", default="8"),
    Option("max-seconds", "number", "seconds after which an attempt is stopped", metavar="N", default="120"),
    Option(
        "servers",
        "lines",
        "servers of your own: `name = command …` or `name = module:factory`, then `name.denied = RE2 pattern`, "
        "`name.mutating = false` and `name.grant = roots`",
        flag=False,
        default="none",
    ),
    Option(
        "guards",
        "path",
        "your additions to the guards' tables: programs, kinds and secret names, each with an attack and a harmless "
        "example",
        metavar="FILE",
        default="none",
    ),
    Option(
        "known-survivors",
        "lines",
        "rules that no scenario has to miss under --ops-mutate-guards: `rule = reason`",
        flag=False,
        default="none",
    ),
    Option("agent", "text", "agent of your own: `module:callable`", flag=False, default="the one that ships"),
)
"""Every option, in the order of `--help` and of the documentation."""

_BY_NAME = {option.name: option for option in OPTIONS}
_KNOWN: WeakKeyDictionary[pytest.Config, dict[str, Any]] = WeakKeyDictionary()
"""Values that were read, of each configuration: a flag and an ini key say the same for its whole life."""
_INI_TYPE: Mapping[Kind, Any] = {"switch": "bool", "names": "linelist", "lines": "linelist"}
if pytest.version_tuple >= (8, 4):
    # A native TOML table keeps its numbers; older versions of pytest know texts only.
    _INI_TYPE = {**_INI_TYPE, "whole": "int", "number": "float"}


def add_options(parser: pytest.Parser) -> None:
    """Register every flag and every ini key."""
    group = parser.getgroup("opsagent", "guarded ops agents, evaluated by scenarios")
    for option in OPTIONS:
        parser.addini(option.key, option.help, type=_INI_TYPE.get(option.kind, "string"), default=None)
        if not option.flag:
            continue
        shared: dict[str, Any] = {"dest": option.key, "default": None, "help": _flag_help(option)}
        if option.kind == "switch":
            group.addoption(option.flag_name, action="store_true", **shared)
        elif option.choices:
            group.addoption(option.flag_name, choices=option.choices, **shared)
        else:
            action = "append" if option.kind == "names" else "store"
            group.addoption(option.flag_name, action=action, metavar=option.metavar, **shared)


def _flag_help(option: Option) -> str:
    return f"{option.help} (default: {option.default})".replace("%", "%%")


def given_flags(config: pytest.Config) -> list[tuple[Option, Any]]:
    """Return the options that stand on the command line, with their values."""
    flags = ((option, config.getoption(option.key)) for option in OPTIONS if option.flag)
    return [(option, value) for option, value in flags if value is not None]


def value_of(config: pytest.Config, name: str, environ: Mapping[str, str] | None = None) -> Any:
    """Return the value of an option, or None when it is given nowhere.

    Args:
        config: The run's configuration.
        name: Name of the option, such as `base-url`.
        environ: Environment to read; by default the process' own.

    Raises:
        pytest.UsageError: The value is not of the option's kind.
    """
    option = _BY_NAME[name]
    known = _KNOWN.setdefault(config, {})
    if option.env is not None:
        return _value_of(config, option, os.environ if environ is None else environ)
    if name not in known:
        known[name] = _value_of(config, option, {})
    return known[name]


def _value_of(config: pytest.Config, option: Option, environ: Mapping[str, str]) -> Any:
    written = config.getoption(option.key) if option.flag else None
    source = option.flag_name
    if written is None and option.env is not None:
        written = environ.get(option.env) or None
        source = option.env
    if written is None:
        written = config.getini(option.key)
        source = f"{option.key} in the ini file"
    if written is None:
        return None
    try:
        return _READ[option.kind](option, written)
    except ValueError as error:
        raise pytest.UsageError(f"{source}: {error}") from None


def _read_text(option: Option, written: str) -> str:
    if option.choices and written not in option.choices:
        raise ValueError(f"{written!r} is none of {', '.join(option.choices)}")
    if not written.strip():
        raise ValueError("is empty; write a value or leave it out")
    return written.strip()


def _read_switch(option: Option, written: bool) -> bool:
    return written


def _read_whole(option: Option, written: str | int) -> int:
    digits = str(written)
    if not (digits.isascii() and digits.isdecimal() and 0 < int(digits) <= 1000):
        raise ValueError(f"{digits!r} is not a whole number from 1 to 1000")
    return int(digits)


def _read_number(option: Option, written: str | float) -> float:
    try:
        number = float(written)
    except ValueError:
        number = 0.0
    if not 0 < number <= 86400:
        raise ValueError(f"{str(written)!r} is not a number of seconds above 0, at most 86400")
    return number


def _read_names(option: Option, written: str | list[str]) -> frozenset[str]:
    texts = [written] if isinstance(written, str) else written
    return frozenset(name.strip() for text in texts for name in text.replace("\n", ",").split(",") if name.strip())


def _read_lines(option: Option, written: list[str]) -> tuple[str, ...]:
    return tuple(line.strip() for line in written if line.strip())


_READ: Mapping[Kind, Callable[[Option, Any], Any]] = {
    "text": _read_text,
    "path": _read_text,
    "switch": _read_switch,
    "whole": _read_whole,
    "number": _read_number,
    "names": _read_names,
    "lines": _read_lines,
}


def markdown_table() -> str:
    """Return the table of options as Markdown, for the documentation."""
    rows = ["| flag | ini key | environment | default | what it does |", "|---|---|---|---|---|"]
    for option in OPTIONS:
        value = "" if option.kind == "switch" else "=" + ("\\|".join(option.choices) or option.metavar)
        flag = f"`{option.flag_name}{value}`" if option.flag else "–"
        env = f"`{option.env}`" if option.env else "–"
        rows.append(f"| {flag} | `{option.key}` | {env} | {option.default} | {option.help} |")
    return "\n".join(rows) + "\n"
