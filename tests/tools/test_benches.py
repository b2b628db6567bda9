"""The benchmark of benches: each bench in a process of its own, with or without what is kept."""

from __future__ import annotations

import os

from benchmarks import benches

from helpers.simulator.compile.kept_nvrtc import VARIABLE


def test_a_fresh_process_is_another_one_each_time():
    found = {benches.fresh(os.getpid), benches.fresh(os.getpid), os.getpid()}
    assert len(found) == 3


def test_each_bench_is_measured_in_a_fresh_process(monkeypatch, capsys):
    asked, compiled = [], []

    def fresh(act, name, looked):
        assert act is benches.costs
        asked.append((name, looked, os.environ[VARIABLE] == "off"))
        return {("TILE", 8): 0.25, ("TILE", 32): 0.75, ("N", 64): 0.5}

    monkeypatch.setenv(VARIABLE, "")  # what it sets goes again
    monkeypatch.setattr(benches, "fresh", fresh)
    monkeypatch.setattr(benches.subprocess, "run", lambda command, **_: compiled.append(command))
    benches.benches(["tiled", "padded"])
    assert compiled[0][-2:] == ["tiled", "padded"]
    assert asked == [
        (name, looked, off)
        for looked, off in ((False, False), (True, False), (False, True))
        for name in ("tiled", "padded")
    ]
    lines = capsys.readouterr().out.splitlines()
    assert lines[-4] == (
        "nobody compiled it: each bench in a fresh process, nothing compiled is kept"
    )
    assert lines[-3].endswith("nobody compiled it: median 0.50 s, worst 0.75 s (TILE=32)")
