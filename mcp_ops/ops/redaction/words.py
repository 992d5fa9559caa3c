"""Which names stand for a credential, which values are one, and how both are hidden in text.

The patterns run on text from outside, so they are RE2's: linear whatever the text.
"""

from collections.abc import Callable
from typing import Any

import re2

REDACTED = "<redacted>"

_STRONG = (
    "passw(?:or)?d|passphrase|passcode|secret|credential|authorization|cookie|connection[ ._-]?string"
    "|(?:api|access|private|signing|encryption|master|auth|account|storage)[ ._-]?key|client-key-data|signature"
    "|[_.-](?:pass|pwd|jwt)(?:[_.-]|\\b)|(?-i:\\b(?:pass|pwd|jwt)\\b)|(?-i:[a-z]P(?:ass|wd))\\b"
)
_WORD = f"{_STRONG}|token"
_KEY = rf"[\w.-]*(?:{_WORD})[\w.-]*"
_QUOTE = r"\\?[\"']"
_QUOTED = r"\\\"[^\"\\]*\\\"|\"(?:[^\"\\]|\\.)*\"|'[^']*'|<set to the [^>\n]*>"


def _compile(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


_NAMES_CREDENTIAL = _compile(f"(?i){_WORD}")
_NAMES_MORE_THAN_TOKENS = _compile(f"(?i){_STRONG}")
_NAMES_SOMETHING_ELSE = _compile(
    r"(?i)secret[_.-]?(?:name|namespace|ref|key[_.-]?ref)|image ?pull ?secrets|mountable ?secrets"
    r"|token[_.-]?expiration[_.-]?seconds|automount.*|.*tokeniz.*"
)
_NAMES_A_FILE = _compile(r"(?i:.*[_.-](?:file|path|dir))|pwd|.*[a-z](?:File|Path|Dir)")
_NO_VALUE = _compile(
    r"(?i)true|false|null|none|~|[|>][-+0-9]*|<(?:none|unset|nil|redacted)>.*|<set to the .*|\$[({][\w.-]+[)}]"
    # What logs say of a credential, "invalid token: expired", and programs of a file: "token.md: No such file".
    r"|(?:is |was |has |been |not )*(?:expired|invalid|missing|required|revoked|rejected|denied|failed|incorrect|wrong"
    r"|unknown|malformed|empty|mismatch|not|found|set|provided|accepted|valid|no|is|permission)[.,;:!)]*"
)
_NUMBER = _compile(r"\d{1,9}[a-z]?")
_TAG_OR_PORT = _compile(r"v?\d+(?:\.\d+)+[\w.-]*|\d{1,5}|latest|stable")
_RANDOM = _compile(r"[A-Za-z0-9+/_=-]{24,}")

_KEY_END = "-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
_PRIVATE_KEY = _compile(
    rf"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:{_KEY_END}|\z)"
    rf"|[A-Za-z0-9+/=]{{40,}}\s+(?:[A-Za-z0-9+/=]+\s+)*{_KEY_END}"
)
_HEADER = _compile(
    rf"(?i)(authorization(?:{_QUOTE})?\s*[:=]\s*\[?(?:{_QUOTE})?(?:bearer|basic|digest|token|negotiate|aws4[\w-]*)\s"
    rf"|\b(?:set-)?cookie(?:{_QUOTE})?\s*:\s*\[?(?:{_QUOTE})?)([^\r\n\"']+)"
)
_BLOCK = _compile(rf"(?im)^([ \t]*(?:- )?{_KEY}:[ \t]+[|>][-+0-9]*[ \t]*\n)((?:[ \t]+\S.*(?:\n|\z)|[ \t]*\n)+)")
_LINE = _compile(rf"(?im)^([ \t]*(?:- )?)({_KEY})(:[ \t]+)(\S.*)$")
_ASSIGNED = _compile(rf"(?i)()({_KEY})((?:{_QUOTE})?[ \t]*(?:=>|:=|=)[ \t]*)({_QUOTED}|[^\s&;]+)")
_COLON = _compile(rf"(?i)(^|[^\w./-])({_KEY})((?:{_QUOTE})?[ \t]*:[ \t]*)({_QUOTED}|[^\s&;]+)")
_FLAG = _compile(rf"(?i)(^|[\s\"'])(--?{_KEY})([ \t]+)({_QUOTED}|[^\s-]\S*)")
_USERINFO = _compile(r"(?i)([a-z][a-z0-9+.-]*://)[^\s/\"'<>]+@")
_OPTION_OF = _compile(
    r"(\b(?:mysql(?:dump|admin)?|mariadb(?:-dump|-admin)?)[ \t](?:[^\n|;&]*[ \t])?-p|\bsshpass[ \t]+-p[ \t]*"
    r"|\bredis-cli\b[^\n|;&]*[ \t]-a[ \t]*"
    r"|\b(?:curl|wget|https?)\b[^\n|;&]*[ \t](?:-[a-zA-Z]*[uU]|--user|--proxy-user)[ =]?[\"']?[^\s:\"']+:)"
    r"(\"[^\"\n]+\"|'[^'\n]+'|[^\s\"']+)"
)
"""Options of common programs whose names do not say that they take a password."""
_SENTENCE = _compile(
    r"(?i)(\b(?:password|passwd|passphrase|passcode|token|api key)[ \t]+(?:is|was)(?: now)?[ \t]*:?[ \t]+)"
    r"(\"[^\"\n]+\"|'[^'\n]+'|\S+)"
)
_NO_PLAIN_WORD = _compile(r"[\"'].*|.*[0-9!@#$%^*+=_].*")
_SCHEME = _compile(r"(?i)\b(bearer |basic )([a-z0-9._~+/=-]{8,})")
_SHAPE = _compile(
    r"\b(?:eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|xox[abeprs]-[\w-]{10,}|sk-[\w-]{16,}|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w-]{30,}|npm_\w{30,}|hf_\w{20,}"
    r"|[rs]k_live_\w{10,}|SG\.[\w-]{16,}\.[\w-]{16,}|hooks\.slack\.com/services/[\w/]+)"
)
_WORTH_A_LOOK = _compile(
    rf"(?i){_WORD}|://|private key|bearer|basic|eyj|gh[pousr]_|github_pat|glpat|xox|sk-|akia|asia|aiza|npm_|hf_|k_live_"
    r"|sg\.|slack\.com|mysql|mariadb|sshpass|redis-cli|curl|wget|https? |passcode|api key"
)


def is_credential(name: str, value: str) -> bool:
    """Whether `value`, standing under `name`, is to be hidden."""
    plain = value.strip()
    if not plain or _NO_VALUE.fullmatch(plain) or not _NAMES_CREDENTIAL.search(name):
        return False
    if _NAMES_SOMETHING_ELSE.fullmatch(name) or (_NAMES_A_FILE.fullmatch(name) and "/" in plain):
        return False
    return bool(_NAMES_MORE_THAN_TOKENS.search(name)) or not _NUMBER.fullmatch(plain)


def names_credential(name: str) -> bool:
    """Whether something of this name is usually a credential."""
    return is_credential(name, "x")


def looks_random(value: str) -> bool:
    """Whether a value by itself looks like a key: long, one word, of upper case, lower case and digits."""
    return bool(_RANDOM.fullmatch(value)) and all(
        any(test(character) for character in value) for test in (str.isupper, str.islower, str.isdigit)
    )


def redact_text(text: str) -> str:
    """Return `text` with private keys, authorisation headers, `name=value` pairs, URL passwords and tokens hidden."""
    if not _WORTH_A_LOOK.search(text):
        return text
    text = _PRIVATE_KEY.sub(REDACTED, text)
    text = _HEADER.sub(lambda found: found.group(1) + REDACTED, text)
    text = _BLOCK.sub(lambda found: f"{found.group(1)}  {REDACTED}\n", text)
    for pattern in (_LINE, _ASSIGNED, _COLON, _FLAG):
        text = pattern.sub(_hide_pair(spaced=pattern is not _COLON), text)
    text = _OPTION_OF.sub(lambda found: found.group(1) + REDACTED, text)
    text = _SENTENCE.sub(_hide_told, text)
    text = _USERINFO.sub(lambda found: f"{found.group(1)}{REDACTED}@", text)
    text = _SCHEME.sub(_hide_scheme, text)
    return str(_SHAPE.sub(REDACTED, text))


def _hide_pair(*, spaced: bool) -> Callable[[Any], str]:
    def hide(found: Any) -> str:
        before, name, between, value = found.groups("")
        bare = value.strip("\\\"'")
        tag = not spaced and between == ":" and _TAG_OR_PORT.fullmatch(bare)
        if tag or not is_credential(name, bare):
            return str(found.group(0))
        quote = value[: len(value) - len(value.lstrip("\\\"'"))] if value[-1:] in "\"'" else ""
        return f"{before}{name}{between}{quote}{REDACTED}{quote}"

    return hide


def _hide_told(found: Any) -> str:
    before, value = found.groups()
    word = value.rstrip(".,;:!)")
    told = _NO_PLAIN_WORD.fullmatch(word) and not _NUMBER.fullmatch(word) and not _NO_VALUE.fullmatch(word)
    return f"{before}{REDACTED}{value[len(word) :]}" if told else str(found.group(0))


def _hide_scheme(found: Any) -> str:
    scheme, value = found.groups()
    prose = len(value) < 20 and not any(character.isdigit() or character == "=" for character in value)
    return str(found.group(0)) if prose else f"{scheme}{REDACTED}"
