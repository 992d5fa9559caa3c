"""Who confirms a write of `mcp-ops agent`: an option, the person at the terminal, or nobody, which is a no."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from mcp_ops.agent.policies.confirmation import Ask, Decision
from mcp_ops.cli.agent.preview import pages, preview, visible
from mcp_ops.cli.agent.terminal import InputEnded, Interrupted, Terminal
from mcp_ops.text import one_line

YES = frozenset({"y", "yes"})
"""What is a yes, in any case and with any spaces around it. Everything else is a no."""
_ROWS_FOR_THE_QUESTION = 4
_FEWEST_ROWS = 3


@dataclass
class AtTheCommandLine:
    """Answers by the options of the command line, and asks at the terminal what they leave open.

    An option never confirms a call that was confirmed before with the same arguments: a model that repeats a write
    would otherwise have it done twice unseen.
    """

    yes: bool
    """`--yes`: our own servers' writes that destroy nothing."""
    yes_tools: frozenset[str]
    """`--yes-tool`: tools by name, with or without `server.` in front."""
    terminal: Terminal | None
    quietly: Callable[[], AbstractContextManager[None]]
    """Keeps the progress view away from the terminal while somebody is asked."""
    _confirmed: set[str] = field(default_factory=set)

    async def __call__(self, asked: Ask) -> Decision:
        """Answer a question."""
        decision = self._by_option(asked) or await self._by_person(asked)
        if decision.yes:
            self._confirmed.add(_identity(asked))
        return decision

    def _by_option(self, asked: Ask) -> Decision | None:
        if _identity(asked) in self._confirmed:
            return None
        own_name = asked.tool.removeprefix(f"{asked.server}.")
        # A bare name is enough only where one server alone has such a tool.
        if self.yes_tools & {asked.tool, f"{asked.server}.{own_name}"}:
            return Decision(yes=True, by="option", why="--yes-tool")
        if self.yes and asked.own and asked.tool_class == "mutating":
            return Decision(yes=True, by="option", why="--yes")
        return None

    async def _by_person(self, asked: Ask) -> Decision:
        if self.terminal is None or not self.terminal.in_front():
            again = _identity(asked) in self._confirmed
            option = "no option confirms the same call twice, and " if again else ""
            return Decision(yes=False, by="nobody", why=f"{option}there is no terminal where somebody could be asked")
        with self.quietly():
            try:
                yes = await _asked_at(self.terminal, asked)
            except InputEnded:
                self._end_line()
                return Decision(yes=False, by="person", why="the input ended")
            except Interrupted:
                self._end_line()
                return Decision(yes=False, by="person", why="Ctrl-C")
        return Decision(yes, by="person")

    def _end_line(self) -> None:
        try:
            if self.terminal is not None:
                self.terminal.write("\n")
        except OSError:
            self.terminal = None


async def _asked_at(terminal: Terminal, asked: Ask) -> bool:
    """Show a call, page by page where it is longer than the screen, and return whether the answer is yes.

    Raises:
        InputEnded: The input ends.
        Interrupted: Ctrl-C.
    """
    columns, height = terminal.size()
    # The last column stays free: some terminals begin a new row as soon as it is written.
    rows = preview(asked, columns - 1)
    shown = 0
    *before, last = pages(rows, max(height - _ROWS_FOR_THE_QUESTION, _FEWEST_ROWS))
    for page in before:
        terminal.write("\n" + "\n".join(page) + "\n")
        shown += len(page)
        if (await terminal.ask(f"[{shown} of {len(rows)} lines; Enter shows more, anything else is no] ")).strip():
            return False
    terminal.write("\n" + "\n".join(last) + "\n")
    what = f"{one_line(visible(asked.tool), 60)} of server {one_line(visible(asked.server), 30)}"
    whole = f", with all {len(rows)} lines above" if before else ""
    return (await terminal.ask(f"Send {what}{whole}? [y/N] ")).strip().lower() in YES


def _identity(asked: Ask) -> str:
    """Return what is equal for equal calls. An argument that is null is one that is left out."""
    given = {name: value for name, value in asked.arguments.items() if value is not None}
    return json.dumps([asked.server, asked.tool, given], sort_keys=True)
