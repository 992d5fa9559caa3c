"""Hiding credentials in Kubernetes objects, decided on what the reply holds and not on what was asked for."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress

from mcp_ops.ops.guards.secret_names import DEFAULT
from mcp_ops.ops.redaction.words import REDACTED, is_credential, looks_random, redact_text

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""An annotation that repeats the whole object, values included."""


def redact_object(value: object, kind: str = "") -> object:
    """Return a parsed object, or a list of objects, with credentials hidden.

    A Secret keeps the names of its entries and none of their values, wherever it stands. A ConfigMap's values are
    hidden where key or value looks like a credential.

    Args:
        value: What was parsed.
        kind: The kind of a list's items that do not name their own.
    """
    if isinstance(value, str):
        return _redact_string(value)
    if isinstance(value, list):
        return [redact_object(item, kind) for item in value]
    if not isinstance(value, Mapping):
        return value
    if isinstance(value.get("name"), str) and isinstance(value.get("value"), str):
        return _variable(value)
    kind = str(value.get("kind", kind)).casefold()
    return {key: _entry(kind, key, item) for key, item in value.items() if key != LAST_APPLIED}


def _entry(kind: str, key: str, value: object) -> object:
    if key in ("data", "stringData", "binaryData") and isinstance(value, Mapping):
        everything = kind == "secret" or key != "data"
        return {name: REDACTED if everything else redact_entry(name, item) for name, item in value.items()}
    if key == "env" and isinstance(value, list):
        return [_variable(item) for item in value]
    if key in ("args", "command") and isinstance(value, list):
        return redact_arguments(value)
    if isinstance(value, str):
        return REDACTED if is_credential(key, value) else _redact_string(value)
    return redact_object(value, kind.removesuffix("list") if key == "items" else "")


def _redact_string(value: str) -> str:
    """Hide credentials in a string; one that holds an object, as some annotations do, is treated as that object."""
    if value.startswith("{"):
        with suppress(ValueError, RecursionError):
            return json.dumps(redact_object(json.loads(value)), ensure_ascii=False)
    return redact_text(value)


def redact_entry(name: str, value: object) -> object:
    """Return the value of a ConfigMap's entry or an environment variable, hidden if name or value is a credential's."""
    if not isinstance(value, str):
        return redact_object(value)
    if is_credential(name, value) or looks_random(value) or (value and DEFAULT.pattern_for_name(name)):
        return REDACTED
    return _redact_string(value)


def redact_arguments(arguments: Sequence[object]) -> list[object]:
    """Return a command line with the values of its credential flags hidden, also where they stand by themselves."""
    shown: list[object] = []
    hide_next = False
    for argument in arguments:
        if not isinstance(argument, str):
            shown.append(redact_object(argument))
            hide_next = False
            continue
        flag = argument.startswith("-") and "=" not in argument
        shown.append(REDACTED if hide_next and not argument.startswith("-") else redact_text(argument))
        hide_next = flag and is_credential(argument.lstrip("-"), "x")
    return shown


def _variable(item: object) -> object:
    if isinstance(item, Mapping) and isinstance(item.get("name"), str):
        name = str(item["name"])
        return {key: redact_entry(name, part) if key == "value" else redact_object(part) for key, part in item.items()}
    return redact_object(item)
