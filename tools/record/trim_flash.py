"""Make helpers/measure/recorded/h200_flash.json of what record_flash.py wrote: what the chapters show of it.

python tools/record/trim_flash.py DIR/flash.json [--out helpers/measure/recorded/h200_flash.json]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from recorded.flash_cases import RUNGS  # noqa: E402

from helpers.measure.profile import PROFILED  # noqa: E402
from helpers.problem.flash_inputs import flops  # noqa: E402
from helpers.simulator.observe.report import NCU_METRICS  # noqa: E402
from tools.record.recording import keyed, rounded, save, table  # noqa: E402

OUT = ROOT / "helpers" / "measure" / "recorded" / "h200_flash.json"
RIVAL = "FlashAttention-2"
VERSIONS = ("driver", "cuda_runtime", "nvrtc", "cupy")


def trim(whole: dict, note: str = "") -> dict:
    """What `helpers.measure.recorded` holds of everything that was recorded.

    Raises:
        KeyError: a stage is not there.
    """
    device, timings = whole["device"], whole["timings"]
    return {
        "device": device["gpu"],
        "date": device["date"],
        "versions": {name: device[name] for name in VERSIONS},
        "protocol": timings["protocol"],
        "note": note,
        "tables": [
            table(
                "attention",
                "TFLOPS",
                _by_name(timings, "samples"),
                _tflops,
                resources=keyed(_by_name(timings, "resources")),
            ),
            {
                "what": "attention, sustained",
                "unit": "TFLOPS",
                "times": {n: {"2,16,8192,128": rounded(t)} for n, t in whole["sustained"].items()},
            },
        ],
        "profiles": [found for row in whole["profile"].items() if (found := _profile(*row))],
        "counters": [
            {
                "file": case["file"],
                "values": case["values"],
                "shape": case["shape"],
                "counters": {n: case["ncu"][n] for n in NCU_METRICS if n in case["ncu"]},
            }
            for case in whole["counters"]
            if case["entry"] == "flash_attention"
        ],
    }


def _profile(title: str, row: dict) -> dict | None:
    """One profiled launch; None of the small ones that FlashAttention-2 splits its work into."""
    metrics = {name: row[name] for name in PROFILED if name in row}
    if title.startswith(RIVAL):
        if "splitkv" in row["Kernel Name"]:
            return None
        return {"kernel": RIVAL, "file": "", "shape": [4, 16, 4096, 128], "metrics": metrics}
    name, _, shape = title.partition(" ")
    rung = RUNGS[name]
    return {
        "kernel": rung.name,
        "file": rung.file,
        "shape": [int(n) for n in shape.strip("()").split(",")],
        "metrics": metrics,
    }


def _by_name(timings: dict, what: str) -> dict:
    """{name: {shape: ...}} of what stands by sizes."""
    found: dict[str, dict] = {}
    for size in timings["sizes"]:
        for name, value in size[what].items():
            found.setdefault(name, {})[tuple(size["shape"])] = value
    return found


def _tflops(shape: tuple[int, ...], times: list[float]) -> float:
    return flops(*shape) / median(times) * 1e-9


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("whole", type=Path, help="flash.json of record_flash.py")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--note", default="", help="a sentence that goes with the recording")
    chosen = parser.parse_args()
    save(chosen.out, trim(json.loads(chosen.whole.read_text("utf-8")), chosen.note))


if __name__ == "__main__":
    main()
