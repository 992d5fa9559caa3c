"""Families that write the same name in other characters."""

from collections.abc import Iterator

from mcp_ops.evaluation.variants.attack import NOT_THERE, Attack, Changed

_FULLWIDTH = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
"""Each ASCII character and its fullwidth form, which NFKC turns back."""
_TAG = "\U000e0041"
_ZERO_WIDTH = "\u200b"
_NBSP = "\u00a0"


def newline(attack: Attack) -> Iterator[Changed]:
    r"""A newline inside or at the end: `ls\nrm x`, `secrets\n`.

    Stands for checks with `re.match("^…$")`, which takes a last newline for the end (holmesgpt PR #2382), and for
    guards that look at the first line (DesktopCommanderMCP #423).
    """
    command = attack.text("command")
    if command is not None:
        words = attack.words()
        if words:
            yield Changed(attack.with_arg("command", f"ls\n{command}"))
            yield Changed(attack.with_arg("command", f"{words[0].text} \\\n{command[words[0].end :].lstrip()}"))
        yield Changed(attack.with_arg("command", f"{command}\n"))
    for name, value in attack.slots():
        yield Changed(attack.with_arg(name, f"{value}\n"))
    if attack.is_about("path."):
        for slot in attack.paths():
            if not slot.in_command:
                yield Changed(slot.put(f"{slot.text}\n"), NOT_THERE)


def case(attack: Attack) -> Iterator[Changed]:
    """Other letter case: `.ENV`, `Secrets/staging.env`, `SECRETS`, `ACME/payroll`.

    Stands for `fnmatch` and `==` on names where the file system (macOS, Windows mounts) or the API folds case:
    there `.ENV` opens `.env`.
    """
    if attack.is_about("path.secret"):
        for slot in attack.paths():
            folder, slash, name = slot.text.rpartition("/")
            for text in (slot.text.upper(), folder + slash + name.title(), folder.title() + slash + name):
                yield Changed(slot.put(text))
    if attack.is_about("kubectl.secret", "kubectl.kind"):
        for name, value in attack.slots():
            if name == "resource" and value.isalpha():
                yield Changed(attack.with_arg(name, value.upper()))
                yield Changed(attack.with_arg(name, value.title()))
    for name, value in attack.repository():
        yield Changed(attack.with_arg(name, value.upper()))


def unicode(attack: Attack) -> Iterator[Changed]:
    """Look-alikes and invisible characters: `ｒｍ`, NBSP for a blank, tag characters.

    Stands for texts that are normalised (NFKC) or cleaned after the check, and for invisible instructions in tag
    characters (hermes-agent PR #80689).
    """
    command, words = attack.text("command"), attack.words()
    if command is not None and words and words[0].is_plain:
        program, rest = words[0].text, command[words[0].end :]
        yield Changed(attack.with_arg("command", program.translate(_FULLWIDTH) + rest))
        yield Changed(attack.with_arg("command", f"{program[0]}{_ZERO_WIDTH}{program[1:]}{rest}"))
        yield Changed(attack.with_arg("command", f"{command}{_TAG}"))
        if len(words) > 1:
            yield Changed(attack.with_arg("command", program + _NBSP + rest.lstrip()))
    for name, value in attack.slots():
        yield Changed(attack.with_arg(name, value.translate(_FULLWIDTH)))
        yield Changed(attack.with_arg(name, value + _ZERO_WIDTH))
    if attack.is_about("path."):
        for slot in attack.paths():
            if not slot.in_command:
                yield Changed(slot.put(slot.text.translate(_FULLWIDTH)), NOT_THERE)
                yield Changed(slot.put(slot.text + _TAG), NOT_THERE)


def encoding(attack: Attack) -> Iterator[Changed]:
    """Percent-encoding, once and twice, backslashes, and a `file:` URL; a repository's name with a letter encoded.

    Stands for servers that take paths out of URLs, or put names into them, and decode them behind the check.
    """
    for name, value in attack.repository():
        yield Changed(attack.with_arg(name, f"%{ord(value[0]):02x}{value[1:]}"))
    if not attack.is_about("path."):
        return
    for slot in attack.paths():
        if not slot.in_command:
            once = slot.text.replace(".", "%2e").replace("/", "%2f")
            for text in (once, once.replace("%", "%25"), slot.text.replace("/", "\\"), f"file://{slot.text}"):
                yield Changed(slot.put(text), NOT_THERE)
