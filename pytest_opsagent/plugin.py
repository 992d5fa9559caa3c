"""The hooks of pytest that this plugin answers. Each one delegates, and imports what it needs only then."""

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_opsagent import configuration, measuring, options
from pytest_opsagent.collect import ScenarioFile, is_scenario_file
from pytest_opsagent.fixture import opsagent
from pytest_opsagent.guards_file import GuardsFile, is_guards_file
from pytest_opsagent.report import guards, html
from pytest_opsagent.report.crash import record_of_crash
from pytest_opsagent.report.record import keep, record_of, redacted_of
from pytest_opsagent.selection import hide_bad_lines, show_bad_lines
from pytest_opsagent.state import OUTCOMES, STATE, State

__all__ = ["opsagent"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register flags and ini keys."""
    options.add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the plugin's own hooks."""
    from pytest_opsagent import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    """Make the state of this process; on the controller also refuse settings that cannot be right."""
    state = config.stash[STATE] = State(config)
    if not state.is_worker:
        configuration.check(config)
        measuring.check(config)
        config.pluginmanager.register(ControllerHooks(state), "opsagent-controller")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close what an interrupted run left open."""
    if STATE in config.stash:
        config.stash[STATE].close()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ScenarioFile | GuardsFile | None:
    """Collect files of scenarios, and the examples of the operator's additions to the guards."""
    if is_scenario_file(file_path):
        return ScenarioFile.from_parent(parent, path=file_path)
    return GuardsFile.from_parent(parent, path=file_path) if is_guards_file(parent.config, file_path) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep bad lines out of the way of `-m`."""
    hide_bad_lines(config, items)


@pytest.hookimpl(specname="pytest_collection_modifyitems", trylast=True)
def pytest_collection_modifyitems_last(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put bad lines back."""
    show_bad_lines(config, items)


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Note that only a part of the suite runs."""
    measuring.note_deselected(items)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Note which bad lines were not selected."""
    session.config.stash[STATE].note_unselected(session.items)


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    """Say in one line how scenarios will run; nothing without scenarios."""
    if not config.stash[STATE].read_files or config.get_verbosity() < 0:
        return []
    from pytest_opsagent.report.heading import heading

    return heading(config, items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Complete the reports of scenarios."""
    report = yield
    if OUTCOMES in item.stash:
        from pytest_opsagent.report.assemble import complete

        complete(item, report)
    return report


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    """Close the harness; then search what was written, which includes other plugins' reports, for secrets."""
    state = session.config.stash[STATE]
    if not state.used:
        return (yield)
    from pytest_opsagent.report import ending

    ending.before_reports(session, state)
    result = yield
    ending.after_reports(session, state)
    return result


class ControllerHooks:
    """Hooks of the process that writes reports: the only one, or the controller of an xdist run."""

    def __init__(self, state: State) -> None:
        self.state = state

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what each attempt came to, also when it came to nothing."""
        self.state.redacted.extend(redacted_of(report))
        record = record_of(report) or record_of_crash(report, configuration.mode_of(self.state.config))
        if record is not None:
            keep(self.state.records, record, report.when)
            html.begin_columns(self.state.config)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Take over what an xdist worker knows; one that crashed has told nothing."""
        output = getattr(node, "workeroutput", None)
        if output is None and error is not None and self.state.records:
            self.state.redacted.append(f"worker {node.gateway.id} crashed, and its secrets were not searched for")
        self.state.take_over(output or {})

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: "pytest.TerminalReporter") -> Generator[None, None, None]:
        """Write the section of the summary, after everybody else's."""
        result = yield
        if self.state.used:
            from pytest_opsagent.report import ending

            ending.write_summaries(terminalreporter, self.state)
        return result

    @pytest.hookimpl(optionalhook=True)
    def pytest_html_report_title(self, report: Any) -> None:
        """Keep pytest-html's data until the first scenario asks for columns."""
        self.state.config.stash[html.REPORT] = report

    @pytest.hookimpl(optionalhook=True, trylast=True)
    def pytest_html_results_table_row(self, report: Any, cells: list[str]) -> None:
        """Add our cells to a row."""
        html.add_cells(self.state.config, report, cells)

    @pytest.hookimpl(optionalhook=True)
    def pytest_html_results_table_html(self, report: Any, data: list[str]) -> None:
        """Say in a skipped scenario's row why it was skipped."""
        html.shorten_skip(report, data)

    @pytest.hookimpl(optionalhook=True)
    def pytest_html_results_summary(self, prefix: list[str], postfix: list[str]) -> None:
        """Say at the report's head what was not proven."""
        if self.state.records:
            prefix.append(html.style())
            rules = guards.html_lines(guards.guard_report(self.state))
            postfix.extend(html.summary_lines(self.state.records, rules))
