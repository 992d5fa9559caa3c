"""Arguments that fill a slot, and texts that are shown: what holds of every one of them."""

import base64
import json
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from budget import share
from calls import make_lab
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_ops.gate import Denied, Refuse
from mcp_ops.ops.guards.globs import GlobError, compile_glob
from mcp_ops.ops.guards.kubectl import KINDS, guard_output, guard_target
from mcp_ops.ops.guards.search import MAX_PROGRAM, guard_search
from mcp_ops.ops.guards.secret_names import DEFAULT, DEFAULT_NAMES
from mcp_ops.ops.tools.searching import Search
from mcp_ops.ops.workspace import Workspace
from mcp_ops.text import Redactor, cap, clean, find_value, inert, one_line

DNS_1123 = re.compile(r"[a-z0-9]([-a-z0-9]{0,251}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
SPELLINGS = [spelling for plural, others in KINDS.items() for spelling in (plural, *others)]
SLOTS = st.one_of(
    st.sampled_from(
        [*SPELLINGS, "secrets", "secret", "pods,secrets", "all", "deployment.apps", "--all", "-A", "web-1"]
    ),
    st.text("abz019-./,: \n\t\0-Aſİıß＿ａ\u200b", max_size=12),
    st.text(max_size=8),
    st.sampled_from(SPELLINGS).flatmap(
        lambda kind: st.sampled_from([kind.upper(), f" {kind}", f"{kind}\n", f"{kind}."])
    ),
)


def allowed(guard: Callable[[Refuse], object]) -> object | None:
    try:
        return guard(Refuse())
    except Denied:
        return None


@pytest.mark.covers("A10", "A12")
@share(5)
@given(SLOTS, st.none() | SLOTS, st.none() | SLOTS)
@example("ſecrets", None, None)
@example("pods", "web\n", None)
def test_what_reaches_kubectl_is_a_kind_of_the_list_and_names_by_dns_1123(
    resource: str, name: str | None, namespace: str | None
) -> None:
    target = allowed(lambda refuse: guard_target(resource, name, namespace, refuse))
    if target is None:
        return
    assert target.kind in KINDS
    for given_name, most in ((target.name, 253), (target.namespace, 63)):
        assert given_name is None or (len(given_name) <= most and DNS_1123.fullmatch(given_name))
    assert target.namespace is None or "." not in target.namespace


@share(2)
@given(SLOTS)
def test_an_output_is_one_of_five(output: str) -> None:
    assert allowed(lambda refuse: guard_output(output, refuse)) in (None, "default", "wide", "name", "json", "yaml")


COMPONENTS = st.one_of(
    st.sampled_from([*(name.pattern.replace("*", "x") for name in DEFAULT_NAMES), "notes.md", "secrets.md", "key.pub"]),
    st.text("abkey.env~SECRTpmſıİß-_", max_size=10),
    st.text(max_size=8),
).filter(lambda name: "/" not in name)
ENDINGS = st.sampled_from(["", "~", ".bak", ".old", ".orig", ".bak~", ".BAK"])


def is_secret(path: str) -> bool:
    return DEFAULT.pattern_for(path) is not None


@pytest.mark.covers("A8")
@share(4)
@given(st.lists(COMPONENTS, min_size=1, max_size=3), ENDINGS)
def test_a_secret_name_stays_one_in_any_case_as_a_copy_and_below_any_folder(parts: list[str], ending: str) -> None:
    path = "/".join(parts)
    assert is_secret(path) == is_secret(path.casefold())
    assert is_secret(path) == any(is_secret(part) for part in parts)
    if path.isascii():
        assert is_secret(path) == is_secret(path.upper()) == is_secret(path.swapcase())
    if is_secret(path):
        assert is_secret(path + ending)
        assert is_secret(f"folder/{path}")
        assert is_secret(f"{path}/file")


PATTERNS = st.one_of(
    st.text("ab.*+?()[]{}|^$\\dwsbBQEiUzA-,0159:<>=!PpL", max_size=24),
    st.sampled_from(
        ["(a+)+$", "(a|aa)*b", "(?i)CANARY", "a{1000}{1000}", "\\pL{500}", "(?s).*", "(?=x)", "\\1", "(((", "\\C"]
    ),
    st.text(max_size=10),
)
GLOBS = st.one_of(
    st.text("ab*?[]{},/\\!^-.:ſ", max_size=16),
    st.sampled_from(
        ["**", "**/*.md", "{a,b}/**", "../**", "/etc/*", "[[:alpha:]]*", "link_dir/**", "~/*", "secrets/**"]
    ),
    st.text(max_size=8),
)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace(make_lab(tmp_path_factory.mktemp("search")))


@pytest.mark.covers("A7", "A8")
@share(4)
@given(PATTERNS, GLOBS)
def test_a_search_that_is_allowed_is_bounded_and_finds_nothing_hidden(
    workspace: Workspace, pattern: str, glob: str
) -> None:
    plan = allowed(lambda refuse: guard_search(pattern, glob, workspace, refuse))
    if plan is None:
        return
    assert plan.regexp.programsize <= MAX_PROGRAM
    search = Search(plan, workspace, Refuse()).run()
    assert [hit for hit in search.hits if "CANARY" in hit or "\n" in hit or clean(hit) != hit] == []


@share(5)
@given(GLOBS, st.lists(COMPONENTS.filter(bool), min_size=1, max_size=3))
def test_a_glob_is_refused_or_fits_only_what_lies_in_its_folder(glob: str, parts: list[str]) -> None:
    try:
        compiled = compile_glob(glob)
    except GlobError as error:
        assert "\n" not in one_line(str(error))  # noqa: PT017
        return
    if compiled.fits("/".join(parts)):
        assert compiled.may_fit_below(tuple(parts[:-1]))


HOSTILE = st.text(
    st.one_of(
        st.sampled_from(
            "\x1b[]PX^_;0m\x07\\\x9b\x90\x9c\r\n\t :#<U+\u202e\u2028\ufeff\U000e0041\ufe00\ufe0d\ud800\udfff\xad"
        ),
        st.characters(),
        st.characters(categories=("Cc", "Cf", "Cs", "Zl", "Zp")),
    ),
    max_size=30,
)


def acts(text: str) -> list[str]:
    """Return the characters of a text that can act: control and format characters, separators, halves of pairs."""
    return [
        each for each in text if unicodedata.category(each) in ("Cc", "Cs", "Zl", "Zp", "Cf") and each not in "\t\n"
    ]


@pytest.mark.covers("A26")
@share(8)
@given(HOSTILE)
@example("\x1b\x1b[[31m")
@example("\x1b[\U000e0041\x9b")
def test_cleaned_text_holds_nothing_that_acts_and_is_clean(text: str) -> None:
    shown = clean(text)
    assert acts(shown) == []
    assert clean(shown) == shown
    assert "\n" not in one_line(text)
    assert len(one_line(text, 10)) <= 10


@pytest.mark.covers("A26")
@share(5)
@given(st.text(st.sampled_from(" \t\n:#[]adv-\x1b\r\U000e0041"), max_size=20))
def test_inert_text_holds_no_command_of_a_runner(text: str) -> None:
    shown = inert(text)
    assert not re.search(r"^\s*::", shown, re.MULTILINE)
    assert not re.search(r"##[\w-]*\[", shown)
    assert inert(shown) == shown


VALUES = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x24F, exclude_categories=("Cc", "Cf", "Zs")), min_size=8
)


ENCODERS: tuple[Callable[[str], str], ...] = (
    str,
    lambda value: json.dumps(value)[1:-1],
    lambda value: json.dumps(value, ensure_ascii=False)[1:-1],
    lambda value: quote(value, safe=""),
    lambda value: base64.b64encode(value.encode()).decode(),
    lambda value: base64.urlsafe_b64encode(f"xx{value}".encode()).decode(),
)


@pytest.mark.covers("A26")
@share(5)
@given(
    VALUES, st.text(max_size=10), st.text(max_size=10), st.sampled_from(ENCODERS), st.lists(st.booleans(), max_size=2)
)
def test_redacted_text_holds_no_spelling_of_the_value(
    value: str, before: str, behind: str, encoder: Callable[[str], str], levels: list[bool]
) -> None:
    text = before + encoder(value) + behind
    for ascii_only in levels:
        text = json.dumps(text, ensure_ascii=ascii_only)
    shown = Redactor({value: "key"}).text(text)
    assert "<redacted:key>" in shown
    assert find_value(shown, value) is None
    assert Redactor({value: "key"}).text(shown) == shown


@share(3)
@given(st.text(max_size=300), st.integers(64, 300), st.sampled_from(["head", "ends"]))
def test_a_capped_text_fits_its_limit_and_is_whole_or_says_how_much_is_missing(
    text: str, limit: int, keep: Any
) -> None:
    capped = cap(text, limit, keep=keep)
    assert len(capped.text.encode()) <= limit
    assert capped.text == text if not capped.truncated else "bytes cut]" in capped.text


def test_what_breaks_a_property_is_seen(tmp_path: Path) -> None:
    assert acts("a\u202e\x1b") == ["\u202e", "\x1b"]
    assert not DNS_1123.fullmatch("web\n")
    assert not DNS_1123.fullmatch("ｗeb")
    open_guard = Refuse(off=frozenset({"kubectl.kind", "kubectl.name", "kubectl.secret"}))
    assert guard_target("secrets", "-A", None, open_guard).kind not in KINDS
    workspace = Workspace(make_lab(tmp_path))
    off = Refuse(off=frozenset({"path.secret"}))
    hits = Search(guard_search("CANARY", "**", workspace, off), workspace, off).run().hits
    assert [hit for hit in hits if "CANARY" in hit]
