"""Judges a mutant by what an exercise checks: compiles, right, no finding, counters kept."""

from __future__ import annotations

import dataclasses
import functools
import re
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from chapter_cases import trials

from helpers.gpu.tensor_map import MappedArray
from helpers.kernels import KERNELS, KernelError, Launch
from helpers.problem.flash_inputs import to_float
from helpers.problem.problem import PreparedProblem, Problem
from helpers.simulator import SimulatorError
from helpers.simulator.compile.compiler import compile_ptx

from .generate import FILES, HOPPER_HEADER, Mutant
from .targets import Trial
from .text import Source

MAX_STEPS = 60_000  # instructions of a batch: the trials need less than a quarter
WRONG, REFUSED, SLOWER, SURVIVED = "wrong result", "refused", "slower", "survived"
# What a survivor is also where the compiler made the same instructions of it, or the same but for
# their order and the registers that they use.
SAME = "same instructions"
# What a kernel must not do more of to compute the same.
COSTS = (
    "global_load_sectors", "global_store_sectors", "shared_load_wavefronts",
    "shared_store_wavefronts", "local_load_bytes", "local_store_bytes", "barriers", "instructions",
)  # fmt: skip
MORE_INSTRUCTIONS = 1.02  # a few are the compiler's own affair


@dataclass(frozen=True)
class Judgement:
    """`verdict`: wrong result, a finding's or an error's kind, refused, slower or survived.

    `also`: what else the same launch showed. `trial`: what showed it. `said`: the message, or the
    counters.
    """

    verdict: str
    also: tuple[str, ...] = ()
    trial: str = ""
    said: str = ""


def judge(mutant: Mutant) -> Judgement:
    """What the checks say of one mutant."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "kernels"
        shutil.copytree(KERNELS, place, ignore=shutil.ignore_patterns("exercises"))
        (place / mutant.file).write_text(mutant.text(), encoding="utf-8")
        return judge_folder(place, concerned(mutant.file, mutant.function))


def judge_folder(folder: Path, kernels: tuple[tuple[str, str], ...]) -> Judgement:
    """What the checks say of the kernels of a folder, given as (file, entry)."""
    listed = [trial for kernel in kernels for trial in trials(*kernel)]
    for trial in listed:  # what a first look shows
        found = run(folder, trial)
        if found is not None:
            return found
    for trial in listed:  # a missing barrier gives wrong numbers where warps take turns
        for schedule in ("warps", "warps_reversed"):
            found = run(folder, trial, schedule)
            if found is not None:
                return found
    dearer = [
        more for trial in listed if (more := more_than(counters(folder, trial), *_usual(trial)))
    ]
    if dearer:
        return Judgement(SLOWER, (), *dearer[0])
    same = all(instructions(folder, t) == instructions(KERNELS, t) for t in listed)
    return Judgement(SURVIVED, (SAME,) if same else ())


def _usual(trial: Trial) -> tuple[dict[str, int], str]:
    return _baseline(trial.file, trial.entry, trial.label), trial.label


@functools.cache
def _baseline(file: str, entry: str, label: str) -> dict[str, int]:
    trial = next(t for t in trials(file, entry) if t.label == label)
    return counters(KERNELS, trial)


def more_than(now: dict[str, int], usual: dict[str, int], label: str) -> tuple[str, str] | None:
    """(trial, counters that have grown), if any has."""
    grown = [
        f"{name} {usual[name]:,} -> {now[name]:,}"
        for name in COSTS
        if now[name] > usual[name] * (MORE_INSTRUCTIONS if name == "instructions" else 1)
    ]
    return (label, "; ".join(grown)) if grown else None


def run(folder: Path, trial: Trial, schedule: str = "lockstep") -> Judgement | None:
    """Launch one trial; None if it is right and has no finding."""
    sanitize = schedule == "lockstep"
    label = trial.label if sanitize else f"{trial.label}, schedule {schedule}"
    try:
        problem, prepared = prepare(folder, trial)
        report = _launch(prepared, sanitize=sanitize, schedule=schedule)
    except SimulatorError as error:
        verdict = REFUSED if error.kind == "compile" else error.kind
        return Judgement(verdict, (), label, str(error).split("\n")[0])
    except KernelError as error:
        return Judgement(REFUSED, (), label, str(error))
    wrong = _wrong(problem, prepared)
    kinds = tuple(dict.fromkeys(f.kind for f in report.findings)) if sanitize else ()
    if wrong:
        return Judgement(WRONG, kinds, label, wrong)
    if kinds:
        return Judgement(kinds[0], kinds[1:], label, report.findings[0].message)
    return None


def counters(folder: Path, trial: Trial) -> dict[str, int]:
    """What one trial counts."""
    return _launch(prepare(folder, trial)[1], count=True).counters


def error_of(folder: Path, trial: Trial, schedule: str) -> tuple[float, float]:
    """(largest error of a row relative to its length, what it may be), in a schedule."""
    problem, prepared = prepare(folder, trial)
    _launch(prepared, schedule=schedule)
    return float(_errors(problem, prepared).max()), problem.tolerance


def instructions(folder: Path, trial: Trial) -> Counter[str]:
    """A trial's PTX, each line without its registers and labels, and how often it is there."""
    kernel = trial.kernel(folder)
    text = compile_ptx(alone(kernel.code, kernel.entry), kernel.options).ptx.split(".section")[0]
    lines = (re.sub(r"%\w+|\$L__\w+", "", line).strip() for line in text.split("\n"))
    return Counter(line for line in lines if not re.match(r"\.loc|\.file|//", line))


def prepare(folder: Path, trial: Trial) -> tuple[Problem, PreparedProblem]:
    """A trial's problem with the kernel out of a folder, and its launch on arrays made anew."""
    kernel = trial.kernel(folder)
    only = kernel.altered(alone(kernel.code, kernel.entry))
    launch = Launch.of(only, trial.grid, trial.block, None, trial.shared_mem)
    made = trial.make()
    problem = dataclasses.replace(made, launches=(launch,), names=tuple(made.inputs))
    return problem, problem.prepare()


def _launch(prepared: PreparedProblem, count: bool = False, **more):
    [launch] = prepared.launches
    options = {"max_steps": MAX_STEPS, "progress": False, **more}
    return launch.simulate(copy=False, count=count, **options).report


def alone(code: str, entry: str) -> str:
    """A source whose other kernels are templates that nothing uses: the compiler skips them.

    Its lines stay where they are, and so does what becomes of the one kernel.
    """
    parts = re.split(r'(extern "C" __global__ )', code)
    for n in range(2, len(parts), 2):
        if not re.search(rf"^[^{{]*\b{entry}\(", parts[n].split("{")[0] + "{", re.DOTALL):
            parts[n - 1] = "template <int> __global__ "
    return "".join(parts)


def _errors(problem: Problem, prepared: PreparedProblem) -> np.ndarray:
    """The error of each row relative to its length; infinite where there is a NaN."""
    [output] = problem.expected
    expected = problem.exact(output)
    out = to_float(prepared.arrays[output]).reshape(expected.shape)
    with np.errstate(all="ignore"):
        off = np.linalg.norm(out - expected, axis=-1) / np.linalg.norm(expected, axis=-1)
    return np.where(np.isfinite(off), off, np.inf)


def _wrong(problem: Problem, prepared: PreparedProblem) -> str:
    """A sentence on how the result is wrong; empty if it is right."""
    errors = _errors(problem, prepared)
    if (errors > problem.tolerance).any():
        worst = np.unravel_index(int(np.argmax(errors)), errors.shape)
        return f"{int((errors > problem.tolerance).sum())} of {errors.size} rows are wrong, " + (
            f"row {tuple(map(int, worst))} by {errors[worst]:.2g} of its length"
        )
    for name, value in problem.inputs.items():
        if name not in problem.expected and isinstance(value, np.ndarray):
            value = value.array if isinstance(value, MappedArray) else value
            if value.tobytes() != prepared.arrays[name].tobytes():
                return f"{name} was changed"
    return ""


@functools.cache
def concerned(file: str, function: str) -> tuple[tuple[str, str], ...]:
    """The kernels, as (file, entry), that run a function of a file, itself or through others."""
    if file == "include/swizzle.cuh":
        return (("09_flash_swizzled.cu", "flash_attention"),)
    if file == HOPPER_HEADER:
        return (("11b_tma.cu", "flash_attention"),)
    source = Source((KERNELS / file).read_text(encoding="utf-8"))
    bodies = {b.name: source.code[b.start : b.end] for b in source.bodies}
    found = {function}
    while True:
        more = {
            name
            for name, body in bodies.items()
            if any(re.search(rf"\b{other}\b *[<(]", body) for other in found)
        }
        if more <= found:
            break
        found |= more
    entries = tuple((file, name) for name in entries_of(file) if name in found)
    if not entries:
        raise ValueError(f"No kernel of {file} runs {function}.")
    return entries


@functools.cache
def entries_of(file: str) -> tuple[str, ...]:
    """The kernels of a file, in its order."""
    code = Source((KERNELS / file).read_text(encoding="utf-8")).code
    pattern = r"__global__ (?:void )?(?:__launch_bounds__\([^\n]*\) )?(?:void )?(\w+)\("
    return tuple(re.findall(pattern, code))


def all_kernels() -> tuple[tuple[str, str], ...]:
    """Every kernel, as (file, entry)."""
    return tuple((file, entry) for file in FILES if file.endswith(".cu")
                 for entry in entries_of(file))  # fmt: skip
