"""All witnesses of one run: they look together, and one that fails hinders no other."""

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, get_args

from mcp_ops.evaluation.session.loading import called, described
from mcp_ops.evaluation.watching.witnesses.base import WITNESS_NAME, Effect, Witness, WitnessFactory, WitnessInput
from mcp_ops.text import one_line
from mcp_ops.trace.events import EffectKind, EffectSeen

_LEAST_MEMBERS = ("before", "after")


class Panel:
    """The witnesses of one run.

    Args:
        own: Those that every run has.
        factories: Make those of the user.
        given: What these are made for.
    """

    problems: list[str]
    """Why what they say cannot be relied on: one sentence each."""

    def __init__(self, own: Sequence[Witness], factories: Iterable[WitnessFactory], given: WitnessInput) -> None:
        self.problems = []
        self._own = list(own)
        self._users: list[Witness] = []
        self._failed: set[str] = set()
        self._waiting: list[Witness] = []
        for factory in factories:
            self._add(factory, given)

    @property
    def names(self) -> frozenset[str]:
        """Names of those that looked, before and after."""
        return frozenset(witness.name for witness in self._all) - self._failed

    @property
    def blind(self) -> frozenset[str]:
        """Names of those that are there and could not look."""
        return frozenset(self._failed)

    @property
    def watches(self) -> frozenset[str]:
        """Names of servers whose doings a user's witness sees."""
        return frozenset(name for witness in self._users for name in getattr(witness, "watches", ()))

    async def before(self) -> None:
        """Let all of them look; the user's first, so that what these do is not taken for the run's doing."""
        for witness in (*self._users, *self._own):
            self._waiting.append(witness)
            try:
                await called(witness.before)
            except (Exception, SystemExit) as error:
                self._fail(witness, f"could not look before the run: {described(error)}")

    async def after(self) -> list[EffectSeen]:
        """Let those look again that looked before, in reverse; return what they saw, our own witnesses first."""
        seen: dict[str, list[EffectSeen]] = {}
        for witness in reversed(self._waiting):
            if witness.name not in self._failed:
                seen[witness.name] = await self._look(witness)
        return [effect for witness in self._all for effect in seen.get(witness.name, ())]

    def end(self) -> None:
        """Let each one that was asked to look clean up after itself."""
        while self._waiting:
            witness = self._waiting.pop()
            end: Callable[[], object] | None = getattr(witness, "end", None)
            try:
                result = end() if end is not None else None
                if inspect.iscoroutine(result):
                    result.close()
                    raise TypeError("end is a coroutine function; write a plain one")
            except (Exception, SystemExit) as error:
                self._fail(witness, f"could not clean up: {described(error)}")

    @property
    def _all(self) -> list[Witness]:
        return [*self._own, *self._users]

    def _add(self, factory: WitnessFactory, given: WitnessInput) -> None:
        called_ = one_line(getattr(factory, "__qualname__", repr(factory)), 80)
        try:
            witness = factory(given)
        except (Exception, SystemExit) as error:
            self.problems.append(f"the witness {called_} cannot be made: {described(error)}")
            self._failed |= {name for name in [getattr(factory, "name", None)] if isinstance(name, str)}
            return
        if witness is None:
            return
        wrong = _wrong_in(witness, {known.name for known in self._all})
        if wrong:
            self.problems.append(f"the witness {called_} {wrong}")
        else:
            self._users.append(witness)

    async def _look(self, witness: Witness) -> list[EffectSeen]:
        try:
            effects = list(await called(witness.after))
        except (Exception, SystemExit) as error:
            self._fail(witness, f"could not look after the run: {described(error)}")
            return []
        wrong = next((effect for effect in effects if not _is_effect(effect)), None)
        if wrong is not None:
            self._fail(witness, f"returned {one_line(repr(wrong), 120)}; return a list of Effect(kind, object)")
            return []
        return [
            EffectSeen(witness=witness.name, kind=effect.kind, object=effect.object, detail=effect.detail)
            for effect in effects
        ]

    def _fail(self, witness: Witness, what: str) -> None:
        self._failed.add(witness.name)
        self.problems.append(f'witness "{witness.name}" {what}')


def _wrong_in(witness: Any, known: set[str]) -> str:
    """Return what keeps an object from being a witness, as the rest of a sentence."""
    name = getattr(witness, "name", None)
    if not isinstance(name, str) or not re.fullmatch(WITNESS_NAME, name, re.ASCII):
        return f'has the name {one_line(repr(name), 60)}; write one such as name = "tickets", in {WITNESS_NAME}'
    if name in known:
        return f'has the name "{name}", which another witness has; write another one'
    watched = getattr(witness, "watches", ())
    if (
        isinstance(watched, str)
        or not isinstance(watched, Iterable)
        or not all(isinstance(one, str) for one in watched)
    ):
        return f'("{name}") watches {one_line(repr(watched), 60)}; write a tuple of names such as watches = ("desk",)'
    missing = [member for member in _LEAST_MEMBERS if not callable(getattr(witness, member, None))]
    return f'("{name}") has no function {missing[0]}' if missing else ""


def _is_effect(effect: object) -> bool:
    return (
        isinstance(effect, Effect)
        and effect.kind in get_args(EffectKind)
        and isinstance(effect.object, str)
        and isinstance(effect.detail, str)
    )
