"""Reading an operator's file: every fault is one sentence with file and line."""

import difflib
import re
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from mcp_ops.ops.extension.examples import Judge
from mcp_ops.ops.extension.model import BadExtension, ExtensionFile, KindEntry, ProgramEntry, SecretNameEntry, Wrong
from mcp_ops.ops.extension.tables import Example, Extension, extended, program_of, spellings_of
from mcp_ops.text import one_line

MAX_BYTES = 1_000_000

_HEADER = re.compile(r"\s*\[\[\s*(program|kind|secret_name)\s*\]\]")
_TOML_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


def load_extension(path: Path) -> Extension:
    """Read an operator's file and have the guards judge every example in it.

    Nothing is run; whether a program is on this machine is looked up, and what kind of file it is.

    Raises:
        BadExtension: It cannot be read, is malformed, adds what can never be added, or an example does not hold.
    """
    text = _read(path)
    places = _Places(path, text)
    try:
        file = ExtensionFile.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        found = _TOML_PLACE.search(str(error))
        line = int(found[1]) if found and found[1] else text.count("\n") + 1
        raise places.fault(line, f"not TOML: {_TOML_PLACE.sub('', str(error)).lower()}") from None
    except ValidationError as error:
        raise _invalid(error, places) from None
    for table, number, entry in file.entries():
        try:
            _check_alone(entry)
        except Wrong as wrong:
            raise places.fault(places.line(table, number), str(wrong)) from None
    try:
        extension = extended(file, path)
    except Wrong as wrong:
        raise places.fault(1, str(wrong)) from None
    return replace(extension, examples=tuple(_judged(file, extension, places)))


def _read(path: Path) -> str:
    try:
        data = path.read_bytes()
        if len(data) > MAX_BYTES:
            raise BadExtension(f"{path}: has more than {MAX_BYTES} bytes")
        return data.decode("utf-8")
    except OSError as error:
        raise BadExtension(f"{path}: cannot be read: {(error.strerror or 'unknown').lower()}") from None
    except UnicodeDecodeError as error:
        raise BadExtension(f"{path}: is not UTF-8 (byte {error.start})") from None


def _check_alone(entry: ProgramEntry | KindEntry | SecretNameEntry) -> None:
    if isinstance(entry, ProgramEntry):
        program_of(entry)
    elif isinstance(entry, KindEntry):
        spellings_of(entry)


def _judged(file: ExtensionFile, extension: Extension, places: "_Places") -> Iterator[Example]:
    with tempfile.TemporaryDirectory(prefix="opsguards-") as folder:
        root = Path(folder)
        for name, text in file.files.items():
            try:
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text, "utf-8")
            except (OSError, ValueError) as error:
                why = (getattr(error, "strerror", None) or str(error)).lower()
                sentence = f"files: {one_line(name, 80)!r} cannot be written: {why}"
                raise places.fault(places.line("files", 0, name), sentence) from None
        judge = Judge(file, extension, root)
        for table, number, entry in file.entries():
            counts = {"attack": 0, "harmless": 0}
            try:
                for what, tool, arguments, rule in judge.of(entry):
                    counts[what] += 1
                    name = f"{_slug(entry, number)}-{what}-{counts[what]}"
                    said = arguments.get("command") or arguments.get("resource") or ""
                    yield Example(name, tool, arguments, rule, places.line(table, number, said))
            except Wrong as wrong:
                raise places.fault(places.line(table, number), str(wrong)) from None


def _slug(entry: ProgramEntry | KindEntry | SecretNameEntry, number: int) -> str:
    if isinstance(entry, ProgramEntry):
        return re.sub(r"[^a-z0-9]+", "-", entry.name.casefold()).strip("-")
    return entry.plural if isinstance(entry, KindEntry) else f"secret-name-{number + 1}"


def _invalid(error: ValidationError, places: "_Places") -> BadExtension:
    details = error.errors(include_url=False)[0]
    path: Sequence[Any] = [part for part in details["loc"] if part != "[key]"]
    table, number = (str(path[0]), path[1]) if len(path) > 1 and isinstance(path[1], int) else (str(path[0]), 0)
    key = next((str(part) for part in reversed(path) if isinstance(part, str)), "")
    where = ".".join(f"[{part + 1}]" if isinstance(part, int) else str(part) for part in path).replace(".[", "[")
    if details["type"] == "extra_forbidden":
        near = difflib.get_close_matches(key, _known(path), n=1)
        guess = f"did you mean {near[0]}?" if near else f"known are {', '.join(_known(path))}"
        return places.fault(places.line(table, number, key), f"{one_line(where, 80)}: unknown key; {guess}")
    if details["type"] == "missing":
        return places.fault(places.line(table, number), f"{where}: is missing; {_what_for(path)}")
    message = details["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    return places.fault(places.line(table, number, key), f"{one_line(where, 80)}: {one_line(message, 300)}")


def _model_at(path: Sequence[Any]) -> type[BaseModel]:
    """Return the model of the table in which the last part of a path stands."""
    model: type[BaseModel] = ExtensionFile
    for part in path[:-1]:
        field = model.model_fields.get(part) if isinstance(part, str) else None
        inner = next((arg for arg in get_args(field.annotation) if isinstance(arg, type)), None) if field else None
        if inner is not None and issubclass(inner, BaseModel):
            model = inner
    return model


def _known(path: Sequence[Any]) -> list[str]:
    return list(_model_at(path).model_fields)


def _what_for(path: Sequence[Any]) -> str:
    field: Mapping[str, Any] = _model_at(path).model_fields
    said = field[path[-1]].description if path[-1] in field else None
    return f"write it: {said[:1].lower()}{said[1:].rstrip('.')}" if said else "write it"


class _Places:
    """Finds the lines of a file: TOML's values do not know where they stood."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._lines = text.split("\n")

    def fault(self, line: int, sentence: str) -> BadExtension:
        return BadExtension(f"{self._path}:{line}: {sentence}")

    def line(self, table: str, number: int, said: str = "") -> int:
        """Return the line of an entry's header, or of the first line below it that holds `said`."""
        headers = [(at, found[1]) for at, text in enumerate(self._lines, start=1) if (found := _HEADER.match(text))]
        of_table = [at for at, name in headers if name == table]
        if number >= len(of_table):
            return self._first(said or table, 1, len(self._lines)) or 1
        header = of_table[number]
        end = next((at - 1 for at, _ in headers if at > header), len(self._lines))
        return (said and self._first(said, header, end)) or header

    def _first(self, said: str, begin: int, end: int) -> int:
        return next((at for at in range(begin, end + 1) if said in self._lines[at - 1]), 0)
