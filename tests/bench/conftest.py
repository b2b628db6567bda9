"""What the bench's tests share: a kernel file of the reader's own, and a bench's subject of it."""

from __future__ import annotations

import pytest
from bench_problems import TRANSPOSE, transposed

from helpers.bench.subject import subject_of


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "transpose.cu"
    path.write_text(TRANSPOSE)
    return path


@pytest.fixture
def subject(file):
    return subject_of(file, None, transposed, rows=[1, 21], cols=[37, 64])
