"""How long a bench takes to its first picture after a change, over every control of every bench.

    python -m tests.benchmarks.benches [rung ...]

Each choice of each control is turned to from the bench's own settings, in a process that has shown
the bench and no more: what a student waits for who turns the first control. Seconds are those of
the process's own work, so that a busy machine says nearly the same as an idle one.
"""

from __future__ import annotations

import multiprocessing
import statistics
import sys
import time

from helpers.bench import html as bench_html
from helpers.bench.ladder_bars import Ladder
from helpers.bench.session import Session
from helpers.bench.subject import subject_of
from helpers.bench.view import pictures
from helpers.problem.ladder import ladder

REPEATS = 1


def names() -> list[str]:
    """The rungs that have a bench."""
    return [one.name for kind in ("fp32", "flash") for one in ladder(kind)]


def shown(session: Session, bars: Ladder) -> None:
    """All that a page is sent of a result."""
    result = session.result
    bench_html.fragments(result.data(), pictures(result))
    bars.data(result)


def seconds(session: Session, bars: Ladder, control: str, choice: object) -> float:
    """Seconds from a change to its picture."""
    start = time.process_time()
    session.change(**{control: choice})
    shown(session, bars)
    return time.process_time() - start


def in_a_process(*change) -> float:
    """The same in a copy of this process, so that this one stays as it is."""
    context = multiprocessing.get_context("fork")
    mine, other = context.Pipe(duplex=False)
    process = context.Process(target=lambda: other.send(seconds(*change)))
    process.start()
    other.close()
    found = mine.recv()
    process.join()
    return found


def costs(name: str) -> dict[tuple[str, object], float]:
    """Seconds by control and choice, the shortest of a few, from what the bench shows at first."""
    subject = subject_of(name)
    session, bars = Session(subject), Ladder(subject.rung)
    session.run()
    shown(session, bars)
    return {
        (control.name, choice): min(
            in_a_process(session, bars, control.name, choice) for _ in range(REPEATS)
        )
        for control in session.controls
        for choice in control.choices
        if choice != session.settings[control.name]
    }


def main() -> None:
    """Print the median and the worst of each bench, and of all."""
    every: list[float] = []
    for name in sys.argv[1:] or names():
        found = costs(name)
        worst = max(found, key=found.get)
        middle = statistics.median(found.values())
        print(f"{name:<18} median {middle:.2f}  worst {found[worst]:.2f} ({worst[0]}={worst[1]})")
        every += found.values()
    print(f"{'all':<18} median {statistics.median(every):.2f}  worst {max(every):.2f}")


if __name__ == "__main__":
    main()
