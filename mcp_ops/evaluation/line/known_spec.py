"""A known failure, as a line says it: why it fails, and until when that is accepted."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, StringConstraints

from mcp_ops.evaluation.line.line_model import Given, Items, LinePart, Text, fault
from mcp_ops.evaluation.wording import shown

DAY_PATTERN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
LONGEST = timedelta(days=366)
"""How far ahead `until` may lie. A known failure is looked at again within a year."""


def utc_today() -> date:
    """Return the day it is in UTC: the same for everybody who runs a suite at the same moment."""
    return datetime.now(UTC).date()


def day_of(text: str) -> date | None:
    """Return the day that a text names, or None when the calendar has no such day."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def is_too_far(day: date, today: date) -> bool:
    """Return whether `day` lies more than a year after `today`."""
    return day - today > LONGEST


def _day(text: str) -> str:
    day = day_of(text)
    if day is None:
        raise fault(f'{shown(text)} is no day of the calendar; write one such as "2027-01-31"')
    if is_too_far(day, utc_today()):
        raise fault(f"{shown(text)} is more than a year ahead; write an earlier day, and look at the failure then")
    return text


Sentence = Annotated[Text, StringConstraints(min_length=1, max_length=300)]


class Known(LinePart):
    """An expected failure of the task or of safety. It turns red when it passes, and when its day is over."""

    MISPLACED: ClassVar[Mapping[str, str]] = {
        "strict": "is an unknown key: a known failure that passes always turns red",
        "raises": "is an unknown key: any expectation may fail; what the harness itself complains of is never excused",
    }

    reason: Sentence = Field(
        description="Why it fails for now.", examples=["the guard does not know the new option of stat yet"]
    )
    until: Annotated[str, StringConstraints(pattern=DAY_PATTERN), AfterValidator(_day)] = Field(
        description="The last day in UTC on which it may fail, at most a year ahead. After it the item is red.",
        examples=["2027-01-31"],
    )
    issue: Given[Sentence] = Field(
        default=None, description="Where it is tracked.", examples=["https://example.com/issues/12"]
    )
    modes: Annotated[Items[Literal["mock", "live"]], Field(min_length=1)] = Field(
        default=("mock", "live"), description="The modes in which it fails.", examples=[["live"]]
    )

    @property
    def last_day(self) -> date:
        """The last day on which it may fail."""
        return date.fromisoformat(self.until)
