"""The bench as a notebook shows it: controls, a result that is never out of date, earlier runs."""

from importlib.resources import files

import anywidget
import traitlets

from ..figures import palette
from ..kernels.source import KernelError, Value
from ..problem.ladder import rung
from ..show import KeepsHtml, sheet
from . import html as bench_html
from .ladder_bars import Ladder
from .picture import picture
from .result import Result
from .session import Session, running_loop
from .subject import Settings, Subject

_HERE = files(__package__)
_FIGURES = files(palette.__package__)
CSS = sheet() + palette.css(".kernel-bench") + _HERE.joinpath("bench.css").read_text("utf-8")


def pictures(result: Result) -> dict[str, str]:
    """A picture of what each kernel of a result did, as SVG by the kernel's name."""
    draws = rung(result.rung).draws if result.rung else ()
    return {
        entry: picture(report, draws, result.settings) for entry, report in result.reports.items()
    }


class Bench(KeepsHtml, anywidget.AnyWidget):
    """Controls for a kernel or a rung, and what its settings give.

    The page sends numbered changes: what the controls say, and the number of the change. `shown`
    has a result and the number that it answers; what does not answer the newest change is greyed by
    the page itself, even while Python is busy. `wanted` is the newest change that Python knows.

    Args:
        subject: what to turn.
        start: settings that differ from the defaults.
    """

    _esm = "".join(
        part.read_text("utf-8")
        for part in (_FIGURES.joinpath("figure.js"), _HERE.joinpath("bench.js"))
    )
    _css = CSS
    title = traitlets.Unicode().tag(sync=True)
    controls = traitlets.List(traitlets.Dict()).tag(sync=True)
    wanted = traitlets.Dict().tag(sync=True)
    state = traitlets.Dict().tag(sync=True)
    shown = traitlets.Dict().tag(sync=True)
    past = traitlets.Unicode().tag(sync=True)
    ladder = traitlets.Dict().tag(sync=True)
    refused = traitlets.List(traitlets.Dict()).tag(sync=True)
    sweep = traitlets.List(traitlets.Dict(), help="In an exported page: every result.").tag(
        sync=True
    )

    _open = False

    def __init__(self, subject: Subject, start: Settings | None = None, loop=None, **options):
        self._ladder = Ladder(subject.rung)
        self._loop = running_loop() if loop is None else loop
        self._session = Session(
            subject, self._loop, self._push, start=start, idle=self._ladder.measure
        )
        self._session.run()  # before there is a widget, so that it is born with its first result
        super().__init__(title=subject.title, **options)
        self.on_msg(self._told)
        self._open = True
        self._push()

    @property
    def settings(self) -> Settings:
        """The value of each control."""
        return dict(self._session.settings)

    @property
    def result(self):
        """The newest `Result`; its settings say what it belongs to."""
        return self._session.result

    @property
    def history(self) -> list:
        """Earlier runs, the newest last."""
        return list(self._session.history)

    def set(self, **settings: Value) -> None:
        """Turn controls from Python; the page follows.

        Raises:
            KernelError: there is no such control or choice.
        """
        self._session.change(**settings)

    def _told(self, _, content, __) -> None:
        """A message of the page: a change of its controls.

        It comes on a thread of its own where a kernel has subshells, and while a cell runs. The
        work belongs to the event loop in which cells run.
        """
        if self._loop is None:
            self._turn(content)
        else:
            self._loop.call_soon_threadsafe(self._turn, content)

    def _turn(self, content: dict) -> None:
        # A change from Python may have taken the number meanwhile; the page then gets a new one.
        request = max(int(content["request"]), self._session.request + 1)
        try:
            self._session.change(request, **content["settings"])
        except KernelError:  # no longer offered: the page gets the controls as they are
            self._session.change(request)

    def _push(self) -> None:
        """Bring the page up to date, in one message."""
        if not self._open:
            return
        session = self._session
        with self.hold_sync():
            self.controls = [
                bench_html.describe(c.name, c.choices, c.description, c.kind)
                for c in session.controls
            ]
            self.wanted = {"request": session.request, "settings": dict(session.settings)}
            self.state = {
                "request": session.request, "phase": session.phase, "stage": session.stage
            }  # fmt: skip
            self.refused = [
                {"control": name, "choice": choice, "reason": reason}
                for (name, choice), reason in session.refused.items()
                # What cannot run now cannot run with another choice either, for that reason.
                if session.result is None or reason != session.result.message
            ]
            if session.result is not None and self.shown.get("request") != session.answered:
                self.shown = {
                    "request": session.answered,
                    **bench_html.fragments(session.result.data(), pictures(session.result)),
                }
                self.past = bench_html.history(session.history)
            if session.result is not None:
                self.ladder = self._ladder.data(session.result)

    def close(self) -> None:
        if self._open:  # a bench that could not be made is closed as well, by its end
            self._session.close()
        super().close()

    def _repr_html_(self) -> str:
        """The result as it is, for a page without widgets."""
        shown = bench_html.page(self.result.data())
        return f'<style>{CSS}</style><div class="kernel-bench">{shown}</div>'

    def __repr__(self) -> str:
        settings = bench_html.settings_text(self.settings)
        result = self._session.result
        said = f": {result.status}" if result is not None else ""
        return f"<Bench of {self.title}, {settings}{said}>"
