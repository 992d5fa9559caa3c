"""The spellings under which a secret value may stand in a text as it is read, character by character."""

import base64
import html
import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal
from urllib.parse import quote

Encoding = Literal["plain", "url", "json", "base64", "escaped", "html", "split", "hex", "gzip"]
"""How a canary stands in a text.

plain: as it is. url: percent-encoded. json: JSON-escaped, up to three times over. base64: at any alignment.
escaped: single characters of it written as `%43`, `=43`, `\\x43`, `\\u0043` or `\\103`. html: single characters
written as entities. split: over several lines. hex: its bytes in hexadecimal. gzip: compressed, and that in base64 or
hexadecimal.
"""


_JSON_LEVELS = 3
"""JSON in a string of JSON, as a model's arguments are in a trace, and that quoted once more."""


@lru_cache(maxsize=1024)
def needles(value: str) -> tuple[tuple[Encoding, str], ...]:
    """Return every spelling under which `value` may stand in a text as it is read, the plain one first."""
    found: dict[str, Encoding] = {value: "plain"}
    written = [value]
    for _ in range(_JSON_LEVELS):
        written = [json.dumps(each, ensure_ascii=ascii_only)[1:-1] for each in written for ascii_only in (True, False)]
        written = list(dict.fromkeys(written))
        for spelling in written:
            found.setdefault(spelling, "json")
    percent = quote(value, safe="")
    for spelling in (percent, re.sub("%..", lambda hex_: hex_[0].lower(), percent), percent.replace("%20", "+")):
        found.setdefault(spelling, "url")
    for spelling in _base64_spellings(value.encode("utf-8", "replace")):
        found.setdefault(spelling, "base64")
    return tuple((encoding, spelling) for spelling, encoding in found.items() if spelling)


def _base64_spellings(data: bytes) -> Iterator[str]:
    for shift, first_whole_character in ((0, 0), (1, 2), (2, 3)):
        whole_characters = (shift + len(data)) * 8 // 6
        for encode in (base64.standard_b64encode, base64.urlsafe_b64encode):
            spelling = encode(bytes(shift) + data).decode("ascii")[first_whole_character:whole_characters]
            if len(spelling) >= 8:
                yield spelling


@lru_cache(maxsize=1024)
def unescaped_needles(value: str) -> tuple[str, ...]:
    """Return what `value` reads once its escapes are resolved byte by byte: as it is, or as UTF-8 taken for Latin-1."""
    return tuple(dict.fromkeys((value, value.encode("utf-8", "replace").decode("latin-1")))) if value else ()


@lru_cache(maxsize=1024)
def entity_needles(value: str) -> tuple[str, ...]:
    """Return every spelling of what `value` reads once its entities, if it has some, are resolved."""
    return tuple(spelling for _, spelling in needles(resolve_entities(value)))


@lru_cache(maxsize=1024)
def hex_needles(value: str) -> tuple[str, ...]:
    """Return the bytes of `value` in hexadecimal: as UTF-8, in a dump that swaps the bytes of a word, and as UTF-16."""
    data = value.encode("utf-8", "replace")
    swapped = [_swap(data[start : start + (len(data) - start) // 2 * 2]) for start in (0, 1)]
    wide = [value.encode(name, "replace") for name in ("utf-16-be", "utf-16-le")]
    return tuple(dict.fromkeys(each.hex() for each in (data, *swapped, *wide) if len(each) >= _LEAST_BYTES))


_LEAST_BYTES = 6
"""Fewer would be found by chance."""


def _swap(data: bytes) -> bytes:
    return b"".join(data[start : start + 2][::-1] for start in range(0, len(data), 2))


_COMMON_ENTITIES = (("&#34;", '"'), ("&quot;", '"'), ("&#39;", "'"), ("&#x27;", "'"), ("&lt;", "<"), ("&gt;", ">"))
_ENTITY_LEVELS = 3


def resolve_entities(text: str) -> str:
    """Return `text` with its HTML and XML entities resolved, those that are escaped once or twice themselves too."""
    for _ in range(_ENTITY_LEVELS):
        if "&" not in text:
            break
        before = text
        for entity, character in _COMMON_ENTITIES:
            text = text.replace(entity, character)
        text = html.unescape(text)
        if text == before:
            break
    return text
