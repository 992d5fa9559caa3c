"""A glob over workspace paths, translated to RE2: it matches strings and never touches the file system."""

import re
from dataclasses import dataclass
from typing import Any

import re2

MAX_GLOB_CHARACTERS = 500

_WILDCARD = re.compile(r"[*?\[{\\]")
_SEPARATOR = re.compile(r"[/{},]")
_CLASS_OR_PUNCTUATION = re.compile(r"(?P<known>\[:[a-z]+:\])|[!-,./:-@\[-`{-~]")
_TOKEN = re.compile(
    r"(?P<folders>(?<![^/{,])\*\*/)"
    r"|(?P<rest>(?<![^/{,])\*\*(?![^},]))"
    r"|(?P<some>\*+)"
    r"|(?P<one>\?)"
    r"|\[(?P<negated>[!^]?)(?P<members>\]?(?:\[:[a-z]+:\]|[^]/])*)\]"
    r"|(?P<open>\{)|(?P<close>\})|(?P<comma>,)"
    r"|\\(?P<escaped>.)"
    r"|(?P<plain>.)",
    re.DOTALL,
)
_MEANING = {"folders": "(?:[^/]+/)*", "rest": ".+", "some": "[^/]*", "one": "[^/]"}


class GlobError(ValueError):
    """A glob that cannot be used; the message is the end of a sentence that begins with the glob."""


@dataclass(frozen=True)
class Glob:
    """A compiled glob.

    `*` and `?` stop at a slash, `**` does not; `[...]`, with classes such as `[:digit:]`, and `{a,b}` work as in a
    shell. Without a slash a glob fits names at any depth, with one it fits whole paths.
    """

    folder: tuple[str, ...]
    """Leading components without a wildcard: nothing outside this folder fits."""
    _matcher: Any

    def fits(self, path: str) -> bool:
        """Whether a path relative to the root fits."""
        return self._matcher.fullmatch(path.encode("utf-8", "replace")) is not None

    def may_fit_below(self, folder: tuple[str, ...]) -> bool:
        """Whether something below `folder` could fit."""
        return all(ours == theirs for ours, theirs in zip(self.folder, folder, strict=False))


def leads_outside(text: str) -> str | None:
    """Return why a glob names something outside the root, as the end of a sentence, or None."""
    if text.startswith("/"):
        return "is absolute"
    if text.startswith("~"):
        return "begins with '~'"
    if "\0" in text:
        return "holds a NUL character"
    return "holds '..'" if ".." in _SEPARATOR.split(text) else None


def split_folder(text: str) -> tuple[str, str]:
    """Split a glob into the folder in front of its first wildcard and the rest."""
    wildcard = _WILDCARD.search(text)
    folder, slash, _ = text[: wildcard.start() if wildcard else len(text)].rpartition("/")
    return folder or slash, text[len(folder + slash) :]


def compile_glob(text: str) -> Glob:
    """Compile a glob.

    Raises:
        GlobError: It is too long or malformed.
    """
    if len(text) > MAX_GLOB_CHARACTERS:
        raise GlobError(f"is longer than {MAX_GLOB_CHARACTERS} characters")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise GlobError("holds half of a surrogate pair")
    plain = "/".join(name for name in text.split("/") if name not in ("", "."))
    if text.endswith("/") or not plain:
        plain += "/**" if plain else "**"
    anywhere = "" if "/" in plain else _MEANING["folders"]
    options = re2.Options()
    options.log_errors, options.dot_nl, options.never_capture = False, True, True
    try:
        matcher = re2.compile((anywhere + _translate(plain)).encode(), options)
    except re2.error as error:
        raise GlobError(f"is malformed: {error.args[0].decode('utf-8', 'replace')}") from None
    folder, _ = split_folder(plain)
    return Glob(tuple(folder.split("/")) if folder else (), matcher)


def _translate(glob: str) -> str:
    pieces = []
    depth = 0
    for token in _TOKEN.finditer(glob):
        kind, text = token.lastgroup or "", token[0]
        if kind in _MEANING:
            pieces.append(_MEANING[kind])
        elif kind == "members":
            members = _CLASS_OR_PUNCTUATION.sub(lambda found: found["known"] or f"\\{found[0]}", token["members"])
            pieces.append(f"[^/{members}]" if token["negated"] else f"[{members}]")
        elif kind in ("open", "close"):
            depth += 1 if kind == "open" else -1
            pieces.append("(?:" if kind == "open" else ")")
        elif kind == "comma" and depth > 0:
            pieces.append("|")
        elif text == "[":
            raise GlobError("is malformed: '[' without ']'")
        else:
            pieces.append(re2.escape(token["escaped"] or text))
        if depth < 0:
            raise GlobError("is malformed: '}' without '{'")
    if depth:
        raise GlobError("is malformed: '{' without '}'")
    return "".join(pieces)
