"""How long a bench takes to its first picture after a change, over every control of every bench.

    python -m tests.benchmarks.benches [rung ...]

Each choice of each control is turned to from the bench's own settings, in three states:

- "as a class meets it": a session that has just shown its first picture, and is turned at once.
  `make lab` has been running for a minute, which compiles these kernels beside JupyterLab
  (`helpers.bench.ahead`); an earlier session leaves the same. The limits are meant for this one.
- "after a look": the same after some seconds, in which idle moments have prepared what comes next.
- "nobody compiled it": turned at once, and NVRTC is waited for, as after an edit of the file.

For each bench and each state a process starts anew, so that it finds nothing that another bench has
left in memory; in the last state nothing is kept on disk either. What a process imports, and the
first picture, come before the change and are not in its seconds.

Seconds are those by the clock, or of the process's own work if these are fewer: a busy machine
makes the first too many, and two threads at work the second.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

from helpers.bench import html as bench_html
from helpers.bench.ahead import names
from helpers.bench.ladder_bars import Ladder
from helpers.bench.session import Session
from helpers.bench.subject import subject_of
from helpers.bench.view import pictures
from helpers.simulator.compile.kept_nvrtc import VARIABLE

REPEATS = 3


def shown(session: Session, bars: Ladder) -> None:
    """All that a page is sent of a result."""
    result = session.result
    bench_html.fragments(result.data(), pictures(result))
    bars.data(result)


def seconds(session: Session, bars: Ladder, control: str, choice: object) -> float:
    """Seconds from a change to its picture."""
    clocks = (time.perf_counter, time.process_time)
    starts = [clock() for clock in clocks]
    session.change(**{control: choice})
    shown(session, bars)
    return min(clock() - start for clock, start in zip(clocks, starts, strict=True))


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


def fresh(act: Callable, *given):
    """What a function returns in a process that starts anew and has nothing in memory."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(act, *given).result()


def costs(name: str, looked: bool) -> dict[tuple[str, object], float]:
    """Seconds by control and choice, the shortest of a few, from what the bench shows at first.

    Args:
        name: of a rung.
        looked: whether idle moments have passed.
    """
    subject = subject_of(name)
    session, bars = Session(subject), Ladder(subject.rung)
    result = session.run()
    shown(session, bars)
    for _ in session.meanwhile(result) if looked else ():
        pass
    return {
        (control.name, choice): min(
            in_a_process(session, bars, control.name, choice) for _ in range(REPEATS)
        )
        for control in session.controls
        for choice in control.choices
        if choice != session.settings[control.name]
    }


def benches(wanted: list[str]) -> None:
    """Print the median and the worst of each bench, and of all."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ[VARIABLE] = folder
        subprocess.run([sys.executable, "-m", "helpers.bench.ahead", *wanted], check=True)
        for kept, looked, said, limits in (
            (folder, False, "as a class meets it", (" (at most 0.3)", " (at most 0.6)")),
            (folder, True, "after a look", ("", "")),
            ("off", False, "nobody compiled it", ("", "")),
        ):
            os.environ[VARIABLE] = kept
            every: list[float] = []
            state = "nothing compiled is kept" if kept == "off" else "compiled ahead"
            print(f"{said}: each bench in a fresh process, {state}")
            for name in wanted:
                found = fresh(costs, name, looked)
                worst = max(found, key=found.get)
                middle, most = statistics.median(found.values()), found[worst]
                where = f"{worst[0]}={worst[1]}"
                print(f"{name:<18} {said}: median {middle:.2f} s, worst {most:.2f} s ({where})")
                every += found.values()
            print(f"{'all':<18} {said}: median {statistics.median(every):.2f} s{limits[0]}, "
                  f"worst {max(every):.2f} s{limits[1]}")  # fmt: skip


if __name__ == "__main__":
    benches(sys.argv[1:] or names())
