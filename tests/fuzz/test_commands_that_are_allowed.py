"""Whatever the guard allows changes nothing, shows nothing that is hidden, and ends: commands that nobody chose."""

from collections import Counter
from collections.abc import Iterator

import pytest
from budget import share
from command_lines import command_lines
from eyes import Lab
from hypothesis import Phase, assume, find, given, settings
from hypothesis import strategies as st
from shelllab import judge, needs_gnu
from walls import needs_wall

from mcp_ops.ops.guards.shell import RULES
from mcp_ops.ops.rules import PATH_RULES
from mcp_ops.ops.wall import second_wall

pytestmark = [needs_gnu, needs_wall]

RULE_NAMES = frozenset(rule.name for rule in (*RULES, *PATH_RULES))

UNSHRUNK = settings(max_examples=2000, phases=[Phase.generate])


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    built = Lab(tmp_path_factory.mktemp("fuzz"))
    yield built
    assert not built.contents_changed()


@pytest.mark.covers("A4", "A7", "A8", "A12")
def test_an_allowed_command_changes_nothing_shows_nothing_hidden_and_ends(lab: Lab) -> None:
    verdicts: Counter[str] = Counter()
    harmless: set[str] = set()

    @share(1.5)
    @given(command_lines())
    def holds(command: str) -> None:
        verdict = judge(lab.ws, command)
        verdicts[verdict if verdict in RULE_NAMES else "allowed"] += 1
        assume(verdict not in RULE_NAMES)
        if verdict not in harmless:
            assert lab.faults(lab.run(command)) == []
            harmless.add(verdict)

    holds()
    print(f"{len(harmless)} different commands were run; of all, {dict(verdicts.most_common())}")
    assert len(harmless) > 50
    assert len(verdicts) > 8, "the commands meet too few rules"


@pytest.mark.covers("A8")
@share(3)
@given(st.one_of(command_lines(), st.text(max_size=200), st.binary(max_size=200).map(lambda b: b.decode("latin-1"))))
def test_the_guard_answers_every_command_with_arguments_or_a_rule(lab: Lab, command: str) -> None:
    assert judge(lab.ws, command)


NAIVE = {
    "reads secret files": (["path.secret"], ["cat", "head", "sort"], "says SECRET"),
    "counts what is in secret files": (["path.secret"], ["wc"], "read a secret file"),
    "does not look where links lead": (["path.outside"], ["cat", "tail"], "was stopped by the wall alone"),
    "knows no harmful option": (["shell.option"], ["sort"], "was stopped by the wall alone"),
}
"""Guards that are not worth the name: which rules they lack, programs that show it, and what it is found out by."""


@pytest.mark.skipif(not second_wall().name.startswith("landlock"), reason="only Landlock says that it stopped a file")
@pytest.mark.parametrize("kind", NAIVE)
def test_a_naive_guard_is_found_out(lab: Lab, kind: str) -> None:
    off, programs, sign = NAIVE[kind]
    if sign.startswith("read") and not lab.notes_reads():
        pytest.skip("this file system does not note when a file is read")

    def breaks(command: str) -> bool:
        if judge(lab.ws, command, *off) in RULE_NAMES:
            return False
        return any(fault.startswith(sign) for fault in lab.faults(lab.run(command, off=off)))

    print(f"a guard that {kind} runs {find(command_lines(programs), breaks, settings=UNSHRUNK)!r}")
