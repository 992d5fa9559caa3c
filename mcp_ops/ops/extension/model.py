"""The file of an operator as it is written: its tables and keys, each with what may stand there."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

MAX_FILES = 100
MAX_FILE_CHARACTERS = 100_000

_PROGRAM = re.compile(r"[a-z0-9][a-z0-9._+-]{0,63}", re.ASCII | re.IGNORECASE)
_OPTION = re.compile(r"[A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9-]+", re.ASCII)
_KIND = re.compile(r"[a-z][a-z0-9-]{0,62}", re.ASCII)
_GROUP = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*", re.ASCII)


class BadExtension(ValueError):
    """The file cannot be used. The message is one sentence that begins with file and line."""


class Wrong(ValueError):
    """One value of the file is wrong; the message is the end of a sentence that begins with its place."""


def _program(name: str) -> str:
    if not _PROGRAM.fullmatch(name):
        raise ValueError("is not the bare name of a program; write it without a folder, such as cut")
    return name


def _options(names: str) -> str:
    words = names.split()
    if not words or not all(_OPTION.fullmatch(word) for word in words):
        raise ValueError(f"{names!r} does not name an option; write letter and long names without dashes: d delimiter")
    return names


def _kind(name: str) -> str:
    if not _KIND.fullmatch(name):
        raise ValueError("is not the name of a kind; write it in lower case, such as certificates")
    return name


def _group(name: str) -> str:
    if name and not _GROUP.fullmatch(name):
        raise ValueError("is not an API group; write it as the CRD does, such as cert-manager.io, without a version")
    return name


def _pattern(text: str) -> str:
    if not text.strip("*?") or "/" in text or text != text.strip():
        raise ValueError("is not a pattern of one name; write it without a slash and not of wildcards alone: *.vault")
    return text


def _file(path: str) -> str:
    parts = PurePosixPath(path).parts
    if not parts or path.startswith(("/", "~")) or ".." in parts or "\0" in path or path.endswith("/"):
        raise ValueError(f"{path!r} is not a file of the workspace; write a relative path without ..")
    return path


OptionNames = Annotated[str, AfterValidator(_options)]
KindName = Annotated[str, AfterValidator(_kind)]
FilePath = Annotated[str, AfterValidator(_file)]
FileText = Annotated[str, Field(max_length=MAX_FILE_CHARACTERS)]
Commands = Annotated[list[str], Field(min_length=1)]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ProgramEntry(_Entry):
    """`[[program]]`: a further read-only program of `run_shell` and its option table."""

    name: Annotated[str, AfterValidator(_program)] = Field(description="Bare name.", examples=["cut"])
    package: str = Field(
        description="What the first line of `NAME --version` must hold: the table is for this program only.",
        examples=["GNU coreutils"],
        min_length=3,
    )
    operands: Literal["files", "one_file", "text_and_files", "texts", "none"] = Field(
        description="What the arguments are that belong to no option.", examples=["files"]
    )
    reads: Literal["names", "part", "all"] = Field(
        default="all",
        description="What it reads of a file: its name, size and times; as much as it needs; or all of it, which is "
        "refused over 64 MB.",
        examples=["part"],
    )
    stdin: bool = Field(
        default=True, description="Whether it reads standard input when no file is named.", examples=[True]
    )
    flags: list[OptionNames] = Field(
        default_factory=list, description="Options without a value.", examples=[["s only-delimited"]]
    )
    values: list[OptionNames] = Field(
        default_factory=list, description="Options with a value that is no path.", examples=[["d delimiter"]]
    )
    glued: list[OptionNames] = Field(
        default_factory=list, description="Options whose value, if any, is glued to them.", examples=[["color"]]
    )
    paths: list[OptionNames] = Field(
        default_factory=list, description="Options whose value is a file that is read.", examples=[["reference"]]
    )
    refused: dict[OptionNames, str] = Field(
        default_factory=dict,
        description="Options that the program has and that are refused, with the reason as the end of a sentence.",
        examples=[{"o output": "it writes a file"}],
    )
    attack: Commands = Field(description="Commands of this program that must be denied.", examples=[["cut -f1 /etc/x"]])
    harmless: Commands = Field(description="Commands of this program that must run.", examples=[["cut -d: -f1 a.csv"]])


class KindCall(_Entry):
    """The arguments of one `kubectl_get`."""

    resource: str
    name: str | None = None
    namespace: str | None = None
    output: str = "default"


class KindEntry(_Entry):
    """`[[kind]]`: a further kind of `kubectl_get` and `kubectl_describe`."""

    plural: KindName = Field(description="Plural, as kubectl takes it.", examples=["certificates"])
    singular: KindName = Field(description="Singular.", examples=["certificate"])
    short: list[KindName] = Field(default_factory=list, description="Short names.", examples=[["cert", "certs"]])
    group: Annotated[str, AfterValidator(_group)] = Field(
        default="", description="API group; kubectl is then asked for this group's kind only.", examples=["batch"]
    )
    attack: Annotated[list[KindCall], Field(min_length=1)] = Field(
        description="Arguments of kubectl_get that name this kind and must be denied."
    )
    harmless: Annotated[list[KindCall], Field(min_length=1)] = Field(
        description="Arguments of kubectl_get that name this kind and must be allowed."
    )


class SecretNameEntry(_Entry):
    """`[[secret_name]]`: a further name of files whose content nobody may read."""

    pattern: Annotated[str, AfterValidator(_pattern)] = Field(
        description="Shell-style pattern of one name.", examples=["*.vault"]
    )
    but_not: list[Annotated[str, AfterValidator(_pattern)]] = Field(
        default_factory=list, description="Names that fit and are no secrets.", examples=[["example.vault"]]
    )
    attack: Commands = Field(description="Commands that this pattern denies and nothing else does.")
    harmless: Commands = Field(description="Commands on similar names that stay allowed.")


class ExtensionFile(_Entry):
    """The whole file."""

    files: dict[FilePath, FileText] = Field(
        default_factory=dict,
        description="Files of the workspace in which the examples are judged and run.",
        max_length=MAX_FILES,
    )
    program: list[ProgramEntry] = Field(default_factory=list)
    kind: list[KindEntry] = Field(default_factory=list)
    secret_name: list[SecretNameEntry] = Field(default_factory=list)

    def entries(self) -> Iterator[tuple[str, int, ProgramEntry | KindEntry | SecretNameEntry]]:
        """Yield each addition with the name of its table and its number there."""
        yield from (("program", number, entry) for number, entry in enumerate(self.program))
        yield from (("kind", number, entry) for number, entry in enumerate(self.kind))
        yield from (("secret_name", number, entry) for number, entry in enumerate(self.secret_name))
