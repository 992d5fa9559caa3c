"""Writing JSON data as YAML, the way kubectl shows objects."""

import json
import re
from collections.abc import Iterator, Mapping

_PLAIN = re.compile(r"[A-Za-z/][\w./@+-]*(?: [\w./@+()-]+)*", re.ASCII)
_RESERVED = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_BLOCK = re.compile(r"[^\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff\ufffe\uffff\u2028\u2029\ud800-\udfff]*")


def to_yaml(value: object) -> str:
    """Return YAML that reads back as `value`, which is made of what JSON is made of."""
    return "\n".join(_lines(value, "")) + "\n"


def _lines(value: object, indent: str) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _entry(f"{indent}{_scalar(str(key))}:", item, indent, deeper=not isinstance(item, list))
    elif isinstance(value, list) and value:
        for item in value:
            yield from _item(item, indent)
    else:
        yield indent + _scalar(value)


def _entry(head: str, value: object, indent: str, *, deeper: bool) -> Iterator[str]:
    if isinstance(value, Mapping | list) and value:
        yield head
        yield from _lines(value, indent + "  " if deeper else indent)
    elif isinstance(value, str) and _fits_block(value):
        yield f"{head} |" + ("" if value.endswith("\n") else "-")
        yield from (f"{indent}  {line}" if line else "" for line in value.removesuffix("\n").split("\n"))
    else:
        yield f"{head} {_scalar(value)}"


def _item(value: object, indent: str) -> Iterator[str]:
    if isinstance(value, Mapping | list) and value:
        lines = list(_lines(value, indent + "  "))
        yield f"{indent}- {lines[0].removeprefix(indent + '  ')}"
        yield from lines[1:]
    else:
        yield from _entry(f"{indent}-", value, indent, deeper=True)


def _fits_block(text: str) -> bool:
    """Whether a literal block reads back unchanged: several lines, none of which the block would alter."""
    body = text.removesuffix("\n")
    return "\n" in body and body[0] not in " \n\t" and body[-1] != "\n" and bool(_BLOCK.fullmatch(text))


def _scalar(value: object) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.casefold() not in _RESERVED:
        return value
    return json.dumps(value, ensure_ascii=not isinstance(value, str) or not _BLOCK.fullmatch(value))
