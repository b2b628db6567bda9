"""`python -m tests.mutants`: judge every mutant and print the table; writes table/.

    python -m tests.mutants                      all of them, about half an hour
    python -m tests.mutants 03_tiled.cu          those of some files; the rest of the table stays
    python -m tests.mutants --kind barrier       those of some kinds
    python -m tests.mutants --verdict survived   those that had a verdict so far
    python -m tests.mutants --missing            those that have none yet
    python -m tests.mutants --print              the table as it is

Survivors stand at the end with the reason why they are equivalent, or with a question mark.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

# As in a run of pytest, so that chapters' trials and the judge find the same modules.
TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "support")]

from mutants import table  # noqa: E402
from mutants.generate import FILES, KINDS, mutants  # noqa: E402
from mutants.judge import SURVIVED, judge  # noqa: E402
from mutants.survivors import reason  # noqa: E402


def main() -> int:
    """The command line; 1 if there is a survivor that nobody has explained."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help=f"some of {', '.join(FILES)}")
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--verdict", action="append")
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--print", action="store_true", dest="only_print")
    chosen = parser.parse_args()
    if unknown := set(chosen.files) - set(FILES):
        parser.error(f"there is no {unknown.pop()}; the files are {', '.join(FILES)}")
    known = {r.mutant: r for r in table.load()}
    rows, todo = [], []
    for mutant in mutants():
        old = known.get(table.identity(mutant))
        wanted = (
            (not chosen.files or mutant.file in chosen.files)
            and (not chosen.kind or mutant.kind in chosen.kind)
            and (not chosen.verdict or (old and old.verdict in chosen.verdict))
        )
        rows.append(old)
        if not chosen.only_print and (old is None or wanted and not chosen.missing):
            todo.append((len(rows) - 1, mutant))
    start = time.monotonic()
    for number, (at, mutant) in enumerate(todo, 1):
        judged = judge(mutant)
        rows[at] = table.row(mutant, judged)
        print(table.printed(rows[at]), flush=True)
        spent = time.monotonic() - start
        left = spent / number * (len(todo) - number)
        print(f"[{number}/{len(todo)}, {left / 60:.0f} minutes left]", file=sys.stderr, flush=True)
        if number % 50 == 0:
            table.save([r for r in rows if r is not None])
    if todo:
        table.save(rows)
    if chosen.only_print:
        print("\n".join(table.printed(r) for r in rows if r is not None))
    rows = [r for r in rows if r is not None]
    print("\n" + table.summary(rows))
    survivors = [r for r in rows if r.verdict == SURVIVED]
    for one in survivors:
        print(f"{one.key}\n    {reason(one) or '?'}")
    unexplained = sum(not reason(r) for r in survivors)
    print(f"{len(rows)} mutants, {len(survivors)} survivors, {unexplained} of them unexplained")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
