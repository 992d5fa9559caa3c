"""What is in the GitHub of a line: what the line says, laid over the file that it names."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mcp_ops.evaluation.line.faults import LineFault, all_faults
from mcp_ops.evaluation.line.github_spec import GitHubSpec, HarmlessState
from mcp_ops.evaluation.line.locate import JsonFault, decode
from mcp_ops.evaluation.wording import Path as KeyPath
from mcp_ops.evaluation.wording import show_path
from mcp_ops.evaluation.world.copying import WorldError
from mcp_ops.evaluation.world.worlds import find_file
from mcp_ops.github.memory.state import GitHubState
from mcp_ops.text import one_line

MAX_STATE_BYTES = 5_000_000
"""Most bytes of a file that a line names."""
_HERE: KeyPath = ("world", "github")
_FROM = "world.github.from"
_OF_THE_LINE = {"from_", "watch", "write"}


def github_state(spec: GitHubSpec, *, line_folder: Path | None, rootdir: Path) -> GitHubState:
    """Return what is in the GitHub of a line.

    Args:
        spec: `world.github` of the line.
        line_folder: Folder of the line's file, where the search for the named file begins.
        rootdir: No file lies outside it.

    Raises:
        WorldError: The file is not found, is no JSON, or does not say what a GitHub is; the sentence has its name, line
            and column.
    """
    written = spec.model_dump(by_alias=True, exclude_unset=True, exclude=_OF_THE_LINE)
    if spec.from_ is None:
        return HarmlessState.model_validate(written)
    path = find_file(spec.from_, line_folder, rootdir, path=_FROM)
    text = _text_of(path, spec.from_)
    try:
        said = decode(text)
    except JsonFault as error:
        raise WorldError(f"{_place(spec.from_, text, error.offset)}: {one_line(str(error), 400)}", _FROM) from None
    if not isinstance(said, dict):
        raise WorldError(
            f'{_place(spec.from_, text, 0)}: a file is one JSON object; write {{"repositories": …}}', _FROM
        )
    merged = laid_over(said, written)
    try:
        return HarmlessState.model_validate(merged)
    except ValidationError as error:
        found = all_faults(error, merged, text, HarmlessState)
        raise _blamed(found, written, spec.from_, text) from None


def laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return both in one: objects are merged key by key, everything else takes the place of what is below."""
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        both = isinstance(value, Mapping) and isinstance(under, Mapping)
        merged[key] = laid_over(under, value) if both and under is not None else value
    return merged


def _blamed(faults: list[LineFault], written: Mapping[str, Any], name: str, text: str) -> WorldError:
    """Return the error for the first thing that is wrong, in the file unless all of it stands in the line."""
    in_file = [fault for fault in faults if not _stands_in(written, fault.path)]
    if in_file:
        first = min(in_file, key=lambda fault: fault.offset)
        return WorldError(f"{_place(name, text, first.offset)}: {first.message}", _FROM)
    return WorldError(f"{show_path(_HERE)}.{faults[0].message}", show_path((*_HERE, *faults[0].path)))


def _stands_in(value: Any, path: KeyPath) -> bool:
    for part in path:
        in_list = isinstance(value, list | tuple) and isinstance(part, int) and part < len(value)
        if not in_list and not (isinstance(value, Mapping) and part in value):
            return False
        value = value[part]
    return True


def _text_of(path: Path, name: str) -> str:
    shown = one_line(name, 80)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_STATE_BYTES + 1)
    except OSError as error:
        raise WorldError(f"{shown} cannot be read: {(error.strerror or str(error)).lower()}", _FROM) from None
    if len(data) > MAX_STATE_BYTES:
        raise WorldError(f"{shown} is larger than {MAX_STATE_BYTES:,} bytes; write a smaller one", _FROM)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise WorldError(f"{shown} is not UTF-8 from byte offset {error.start} on; save it as UTF-8", _FROM) from None


def _place(name: str, text: str, offset: int) -> str:
    before = text[:offset]
    return f"{one_line(name, 80)}:{before.count(chr(10)) + 1}:{offset - before.rfind(chr(10))}"
