"""A `.cu` file of `kernels/`, ready to launch, to count and to show.

    from helpers.kernels import load_kernel
    k = load_kernel("03_tiled.cu", "scaled_dot_product", TILE=8)

The file's own `#define`s are its parameters; `Launch` is one launch of it.
"""

from .kernel import KERNELS, Kernel, load_kernel
from .launches import Launch
from .source import CannotRun, KernelError, Parameter

__all__ = ["KERNELS", "CannotRun", "Kernel", "KernelError", "Launch", "Parameter", "load_kernel"]
