"""The machine code of a kernel file's kernel, shown beside the source."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..show import Shows
from ..simulator import MachineCode, machine_code
from ..simulator.compile.machine_code import lacking
from .listing import Listing

if TYPE_CHECKING:
    from .kernel import Kernel


@dataclass(frozen=True, eq=False, repr=False)
class KernelCode(Shows, MachineCode):
    """A kernel's machine code; to look at, it is the source with each line's instructions.

    Attributes:
        kernel: whose it is; `kernel.show(lines=..., machine_code=...)` shows a part.
    """

    kernel: Kernel = field(repr=False)

    def html(self):
        return self._listing().html()

    def __repr__(self) -> str:
        return repr(self._listing())

    def _listing(self) -> Listing:
        """All lines that have code, those of the functions that the kernel calls among them."""
        lines = tuple(self.by_line)
        return self.kernel.show(lines=lines or None, machine_code=self)


def kernel_code(kernel: Kernel, architecture: str) -> KernelCode:
    """The machine code of `kernel` for a GPU.

    Raises:
        SimulatorError: as for `simulator.machine_code`.
    """
    if kernel.architecture == f"{architecture}a":
        architecture = kernel.architecture  # the same GPU, with what belongs to it alone
    options = tuple(option for option in kernel.options if not option.startswith("-arch="))
    code = machine_code(kernel.code, kernel.entry, options, architecture)
    return KernelCode(**vars(code), kernel=kernel)


def code_to_show(
    kernel: Kernel, wanted: MachineCode | str | None
) -> tuple[MachineCode | None, str]:
    """The machine code to stand beside a kernel's source, and why there is none.

    Args:
        kernel: whose source it is.
        wanted: the code; or a GPU's architecture, to make it for if this machine can.

    Raises:
        SimulatorError: the kernel does not compile, or there is no such architecture.
    """
    if not isinstance(wanted, str):
        return wanted, ""
    lacks = lacking()
    return (None, lacks) if lacks else (kernel_code(kernel, wanted), "")
