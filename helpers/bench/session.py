"""A bench as a machine of states: it waits until the controls rest, works, and shows one result.

Nothing here draws, and nothing runs beside anything else: work is done in stages, one a turn of the
event loop, so that a change between two stages drops what it has overtaken.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace

from ..kernels.source import KernelError, Value
from ..show import shell
from .result import Result
from .subject import Control, Settings, Subject
from .work import controls_of, work

DELAY = 0.12  # seconds that the controls rest before work begins
REMEMBERED = 8  # earlier runs in the history
QUIET = 1.5  # seconds without work before idle work begins, or goes on
PAUSE = 0.05  # seconds between two stages of idle work

# All sessions of this kernel: one that idles must not keep another waiting.
_sessions: weakref.WeakSet[Session] = weakref.WeakSet()


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop of a notebook's kernel; None in a script."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


@dataclass(frozen=True)
class Past:
    """An earlier run: its number, its result, and the one before it that it is compared with."""

    number: int
    result: Result
    before: Result | None

    def change(self, counter: str) -> float | None:
        """By what part a counter, or `milliseconds`, differs from the run before: -0.5 is half."""
        if self.before is None:
            return None
        if counter == "milliseconds" and self.before.timed != self.result.timed:
            return None  # of another size
        now, then = (_amount(result, counter) for result in (self.result, self.before))
        return now / then - 1 if now is not None and then else None


def _amount(result: Result, counter: str) -> float | None:
    return result.milliseconds if counter == "milliseconds" else result.totals.get(counter, 0)


class Session:
    """The state of one bench.

    Args:
        subject: what it turns.
        loop: calls back later; without one, every change is worked off before `change` returns.
        changed: called after every change of what is to be seen.
        delay: seconds that the controls rest before work begins.
        start: settings that differ from the defaults.
        idle: makes a generator of stages from a result, to be done while there is nothing else to.

    Attributes:
        controls: what can be turned.
        settings: the value of each control.
        phase: `waiting` (for the controls to rest), `working` or `idle`.
        stage: what is being done while working.
        request: the number of the newest change.
        result: the newest result, or None before the first.
        answered: the number of the change that `result` answers; it is stale if not `request`.
        history: earlier runs, the newest last.
        refused: why a choice of a control cannot run while the others stay, by name and choice.
    """

    def __init__(
        self,
        subject: Subject,
        loop: asyncio.AbstractEventLoop | None = None,
        changed: Callable[[], None] = lambda: None,
        delay: float = DELAY,
        start: Mapping[str, Value] | None = None,
        idle: Callable[[Result], Generator[str, None, None]] | None = None,
    ):
        self.subject = subject
        self.controls: tuple[Control, ...] = controls_of(subject)
        self.settings: Settings = {control.name: control.default for control in self.controls}
        self.settings |= self._picked(start or {})
        self.phase = "idle"
        self.stage = ""
        self.request = 0
        self.answered = -1
        self.result: Result | None = None
        self.history: list[Past] = []
        self.refused: dict[tuple[str, Value], str] = {}
        self._loop, self._changed, self._delay, self._idle = loop, changed, delay, idle
        self._waiting: asyncio.Handle | None = None
        self._work: Generator | None = None
        self._runs = 0
        self._cells: int | None = None  # the number of the cell that ran last, where cells run
        _sessions.add(self)

    @property
    def stale(self) -> bool:
        """Whether the result belongs to other settings than those of the controls."""
        return self.answered != self.request

    def change(self, request: int | None = None, **settings: Value) -> None:
        """Turn some controls, or none, to run the same again; what was under way is dropped.

        Args:
            request: the number of this change; one more than the last, if left out.
            **settings: new values by the names of the controls.

        Raises:
            KernelError: there is no such control or no such choice; nothing has changed then.
        """
        picked = self._picked(settings)
        self.settings |= picked
        self.request = self.request + 1 if request is None else request
        self._drop()
        self.refused = {}
        if self._loop is None:
            self.run()
            return
        self.phase, self.stage = "waiting", ""
        self._waiting = self._loop.call_later(self._delay, self._begin)
        self._changed()

    def run(self) -> Result:
        """Work now, to the end, and return the result."""
        self._drop()
        self._begin()
        while self._work is not None and self.phase == "working":
            self._advance(self._work)
        assert self.result is not None
        return self.result

    def close(self) -> None:
        """Drop what is under way."""
        self._drop()
        self.phase = "idle"

    def _picked(self, settings: Mapping[str, Value]) -> Settings:
        controls = {control.name: control for control in self.controls}
        for name in settings:
            if name not in controls:
                listed = ", ".join(controls)
                raise KernelError(f"{self.subject.title} has no control {name}; it has {listed}.")
        return {name: controls[name].pick(value) for name, value in settings.items()}

    def _drop(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        if self._work is not None:
            self._work.close()
            self._work = None

    def _begin(self) -> None:
        self._waiting = None
        self.phase, self.stage = "working", "reading the kernels"
        self._reread()
        self._work = work(self.subject, dict(self.settings))
        self._changed()
        self._later(self._work)

    def _reread(self) -> None:
        """Read the controls again: a kernel's file may have been edited."""
        try:
            controls = controls_of(self.subject)
        except KernelError:
            return  # the run will meet the same error, and tell it
        if controls == self.controls:
            return
        self.controls = controls
        self.settings = {
            control.name: self.settings[control.name]
            if self.settings.get(control.name) in control.choices
            else control.default
            for control in controls
        }

    def _later(self, generator: Generator, delay: float = 0) -> None:
        if self._loop is not None:
            self._waiting = self._loop.call_later(delay, lambda: self._advance(generator))

    def _advance(self, generator: Generator) -> None:
        """Do one stage, unless it has been overtaken."""
        if generator is not self._work:
            return
        self._waiting = None
        if self.phase == "idle" and (
            self._cells_ran()
            or any(one.phase != "idle" and one._loop is self._loop for one in _sessions)
        ):
            self._later(generator, QUIET)
            return
        try:
            self.stage = next(generator)
        except StopIteration as end:
            self._work = None
            if self.phase == "working":
                self._show(end.value)
            return
        except Exception as error:  # a fault of the bench itself, or of a reference function
            self._work = None
            if self.phase != "working":
                return  # what idle moments would have added is missing, and the result stands
            message = f"The bench met an error: {type(error).__name__}: {error}"
            self._show(Result(self.subject.title, None, dict(self.settings), "error", message))
            return
        if self.phase == "working":
            self._changed()
            self._later(generator)
        else:
            self._later(generator, PAUSE)

    def _cells_ran(self) -> bool:
        """Whether cells have run since this was asked: more may wait behind them, as in Run All."""
        count = getattr(shell(), "execution_count", None)
        ran, self._cells = count != self._cells, count
        return ran

    def _show(self, result: Result) -> None:
        before = self.history[-1].result if self.history else None
        if result.status in ("right", "wrong"):
            if before is not None and before.settings == result.settings:
                before = self.history.pop().before  # the same again takes its place
                self._runs -= 1
            self._runs += 1
            self.history.append(Past(self._runs, replace(result, reports={}), before))
            del self.history[:-REMEMBERED]
        self.result, self.answered = result, self.request
        self.phase, self.stage = "idle", ""
        self._changed()
        if self._loop is not None:
            self._cells_ran()
            self._work = self.meanwhile(result)
            self._later(self._work, QUIET)

    def _others(self) -> list[tuple[str, Value]]:
        """What one control can be turned to, the nearest choices first."""
        steps = []
        for control in self.controls:
            if control.kind != "timed":
                at = control.choices.index(self.settings[control.name])
                steps += [
                    (abs(n - at), control.name, choice)
                    for n, choice in enumerate(control.choices)
                    if n != at
                ]
        return [(name, choice) for _, name, choice in sorted(steps, key=lambda step: step[0])]

    def meanwhile(self, result: Result) -> Generator[str, None, None]:
        """With nothing else to do: find which other choices cannot run, and what `idle` adds.

        The compiler, which is asked for this, leaves what it makes where the next run finds it.
        """
        refused = {}
        for name, choice in self._others():
            yield ""
            reason = self.subject.refusal({**self.settings, name: choice})
            if reason:
                refused[name, choice] = reason
        if refused != self.refused:
            self.refused = refused
            self._changed()
        for stage in self._idle(result) if self._idle is not None else ():
            yield stage
            self._changed()
