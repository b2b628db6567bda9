"""Execute chapters as they are, say on a machine with a GPU, and write down how they went.

    HELPERS_DEVICE=gpu python tools/record/run_chapters.py --out FILE [chapter ...]

Needs nbclient and ipykernel. For each chapter: the seconds it took and the cells that took most of them, how many cells and
outputs it has, the first error if there was one, and how many cells show milliseconds. Ends with
status 1 after an error.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from datetime import datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))


def run(path: Path) -> dict:
    """Execute one notebook."""
    import nbformat
    from nbclient.exceptions import CellExecutionError

    from helpers.slides.waking_client import WakingClient

    notebook = nbformat.read(path, as_version=4)
    client = WakingClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": path.parent}}
    )
    start, error = time.perf_counter(), None
    try:
        client.execute()
    except CellExecutionError as problem:
        error = f"{problem.ename}: {problem.evalue}"[:600]
    cells = [c for c in notebook.cells if c.cell_type == "code"]
    outputs = [o for c in cells for o in c.get("outputs", [])]
    slowest = sorted(((_seconds(c), c.id) for c in cells), reverse=True)[:6]
    timed = sum(" ms" in json.dumps(c.get("outputs", [])) for c in cells)
    return {
        "chapter": path.stem,
        "seconds": round(time.perf_counter() - start, 1),
        "slowest": {cell: seconds for seconds, cell in slowest},
        "code_cells": len(cells),
        "outputs": len(outputs),
        "cells_with_milliseconds": timed,
        "stderr": [o["text"][:300] for o in outputs if o.get("name") == "stderr"],
        "error": error,
    }


def _seconds(cell) -> float:
    """How long a cell ran, by the clock of the messages about it."""
    times = cell.metadata.get("execution", {})
    start, end = (times.get(key) for key in ("iopub.execute_input", "shell.execute_reply"))
    if not start or not end:
        return 0.0
    return round((datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds(), 1)


def main() -> int:
    """The command line."""
    from helpers import device

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("chapters", nargs="*")
    chosen = parser.parse_args()
    found = sorted((ROOT / "notebooks").glob("*.ipynb"))
    results = []
    for path in found:
        if chosen.chapters and path.stem not in chosen.chapters:
            continue
        results.append(run(path))
        print(json.dumps(results[-1]), flush=True)
        record = {"device": device.name(), "date": time.strftime("%Y-%m-%d"), "chapters": results}
        chosen.out.write_text(json.dumps(record, indent=1))
    return int(any(r["error"] for r in results))


if __name__ == "__main__":
    sys.exit(main())
