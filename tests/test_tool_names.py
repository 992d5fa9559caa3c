"""Names of tools on their way to a provider and back: two tools never become one."""

import itertools

import pytest

from mcp_ops.llm.tool_names import LONGEST, ToolNames

ALIKE = (
    *("read_file", "read-file", "read.file", "read file", "read/file", "read_file\U000e0041", "ops.read_file"),
    *("réad_file", "x" * LONGEST, "x" * (LONGEST + 1), "x" * LONGEST + "."),
)


@pytest.mark.parametrize("names", list(itertools.permutations(ALIKE[:5], 3)), ids="|".join)
def test_names_that_look_alike_stay_apart_in_any_order(names: tuple[str, ...]) -> None:
    known = ToolNames(names)
    sent = [known.sent(name) for name in names]
    assert len(set(sent)) == len(names)
    assert [known.meant(name) for name in sent] == list(names)


def test_what_is_sent_is_what_providers_take_and_comes_back_as_it_was() -> None:
    known = ToolNames(ALIKE)
    for name in ALIKE:
        sent = known.sent(name)
        assert sent.isascii()
        assert sent.replace("_", "").replace("-", "").isalnum()
        assert len(sent) <= LONGEST
        assert known.meant(sent) == name


def test_a_name_that_is_spelled_like_a_made_up_one_keeps_itself() -> None:
    made = ToolNames(["read.file"]).sent("read.file")
    known = ToolNames(["read.file", made])
    assert known.sent(made) == made
    assert known.sent("read.file") != made
    assert known.meant(known.sent("read.file")) == "read.file"
