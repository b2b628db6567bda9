"""CUDA's own errors, which only a real GPU gives: what each means and what to do.

Names and numbers: CUDA Driver API, `CUresult`, and CUDA Runtime API, `cudaError_t`, where it is
also said after which of them the process has to be ended.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .panel import Panel

RESTART = "Restart this notebook's kernel (Kernel > Restart) and run the cells again from the top."
FIND_LINE = (
    "To find the line, launch the same on the simulator, which checks every access: "
    "kernel.count(grid, block, args) in place of kernel(grid, block, args), or the whole notebook "
    "with HELPERS_DEVICE=simulator set before JupyterLab starts."
)
_POISONED = (
    "The GPU's context is broken by it: every later call fails with the same error, whatever it "
    "does (cp.asarray, copies such as cp.asnumpy, launches, synchronize), and all arrays on the "
    "GPU are lost."
)
_LATER = (
    "A kernel runs while Python goes on, so the error shows at a later call that waits for it: "
    "the line of Python that is named need not be the one at fault."
)
_NUMBER = re.compile(r"\b(?:CUDA_ERROR_([A-Z0-9_]+)|cudaError([A-Z]\w*))")


class _Meaning(NamedTuple):
    """What an error means; `sticky` says that the context is lost."""

    title: str
    said: str
    todo: str = ""
    sticky: bool = False


_ILLEGAL_ADDRESS = _Meaning(
    "A kernel accessed memory that is not its own",
    "A thread read or wrote outside every array (an illegal address): an index is too large or "
    "negative, a guard such as if (row < N) is missing, or a pointer is not one of the GPU.",
    sticky=True,
)
_TOO_MUCH = _Meaning(
    "The launch asks for more than a multiprocessor has",
    "Registers, threads or shared memory of one block do not fit: registers of a thread times "
    "threads of the block must stay within 65,536.",
    "Use fewer threads a block, or put __launch_bounds__(threads) on the kernel, so that the "
    "compiler keeps to fewer registers.",
)
_BAD_VALUE = _Meaning(
    "CUDA refuses a value",
    "A size, pointer or setting of the call is not one that it can have. For a launch: the grid "
    "or block is 0 or too large, there is more shared memory than allowed, or an argument is "
    "missing.",
    "Compare grid, block, shared_mem and the arguments with the kernel's signature; a launch "
    'through load_kernel("file.cu") checks them and says which is wrong.',
)
_OUT_OF_MEMORY = _Meaning(
    "The GPU's memory is full",
    "There is not enough free memory on the GPU for this array.",
    "Use smaller sizes; drop arrays that are no longer needed (del x), then "
    "cp.get_default_memory_pool().free_all_blocks(). Other notebooks on the same GPU hold "
    "memory until their kernels are shut down.",
)
_OTHER_GPU = _Meaning(
    "The kernel was compiled for another GPU",
    "The binary does not suit this GPU.",
    "Leave out -arch and similar options: CuPy compiles for the GPU at hand.",
)
_DRIVER = _Meaning(
    "The driver and CuPy do not fit together",
    "The installed driver is older than this CuPy's CUDA.",
    "Update the driver, or run `make lab` again to install the CuPy that fits.",
)
_NO_GPU = _Meaning(
    "There is no GPU to use",
    "CUDA sees no device.",
    "Check nvidia-smi and CUDA_VISIBLE_DEVICES; HELPERS_DEVICE=simulator runs the course without.",
)
_NOT_FOUND = _Meaning(
    "There is no kernel of this name",
    "The compiled module has no function of the name asked for.",
    'Start the kernel with extern "C" __global__ void and give its name as written there.',
)
_CRASH = _Meaning(
    "A kernel crashed",
    "The GPU stopped it without saying where, which is mostly a wild pointer or a shared-memory "
    "index far out of bounds.",
    sticky=True,
)

# By the driver's name without CUDA_ERROR_, in lower case and without underscores.
_MEANINGS: dict[str, _Meaning] = {
    "illegaladdress": _ILLEGAL_ADDRESS,
    "misalignedaddress": _Meaning(
        "A kernel accessed memory at an address that is not aligned",
        "A vector access (float4, int4 or a cast to one) needs an address that is a multiple of "
        "its size: 16 bytes for a float4.",
        sticky=True,
    ),
    "launchfailed": _CRASH,
    "launchfailure": _CRASH,
    "illegalinstruction": _CRASH,
    "invalidpc": _CRASH,
    "invalidaddressspace": _Meaning(
        "A kernel used a pointer in the wrong memory space",
        "An instruction for shared, local or global memory got a pointer to another of them.",
        sticky=True,
    ),
    "hardwarestackerror": _Meaning(
        "A kernel's stack overflowed or was overwritten",
        "A local array was written out of bounds, or a function calls itself too deep.",
        sticky=True,
    ),
    "launchtimeout": _Meaning(
        "A kernel took too long",
        "The system ended it: on a GPU that also drives a display a kernel has a few seconds, "
        "which an endless loop uses up.",
        sticky=True,
    ),
    "assert": _Meaning(
        "An assert() in a kernel failed",
        "The text above the error, or in the terminal of JupyterLab, names line and thread.",
        sticky=True,
    ),
    "eccuncorrectable": _Meaning(
        "The GPU's memory had an error that could not be corrected",
        "This is the hardware, not the kernel.",
        "Tell whoever looks after the machine if it comes again.",
        sticky=True,
    ),
    "contextisdestroyed": _Meaning(
        "The GPU's context is gone", "An earlier error has ended it.", sticky=True
    ),
    "launchoutofresources": _TOO_MUCH,
    "invalidvalue": _BAD_VALUE,
    "invalidconfiguration": _BAD_VALUE,
    "outofmemory": _OUT_OF_MEMORY,
    "memoryallocation": _OUT_OF_MEMORY,
    "nobinaryforgpu": _OTHER_GPU,
    "nokernelimagefordevice": _OTHER_GPU,
    "invalidptx": _OTHER_GPU,
    "unsupportedptxversion": _DRIVER,
    "insufficientdriver": _DRIVER,
    "systemdrivermismatch": _DRIVER,
    "nodevice": _NO_GPU,
    "invaliddevice": _NO_GPU,
    "notfound": _NOT_FOUND,
    "symbolnotfound": _NOT_FOUND,
    "invaliddevicefunction": _OTHER_GPU,
}


def cuda_panel(text: str, last_launch: str = "") -> Panel:
    """The panel of an error of CUDA's driver or runtime.

    Args:
        text: what CuPy says, `CUDA_ERROR_ILLEGAL_ADDRESS: an illegal ...` for example.
        last_launch: the kernel launched last, in words; empty if that is not known.
    """
    text = text.strip()
    found = _NUMBER.search(text)
    name = (found[1] or found[2]) if found else ""
    meaning = _MEANINGS.get(name.replace("_", "").lower())
    if meaning is None:
        meaning = _Meaning(
            "CUDA reports an error",
            "It is none that kernels of this course give on their own.",
            f"Run the cell again; if the error comes back, restart: {RESTART}",
        )
    said = [meaning.said]
    todo = meaning.todo
    if meaning.sticky:
        said += [_POISONED, _LATER]
        if last_launch:
            said.append(f"The kernel launched last was {last_launch}.")
        todo = " ".join(filter(None, [RESTART, meaning.todo or FIND_LINE]))
    said.append(f"CUDA says: {text}")
    return Panel(meaning.title, tuple(said), todo)


def memory_panel(text: str) -> Panel:
    """The panel of CuPy's own OutOfMemoryError."""
    said = (_OUT_OF_MEMORY.said, f"CuPy says: {text.strip()}")
    return Panel(_OUT_OF_MEMORY.title, said, _OUT_OF_MEMORY.todo)
