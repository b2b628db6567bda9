"""The table of verdicts: a file for each kernel in table/, and how they are read and printed."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from .generate import FILES, KINDS, Mutant
from .judge import SLOWER, SURVIVED, Judgement
from .survivors import reason

FOLDER = Path(__file__).with_name("table")
FIELDS = (
    "kernel",
    "function",
    "line",
    "kind",
    "before",
    "number",
    "after",
    "verdict",
    "also",
    "said",
)


@dataclass(frozen=True)
class Row:
    """A mutant and what the checks said of it; the fields are those of `Mutant` and `Judgement`."""

    kernel: str
    function: str
    line: int
    kind: str
    before: str
    number: int
    after: str
    verdict: str
    also: tuple[str, ...] = ()
    said: str = ""

    @property
    def mutant(self) -> tuple:
        """What identifies the mutant."""
        return (
            self.kernel,
            self.function,
            self.line,
            self.kind,
            self.before,
            self.number,
            self.after,
        )

    @property
    def key(self) -> str:
        """As `Mutant.key`."""
        which = f" (number {self.number})" if self.number > 1 else ""
        return f"{self.kernel}, {self.function}: {self.before}{which}  ->  {self.after}"


def identity(mutant: Mutant) -> tuple:
    """What identifies a mutant, as `Row.mutant`."""
    return (
        mutant.file, mutant.function, mutant.line, mutant.kind, mutant.before, mutant.number,
        mutant.after,
    )  # fmt: skip


def row(mutant: Mutant, judgement: Judgement) -> Row:
    """The table's row; of what was said only counters that have grown are kept."""
    said = judgement.said if judgement.verdict == SLOWER else ""
    return Row(*identity(mutant), judgement.verdict, judgement.also, said)


def table_of(file: str) -> Path:
    """Where the table of a kernel's file is: `table/02_naive.json`."""
    return FOLDER / f"{Path(file).stem}.json"


def load() -> list[Row]:
    """The rows of all kernels that have a table."""
    rows = []
    for path in filter(Path.exists, map(table_of, FILES)):
        rows += json.loads(path.read_text(encoding="utf-8"))["mutants"]
    return [Row(*values[:8], tuple(values[8]), values[9]) for values in rows]


def save(rows: list[Row]) -> None:
    """Write the table of each kernel that has rows, a line a mutant."""
    lines: dict[str, list[str]] = {}
    for r in rows:
        values = [getattr(r, f) if f != "also" else list(r.also) for f in FIELDS]
        lines.setdefault(r.kernel, []).append(json.dumps(values, ensure_ascii=False))
    for file, own in lines.items():
        text = f'{{"fields": {json.dumps(FIELDS)},\n"mutants": [\n' + ",\n".join(own) + "\n]}\n"
        table_of(file).write_text(text, encoding="utf-8")


def printed(one: Row) -> str:
    """One row as a line of text."""
    verdict = " + ".join((one.verdict, *one.also))
    more = one.said or (reason(one) if one.verdict == SURVIVED else "")
    change = f"{one.before}  ->  {one.after or '(removed)'}"
    return (
        f"{one.kernel}:{one.line}  {one.kind}  {verdict}{f': {more}' if more else ''}\n    {change}"
    )


def summary(rows: list[Row]) -> str:
    """How many mutants of each kind came to which verdict."""
    verdicts = [v for v, _ in Counter(r.verdict for r in rows).most_common()]
    counts = Counter((r.kind, r.verdict) for r in rows)
    width = max(len(v) for v in verdicts)
    head = f"{'':<10}" + "".join(f"{v:>{width + 2}}" for v in verdicts) + f"{'all':>{width + 2}}"
    lines = [head]
    for kind in (*KINDS, "all"):
        own = [sum(n for (k, w), n in counts.items() if w == v and kind in (k, "all"))
               for v in verdicts]  # fmt: skip
        lines.append(f"{kind:<10}" + "".join(f"{n:>{width + 2}}" for n in (*own, sum(own))))
    return "\n".join(lines)
