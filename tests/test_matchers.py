import time
from typing import Any

import pytest

from mcp_ops.evaluation.line.pattern_fields import pattern_definitions
from mcp_ops.evaluation.matching.matcher_check import check_matcher
from mcp_ops.evaluation.matching.matchers import MISSING, OPERATORS, Mismatch, fits, mismatch
from mcp_ops.evaluation.matching.work import TooMuchWork, Work
from mcp_ops.evaluation.wording import show_path

pytestmark = pytest.mark.covers("H6")

# Pattern, values that fit it, values that do not.
TABLE: list[tuple[Any, list[Any], list[Any]]] = [
    # JSON equality
    (1, [1, 1.0], [True, "1", 2, None, [1], MISSING]),
    (1.0, [1, 1.0], [True]),
    (True, [True], [1, "true", False]),
    (False, [False], [0, None, ""]),
    (None, [None], [0, "", False, MISSING]),
    ("5", ["5"], [5, "5 "]),
    (10**20, [10**20, 1e20], [10**20 + 1]),
    # objects are subsets, lists are not
    ({}, [{}, {"a": 1}], [[], "", None, 0, MISSING]),
    ({"a": 1}, [{"a": 1}, {"a": 1.0, "b": 2}], [{}, {"a": 2}, {"b": 1}, [1]]),
    ({"a": {"b": 1}}, [{"a": {"b": 1, "c": 2}}], [{"a": {"c": 2}}, {"a": 1}]),
    ({"a": None}, [{"a": None}], [{}]),
    ([], [[]], [[1], {}, ""]),
    ([1, 2], [[1, 2]], [[2, 1], [1], [1, 2, 3]]),
    ([{"a": 1}], [[{"a": 1, "b": 2}]], [[{"b": 2}]]),
    ([{"$gt": 1}, {}], [[2, {"x": 1}]], [[1, {}]]),
    # operators
    ({"$any": True}, [0, None, "", [], {}, False], [MISSING]),
    ({"$re": "b+"}, ["abbc", "b"], ["ac", 5, None, ["b"], MISSING]),
    ({"$re": "^a$"}, ["a"], ["a\n", "ba"]),
    ({"$re": "ü"}, ["für"], ["fur"]),
    ({"$glob": "*.md"}, ["a.md", "a/b/c.md", ".md", "a\nb.md"], ["a.md2", "a.mD", 5]),
    ({"$glob": "a?c"}, ["abc", "a/c"], ["ac", "abbc"]),
    ({"$glob": "[a-c]x"}, ["ax", "cx"], ["dx", "-x"]),
    ({"$glob": "[!a-c]x"}, ["dx", "!x"], ["ax"]),
    ({"$glob": "[]]x"}, ["]x"], ["[]]x"]),
    ({"$glob": "[x"}, ["[x"], ["x"]),
    ({"$glob": "a.c"}, ["a.c"], ["abc"]),
    ({"$glob": "(a|b)+$"}, ["(a|b)+$"], ["a"]),
    ({"$contains": "b"}, ["abc", ["a", "b"]], ["ac", ["ab"], {"b": 1}, 5]),
    ({"$contains": 1}, [[1], [1.0, 2]], ["1", [True], [[1]]]),
    ({"$contains": {"a": 1}}, [[{"a": 1, "b": 2}]], [[{"b": 2}], {"a": 1}]),
    ({"$contains": {"$gt": 3}}, [[1, 4]], [[1, 2], "4"]),
    ({"$in": [1, "a", {"$re": "^x"}]}, [1, 1.0, "a", "xyz"], [True, "b", None, MISSING]),
    ({"$gt": 3}, [3.5, 4], [3, "4", True, None, [4]]),
    ({"$gte": 3}, [3, 3.0], [2.9]),
    ({"$lt": 1}, [0, -1, 0.5], [1, False, "0"]),
    ({"$lte": 1}, [1], [1.1, True]),
    ({"$gte": 1, "$lt": 3}, [1, 2], [0, 3]),
    ({"$type": "string"}, ["", "a"], [None, 1]),
    ({"$type": "number"}, [1, 1.5], [True, "1"]),
    ({"$type": "integer"}, [1, 1.0], [1.5, True]),
    ({"$type": "boolean"}, [True, False], [0, None]),
    ({"$type": "null"}, [None], [0, "", MISSING]),
    ({"$type": "array"}, [[]], [{}, ""]),
    ({"$type": "object"}, [{}], [[]]),
    ({"$type": ["string", "null"]}, ["a", None], [1, MISSING]),
    ({"$len": 2}, ["ab", "üß", [1, 2], {"a": 1, "b": 2}], ["a", [1], 2, None]),
    ({"$len": {"$gte": 1}}, ["a", [0]], ["", [], {}]),
    ({"$not": 1}, [2, "1", None], [1, 1.0, MISSING]),
    ({"$not": {"$contains": "x"}}, ["a", 5, None], ["x"]),
    ({"$not": {"a": 1}}, [{"a": 2}, {}, 1], [{"a": 1, "b": 2}]),
    ({"$all": [{"$contains": "a"}, {"$contains": "b"}]}, ["ab", ["b", "a"]], ["a", "b"]),
    ({"$exact": {"a": 1}}, [{"a": 1}, {"a": 1.0}], [{"a": 1, "b": 2}, {}]),
    ({"$exact": {}}, [{}], [{"a": 1}]),
    ({"$exact": {"$re": "a"}}, [{"$re": "a"}], ["a"]),
    ({"$exact": [1, {"a": None}]}, [[1, {"a": None}]], [[1, {}], [1, {"a": False}]]),
    ({"$absent": True}, [MISSING], [None, 0, "", {}]),
    ({"$absent": False}, [None, 0], [MISSING]),
    ({"a": {"$absent": True}}, [{}, {"b": 1}], [{"a": None}, {"a": 1}]),
    ({"$absent": True, "$any": True}, [], [MISSING, 1]),
    ({"$argv": ["ls", "a b"]}, ["ls 'a b'", 'ls  "a b"', "ls a\\ b"], ["ls a b", "ls", ["ls", "a b"]]),
    ({"$argv": "ls -l"}, ["ls   -l", "'ls' -l"], ["ls", 'ls "-l', 5]),
    ({"$argv": ["cat", {"$glob": "*.md"}]}, ["cat a.md"], ["cat a.txt"]),
    ({"$argv": {"$contains": "-l"}}, ["ls -l a"], ["ls -la", "ls '-l a'"]),
    ({"$json": {"a": 1}}, ['{"a": 1, "b": 2}', ' {"a":1.0} '], ['{"a": 2}', "a", {"a": 1}, '{"a": 1', ""]),
    ({"$json": {"$len": 2}}, ["[1, 2]", '"ab"'], ["[1]"]),
    ({"$json": {"$any": True}}, ["null", "1"], ["NaN", "Infinity", "nul", "[" * 100_000]),
    ({"$json": {"a": {"$json": [1]}}}, ['{"a": "[1]"}'], ['{"a": [1]}']),
]  # fmt: skip


FITTING = [(pattern, value, True) for pattern, good, _ in TABLE for value in good]
NOT_FITTING = [(pattern, value, False) for pattern, _, bad in TABLE for value in bad]


@pytest.mark.parametrize(("pattern", "value", "wanted"), FITTING + NOT_FITTING)
def test_a_value_fits_a_pattern_or_does_not(pattern: Any, value: Any, wanted: bool) -> None:
    assert list(check_matcher(pattern)) == []
    assert fits(pattern, value, Work()) is wanted


def test_the_table_has_a_fitting_and_a_not_fitting_value_for_every_operator() -> None:
    fitting = {key for pattern, good, _ in TABLE if isinstance(pattern, dict) and good for key in pattern}
    failing = {key for pattern, _, bad in TABLE if isinstance(pattern, dict) and bad for key in pattern}
    assert set(OPERATORS) <= fitting & failing


def test_the_json_schema_knows_the_same_operators() -> None:
    assert tuple(pattern_definitions()["Matcher"]["properties"]) == OPERATORS


# Pattern, value, path of the mismatch, what was expected and found there.
MISMATCHES: list[tuple[Any, Any, str, Any, Any]] = [
    ({"pod": "a"}, {"pod": "b"}, "pod", "a", "b"),
    ({"pod": "a"}, {}, "pod", "a", MISSING),
    ({"a": {"b": [1, {"c": 2}]}}, {"a": {"b": [1, {"c": 3}]}}, "a.b[1].c", 2, 3),
    ({"a": [1, 2]}, {"a": [1]}, "a", [1, 2], [1]),
    ({"a": {"$gt": 1, "$lt": 3}}, {"a": 4}, "a", {"$lt": 3}, 4),
    ({"a": {"$json": {"n": 1}}}, {"a": '{"n": 2}'}, "a.$json.n", 1, 2),
    ({"a": {"$json": {"n": 1}}}, {"a": "x"}, "a", {"$json": {"n": 1}}, "x"),
    ({"a b": {"": 1}}, {"a b": {"": 2}}, '["a b"][""]', 1, 2),
]


@pytest.mark.covers("H12")
@pytest.mark.parametrize(("pattern", "value", "path", "expected", "actual"), MISMATCHES)
def test_a_mismatch_says_where_it_is(pattern: Any, value: Any, path: str, expected: Any, actual: Any) -> None:
    found = mismatch(pattern, value, Work())
    assert isinstance(found, Mismatch)
    assert (show_path(found.path), found.expected, found.actual) == (path, expected, actual)


RE_EXAMPLE = 'write for example "payments-[a-z0-9-]+"'
TYPES = "must be one of string, number, integer, boolean, null, array, object, or a list of them"
UNKNOWN = f"is an unknown operator; operators are {', '.join(OPERATORS)}"
MIXED = (
    'mixes keys with the operator "$re"; write either keys or operators,'
    ' and {"$exact": {…}} for an object whose own keys begin with $'
)

# Pattern that is not well formed, path of the fault, its sentence.
FAULTS: list[tuple[Any, str, str]] = [
    ({"$r": "a"}, "$r", 'is an unknown operator; did you mean "$re"?'),
    ({"$containz": "a"}, "$containz", 'is an unknown operator; did you mean "$contains"?'),
    ({"$": 1}, "$", UNKNOWN),
    ({"a": [{"b": {"$re": "x", "c": 1}}]}, "a[0].b", MIXED),
    ({"$any": False}, "$any", 'must be true; write {"$in": […]} for alternatives'),
    ({"$any": [1]}, "$any", 'must be true; write {"$in": […]} for alternatives'),
    ({"$re": "(a"}, "$re", f"is not an RE2 pattern (missing ): (a); {RE_EXAMPLE}"),
    ({"$re": "(?=a)"}, "$re", f"is not an RE2 pattern (invalid perl operator: (?=); {RE_EXAMPLE}"),
    ({"$re": "(a)\\1"}, "$re", f"is not an RE2 pattern (invalid escape sequence: \\1); {RE_EXAMPLE}"),
    ({"$re": 5}, "$re", 'must be a string, for example "payments-[a-z0-9-]+"'),
    ({"$re": "a" * 2001}, "$re", "has more than 2000 characters; write a shorter pattern"),
    ({"$re": "\ud800"}, "$re", f"is not an RE2 pattern (half of a surrogate pair stands in it); {RE_EXAMPLE}"),
    ({"$glob": "[z-a]"}, "$glob", 'is not a glob (invalid character class range: z-a); write for example "*.md"'),
    ({"$glob": None}, "$glob", 'must be a string, for example "*.md"'),
    ({"$in": "ab"}, "$in", "must be a list with at least one pattern"),
    ({"$in": []}, "$in", "must be a list with at least one pattern"),
    ({"$in": [{"$x": 1}]}, "$in[0].$x", UNKNOWN),
    ({"$gt": "3"}, "$gt", "must be a number, for example 3"),
    ({"$lte": True}, "$lte", "must be a number, for example 3"),
    ({"$type": "str"}, "$type", TYPES),
    ({"$type": []}, "$type", TYPES),
    ({"$len": -1}, "$len", 'must be a whole number from 0 or a matcher, for example {"$gte": 1}'),
    ({"$len": 1.5}, "$len", 'must be a whole number from 0 or a matcher, for example {"$gte": 1}'),
    ({"$len": {"a": 1}}, "$len", 'must be a whole number from 0 or a matcher, for example {"$gte": 1}'),
    ({"$len": {"$gt": "x"}}, "$len.$gt", "must be a number, for example 3"),
    ({"$not": {"$re": "["}}, "$not.$re", f"is not an RE2 pattern (missing ]: [); {RE_EXAMPLE}"),
    ({"$all": {}}, "$all", "must be a list with at least one pattern"),
    ({"$absent": 1}, "$absent", "must be true or false"),
    ({"$argv": 'ls "a'}, "$argv", 'must be a list of words, a command line or a matcher, for example ["ls", "-l"]'),
    ({"$argv": {"a": 1}}, "$argv", 'must be a list of words, a command line or a matcher, for example ["ls", "-l"]'),
    ({"$json": {"$x": 1}}, "$json.$x", UNKNOWN),
    ({"$contains": {"$x": 1}}, "$contains.$x", UNKNOWN),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "path", "sentence"), FAULTS)
def test_a_matcher_that_cannot_mean_anything_is_found(pattern: Any, path: str, sentence: str) -> None:
    first = next(check_matcher(pattern))
    assert (show_path(first.path), first.message) == (path, sentence)


def test_nothing_inside_exact_is_a_matcher() -> None:
    assert list(check_matcher({"$exact": {"$nonsense": {"a": 1, "$b": 2}}})) == []


def test_a_hostile_pattern_takes_linear_time() -> None:
    started = time.process_time()
    for pattern in ({"$re": "(a+)+$"}, {"$re": "(a|aa)+$"}, {"$glob": "*a" * 20 + "b"}):
        assert not fits(pattern, "a" * 200_000 + "c", Work())
    assert time.process_time() - started < 1


def test_a_pattern_of_endless_work_is_given_up() -> None:
    numbers = list(range(3000))
    with pytest.raises(TooMuchWork):
        fits({"$all": [{"$contains": -1 - number} for number in numbers] + [{"$not": {"$contains": -1}}]},
             numbers + [-1 - number for number in numbers], Work())  # fmt: skip
