"""SASS, the machine code of NVIDIA's GPUs, as text: nvdisasm makes it of a cubin, with lines."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import SimulatorError
from .kept_nvrtc import kept_text

# What stands before a path in nvdisasm's text.
IN_SASS = r'//## File "|inlined at "'
_PLACE = re.compile(r'(?://## File|inlined at) "(?P<file>[^"]*)", line (?P<line>\d+)')
_LABEL = re.compile(r"^([.$\w]+):")
_INSTRUCTION = re.compile(
    r"\s*/\*(?P<address>[0-9a-f]+)\*/\s+(?P<text>(?:(?P<predicate>@!?U?P\w+)\s+)?(?P<opcode>[\w.]+)[^;]*)"
)
# What newer chips' code says beside an instruction: which barrier it sets, what it waits for.
_SCHEDULING = re.compile(r"\s+(?:&\w+=\S+|\?\w+)")
_HALF_MOVE = re.compile(r"\bHFMA2\S* \w+, -RZ, RZ,")
_SECONDS = 60

# The first word of an opcode, by what the instruction is for. A U in front, for one that a warp
# executes once (UIADD3, ULDC), is left out.
_KINDS = {
    "fp32": "FFMA FADD FMUL FMNMX FMNMX3 FSEL FSET FSETP FCHK FSWZADD FFMA2 FADD2 FMUL2 FFMA32I "
    "FADD32I FMUL32I",
    "fp16": "HADD2 HFMA2 HMUL2 HMNMX2 HSET2 HSETP2 HADD2_32I HFMA2_32I HMUL2_32I",
    "fp64": "DFMA DADD DMUL DSETP",
    "tensor cores": "HMMA IMMA BMMA DMMA QMMA OMMA HGMMA IGMMA BGMMA QGMMA",
    "special functions": "MUFU",
    "integer": "IMAD IADD3 IADD IMUL LEA LOP3 LOP SHF SHL SHR ISETP IABS IMNMX VIMNMX VIADD "
    "VIADDMNMX VIMNMX3 FLO POPC BREV BMSK SGXT IDP VABSDIFF VABSDIFF4 ISCADD IADD32I LOP32I",
    "conversions": "F2F F2FP F2I F2IP I2F I2FP I2I I2IP FRND",
    "moves": "MOV MOV32I PRMT SEL S2R S2UR CS2R R2UR R2P P2R PLOP3 PSETP MOVM",
    "global loads": "LDG",
    "global stores": "STG",
    "shared loads": "LDS LDSM",
    "shared stores": "STS STSM",
    "asynchronous copies": "LDGSTS BLKCP TMALDG TMASTG",
    "local memory": "LDL STL",
    "generic memory": "LD ST",
    "constant loads": "LDC LDCU",
    "atomics": "ATOM ATOMG ATOMS RED REDG",
    "between lanes": "SHFL VOTE VOTEU MATCH REDUX",
    "barriers": "BAR MEMBAR ERRBAR DEPBAR LDGDEPBAR SYNCS WARPSYNC FENCE CCTL ARRIVES",
    "control flow": "BRA BRX BRXU JMP JMX CALL RET EXIT BSSY BSYNC BREAK BMOV BPT KILL YIELD "
    "NANOSLEEP WARPGROUP",
    "nothing": "NOP",
}
KINDS = tuple(_KINDS) + ("other",)
_KIND_OF = {word: kind for kind, words in _KINDS.items() for word in words.split()}


@dataclass(frozen=True)
class MachineInstruction:
    """One machine instruction.

    Attributes:
        address: bytes from the kernel's start; an instruction takes 16.
        text: as nvdisasm writes it, such as `@!P1 LDG.E.128 R4, desc[UR6][R8.64]`.
        opcode: `LDG.E.128` of that.
        predicate: `@!P1` of that, or empty: lanes for which it is false do nothing.
        file, line: where in the source it comes from: of code that was inlined from elsewhere,
            where the kernel's file called it; "" and None in the assembler's own subroutines
            (a division, a square root), and where no line of that file is known.
        label: the name by which jumps know this place, or empty.
    """

    address: int
    text: str
    opcode: str
    predicate: str
    file: str
    line: int | None
    label: str

    @property
    def kind(self) -> str:
        """What it is for: `fp32`, `global loads`, `shared stores`, ..., or `other`."""
        # A unit that has nothing else to do moves a number: by 0 times 0 plus the number.
        if self.opcode.startswith("IMAD.MOV") or _HALF_MOVE.search(self.text):
            return "moves"
        word = self.opcode.split(".", 1)[0]
        return _KIND_OF.get(word) or _KIND_OF.get(word.removeprefix("U"), "other")


@functools.cache
def nvdisasm() -> Path:
    """NVIDIA's disassembler, as the package nvidia-cuda-nvdisasm has it.

    Raises:
        SimulatorError: of kind `compile`, if the package is not installed.
    """
    spec = importlib.util.find_spec("nvidia")
    for root in sorted(spec.submodule_search_locations or []) if spec else []:
        for name in ("nvdisasm", "nvdisasm.exe"):
            for file in sorted(Path(root).glob(f"cu[0-9]*/bin/{name}"), reverse=True):
                return file
    raise SimulatorError(
        "compile",
        "There is no nvdisasm to read machine code with: install the package "
        "nvidia-cuda-nvdisasm, which `make lab` does.",
    )


@functools.lru_cache(64)
def disassemble(cubin: bytes) -> str:
    """What nvdisasm prints of a cubin, with the line of every instruction.

    Raises:
        SimulatorError: of kind `compile`, if nvdisasm is not there or cannot read it.
    """
    program = nvdisasm()
    is_now = program.stat()
    made_of = [hashlib.sha256(cubin).hexdigest(), is_now.st_size, is_now.st_mtime_ns]
    # nvdisasm takes a third of a second to start.
    return kept_text(made_of, lambda: _printed(program, cubin))


def _printed(program: Path, cubin: bytes) -> str:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernel.cubin")
        file.write_bytes(cubin)
        # Data flow says where indirect jumps go, which no kernel here has, for a third of the time.
        how = ("--print-code", "--print-line-info-inline", "--no-dataflow")
        try:
            done = subprocess.run([program, *how, file], capture_output=True, timeout=_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SimulatorError("compile", f"nvdisasm cannot be run: {error}.") from error
    if done.returncode:
        words = done.stderr.decode(errors="replace").replace(str(file), "the cubin").split()
        raise SimulatorError("compile", f"nvdisasm failed: {' '.join(words)}.")
    return done.stdout.decode(errors="replace")


def instructions(text: str, symbol: str, filename: str) -> tuple[MachineInstruction, ...]:
    """The instructions of one kernel in order, without the padding behind the last.

    Args:
        text: what nvdisasm printed.
        symbol: the kernel's name in the cubin.
        filename: the file whose lines are wanted.
    """
    found = list(_read(text, symbol, filename))
    while found and found[-1].opcode == "NOP":
        found.pop()
    # The jump to itself that stands behind every kernel, for a GPU that reads ahead.
    if found and found[-1].opcode == "BRA" and f"`({found[-1].label})" in found[-1].text:
        found.pop()
    return tuple(found)


def _read(text: str, symbol: str, filename: str) -> Iterator[MachineInstruction]:
    inside, place, label = False, ("", None), ""
    chain: list[tuple[str, int]] = []  # where the code stands, and from where it was inlined
    for row in text.splitlines():
        if row.startswith("\t.section\t"):
            inside = row.split()[1].split(",")[0] == f".text.{symbol}"
        elif not inside:
            continue
        elif "//## File" in row:
            chain += [(found["file"], int(found["line"])) for found in _PLACE.finditer(row)]
        elif found := _LABEL.match(row):
            if found[1].startswith("$"):  # a subroutine of the assembler's, such as a division
                place = ("", None)
            label = "" if found[1].startswith(".text.") else found[1]
        elif found := _INSTRUCTION.match(row):
            if chain:
                own = (step for step in chain if step[0] == filename and step[1])
                place, chain = next(own, ("", None)), []
            shown = _SCHEDULING.sub("", found["text"]).strip()
            opcode, predicate = found["opcode"], found["predicate"] or ""
            yield MachineInstruction(
                int(found["address"], 16), shown, opcode, predicate, *place, label
            )
            label = ""
