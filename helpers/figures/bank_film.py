"""Lanes of a warp into the 32 banks of shared memory, lane by lane: the picture of one access."""

from collections.abc import Sequence

import numpy as np

from .bank_rules import BANKS, BankVerdict, judge
from .canvas import NORMAL, Canvas, Frame, counted, literal, told
from .events import LANES, WORD, WarpAccess
from .parts import Grid, lane_row

_LEFT, _PITCH = 92, 26.7
_LANES_Y, _BANKS_Y, _BANKS_HEIGHT = 60, 124, 184
_HEIGHT = 402
_WRITABLE = 17.0  # height of a word that a number can stand in
_PHASE_HUES = ("blue", "green", "purple", "sky")


def bank_frames(
    access: WarpAccess,
    title: str,
    *,
    columns: int | None = None,
    lanes_a_step: int = 1,
    verdict: BankVerdict | None = None,
) -> list[Frame]:
    """An access to shared memory, some lanes a step.

    Args:
        access: what each lane touches.
        title: written above.
        columns: elements of a row of the shared array, so that they are written as [row][column].
        lanes_a_step: lanes that come with each step.
        verdict: what `judge` says of the access, where that is at hand.

    Raises:
        ValueError: no lane takes part, or `lanes_a_step` is below 1.
    """
    if not access.lanes or lanes_a_step < 1:
        raise ValueError("bank_frames shows at least one lane, and one lane a step or more.")
    film = BankFilm(access, title, columns, judge(access) if verdict is None else verdict)
    steps = _steps(access.lanes, film.verdict.phases, lanes_a_step)
    return told([film.frame(step, step is steps[-1]) for step in steps], -1)


def last_frame(access: WarpAccess, title: str, verdict: BankVerdict | None = None) -> Frame:
    """The access with all its lanes at once; several phases stand below each other."""
    film = BankFilm(access, title, None, judge(access) if verdict is None else verdict)
    return film.frame(access.lanes, True, every=True)


def _steps(lanes: Sequence[int], phases: np.ndarray, size: int) -> list[list[int]]:
    """The lanes in groups of `size`, none of which reaches over two phases."""
    steps: list[list[int]] = []
    for lane in lanes:
        last = steps[-1] if steps else []
        if last and len(last) < size and phases[last[-1]] == phases[lane]:
            last.append(lane)
        else:
            steps.append([lane])
    return steps


class BankFilm:
    """An access lane by lane, and the words that it asks of each bank."""

    def __init__(self, access: WarpAccess, title: str, columns: int | None, verdict: BankVerdict):
        self.access, self.title, self.columns, self.verdict = access, title, columns, verdict
        self.phases = sorted({int(p) for p in verdict.phases if p >= 0})
        self.rows = max(1, int(verdict.loads.max()))
        # Words are numbered from the array's start, unless that would change their banks.
        starts = (access.addresses // WORD - access.indices)[access.active]
        aligned = (starts == starts[0]).all() and starts[0] % BANKS == 0
        self.shift = int(starts[0]) if aligned else 0

    # ---------------------------------------------------------------- state

    def stacks(self, phase: int, last: int) -> dict[int, list[int]]:
        """Bank → different words asked of it in a phase by lanes up to `last`, as they come."""
        found: dict[int, list[int]] = {}
        for word in dict.fromkeys(w for lane in self._of(phase, last) for w in self.words(lane)):
            found.setdefault(word % BANKS, []).append(word)
        return found

    def _of(self, phase: int, last: int) -> list[int]:
        """The lanes of a phase, up to `last`."""
        return [lane for lane in range(last + 1) if self.verdict.phases[lane] == phase]

    def words(self, lane: int) -> list[int]:
        return [int(word) - self.shift for word in self.verdict.words[lane]]

    def wavefronts(self, last: int) -> list[int]:
        """Of each phase, for the lanes up to `last`."""
        return [
            max(map(len, self.stacks(phase, last).values()), default=0) for phase in self.phases
        ]

    # ---------------------------------------------------------------- picture

    def frame(self, current: list[int], final: bool, every: bool = False) -> Frame:
        last = current[-1]
        phase = int(self.verdict.phases[last])
        canvas = Canvas(height=_HEIGHT, label=f"{self.title}: {self.verdict.summary}.")
        canvas.text(_LEFT, 20, literal(self.title), size=18, bold=True)
        self._info(canvas, current, last, every)
        self._lanes(canvas, current, last)
        shown = self.phases if every else [phase]
        self._banks(canvas, shown, current, last, every)
        self._sums(canvas, last, final)
        return canvas.frame(self._caption(current, last, phase, final))

    def _info(self, canvas: Canvas, current: list[int], last: int, every: bool) -> None:
        if len(current) > 1:
            text = f"lanes {current[0]} to {last}, {self.access.bytes} bytes a lane"
        else:
            words = self.words(last)
            first, end = words[0], words[-1]
            text = f"lane {last}: {self._place(last)} = "
            if len(words) == 1:
                text += f"word {first}, bank {first} mod 32 = {first % BANKS}"
            else:
                text += f"words {first} to {end}, banks {first % BANKS} to {end % BANKS}"
        if not every:
            canvas.text(_LEFT, 46, text, size=18, mono=True)

    def _place(self, lane: int) -> str:
        index = int(self.access.indices[lane])
        if self.columns:
            row, column = divmod(index, self.columns)
            return f"{self.access.array}[{row}][{column}]"
        return f"{self.access.array}[{index}]"

    def _lanes(self, canvas: Canvas, current: list[int], last: int) -> None:
        canvas.text(_LEFT - 10, _LANES_Y + 19, "lane", anchor="end")

        def look_of(lane: int) -> tuple[dict, bool]:
            phase = int(self.verdict.phases[lane])
            lit = 0 <= phase and lane <= last
            look = {"fill": "faint", "stroke": "grid"}
            if phase < 0:
                look = {"stroke": "grid", "dash": "3 3"}
            elif lit:
                hue = _PHASE_HUES[phase % len(_PHASE_HUES)]
                look = {"fill": f"{hue}-fill", "stroke": hue}
            if lane in current and len(current) < LANES:
                look |= {"stroke": "ink", "weight": 3}
            return look, lit

        lane_row(canvas, _LEFT, _LANES_Y, _PITCH, look_of)

    def _banks(self, canvas, phases, current, last, every) -> None:
        # No arrow needs room where all lanes are shown at once.
        first = _LANES_Y + 34 if len(phases) > 1 else _BANKS_Y
        strip = (_BANKS_Y + _BANKS_HEIGHT - first) / len(phases)
        gap = 8 if len(phases) > 1 else 0
        height = min(40.0, (strip - gap) / self.rows)
        for number, phase in enumerate(phases):
            stacks = self.stacks(phase, last)
            bottom = first + (number + 1) * strip
            self._strip(canvas, bottom, height, stacks, current if not every else [], phase, last)
        bottom = _BANKS_Y + _BANKS_HEIGHT
        canvas.text(_LEFT - 10, bottom + 17, "bank", anchor="end")
        for bank in range(BANKS):
            canvas.text(_LEFT + (bank + 0.5) * _PITCH, bottom + 17, str(bank),
                        anchor="middle", mono=True, fill="muted")  # fmt: skip
        if len(current) == 1 and not every:
            self._arrow(canvas, current[0], stacks, height)

    def _strip(self, canvas, bottom, height, stacks, current, phase, last) -> None:
        """The words of one phase, stacked on their banks from below."""
        ground = bottom - height * self.rows
        grid = Grid(_LEFT, ground, _PITCH, height * self.rows, 1, BANKS)
        canvas.rect(_LEFT, ground, grid.width, grid.height, fill="faint", stroke="grid")
        canvas.cells(grid.boxes, stroke="grid")
        now = {word for lane in current for word in self.words(lane)}
        for bank, words in sorted(stacks.items()):
            for row, word in enumerate(words):
                box = (_LEFT + bank * _PITCH + 1, bottom - (row + 1) * height + 0.5)
                asked = sum(word in self.words(lane) for lane in self._of(phase, last))
                thick = word in now and self.access.bytes <= WORD
                self._word(canvas, *box, height - 1, word, thick, len(words) > 1, asked)
            alone = len(stacks.get(bank + 1, ())) != len(words)
            if len(words) > 1 and height < _WRITABLE and alone:
                y = bottom - (len(words) - 0.5) * height + 5
                near = bank < BANKS - 2
                canvas.text(
                    _LEFT + (bank + near) * _PITCH + (4 if near else -4), y, f"{len(words)}×",
                    anchor="start" if near else "end", bold=True, fill="vermillion", halo=True,
                )  # fmt: skip
        for lane in current if self.access.bytes > WORD else ():
            words = self.words(lane)
            bank = words[0] % BANKS
            row = stacks[bank].index(words[0])
            canvas.rect(
                _LEFT + bank * _PITCH + 1, bottom - (row + 1) * height + 0.5,
                len(words) * _PITCH - 2, height - 1, stroke="ink", weight=3,
            )  # fmt: skip
        if len(self.phases) > 1:
            middle = bottom - height * self.rows / 2 + 5
            canvas.text(_LEFT - 10, middle, f"phase {phase + 1}", anchor="end", bold=True)
        elif height >= _WRITABLE:
            for row in range(max(map(len, stacks.values()), default=0)):
                y = bottom - (row + 0.5) * height + 5
                canvas.text(_LEFT - 10, y, f"{row + 1}", anchor="end", fill="muted")
            canvas.text(_LEFT - 10, ground - 8, "wavefront", anchor="end", fill="muted")

    def _word(self, canvas, x, y, height, word, thick, shared_bank, asked) -> None:
        hue = "vermillion" if shared_bank else "green"
        width = _PITCH - 2
        canvas.rect(x, y, width, height, fill=f"{hue}-fill", stroke="ink" if thick else hue,
                    weight=3 if thick else 1)  # fmt: skip
        if height < _WRITABLE - 1:
            return
        twice = asked > 1 and height >= 34
        look = {"anchor": "middle", "mono": True, "within": width - 3}
        centre = y + height / 2 + 0.36 * NORMAL - (8 if twice else 0)
        if word < 1000:
            canvas.text(x + width / 2, centre, str(word), **look)
        if twice:
            canvas.text(x + width / 2, centre + 16, f"×{asked}", bold=True, **look)

    def _arrow(self, canvas: Canvas, lane: int, stacks, height: float) -> None:
        words = self.words(lane)
        middle = sum(word % BANKS for word in words) / len(words)
        depth = max(len(stacks[word % BANKS]) for word in words)
        tip = _BANKS_Y + _BANKS_HEIGHT - depth * height - 2
        canvas.arrow(
            _LEFT + (lane + 0.5) * _PITCH, _LANES_Y + 30, _LEFT + (middle + 0.5) * _PITCH, tip
        )

    def _sums(self, canvas: Canvas, last: int, final: bool) -> None:
        y = _BANKS_Y + _BANKS_HEIGHT + 54
        each = self.wavefronts(last)
        total = sum(each)
        worse = total > sum(n > 0 for n in each)
        text = counted(total, "wavefront")
        if len(each) > 1 and sum(n > 0 for n in each) > 1:
            text = f"{' + '.join(str(n) for n in each if n)} = {text}"
        canvas.text(_LEFT, y, text if final else f"{text} so far", size=22, bold=True,
                    fill="vermillion" if worse else "green")  # fmt: skip
        canvas.text(_LEFT + BANKS * _PITCH, y, f"ideal: {self.verdict.ideal}", size=22,
                    anchor="end")  # fmt: skip
        note = "a wavefront serves one word of each bank"
        text = f"In each bank its words, ×n where n lanes ask for one; {note}."
        canvas.text(_LEFT, y + 28, text, fill="muted")

    # ---------------------------------------------------------------- words

    def _caption(self, current: list[int], last: int, phase: int, final: bool) -> str:
        if final:
            return " ".join(self.verdict.reasons)
        before = self.stacks(phase, current[0] - 1)
        head = f"Lane {last}" if len(current) == 1 else f"Lanes {current[0]} to {last}"
        if len(self.phases) > 1:
            head = f"Phase {phase + 1} of {len(self.phases)}. {head}"
        fresh = [
            w for lane in current for w in self.words(lane) if w not in before.get(w % BANKS, [])
        ]
        verb = "asks" if len(current) == 1 else "ask"
        if not fresh:
            return f"{head} {verb} only for what an earlier lane asks for: no word more to serve."
        after = self.stacks(phase, last)
        worst = max(fresh, key=lambda word: len(after[word % BANKS]))
        count = len(after[worst % BANKS])
        if count == 1:
            if len(fresh) == 1:
                word = fresh[0]
                return f"{head} {verb} for word {word}, so far the only one of bank {word % BANKS}."
            return f"{head} {verb} for {len(fresh)} words, so far the only ones of their banks."
        return (
            f"{head} {verb} for word {worst}; bank {worst % BANKS} then has {count} different "
            f"words to serve, one after the other."
        )
