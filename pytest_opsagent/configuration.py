"""From what the user gave to what a run needs: `RunConfig`, and the sentences for what cannot be right."""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_opsagent.options import value_of

if TYPE_CHECKING:
    from mcp_ops.evaluation.config import RunConfig, ServerSpec
    from mcp_ops.evaluation.outcome import Outcome

NEEDS = ("cluster", "second_wall", "live")
"""What a run can be required to have: the needs that lines name, and a live model."""

_SERVER_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_ATTRIBUTE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", re.ASCII)
_NO_ITEM_RUNS = ("collectonly", "help", "version", "markers", "showfixtures", "show_fixtures_per_test", "cacheshow")


def mode_of(config: pytest.Config) -> str:
    """Return `mock` or `live`."""
    return str(value_of(config, "mode") or "mock")


def required_needs(config: pytest.Config) -> frozenset[str]:
    """Return the needs that must not be unmet.

    Raises:
        pytest.UsageError: A name is no need.
    """
    names: frozenset[str] = value_of(config, "require") or frozenset()
    if unknown := sorted(names - set(NEEDS)):
        raise pytest.UsageError(f"--ops-require: {', '.join(unknown)} is no need; known are {', '.join(NEEDS)}")
    return names


def missing_needs(config: pytest.Config, outcome: "Outcome") -> list[str]:
    """Return what was not there for a scenario though it must be: needs of the line, or the live run it is for."""
    needs = ["live"] if outcome.skipped_mode and outcome.mode == "mock" else outcome.unmet_needs
    return sorted(required_needs(config).intersection(needs))


def echoes(config: pytest.Config) -> bool:
    """Return whether events are printed as they happen."""
    return bool(value_of(config, "echo")) or config.getoption("capture") == "no"


def check_live(config: pytest.Config) -> None:
    """Refuse a live run that cannot reach its model, before anything is collected.

    Raises:
        pytest.UsageError: A live run against the default endpoint has no key.
    """
    if mode_of(config) != "live" or any(config.getoption(name, False) for name in _NO_ITEM_RUNS):
        return
    from mcp_ops.evaluation.config import DEFAULT_BASE_URL
    from mcp_ops.evaluation.endpoint import PROVIDER_KEY, is_default_host, key_for

    base_url = value_of(config, "base-url") or DEFAULT_BASE_URL
    if is_default_host(base_url) and key_for(base_url, os.environ) is None:
        raise pytest.UsageError(
            f"--ops-mode=live needs a key for the default endpoint: set {PROVIDER_KEY}, or name an OpenAI-compatible "
            "endpoint with --ops-base-url=URL, or run the scripts with --ops-mode=mock"
        )


def check_files(config: pytest.Config) -> None:
    """Refuse a named file that is not there: the scenarios of a missing kubeconfig would only be skipped.

    Raises:
        pytest.UsageError: A named file is not there.
    """
    for name, what in (("kubeconfig", "kubeconfig of the cluster to read"), ("guards", "file of your additions")):
        named = path_of(config, name)
        if named is not None and not named.is_file():
            raise pytest.UsageError(f"--ops-{name}: {named} is no file; name the {what}")


def read_servers(lines: Sequence[str]) -> "dict[str, ServerSpec]":
    """Read the lines of `ops_servers`.

    Raises:
        pytest.UsageError: A line is none of the four forms, or says something twice.
    """
    from mcp_ops.evaluation.config import OWN_SERVERS, ServerSpec

    servers: dict[str, dict[str, Any]] = {}
    for line in lines:
        left, equals, right = (part.strip() for part in line.partition("="))
        name, dot, setting = left.partition(".")
        if not (equals and right and _SERVER_NAME.fullmatch(name)):
            raise _wrong(line, "write `name = command …` or `name = module:factory`")
        if name in OWN_SERVERS:
            raise _wrong(line, f"`{name}` is a server that ships here; choose another name")
        fields = _server_setting(line, setting, right) if dot else _server_start(line, right)
        known = servers.setdefault(name, {})
        if known.keys() & fields.keys():
            raise _wrong(line, f"`{left}` is set twice")
        known.update(fields)
    for name, fields in servers.items():
        if not fields.keys() & {"command", "factory"}:
            raise _wrong(name, f"nothing says how to start it; add `{name} = command …` or `{name} = module:factory`")
    return {name: ServerSpec(name=name, **fields) for name, fields in servers.items()}


def _server_start(line: str, right: str) -> dict[str, Any]:
    if _ATTRIBUTE.fullmatch(right):
        return {"factory": right}
    try:
        command = tuple(shlex.split(right))
    except ValueError as error:
        raise _wrong(line, f"the command cannot be split: {error}") from None
    return {"command": command}


def _server_setting(line: str, setting: str, right: str) -> dict[str, Any]:
    if setting == "denied":
        return {"denied_pattern": _checked_pattern(line, right)}
    if setting == "mutating" and right.lower() in ("true", "false"):
        return {"mutating": right.lower() == "true"}
    if setting == "grant":
        return {"grants": _checked_grants(line, right)}
    raise _wrong(
        line, "a server has the settings `denied = RE2 pattern`, `mutating = true` or `false`, and `grant = roots`"
    )


def _checked_grants(line: str, right: str) -> frozenset[str]:
    from mcp_ops.evaluation.config import GRANTS

    grants = frozenset(right.replace(",", " ").split())
    if unknown := sorted(grants - set(GRANTS)):
        known = ", ".join(GRANTS)
        raise _wrong(line, f"{unknown[0]} cannot be granted; what a server may ask of its client is {known}")
    return grants


def _checked_pattern(line: str, pattern: str) -> str:
    from mcp_ops.evaluation.matching.patterns import BadPattern, check_regex

    try:
        check_regex(pattern)
    except BadPattern as error:
        raise _wrong(line, f"not an RE2 pattern: {error}") from None
    return pattern


def _wrong(line: str, reason: str) -> pytest.UsageError:
    return pytest.UsageError(f"ops_servers: {line!r}: {reason}")


def read_agent(config: pytest.Config) -> str | None:
    """Return the `module:callable` of the user's agent, or None for the one that ships.

    Raises:
        pytest.UsageError: The value has another form.
    """
    written: str | None = value_of(config, "agent")
    if written is not None and not _ATTRIBUTE.fullmatch(written):
        raise pytest.UsageError(f"ops_agent: {written!r} is not of the form `module:callable`")
    return written


def check(config: pytest.Config) -> None:
    """Refuse settings that cannot be right, before anything is collected.

    Raises:
        pytest.UsageError: One sentence that names the setting and says what to write instead.
    """
    check_live(config)
    check_files(config)
    read_agent(config)
    if lines := value_of(config, "servers"):
        read_servers(lines)
    required_needs(config)
    for name in ("response-schema", "transport", "report-detail", "max-calls", "max-seconds"):
        value_of(config, name)


def run_config(config: pytest.Config, *, trace_dir: Path, environ: Mapping[str, str] | None = None) -> "RunConfig":
    """Return what the harness is told for this run."""
    from mcp_ops.evaluation.config import Limits, RunConfig

    environ = os.environ if environ is None else environ
    limits = {"max_calls": value_of(config, "max-calls"), "seconds": value_of(config, "max-seconds")}
    fields = {
        "model": value_of(config, "model", environ),
        "base_url": value_of(config, "base-url", environ),
        "response_schema": value_of(config, "response-schema"),
        "transport": value_of(config, "transport"),
        "kubeconfig": path_of(config, "kubeconfig"),
        "guards": path_of(config, "guards"),
        "kube_context": value_of(config, "kube-context"),
        "allow_writes": value_of(config, "allow-writes"),
        "clusters": value_of(config, "clusters"),
    }
    live = mode_of(config) == "live"
    return RunConfig(
        mode="live" if live else "mock",
        rootdir=config.rootpath,
        api_key=_key(fields["base_url"], environ) if live else None,
        servers=read_servers(value_of(config, "servers") or ()),
        agent=read_agent(config),
        trace_dir=trace_dir,
        echo=echoes(config),
        limits=Limits(**{name: value for name, value in limits.items() if value is not None}),
        **{name: value for name, value in fields.items() if value is not None},
    )


def _key(base_url: str | None, environ: Mapping[str, str]) -> str | None:
    """Return the key of a live run. A key is never taken from a flag or a file."""
    from mcp_ops.evaluation.config import DEFAULT_BASE_URL
    from mcp_ops.evaluation.endpoint import key_for

    return key_for(base_url or DEFAULT_BASE_URL, environ)


def path_of(config: pytest.Config, name: str) -> Path | None:
    """Return an option's path: a flag's from the folder pytest was started in, an ini file's from its own folder."""
    written: str | None = value_of(config, name)
    if written is None:
        return None
    on_the_command_line = config.getoption("ops_" + name.replace("-", "_")) is not None
    ini_folder = config.inipath.parent if config.inipath else config.rootpath
    base = config.invocation_params.dir if on_the_command_line else ini_folder
    return base / Path(written).expanduser()
