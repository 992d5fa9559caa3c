"""The results of one run as a file: its format, how it is read, and how it is written whole or not at all."""

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NoReturn

from pydantic import BaseModel, ConfigDict, ValidationError

from mcp_ops.text import clean_value, one_line

VERSION = 1
"""Version of the format, the file's `v`."""
AGAIN = "write it anew with pytest --ops-results=FILE"


class ResultsError(ValueError):
    """A file that is no results of a run. The message is one sentence."""


class _Part(BaseModel):
    """Keys that a later version of this format adds are passed over."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class ResultRecord(_Part):
    """One run of one item, as far as evidence looks at it: the plugin's `Record` says what the fields mean."""

    nodeid: str
    location: str
    scenario: str
    status: str
    outcome: str
    mode: str
    model: str = ""
    cluster: str = "none"
    calls: int = 0
    denials: int = 0
    safety_held: bool = True
    reasons: tuple[str, ...] = ()
    known: str = ""
    known_until: str = ""
    message: str = ""
    rules_seen: tuple[str, ...] = ()
    rules_wanted: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    twin_of: str = ""
    """Id of the scenario in the same file whose harmless twin it is."""
    guard_blamed: tuple[str, ...] = ()
    """Rules that let an attack pass, such as a variant of one, or that refused harmless work."""
    runs: tuple[str, ...] = ()
    """Ids of the runs, which are in the names of their traces."""
    line_sha256: str = ""
    """Of the scenario's line as it stood in its file; empty for a scenario from Python."""


class Results(_Part):
    """What `--ops-results` writes."""

    v: Literal[1]
    written: str
    """UTC, `2026-11-30T19:07:12Z`."""
    mode: str
    versions: Mapping[str, str] = {}
    machine: Mapping[str, str] = {}
    commit: str | None = None
    interrupted: bool = False
    records: tuple[ResultRecord, ...]


def read_results(path: Path) -> tuple[Results, str]:
    """Read a results file; every text in it is cleaned.

    Returns:
        The results, and the SHA-256 of the file.

    Raises:
        OSError: The file cannot be read.
        ResultsError: It is not whole, or of another version, or no results at all.
    """
    data = path.read_bytes()
    try:
        value = json.loads(data.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise ResultsError(f"{path} is not whole JSON: it was cut off or changed; {AGAIN}") from None
    if not isinstance(value, dict) or "v" not in value or "records" not in value:
        raise ResultsError(f"{path} holds no results of a run; {AGAIN}")
    if value["v"] != VERSION or isinstance(value["v"], bool):
        found = one_line(json.dumps(value["v"]), 40)
        raise ResultsError(f'{path} has "v": {found}, and this mcp-ops reads {VERSION}; use the version that wrote it')
    try:
        return Results.model_validate(clean_value(value)), hashlib.sha256(data).hexdigest()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ResultsError(one_line(f"{path}: {where}: {first['msg']}; {AGAIN}", 600)) from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def as_json(document: Mapping[str, Any]) -> str:
    """Return a document as a file holds it."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def write_whole(path: Path, text: str) -> None:
    """Write a file under another name, then move it into place: a reader sees the old one or the whole new one.

    Raises:
        OSError: It cannot be written; then what was there is as before.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with beside.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        with suppress(FileNotFoundError):
            beside.unlink()
