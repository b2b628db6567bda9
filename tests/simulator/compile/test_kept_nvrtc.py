"""What NVRTC made is found again: the same, only for the same, and never half of it."""

import itertools
import os
import subprocess
import sys
from collections import OrderedDict

import pytest

from helpers.simulator.compile import kept_nvrtc, machine_code, sass
from helpers.simulator.compile.compiler import request_of
from helpers.simulator.compile.kept_nvrtc import KeptNvrtc, kept_folder
from helpers.simulator.compile.providers import NvrtcProvider
from helpers.simulator.errors import SimulatorError

KERNEL = 'extern "C" __global__ void k(float* a) { a[threadIdx.x] *= FACTOR; }\n'


def request(code=KERNEL, options=("-DFACTOR=2",), **more):
    return request_of(code, options, "kernel.cu", more.pop("include_dirs", ()), ())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(kept_nvrtc.VARIABLE, str(tmp_path / "kept"))
    return tmp_path / "kept"


@pytest.fixture
def asked(monkeypatch):
    """What NVRTC itself was asked for."""
    found, real = [], NvrtcProvider._made
    monkeypatch.setattr(
        NvrtcProvider, "_made", lambda self, *args: found.append(args) or real(self, *args)
    )
    return found


def test_the_same_is_compiled_once_and_anything_else_again(folder, asked, monkeypatch):
    first = KeptNvrtc().compile(request())
    assert KeptNvrtc().compile(request()) == first and len(asked) == 1
    assert KeptNvrtc().compile(request(options=("-DFACTOR=3",))).ptx != first.ptx
    assert KeptNvrtc().compile(request(KERNEL.replace("*=", "+="))).ptx != first.ptx
    assert len(asked) == 3
    monkeypatch.setattr(KeptNvrtc, "version", "nvrtc 99.0")
    KeptNvrtc().compile(request())
    assert len(asked) == 4


def test_an_included_file_counts_by_its_text(folder, asked, tmp_path):
    code = '#include "factor.cuh"\n' + KERNEL
    made = []
    for factor in (2, 3, 2):
        (tmp_path / "factor.cuh").write_text(f"#define FACTOR {factor}\n")
        made.append(KeptNvrtc().compile(request(code, (), include_dirs=(tmp_path,))).ptx)
    assert made[0] == made[2] != made[1] and len(asked) == 2


def test_machine_code_is_kept_beside_ptx(folder, asked):
    plain = request(options=("-DFACTOR=2", "-arch=sm_90"))
    for_chip = type(plain)(plain.source, plain.filename, ("-arch=sm_90", *plain.options[1:]))
    first = KeptNvrtc().machine_code(for_chip)
    assert first == KeptNvrtc().machine_code(for_chip) and first[1].startswith(b"\x7fELF")
    assert len(asked) == 1
    KeptNvrtc().compile(for_chip)
    assert len(asked) == 2


@pytest.mark.parametrize("damage", [b"", b"{}", b'{"ptx": "', b"[1]", b"\xff\xfe"])
def test_a_damaged_file_is_made_again(folder, asked, damage):
    first = KeptNvrtc().compile(request())
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage)
    assert KeptNvrtc().compile(request()) == first and len(asked) == 2
    assert file.read_bytes() == whole


def test_lines_are_found_in_another_working_directory(folder, tmp_path, monkeypatch):
    """A notebook runs in notebooks/, a script elsewhere: one finds what the other compiled."""
    source = KERNEL.replace("{", "{\n").replace("FACTOR", "5.0f")
    source = f'#line 1 "named.cu"\n{source}'  # beside such a name stands the working directory
    lines, texts = [], set()
    for name in ("here", "there", "here"):
        (tmp_path / name).mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / name)
        monkeypatch.setattr(machine_code, "_cache", OrderedDict())  # as a new process
        lines.append(sorted(machine_code.machine_code(source, "k").by_line))
        texts.add(KeptNvrtc().compile(request(source, ())).ptx)
    assert lines[0] == lines[1] == lines[2] and 2 in lines[0]
    assert len(texts) == 1 and len(list(folder.iterdir())) == 3  # machine code, its text, and PTX


def test_what_nvdisasm_prints_is_kept(folder, monkeypatch):
    """It takes a third of a second to start, and chapters show the code of the same kernels."""
    starts = []
    printed = sass._printed
    monkeypatch.setattr(sass, "_printed", lambda *given: starts.append(1) or printed(*given))
    source = KERNEL.replace("FACTOR", "7.0f")
    code = machine_code.machine_code(source, "k")
    again = []
    for _ in range(2):
        sass.disassemble.cache_clear()  # as a new process
        again.append(sass.disassemble(code.cubin))
    assert again[0] == again[1] and "FMUL" in again[0] and len(starts) == 1
    with pytest.raises(SimulatorError):
        sass.disassemble(b"no cubin")
    monkeypatch.setenv(kept_nvrtc.VARIABLE, "off")
    sass.disassemble.cache_clear()
    assert sass.disassemble(code.cubin) == again[0] and len(starts) == 3


def test_nothing_half_written_is_left_behind(folder, monkeypatch):
    def full(*args):
        raise OSError("No space left on device")

    monkeypatch.setattr(kept_nvrtc.json, "dump", full)
    assert ".entry k" in KeptNvrtc().compile(request()).ptx
    assert list(folder.iterdir()) == []


def test_what_was_not_used_for_longest_goes_first(folder, monkeypatch):
    monkeypatch.setattr(kept_nvrtc, "LOOKS", 1)
    names = []
    for factor in (2, 3, 4, 5):
        KeptNvrtc().compile(request(options=(f"-DFACTOR={factor}",)))
        (name,) = {file.name for file in folder.iterdir()} - set(names)
        names.append(name)
        os.utime(folder / name, ns=(factor, factor))
    KeptNvrtc().compile(request(options=("-DFACTOR=2",)))  # used again
    monkeypatch.setattr(kept_nvrtc, "LARGEST", 3 * (folder / names[0]).stat().st_size + 99)
    KeptNvrtc().compile(request(options=("-DFACTOR=6",)))
    kept = {file.name for file in folder.iterdir()}
    assert len(kept) == 3 and names[0] in kept and kept.isdisjoint(names[1:3])


def test_what_is_there_is_looked_at_now_and_then(folder, monkeypatch):
    """A look at thousands of files takes longer than a small kernel does to compile."""
    looks = []
    monkeypatch.setattr(kept_nvrtc, "LOOKS", 3)
    monkeypatch.setattr(kept_nvrtc, "_written", itertools.count())
    monkeypatch.setattr(kept_nvrtc, "_make_room", looks.append)
    for factor in range(5):
        KeptNvrtc().compile(request(options=(f"-DFACTOR={factor}",)))
    assert looks == [folder, folder]  # at the first file and at the fourth


def test_errors_are_not_kept(folder, asked):
    for _ in range(2):
        with pytest.raises(SimulatorError):
            KeptNvrtc().compile(request("nonsense"))
    assert len(asked) == 2 and not folder.exists()


def test_it_can_be_turned_off_and_is_off_where_nothing_can_be_written(asked, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    for chosen in ("off", str(tmp_path / "file" / "folder")):
        asked.clear()
        monkeypatch.setenv(kept_nvrtc.VARIABLE, chosen)
        first, second = (KeptNvrtc().compile(request()) for _ in range(2))
        assert first == second and len(asked) == 2
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_the_user_has_a_folder_for_it(monkeypatch, tmp_path):
    monkeypatch.delenv(kept_nvrtc.VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert kept_folder() == tmp_path / "attention-kernels"


def test_processes_write_at_the_same_time(folder):
    code = (
        "from tests.simulator.compile.test_kept_nvrtc import KeptNvrtc, request\n"
        "print(hash(KeptNvrtc().compile(request()).ptx))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment)
        for _ in range(2)
    ]
    assert len({one.communicate()[0] for one in running}) == 1
    assert [file.suffix for file in folder.iterdir()] == [".json"]
    assert not any(one.returncode for one in running)
