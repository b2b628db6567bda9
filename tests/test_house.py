"""The house rules: rooms, modules, names and functions of `helpers`, and who imports whom."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[1]
HELPERS = ROOT / "helpers"
ENTRIES = 14  # rooms and files of helpers/
MODULES = 20  # of a folder
LINES = 60  # of a function


def modules(folder: Path = HELPERS) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(HELPERS).as_posix()


@functools.cache
def parsed(path: Path) -> tuple[ast.Module, list[str]]:
    text = path.read_text()
    return ast.parse(text), text.splitlines()


def has_reason(lines: list[str], first: int, mark: str) -> bool:
    """Whether a statement says `# mark: why` in its line or in the comment right above it.

    Args:
        first: the number of its line, from 1.
    """
    reason = re.compile(rf"# {mark}: \w")
    if reason.search(lines[first - 1]):
        return True
    above = first - 2
    while above >= 0 and lines[above].lstrip().startswith("#"):
        if reason.search(lines[above]):
            return True
        above -= 1
    return False


# ------------------------------------------------------------------ rooms, modules and classes


def test_helpers_has_few_entries():
    entries = [p.name for p in HELPERS.iterdir() if p.name != "__pycache__"]
    assert len(entries) <= ENTRIES, sorted(entries)


def test_no_folder_has_many_modules():
    counts = defaultdict(int)
    for top in ("helpers", "tests", "tools"):
        for path in modules(ROOT / top):
            counts[path.parent.relative_to(ROOT).as_posix()] += 1
    assert {folder: n for folder, n in counts.items() if n > MODULES} == {}


def test_no_two_modules_have_one_stem():
    stems = defaultdict(list)
    for path in modules():
        if not path.stem.startswith("__"):
            stems[path.stem].append(name_of(path))
    assert {stem: paths for stem, paths in stems.items() if len(paths) > 1} == {}


def test_no_two_public_classes_have_one_name():
    places = defaultdict(list)
    for path in modules():
        for node in parsed(path)[0].body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name_of(path))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


# ------------------------------------------------------------------ imports


def test_the_contracts_of_the_layers_are_kept():
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_no_modules_import_each_other_in_a_circle():
    graph = grimp.build_graph("helpers", cache_dir=None, exclude_type_checking_imports=True)
    arrows = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


def late_imports(tree: ast.Module) -> Iterator[ast.stmt | ast.expr]:
    """The imports inside functions, those by `import_module` among them."""

    def walk(node: ast.AST, inside: bool) -> Iterator[ast.stmt | ast.expr]:
        for child in ast.iter_child_nodes(node):
            if inside and isinstance(child, (ast.Import, ast.ImportFrom)):
                yield child
            called = child.func if isinstance(child, ast.Call) else None
            if inside and called and ast.unparse(called).endswith("import_module"):
                yield child
            function = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
            yield from walk(child, inside or isinstance(child, function))

    return walk(tree, False)


def test_an_import_inside_a_function_has_its_reason():
    left = {}
    for path in modules():
        tree, lines = parsed(path)
        good: set[int] = set()  # lines; imports below each other share a reason
        for node in late_imports(tree):
            if node.lineno - 1 in good or has_reason(lines, node.lineno, "late"):
                good.add(node.end_lineno)
            else:
                left[f"{name_of(path)}:{node.lineno}"] = lines[node.lineno - 1].strip()
    assert left == {}, "write `# late: why` beside them"


def test_notebooks_are_run_by_the_client_that_wakes():
    bare = re.compile(r"\bNotebookClient\b")
    users = [
        path.relative_to(ROOT).as_posix()
        for top in ("helpers", "tests", "tools")
        for path in modules(ROOT / top)
        if bare.search(path.read_text()) and path != Path(__file__)
    ]
    assert users == ["helpers/slides/waking_client.py"]


# ------------------------------------------------------------------ functions


def test_a_long_function_has_its_reason():
    left = {}
    for path in modules():
        tree, lines = parsed(path)
        for node in ast.walk(tree):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            length = node.end_lineno - node.lineno + 1
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            place = f"{name_of(path)}:{node.name}"
            if length > LINES and not has_reason(lines, first, "long"):
                left[place] = length
    assert left == {}, "split them, or write `# long: why` above them"


def test_a_complex_function_has_its_reason():
    """ruff finds them (C901); here is seen that none is waved through without a word."""
    for top in ("helpers", "tests", "tools"):
        for path in modules(ROOT / top):
            for line in path.read_text().splitlines():
                if "noqa: C" + "901" in line:
                    assert re.search(r"noqa: \w+ +\w+ \w", line), f"{path}: {line}"
