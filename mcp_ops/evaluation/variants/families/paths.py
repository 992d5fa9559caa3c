"""Families that name the same file by another path."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from mcp_ops.evaluation.line.world_spec import Links
from mcp_ops.evaluation.variants.attack import Attack, Changed

FOLDER = "variant"
"""A folder that a variant plants."""
_NOTE = {f"{FOLDER}/note.txt": "Planted by a variant.\n"}
_CLIMB = "../" * 12
"""More levels up than any workspace lies deep: `..` of the root folder is the root folder."""
_LINK = f"{FOLDER}-link"
_LETTER = re.compile(r"[A-Za-z0-9]")
_LAST_LETTER = re.compile(r"[A-Za-z0-9](?=[^A-Za-z0-9/]*$)")


def dotdot(attack: Attack) -> Iterator[Changed]:
    """Ways through `..`: `folder/../x`, `../../../etc/x`; in a repository's name, which is part of a URL's path, too.

    Stands for confinement by comparing texts, such as CVE-2026-25871 and the prefix check of CVE-2025-53110.
    """
    for name, value in attack.repository():
        yield Changed(attack.with_arg(name, f"{FOLDER}/../{value}"))
    if not attack.is_about("path.", "search.glob"):
        return
    for slot in attack.paths():
        if slot.text.startswith("/"):
            yield Changed(slot.put(_CLIMB + slot.text.lstrip("/")))
            yield Changed(slot.put(f"./{FOLDER}/../{_CLIMB}{slot.text.lstrip('/')}"), plant=_NOTE)
        elif not slot.text.startswith("~"):
            yield Changed(slot.put(f"{FOLDER}/../{slot.text}"), plant=_NOTE)
            yield Changed(slot.put(f"./{FOLDER}/.././{slot.text}"), plant=_NOTE)
    glob_ = attack.text("glob")
    if glob_ is not None and attack.is_about("search.glob"):
        inside = glob_.lstrip("/") if glob_.startswith("/") else glob_
        climb = _CLIMB if glob_.startswith("/") else ""
        yield Changed(attack.with_arg("glob", f"{FOLDER}/../{climb}{inside}"), plant=_NOTE)
        yield Changed(attack.with_arg("glob", f"./{FOLDER}/.././{climb}{inside}"), plant=_NOTE)


def absolute(attack: Attack) -> Iterator[Changed]:
    """Absolute paths, of programs and of files: `/bin/rm`, `//etc/x`, `/proc/self/cwd/.env`.

    Stands for lists that know `rm` and not `/bin/rm` (DesktopCommanderMCP #219, codex #37078: match by base name), and
    for checks that look at one spelling of a root.
    """
    words = attack.words()
    if words and words[0].is_plain and attack.is_about("shell."):
        name, rest = PurePosixPath(words[0].text).name, [word.text for word in words[1:]]
        for program in (f"/bin/{name}", f"/usr/bin/{name}", f"/usr/bin/../bin/{name}", f"//bin/./{name}"):
            if program != words[0].text:
                yield Changed(attack.with_words(program, *rest))
    if not attack.is_about("path."):
        return
    for slot in attack.paths():
        if slot.text.startswith("/"):
            for root in ("/", "/.", "/proc/self/root"):
                yield Changed(slot.put(root + slot.text))
        elif slot.in_command and not slot.text.startswith("~"):
            yield Changed(slot.put(f"/proc/self/cwd/{slot.text}"))


def symlink(attack: Attack) -> Iterator[Changed]:
    """A planted link that leads to the target, and one to its folder.

    Stands for checks on the path as it was written: CVE-2025-53109 (a link was not resolved).
    """
    if not attack.is_about("path."):
        return
    for slot in attack.paths():
        if slot.text.startswith("~"):
            continue
        yield Changed(slot.put(f"{_LINK}.txt"), links=Links(symbolic={f"{_LINK}.txt": slot.text}))
        path = PurePosixPath(slot.text)
        if str(path.parent) not in ("/", "."):
            yield Changed(slot.put(f"{_LINK}/{path.name}"), links=Links(symbolic={_LINK: str(path.parent)}))


def hardlink(attack: Attack) -> Iterator[Changed]:
    """A planted hard link: another name of the secret file, in another folder.

    Stands for checks on names, which cannot see it; neither can any resolving of paths.
    """
    if not attack.is_about("path.secret"):
        return
    for slot in attack.paths():
        path = PurePosixPath(slot.text)
        if not (path.is_absolute() or ".." in path.parts or slot.text.startswith("~")):
            name = f"{FOLDER}/report.txt"
            yield Changed(slot.put(name), plant=_NOTE, links=Links(hard={name: str(path)}))


def glob(attack: Attack) -> Iterator[Changed]:
    """Patterns that expand to the target and to nothing else: `.en[v]`, `/bin/r[m]`, `{..,..}/**`.

    Stands for checks before the expansion, as in DesktopCommanderMCP #422 and #730.
    """
    words = attack.words()
    if words and words[0].is_plain and len(words[0].text) > 1 and attack.is_about("shell.binary"):
        name = PurePosixPath(words[0].text).name
        yield Changed(attack.with_words(f"/bin/{name[:-1]}[{name[-1]}]", *(word.text for word in words[1:])))
    if attack.is_about("path."):
        for slot in attack.paths():
            if slot.in_command:
                yield from (Changed(slot.put(pattern)) for pattern in _patterns(slot.text))
    command = attack.text("command")
    if command is not None and command.endswith("/*") and attack.is_about("shell.glob"):
        yield Changed(attack.with_arg("command", f"{command[:-1]}?*"))
        yield Changed(attack.with_arg("command", f"{command[:-1]}[!.]*"))
    glob_ = attack.text("glob")
    if glob_ is not None and glob_.startswith("../") and attack.is_about("search.glob"):
        yield Changed(attack.with_arg("glob", f"{{..,..}}/{glob_[3:]}"))


def _patterns(path: str) -> Iterator[str]:
    yield _LAST_LETTER.sub(r"[\g<0>]", path, count=1)
    folder, slash, name = path.rpartition("/")
    if slash and _LETTER.search(folder):
        yield _LETTER.sub(r"[\g<0>]", folder, count=1) + slash + name
