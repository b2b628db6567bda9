"""Make what chapters 10 and 11 show of what record_overlap.py and record_hopper.py wrote.

python tools/record/trim_contests.py   # {overlap,hopper}_h200.json of tests/recorded/data to
                                      # h200_{overlap,hopper}.json of helpers/measure/recorded
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from helpers.measure.overlap_steps import INSTRUCTIONS  # noqa: E402
from helpers.measure.profile import PROFILED  # noqa: E402
from helpers.measure.recorded import HOPPER as HOPPER_FILE  # noqa: E402
from helpers.measure.recorded import OVERLAP as OVERLAP_FILE  # noqa: E402
from helpers.problem.flash import FLASH_BASELINE, FLASH_SWIZZLED, FlashRung  # noqa: E402
from helpers.problem.flash_hopper import HOPPER  # noqa: E402
from helpers.problem.flash_overlap import OVERLAP  # noqa: E402
from tools.record.recording import save  # noqa: E402

DATA = ROOT / "tests" / "recorded" / "data"
WHOLE, WHOLE_HOPPER = DATA / "overlap_h200.json", DATA / "hopper_h200.json"
OUT = ROOT / "helpers" / "measure" / "recorded"
VERSIONS = ("driver", "cuda_runtime", "nvrtc", "cupy", "torch, cudnn")
LISTED = (FLASH_BASELINE, FLASH_SWIZZLED, *OVERLAP, *HOPPER)
LIMITS = ("registers", "shared_mem")
KEPT = (*PROFILED, *INSTRUCTIONS, *(f"launch__occupancy_limit_{one}" for one in LIMITS))
SLACK = {"always": -1, "slack 8": 8}


def trim(whole: dict) -> dict:
    """What `helpers.measure.recorded` holds of everything that was recorded.

    Profiles and counters may be missing.

    Raises:
        KeyError: times are not there.
    """
    device = whole["device"]
    return {
        "device": device["gpu"],
        "date": device["date"],
        "versions": {name: device[name] for name in VERSIONS},
        "protocol": _protocol(whole, "sustained"),
        "tables": [
            _table(whole, causal, kind) for causal in (0, 1) for kind in ("sustained", "cold")
        ],
        "profiles": [_profile(name, row, whole) for name, row in whole.get("profile", {}).items()],
        "counters": [_counted(case, whole) for case in whole.get("counters", [])],
    }


def rungs_of(whole: dict) -> dict[str, FlashRung]:
    """The rungs by the numbers that their kernels had when it was recorded: `{"10e": ...}`.

    A step that came in between later has moved those behind it: names tell more than numbers.
    """
    found = {one.file.partition("_")[0]: one for one in LISTED}
    for name in whole["times"]["sizes"][0]["resources"]:
        number, _, called = name.partition(" ")
        for one in LISTED:
            if (f"{one.chapter:02}", one.name) == (number[:2], f"flash_{called}"):
                found[number] = one
    return found


def short(name: str, rungs: dict[str, FlashRung]) -> str:
    """The name of a contender as tables have it: `rescale, slack 8` of `10e rescale, slack 8`."""
    step = _step(name)
    if step not in rungs:
        return name
    rung = rungs[step].name.removeprefix("flash_")
    more = name.partition(", ")[2]
    return f"{rung}, {more}" if more else rung


def _step(name: str) -> str:
    """The number of a contender's kernel: `10e` of `10e rescale, slack 8`."""
    return name.replace(",", " ").partition(" ")[0]


def _table(whole: dict, causal: int, kind: str) -> dict:
    rungs = rungs_of(whole)
    times: dict[str, dict] = {}
    used: dict[str, dict] = {}
    for size in whole["times"]["sizes"]:
        if size["causal"] != causal:
            continue
        shape = ",".join(map(str, size["shape"]))
        for name, rate in size[kind].items():
            times.setdefault(short(name, rungs), {})[shape] = rate
        for name, found in size["resources"].items():
            used.setdefault(short(name, rungs), {})[shape] = found
    what = ", ".join(
        ("attention", *(["causal"] if causal else []), *(["cold"] if kind == "cold" else []))
    )
    protocol = _protocol(whole, kind)
    return {
        "what": what, "unit": "TFLOPS", "protocol": protocol, "times": times, "resources": used
    }  # fmt: skip


def _protocol(whole: dict, kind: str) -> str:
    """How the samples of one kind were taken, and what all have in common."""
    common, _, kinds = whole["times"]["protocol"].partition(". sustained: ")
    sustained, _, cold = kinds.partition("; cold: ")
    return f"{common}: {cold if kind == 'cold' else sustained}"


def _profile(name: str, row: dict, whole: dict) -> dict:
    """One profiled launch, at the size that it names, or at the one that is timed first."""
    rungs, variant = rungs_of(whole), name.partition(", ")[2]
    return {
        "kernel": f"flash_{short(name, rungs)}",
        "file": "" if variant else rungs[_step(name)].file,
        "shape": row.get("shape", whole["times"]["sizes"][0]["shape"]),
        "metrics": {metric: row[metric] for metric in KEPT if metric in row},
    }


def _counted(case: dict, whole: dict) -> dict:
    """Counters of a small launch, with those of machine instructions."""
    values = {"ELEMENT": case["element"], "HEAD_DIM": case["shape"][3], "CAUSAL": case["causal"]}
    variant = case["name"].partition(", ")[2]
    if variant:
        values["SLACK"] = SLACK[variant]
    file = rungs_of(whole)[_step(case["name"])].file
    return {"file": file, "values": values, "shape": case["shape"], "counters": case["ncu"]}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.parse_args()
    for whole, name in ((WHOLE, OVERLAP_FILE), (WHOLE_HOPPER, HOPPER_FILE)):
        save(OUT / f"{name}.json", trim(json.loads(whole.read_text("utf-8"))))


if __name__ == "__main__":
    main()
