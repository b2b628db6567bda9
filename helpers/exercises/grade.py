"""Checks the exercises of a class and prints who solved what.

python -m helpers.exercises.grade DIR [--csv FILE] [--seconds 60] [--jobs 2] [--gpu]

DIR holds a folder for each student, with notebooks (their cells that begin with %%kernel) or .cu
files named as exercises are; or files alone, such as `ann_03_tiling.ipynb` and `ben_03_window.cu`.
What a notebook's other cells hold is never run. Each answer is checked in a process of its own.
"""

import argparse
import csv
import json
import os
import string
import subprocess
import sys
import unicodedata
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from ..simulator.compile.kept_nvrtc import VARIABLE as KEPT
from . import EXERCISES, check, exercise
from .answer import Refused, body, read_answer
from .magic import MAGIC, cell_text
from .verdict import Verdict

PASSED, FAILED, MISSING = "✓", "✗", "–"
_LARGEST = 50_000_000  # bytes of a notebook that is read
_MOST_ANSWERS = 10  # of one student to one exercise: the last ones
_MEMORY = 4 << 30  # bytes that a check may take


@dataclass(frozen=True)
class Grade:
    """What became of a student's answer: `step` is the one that failed, empty if it is solved."""

    step: str = ""
    reason: str = ""

    @property
    def passed(self) -> bool:
        """Whether the exercise is solved."""
        return not self.step

    def __str__(self) -> str:
        return "passed" if self.passed else f"{self.step}: {self.reason}"


@dataclass
class Student:
    """What one student has handed in.

    Attributes:
        name: of the folder, or of the file.
        answers: texts by exercise; those that are still the skeleton are left out.
        troubles: files that could not be read, in a sentence each.
    """

    name: str
    answers: dict[str, list[str]] = field(default_factory=dict)
    troubles: list[str] = field(default_factory=list)

    def add(self, name: str, text: str) -> None:
        """Keep an answer, unless nothing is filled in; one that was there already counts as new."""
        if body(text).split() != exercise(name).skeleton.split():
            others = [one for one in self.answers.get(name, []) if one != text]
            self.answers[name] = [*others, text][-_MOST_ANSWERS:]


def find_answers(folder: Path) -> list[Student]:
    """Everything that was handed in, by student, in the order of their names.

    Raises:
        ValueError: there is no such folder.
    """
    if not folder.is_dir():
        raise ValueError(f"There is no folder {folder}.")
    students: dict[str, Student] = {}
    entries = sorted(folder.iterdir())
    alone = _of_one_student(entries)
    for path in entries:
        if path.name.startswith((".", "__")) or path.is_symlink():
            continue
        troubles: list[str] = []
        if path.is_dir():
            name, files = path.name, _files(path, troubles)
        elif _is_answer(path):
            name, files = _student_of(path), [path]
        else:
            continue
        if alone:  # the folder itself is a student's
            name = folder.resolve().name
        name = _plain(name)
        student = students.setdefault(name, Student(name))
        for file in files:
            _read(student, file)
        student.troubles += troubles
    return [students[name] for name in sorted(students)]


_NAMES = [one.name for one in EXERCISES]
_CHAPTERS = [path.stem for path in Path(__file__).parents[2].glob("notebooks/*.ipynb")]


def _of_one_student(entries: list[Path]) -> bool:
    """Whether a folder is that of a single student: it holds `my_kernels`, or chapters alone."""
    if any(p.name == "my_kernels" or (p.suffix == ".cu" and p.stem in _NAMES) for p in entries):
        return True
    shown = [path for path in entries if not path.name.startswith((".", "__"))]
    return bool(shown) and all(p.stem in _CHAPTERS and p.suffix == ".ipynb" for p in shown)


def _is_answer(path: Path) -> bool:
    """Whether a path is a file, no pipe or link, that may hold an answer."""
    return path.suffix.lower() in (".cu", ".ipynb") and path.is_file() and not path.is_symlink()


def _files(folder: Path, troubles: list[str]) -> Iterable[Path]:
    """Notebooks and .cu files below a folder, no link followed."""

    def told(error: OSError) -> None:
        reason = error.strerror or type(error).__name__
        troubles.append(f"{_plain(Path(error.filename or folder).name)} cannot be read: {reason}.")

    for place, folders, names in os.walk(folder, onerror=told):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if _is_answer(path := Path(place, name)) and not name.startswith("."):
                yield path


def _plain(name: str) -> str:
    """A name as it can be printed in one line, the same for both spellings of an umlaut."""
    text = unicodedata.normalize("NFC", name.encode("utf-8", "replace").decode("utf-8"))
    return "".join(c if c.isprintable() else "?" for c in text)


def _student_of(path: Path) -> str:
    """The student out of a file's name: what is left without the exercise or chapter."""
    for known in sorted({*_NAMES, *_CHAPTERS}, key=len, reverse=True):
        if known in path.stem:
            return path.stem.replace(known, "").strip(" _-.()") or path.stem
    return path.stem


def _read(student: Student, path: Path) -> None:
    try:
        if path.suffix.lower() == ".cu":
            if name := next((name for name in _NAMES if name in path.stem), ""):
                student.add(name, read_answer(exercise(name), path))
            return
        for name, text in kernel_cells(path):
            student.add(name, text)
    except Refused as error:
        student.troubles.append(_plain(str(error)))


def kernel_cells(path: Path) -> list[tuple[str, str]]:
    """Exercises and texts of the cells of a notebook that begin with `%%kernel`.

    Raises:
        Refused: it is no notebook.
    """
    try:
        if path.stat().st_size > _LARGEST:
            raise Refused(f"{path.name} is larger than {_LARGEST:,} bytes.")
        cells = json.loads(path.read_text(encoding="utf-8-sig"))["cells"]
        sources = [_source(cell) for cell in cells if isinstance(cell, dict)]
    except (OSError, ValueError, KeyError, TypeError, RecursionError, MemoryError):
        raise Refused(f"{path.name} is not a notebook that can be read.") from None
    found = []
    for source in sources:
        first, _, rest = source.lstrip().partition("\n")
        line = first.removeprefix(MAGIC)
        if line == first or not line[:1].isspace():
            continue
        line = line.strip().strip("\"'")
        if line.removesuffix(".cu") in _NAMES:
            found.append((line.removesuffix(".cu"), cell_text(line, rest)))
    return found


def _source(cell: dict) -> str:
    """The text of a code cell; empty where it has none."""
    source = cell.get("source")
    lines = source if isinstance(source, list) else [source]
    good = cell.get("cell_type") == "code" and all(isinstance(line, str) for line in lines)
    return "".join(lines) if good else ""


def grade(name: str, texts: Iterable[str], seconds: float = 60.0, gpu: bool = False) -> Grade:
    """The grade of a student's answers to an exercise: of one that passes, or of the last one."""
    results: list[Grade] = []
    for text in reversed(list(texts)):
        results.append(_checked_apart(name, text, seconds, gpu))
        if results[-1].passed:
            return results[-1]
    return results[0] if results else Grade("compiles", "There is no answer.")


def _checked_apart(name: str, text: str, seconds: float, gpu: bool) -> Grade:
    """Check an answer in a process of its own, which may hang, crash, or take too much memory."""
    environment = {**os.environ, "HELPERS_DEVICE": "gpu" if gpu else "simulator"}
    environment[KEPT] = "off"  # an answer must not leave behind what the next one runs
    root = str(Path(__file__).resolve().parents[2])
    paths = [root, environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    try:
        done = subprocess.run(
            [sys.executable, "-m", "helpers.exercises.grade", "--one", name],
            input=text.encode("utf-8", "replace"), capture_output=True, timeout=seconds,
            env=environment, check=False,
        )  # fmt: skip
        step, reason = json.loads(done.stdout.rpartition(b"\n")[2])
    except subprocess.TimeoutExpired:
        return Grade("right", f"The check took longer than {seconds:g} seconds.")
    except ValueError:
        return Grade(
            "right",
            f"The check broke off (status {done.returncode}): the compiler or the kernel took more "
            f"than {_MEMORY >> 30} GB of memory, or crashed.",
        )
    return Grade(step, reason)


def _check_one(name: str) -> None:
    """What the process of an answer does: text in, grade out."""
    _limit_memory()
    text = sys.stdin.buffer.read().decode("utf-8", "replace")
    verdict: Verdict = check(name, text + ("" if "\n" in text else "\n"))
    failed = verdict.failed
    print("\n" + json.dumps([failed.name, failed.message] if failed else ["", ""]), end="")


def _limit_memory() -> None:
    if os.environ.get("HELPERS_DEVICE") != "simulator":
        return  # CUDA reserves far more addresses than memory
    try:
        import resource  # late: not on Windows

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    except (ImportError, OSError, ValueError):
        pass


class Grades:
    """The grades of a class, to print or to keep."""

    def __init__(self, students: list[Student], grades: dict[tuple[str, str], Grade]):
        self.students, self.grades = students, grades
        self.exercises = [name for name in _NAMES if any(e == name for _, e in grades)]

    def solved(self, student: Student) -> int:
        """How many exercises a student has solved."""
        return sum(g.passed for (name, _), g in self.grades.items() if name == student.name)

    def __str__(self) -> str:
        if not self.students:
            return "Nobody has handed in a notebook or a .cu file of an exercise."
        wide = max(7, *(len(student.name) for student in self.students))
        digits = max([len(name.split("_")[0]) for name in self.exercises], default=2)
        letters = string.ascii_letters[: len(self.exercises)]
        heads = " ".join(f"{letter:>{digits}}" for letter in letters)
        rows = [f"{'':<{wide}}  {heads}  solved"]
        for student in self.students:
            marks = " ".join(f"{self._mark(student, name):>{digits}}" for name in self.exercises)
            rows.append(f"{student.name:<{wide}}  {marks}  {self.solved(student):>6}")
        rows += ["", *map("  ".join, zip(letters, self.exercises, strict=True))]
        reasons = [
            f"{student} {name}: {grade}"
            for (student, name), grade in self.grades.items()
            if not grade.passed
        ]
        reasons += [f"{s.name}: {trouble}" for s in self.students for trouble in s.troubles]
        if reasons:
            rows += ["", *reasons]
        return "\n".join(rows)

    def write_csv(self, path: Path) -> None:
        """A row for each student; `passed`, or the step and the reason, for each exercise."""
        with path.open("w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file)
            rows.writerow(["student", *_NAMES, "solved"])
            for student in self.students:
                grades = [self.grades.get((student.name, name), "") for name in _NAMES]
                name = student.name
                if name.startswith(("=", "+", "-", "@")):  # a formula to a spreadsheet
                    name = f"'{name}"
                rows.writerow([name, *grades, self.solved(student)])

    def _mark(self, student: Student, name: str) -> str:
        grade = self.grades.get((student.name, name))
        return MISSING if grade is None else PASSED if grade.passed else FAILED


def grade_all(
    folder: Path, seconds: float = 60.0, jobs: int | None = None, gpu: bool = False
) -> Grades:
    """Check everything that a class has handed in.

    Args:
        folder: see the module.
        seconds: that each check may take.
        jobs: checks at a time; as many as there are processors if None, and one on a GPU.
        gpu: check on this machine's GPU as well.

    Raises:
        ValueError: there is no such folder.
    """
    students = find_answers(folder)
    wanted = [(s, name) for s in students for name in _NAMES if name in s.answers]
    at_once = 1 if gpu else jobs or os.cpu_count() or 1
    with ThreadPoolExecutor(at_once) as pool:
        found = pool.map(lambda one: grade(one[1], one[0].answers[one[1]], seconds, gpu), wanted)
        grades = {(s.name, n): g for (s, n), g in zip(wanted, found, strict=True)}
    return Grades(students, grades)


def main(arguments: list[str] | None = None) -> int:
    """The command; gives its exit status."""
    parser = argparse.ArgumentParser(
        prog="make grade", description="Check the exercises of a class."
    )
    parser.add_argument("folder", nargs="?", metavar="DIR", help="a folder for each student")
    parser.add_argument("--csv", metavar="FILE", type=Path, help="keep the table as CSV as well")
    parser.add_argument("--seconds", type=float, default=60.0, help="that each check may take")
    parser.add_argument("--jobs", type=int, help="checks at a time; one for each processor")
    parser.add_argument("--gpu", action="store_true", help="run the kernels on the GPU as well")
    parser.add_argument("--one", metavar="NAME", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        _check_one(options.one)
        return 0
    if not options.folder:
        print("Say where the students' folders are: make grade DIR=path", file=sys.stderr)
        return 2
    try:
        grades = grade_all(Path(options.folder), options.seconds, options.jobs, options.gpu)
        if options.csv:
            grades.write_csv(options.csv)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print(grades)
    return 0


if __name__ == "__main__":
    sys.exit(main())
