"""Checks of exercises: whatever a student hands in is told in a sentence, and nothing is raised."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import numpy as np
import pytest

from helpers.exercises import EXERCISES, cells, check, exercise, skeleton, solution
from helpers.exercises import grade as grading
from helpers.exercises.grade import Grade, Student, find_answers, grade, grade_all, main
from helpers.exercises.magic import kernel_magic, write
from helpers.kernels.source import KernelError

ROOT = Path(__file__).resolve().parents[2]
RIGHT = solution("02_scores")
HEAD = RIGHT[: RIGHT.index("    int row")]
STORE = "    S[(size_t)row * N + col] = sum / sqrtf((float)d);\n"


def edited(*edits: tuple[str, str], of: str = RIGHT) -> str:
    for old, new in edits:
        assert old in of, old
        of = of.replace(old, new)
    return of


NONSENSE = {
    "nothing": ("", "compiles", "empty"),
    "blanks": (" \n\n", "compiles", "empty"),
    "prose": ("I do not know.\n", "compiles", "no kernel"),
    "half a file": (HEAD + "\n", "compiles", ""),
    "no semicolon": (edited((" + threadIdx.x;", " + threadIdx.x")), "compiles", "expected a"),
    "another name": (edited(("scaled_dot_product", "scores")), "compiles", "scaled_dot_product"),
    "another signature": (
        edited(("float* S,        // [N, N]\n    int N, int d", "float* S,\n    int d")),
        "compiles",
        "The check calls scaled_dot_product",
    ),
    "another type": (edited(("float* S,", "double* S,")), "compiles", "double* S"),
    "other choices": (edited(("[8, 16, 32]", "[16, 32]")), "compiles", "one of 16, 32"),
    "no parameter": (edited(("#ifndef TILE\n", ""), ("#endif\n", "")), "compiles", "TILE"),
    "a C++ name": (edited(('extern "C" ', "")), "compiles", 'extern "C"'),
    "the course's file": (
        '#include "../exercises/02_scores.cu"\n' + HEAD + "}\n", "compiles", "stands alone",
    ),
    "a computed include": (
        '#define F "02_scores.cu"\n#include F\n' + HEAD + "}\n", "compiles", "macro",
    ),
    "a zero byte": (RIGHT.replace("Gap:", "Gap\0:"), "compiles", "zero byte"),
    "half a character": (RIGHT.replace("Gap:", "Gap \ud800"), "compiles", "UTF-8"),
    "far too long": (RIGHT + "//" + "x" * 300_000, "compiles", "characters"),
    "nested": ("(" * 50_000 + "\n", "compiles", ""),
    "an endless loop": (
        edited(("i < d; i++", "i < d; i += 0")), "right", "loop",
    ),
    "a very long loop": (
        edited((STORE, f"    for (int r = 0; r < 1000000000; r++) sum += r % 7;\n{STORE}")),
        "right", "loop",
    ),
    "out of bounds": (edited((" + i]", " + i + 100000]")), "right", "out-of-bounds"),
    "a wild pointer": (
        edited((STORE, "    *(float*)(8ull * col) = sum;\n")), "right", "address",
    ),
    "added and not stored": (
        edited(("S[(size_t)row * N + col] = ", "atomicAdd(&S[(size_t)row * N + col], "),
               ("MINUS_INFINITY;", "MINUS_INFINITY);"), ("sqrtf((float)d);", "sqrtf((float)d));")),
        "right", "store the result with =",
    ),
    "nothing written": (edited((STORE, "")), "right", "never written"),
    "too much shared memory": (
        edited(("    int row", "    __shared__ float s[99999];\n    int row"),
               (STORE, f"    s[threadIdx.x * TILE] = sum;\n    __syncthreads();\n{STORE}"
                "    S[0] = s[threadIdx.y];\n")), "compiles", "shared memory",
    ),
    "an input overwritten": (
        edited((STORE, STORE + "    ((float*)Q)[0] = 1.0f;\n")), "right", "input",
    ),
    "a barrier for some": (
        edited((STORE, "    if (row > 3) __syncthreads();\n" + STORE)), "right", "barrier",
    ),
    "itself": (
        edited((STORE, "    scaled_dot_product<<<1, 1>>>(Q, K, S, N, d);\n")), "compiles", "",
    ),
    "other numbers of lines": ('#line 500 "a.cu"\n' + RIGHT, "compiles", "other numbers"),
    "numbers in the middle": (
        edited(("    float sum", "  %: 5 \n    float sum")), "compiles", "other numbers",
    ),
    "a parameter taken away": (
        edited(("#endif", "#endif\n#undef TILE\n#define TILE 16")), "compiles", "takes TILE away",
    ),
    "clusters": (
        edited(("__global__", "__global__ __cluster_dims__(2, 1, 1)")), "compiles", "clusters",
    ),
    "arrays too large for a thread": (
        edited(("float sum = 0.0f;", "float sum = 0.0f, a[200000];"
                " for (int j = 0; j < d; j++) a[j * 7919 % 200000] = j; sum = 0 * a[N];")),
        "compiles", "800,000 bytes",
    ),
    "printing without end": (
        edited((STORE, STORE + '    for (int j = 0; j < 90; j++) printf("%d %f\\n", j, sum);\n')),
        "right", "prints more than",
    ),
    "what is not simulated": (
        edited((STORE, '    asm volatile("{ .reg .u32 e; mov.u32 e, %envreg1; }");\n' + STORE)),
        "right", "A check runs on the simulator",
    ),
    "a state that is kept": (
        edited(('extern "C"', '__device__ int count;\nextern "C"'),
               ("float sum = 0.0f;", "float sum = count ? 1.0f : 0.0f;"),
               (STORE, STORE + "    count++;\n")), "no race", "race on count",
    ),
    "a trap": (edited((STORE, '    asm("trap;");\n')), "right", ""),
    "an assertion": (edited((STORE, "    __trap();\n")), "right", ""),
}  # fmt: skip


@pytest.mark.parametrize("what", NONSENSE)
def test_nonsense_is_told_in_a_sentence(what):
    text, step, words = NONSENSE[what]
    start = time.perf_counter()
    verdict = check("02_scores", text)
    assert time.perf_counter() - start < 30
    assert not verdict.passed and verdict.failed.name == step, verdict
    assert words in f"{verdict.failed.message} {verdict.todo}", verdict
    assert len(verdict.failed.message) > 15 and "Traceback" not in repr(verdict)
    assert verdict.failed.message[-1] in ".!"
    for line in repr(verdict).split("\n"):
        assert len(line) <= 120
    html = verdict._repr_html_()
    assert 'role="alert"' in html and html.count("<div") == html.count("</div>")


CHEATS = {
    "right at one size alone": (
        edited(("i < d; i++", "i < 19; i++"), ("(size_t)row * d", "(size_t)row * 19"),
               ("(size_t)col * d", "(size_t)col * 19")), "right",
    ),
    "only where N is odd": (edited((STORE, f"    if (N % 2) {STORE.strip()}\n")), "right"),
    "one size of tiles": (
        edited(("blockIdx.x * TILE", "blockIdx.x * 16"), ("blockIdx.y * TILE", "blockIdx.y * 16")),
        "right",
    ),
    "nothing but NaN kept": (edited((STORE, "    S[0] = S[0];\n")), "right"),
    "the transpose": (
        edited((STORE, "    S[(size_t)col * N + row] = sum / sqrtf((float)d);\n")), "right",
    ),
    "half precision": (
        "#include <cuda_fp16.h>\n" + edited(("sum += Q", "sum += __half2float(Q"),
                                            ("K[(size_t)col * d + i];", "K[(size_t)col * d + i]);"))
        , "right",
    ),
    "without the scale": (edited((" / sqrtf((float)d)", "")), "right"),
}  # fmt: skip


@pytest.mark.parametrize("what", CHEATS)
def test_cheats_are_caught(what):
    text, step = CHEATS[what]
    verdict = check("02_scores", text)
    assert not verdict.passed and verdict.failed.name == step, verdict


def test_outputs_are_poisoned_and_never_shown_to_the_kernel():
    """A kernel finds neither the expected result nor a buffer that was right before."""
    one = exercise("02_scores")
    spy = edited((STORE, "    if (isfinite(S[(size_t)row * N + col])) return;\n" + STORE))
    assert check("02_scores", spy).failed.name == "goal"  # right, with loads of its own
    for case in one.cases:
        assert not np.any(one.arguments(case)["S"])


def test_what_the_kernel_prints_is_kept():
    talks = edited((STORE, '    if (row + col == 0) printf("sum %.1f\\n", d * 1.0);\n' + STORE))
    verdict = check("02_scores", talks)
    assert verdict.passed and verdict.printed == "sum 19.0\n"
    talks = edited((STORE, STORE + '    if (row + col == 0) printf("\\x1b[31m%800s\\n", "x");\n'))
    talks = talks.replace("if (row + col == 0)", "if (row < 3 && col == 0)")
    cut = check("02_scores", talks).printed
    assert cut.startswith(r"\x1b[31m") and cut.endswith("... and more, which is not kept.")
    assert len(cut) < 2100
    assert "sum 19.0" in repr(verdict) and "<summary>Printed" in verdict._repr_html_()


def test_other_right_answers_pass():
    """Names, comments, helpers and line ends are the student's own."""
    other = edited(("row", "i_row"), ("const float* Q", "const float* __restrict__ Q"))
    other = other.replace("extern", "__device__ float twice(float x) { return 2 * x; }\nextern", 1)
    assert check("02_scores", other.replace("\n", "\r\n")).passed
    assert check("02_scores", "\ufeff" + RIGHT).passed


def test_on_a_gpu_the_time_is_told(monkeypatch):
    """The steps of a GPU, with the stand-in for CuPy where there is none."""
    times = iter((0.25, 0.125))
    monkeypatch.setattr("helpers.device.is_gpu", True)
    monkeypatch.setattr("helpers.exercises.trial.timing.measure", lambda launch: next(times))
    verdict = check("02_scores", RIGHT)
    assert verdict.passed
    assert [step.name for step in verdict.steps] == ["compiles", "right", "no race", "goal", "time"]
    assert "it takes 0.25 ms; the reference solution takes 0.125 ms" in verdict.steps[-1].message
    verdict = check("02_scores", RIGHT)  # no more times: told, not judged
    assert verdict.passed and "could not be timed" in verdict.steps[-1].message


def test_what_stops_a_gpu_is_told(monkeypatch):
    class CUDADriverError(RuntimeError):
        pass

    def stop(*_):
        raise CUDADriverError("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access")

    monkeypatch.setattr("helpers.device.is_gpu", True)
    monkeypatch.setattr("helpers.exercises.checking.wrong_on_gpu", stop)
    verdict = check("02_scores", RIGHT)
    assert verdict.failed.name == "right" and "On the GPU" in verdict.failed.message
    assert "Restart" in verdict.todo


def test_files_and_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "%%kernel 02_scores.cu" in check("02_scores").failed.message
    assert "cannot be read" in check("02_scores", "nowhere.cu").failed.message
    assert "not int" in check("02_scores", 7).failed.message
    file = Path(write("02_scores.cu", RIGHT.replace("row = blockIdx", "row = 1 + blockIdx")))
    assert "ago" not in check("02_scores").todo
    for seconds, words in ((90, "a minute ago"), (600, "10 minutes ago"), (90_000, "25 hours ago")):
        os.utime(file, (time.time() - seconds,) * 2)
        assert words in check("02_scores").todo
    Path("latin.cu").write_bytes(RIGHT.replace("Gap:", "Lücke:").encode("latin-1"))
    assert "line 22 has the byte 0xfc" in check("02_scores", "latin.cu").failed.message
    Path("wide.cu").write_text(RIGHT, encoding="utf-16")
    assert "UTF-16" in check("02_scores", Path("wide.cu")).failed.message
    Path("answer.cu").write_text(RIGHT)
    assert check("02_scores.cu", Path("answer.cu")).passed
    with pytest.raises(KernelError, match="Did you mean 02_scores"):
        check("02_score")


# ------------------------------------------------------------------ cells and the magic


@pytest.mark.parametrize("one", EXERCISES, ids=lambda one: one.name)
def test_chapter_holds_the_exercise(one):
    """Task, kernel, check, hints and solution are those of the files, at the chapter's end."""
    (path,) = (ROOT / "notebooks").glob(f"{one.chapter:02d}_*.ipynb")
    notebook = nbformat.read(path, as_version=4)
    names = [cell.id for cell in notebook.cells]
    for made in cells.cells(one):
        cell = notebook.cells[names.index(made["id"])]
        assert cell.source == "".join(made["source"]), made["id"]
        assert cell.metadata == made["metadata"], made["id"]
    first = names.index(cells.cell_id(one, "task"))
    heads = [n for n, cell in enumerate(notebook.cells) if cell.source.startswith("## ")]
    assert all(notebook.cells[n].source.startswith(("## Exercise", "## Next", "## Sources"))
               for n in heads if n >= first)  # fmt: skip
    code = [cell.source.split("\n") for cell in notebook.cells if cell.cell_type == "code"]
    assert any("from helpers.exercises import check" in lines for lines in code)


def test_new_exercises_come_before_next_and_gone_ones_go(tmp_path):
    path = tmp_path / "04_parallel_reduction.ipynb"
    whole = json.loads((ROOT / "notebooks" / path.name).read_text(encoding="utf-8"))
    whole["cells"] = [cell for cell in whole["cells"]
                      if cell["metadata"]["slideshow"]["slide_type"] != "notes"]  # fmt: skip
    ours = [one for one in EXERCISES if one.chapter == 4]
    ids = [cell["id"] for one in ours for cell in cells.cells(one)]
    without = [cell for cell in whole["cells"] if cell["id"] not in ids[5:]]
    old = [dict(cell, id=cell["id"].replace(ours[1].name[3:].replace("_", "-"), "gone"),
                source="".join(cell["source"]).replace(ours[1].name, "04_gone"))
           for cell in whole["cells"] if cell["id"] in ids[5:10]]  # fmt: skip
    notes = {"cell_type": "markdown", "id": "own", "metadata": {}, "source": "**Notes, 6 min.**"}
    at = [cell["id"] for cell in without].index(ids[0])
    new = [*without[: at + 1], notes, *without[at + 1 :], *old]
    path.write_text(json.dumps({**whole, "cells": new}), encoding="utf-8")
    cells.insert(path)
    found = [cell["id"] for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
    assert found == [c["id"] for c in without[: at + 1]] + ["own"] + ids[1:] + [
        cell["id"] for cell in without[at + 5 :]
    ]


def test_putting_exercises_in_twice_changes_nothing(tmp_path):
    path = tmp_path / "04_parallel_reduction.ipynb"
    before = (ROOT / "notebooks" / path.name).read_text(encoding="utf-8")
    path.write_text(before, encoding="utf-8")
    assert cells.insert(path) == [one.name for one in EXERCISES if one.chapter == 4]
    assert json.loads(path.read_text()) == json.loads(before)


def test_the_magic_writes_beside_the_notebook(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = kernel_magic("02_scores.cu", RIGHT)
    assert "scaled_dot_product in it compiles" in repr(shown)
    assert 'check("02_scores")' in repr(shown)
    assert check("02_scores").passed
    file = tmp_path / "my_kernels" / "02_scores.cu"
    # Line 1 of the file is the cell's first line, so that all numbers agree
    assert file.read_text() == f"// %%kernel 02_scores.cu\n{RIGHT}"
    shown = kernel_magic("02_scores.cu", RIGHT.replace(" + threadIdx.x;", " + threadIdx.x"))
    assert "Line 20" in repr(shown) and "> 20 |" in repr(shown)
    assert (file.parent / "02_scores.cu.old").read_text().endswith(RIGHT)
    assert check("02_scores").line == 20
    shown = kernel_magic("own.cu", 'extern "C" __global__ void a() {}\n')
    assert 'load_kernel("my_kernels/own.cu")' in repr(shown)
    assert sorted(p.name for p in file.parent.iterdir()) == [
        "02_scores.cu", "02_scores.cu.old", "own.cu",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name", ["", "../02_scores.cu", "kernels/02_naive.cu", "/tmp/a.cu", "a.py", "..cu", "a b.cu"]
)
def test_the_magic_refuses_other_places(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(KernelError, match="%%kernel"):
        write(name, RIGHT)
    assert not list(tmp_path.iterdir())
    assert "%%kernel" in repr(kernel_magic(name, RIGHT))


def test_the_magic_keeps_out_of_the_course(monkeypatch):
    monkeypatch.chdir(ROOT / "kernels")
    with pytest.raises(KernelError, match="beside the notebook"):
        write("02_scores.cu", RIGHT)
    assert not (ROOT / "kernels" / "my_kernels").exists()


# ------------------------------------------------------------------ grades


@pytest.fixture
def class_folder(tmp_path):
    def notebook(path, **sources):
        code = [f"%%kernel {name[1:]}.cu\n{text}" for name, text in sources.items()]
        new = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(s) for s in ["raise SystemExit(3)", *code]]
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(new, path)

    notebook(tmp_path / "ann" / "02.ipynb", _02_scores=RIGHT, _03_window=skeleton("03_window"))
    notebook(tmp_path / "ann" / "deep" / "again.ipynb", _02_scores=skeleton("02_scores"))
    notebook(tmp_path / "ann" / ".ipynb_checkpoints" / "02.ipynb", _03_window=solution("03_window"))
    notebook(tmp_path / "02_naive_kernels-ben.ipynb", _02_scores=edited(("i < d", "i < d - 1")))
    (tmp_path / "cleo" / "my_kernels").mkdir(parents=True)
    (tmp_path / "cleo" / "my_kernels" / "02_scores.cu").write_text(RIGHT.replace("}", "}}"))
    (tmp_path / "cleo" / "02_scores.cu").write_text(RIGHT)  # the better one counts
    (tmp_path / "dan").mkdir()
    (tmp_path / "dan" / "chapter.ipynb").write_text('{"cells": 7}')
    odd = tmp_path / "Ja\u0308ger, Ute" / "Übung 3"  # as macOS writes umlauts
    notebook(odd / "03_tiling (Kopie).ipynb", _02_scores=RIGHT)
    cells = json.loads((odd / "03_tiling (Kopie).ipynb").read_text())
    cells["cells"] += [{"cell_type": "code", "source": 7}, 7, {"cell_type": "markdown"}]
    (odd / "03_tiling (Kopie).ipynb").write_text("\ufeff" + json.dumps(cells), encoding="utf-8")
    (odd / "again.ipynb").write_text("[" * 100_000)
    (odd / "pipe.ipynb").mkdir()
    (odd / "02_scores.cu").symlink_to(tmp_path / "cleo" / "02_scores.cu")
    (tmp_path / "link").symlink_to(tmp_path / "cleo")
    (tmp_path / "empty").mkdir()
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "02_scores.cu.ipynb")
        os.mkfifo(odd / "03_window.cu")
    (tmp_path / "list.txt").write_text("ann, ben, cleo, dan")
    return tmp_path


def test_what_a_class_has_handed_in(class_folder):
    found = {student.name: student for student in find_answers(class_folder)}
    assert list(found) == ["Jäger, Ute", "ann", "ben", "cleo", "dan", "empty"]
    assert {name: list(student.answers) for name, student in found.items()} == {
        "Jäger, Ute": ["02_scores"], "ann": ["02_scores"], "ben": ["02_scores"],
        "cleo": ["02_scores"], "dan": [], "empty": [],
    }  # fmt: skip
    assert len(found["cleo"].answers["02_scores"]) == 2
    assert len(found["Jäger, Ute"].answers["02_scores"]) == 1
    assert found["Jäger, Ute"].troubles == ["again.ipynb is not a notebook that can be read."]
    assert found["dan"].troubles == ["chapter.ipynb is not a notebook that can be read."]


def test_grades_of_a_class(class_folder, capsys, monkeypatch):
    apart = grading._checked_apart

    def checked(name, text, *rest):
        """Ben's in a process of its own, as all are; the others here, which is faster."""
        if "i < d - 1" in text:
            return apart(name, text, *rest)
        failed = check(name, text).failed
        return Grade(failed.name, failed.message) if failed else Grade()

    monkeypatch.setattr(grading, "_checked_apart", checked)
    table = class_folder / "grades.csv"
    assert main([str(class_folder), "--csv", str(table), "--jobs", "1"]) == 0
    printed = capsys.readouterr().out
    rows = [row.split() for row in printed.split("\n")]
    assert ["ann", "✓", "1"] in rows and ["ben", "✗", "0"] in rows and ["cleo", "✓", "1"] in rows
    assert ["dan", "–", "0"] in rows
    assert "ben 02_scores: right: With N = 37, d = 19" in printed
    with table.open(encoding="utf-8", newline="") as file:
        lines = {row["student"]: row for row in csv.DictReader(file)}
    assert list(lines)[:3] == ["Jäger, Ute", "ann", "ben"]
    assert lines["ann"]["02_scores"] == lines["Jäger, Ute"]["02_scores"] == "passed"
    assert lines["ben"]["02_scores"].startswith("right: ")
    assert [*lines["ben"].values()][-1] == "0"


def test_one_student_alone(tmp_path):
    (tmp_path / "my_kernels").mkdir()
    (tmp_path / "my_kernels" / "03_window.cu").write_text("no kernel")
    (student,) = find_answers(tmp_path)
    assert student.name == tmp_path.name and list(student.answers) == ["03_window"]


def test_the_last_answers_count(monkeypatch):
    """A notebook may hold many versions: the last ones are checked, the newest first."""
    checked = []

    def check_one(name, text, seconds, gpu):
        checked.append(text)
        return Grade() if "right" in text else Grade("right", text)

    monkeypatch.setattr("helpers.exercises.grade._checked_apart", check_one)
    student = Student("ann")
    for n in [*range(30), 7]:
        student.add("02_scores", f"version {n}")
    assert student.answers["02_scores"] == [f"version {n}" for n in [*range(21, 30), 7]]
    assert grade("02_scores", student.answers["02_scores"]) == Grade("right", "version 7")
    assert checked[:2] == ["version 7", "version 29"]
    student.add("02_scores", "right")
    assert grade("02_scores", student.answers["02_scores"]).passed and checked[-1] == "right"


def test_chapters_alone_are_of_one_student(tmp_path):
    for name in ("02_naive_kernels", "03_tiling"):
        nbformat.write(nbformat.v4.new_notebook(), tmp_path / f"{name}.ipynb")
    assert [student.name for student in find_answers(tmp_path)] == [tmp_path.name]
    (tmp_path / "ann").mkdir()
    assert len(find_answers(tmp_path)) == 3


def test_an_answer_that_never_ends_has_its_time():
    start = time.monotonic()
    slow = grade("02_scores", [RIGHT], seconds=0.05)
    assert slow == Grade("right", "The check took longer than 0.05 seconds.")
    assert time.monotonic() - start < 10


def test_nobody_and_nowhere(tmp_path, capsys):
    assert "Nobody" in str(grade_all(tmp_path))
    assert main([str(tmp_path / "missing")]) == 2
    assert "There is no folder" in capsys.readouterr().err
    assert main([]) == 2


def test_make_grade_asks_for_a_folder():
    done = subprocess.run(
        [sys.executable, "-m", "helpers.exercises.grade"], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 2 and "make grade DIR=path" in done.stderr
