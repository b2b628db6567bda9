"""What `load_kernel`, `show` and `lines` say of values of a wrong type and of unreadable files."""

from __future__ import annotations

import codecs
from pathlib import Path

import numpy as np
import pytest

from helpers.bench.check import compare
from helpers.kernels import KernelError, load_kernel

SOURCE = """\
#ifndef TILE
#define TILE 8  // [4, 8] threads
#endif

// Doubles.
extern "C" __global__ void twice(float* a, int n) {
    int i = threadIdx.x;
    if (i < n)
        a[i] *= 2;
}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.cu").write_text(SOURCE)
    return tmp_path


def refused(call, *words):
    with pytest.raises(KernelError) as caught:
        call()
    text = str(caught.value)
    assert all(word in text for word in words), text
    assert text.endswith(".") and text.count("\n") == 0
    return text


@pytest.mark.parametrize("value", [np.array([4, 8]), np.array(8), [8], None, {"a": 1}, 4j])
def test_a_parameter_that_is_no_number(folder, value):
    refused(
        lambda: load_kernel("a.cu", kernels_dir=folder, TILE=value),
        "a.cu: the parameter TILE is one of 4, 8, not of type", type(value).__name__,
    )  # fmt: skip


def test_a_parameter_may_be_a_number_of_numpy(folder):
    for value in (np.int64(4), np.float32(4), np.array([4, 8])[0]):
        assert load_kernel("a.cu", kernels_dir=folder, TILE=value).parameters["TILE"].value == 4


@pytest.mark.parametrize("file", [5, None, ["a.cu"], b"a.cu", np.array([1])])
def test_a_file_that_is_no_name(folder, file):
    refused(lambda: load_kernel(file, kernels_dir=folder), "file is a name or a path", "02_naive")


def test_a_folder_or_an_entry_that_is_no_name(folder):
    refused(lambda: load_kernel("a.cu", kernels_dir=5), "kernels_dir is a name or a path", "not 5")
    refused(lambda: load_kernel("a.cu", 5, kernels_dir=folder), 'such as "twice", not 5')
    assert load_kernel(Path("a.cu"), kernels_dir=str(folder)).entry == "twice"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"lines": 5}, ("lines is a first and a last line", "not 5")),
        ({"lines": ()}, ("lines is a first and a last line",)),
        ({"lines": (6.0, 8)}, ("lines takes the number of a line, not 6.0",)),
        ({"lines": ("a", "b")}, ("lines takes the number of a line, not 'a'",)),
        ({"start": "i"}, ("start takes the number of a line, not 'i'",)),
        ({"end": 8.5}, ("end takes the number of a line, not 8.5",)),
        ({"end": True}, ("end takes the number of a line, not True",)),
        ({"mark": 1.5}, ("mark takes the number of a line or the text of a line, not 1.5",)),
        ({"mark": [7, 7.5]}, ("not 7.5",)),
        ({"mark": None}, ("mark takes", "not None")),
        ({"columns": 5}, ("columns takes the names of counters", "not 5")),
        ({"columns": "global_load_sectors"}, ("columns takes", '("shared_load_wavefronts",)')),
        ({"columns": [5]}, ("columns takes", "not [5]")),
        ({"report": 5}, ("report is what count() returns, not of type int",)),
        ({"report": {}}, ("report is what count() returns, not of type dict",)),
    ],
)
def test_show(folder, arguments, words):
    kernel = load_kernel("a.cu", kernels_dir=folder)
    refused(lambda: kernel.show(**arguments), *words)


def test_show_takes_numbers_of_numpy_and_generators(folder):
    kernel = load_kernel("a.cu", kernels_dir=folder)
    shown = kernel.show(lines=[np.int64(6), np.int32(8)], mark=(n for n in (7, np.int64(8))))
    assert [(line.number, line.marked) for line in shown.lines] == [(6, 0), (7, 1), (8, 1)]
    assert [line.marked for line in kernel.show(lines=(6, 8), mark=np.array([7])).lines] == [
        False, True, False,
    ]  # fmt: skip


@pytest.mark.parametrize("text", [5, None, b"int", ["int"]])
def test_lines(folder, text):
    refused(lambda: load_kernel("a.cu", kernels_dir=folder).lines(text), "lines() takes the text")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (SOURCE.replace("Doubles", "Größe").encode("latin-1"), ("not UTF-8: line 5", "0xf6")),
        (SOURCE.encode("utf-16"), ("saved as UTF-16; save it as UTF-8",)),
        (b"int a;\n\n\0\0", ("no text: line 3 has a zero byte",)),
    ],
)
def test_files_that_are_no_text_in_utf_8(tmp_path, data, words):
    (tmp_path / "b.cu").write_bytes(data)
    refused(lambda: load_kernel("b.cu", kernels_dir=tmp_path), "b.cu", *words)
    (tmp_path / "c.cu").write_text('#include "b.cu"\n' + SOURCE)
    refused(lambda: load_kernel("c.cu", kernels_dir=tmp_path), "b.cu", *words)


def test_a_byte_order_mark_does_no_harm(tmp_path):
    (tmp_path / "b.cu").write_bytes(codecs.BOM_UTF8 + SOURCE.replace("\n", "\r\n").encode())
    kernel = load_kernel("b.cu", kernels_dir=tmp_path)
    assert kernel.source == SOURCE
    a = np.arange(5, dtype=np.float32)
    assert kernel.count(1, 8, (a, 5)).counters["global_store_requests"] == 1


def test_a_file_that_may_not_be_read(folder, monkeypatch):
    def closed(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", closed)
    refused(lambda: load_kernel("a.cu", kernels_dir=folder), "a.cu cannot be read: Permission")


def test_the_bench_names_the_pattern_of_what_is_wrong():
    want = np.random.default_rng(1).normal(size=(12, 12)) + 9
    assert str(compare("S", want.T.copy(), want, 1e-6)).endswith(
        ". It is the transpose of what it should be."
    )
    assert "4 times what it should be (√16" in str(compare("S", 4 * want, want, 1e-6))
    one = want.copy()
    one[3] = 5
    assert str(compare("S", one, want, 1e-6)).endswith(f"is 5 in place of {want[3].max():.4g}.")
