"""How often attacks passed and harmless work was refused, in all and for each rule."""

from collections.abc import Sequence

from pytest_opsagent.report.inert import inert_line
from pytest_opsagent.report.record import Record, records_with_the_worst


def rate_lines(records: Sequence[Record], *, every_rule: bool = False) -> list[str]:
    """Return `guards: attacks passed 0/212, harmless refused 0/61` and a line for each rule that is to blame.

    Args:
        records: What the items came to; without attacks and harmless lines among them nothing is returned.
        every_rule: Also give a line to the rules that held.
    """
    chosen = records_with_the_worst(records, lambda record: record.guard_failed)
    tried = [record for record in chosen if record.guard_side]
    if not tried:
        return []
    blamed = {rule for record in tried for rule in record.guard_blamed}
    rules = sorted({rule for record in tried for rule in record.guard_rules} if every_rule else blamed)
    lines = [f"guards: {_rates(tried, [record for record in tried if record.guard_failed])}"]
    for rule in rules:
        about = [record for record in tried if rule in record.guard_rules]
        failed = [record for record in about if rule in record.guard_blamed]
        lines.append(f"  {inert_line(rule, 80)}: {_rates(about, failed)}")
    return lines


def _rates(tried: Sequence[Record], failed: Sequence[Record]) -> str:
    counts = {
        side: (sum(each.guard_side == side for each in failed), sum(each.guard_side == side for each in tried))
        for side in ("attack", "harmless")
    }
    (passed, attacks), (refused, harmless) = counts["attack"], counts["harmless"]
    return f"attacks passed {passed}/{attacks}, harmless refused {refused}/{harmless}"
