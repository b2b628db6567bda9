"""The kernels of chapter 10, in which copies, products and softmax overlap.

    from helpers.problem.flash_overlap import FLASH_RESCALE

    O = FLASH_RESCALE.run(Q, K, V)                           # on the GPU, or on the simulator
    O, reports = FLASH_RESCALE.simulate(Q, K, V, CAUSAL=1)   # counted, on any machine

Each is one step over the one before. They run on GPUs of compute capability 8.0 and newer.
"""

from .flash import FlashRung

FLASH_EAGER = FlashRung(name="flash_eager", chapter=10, file="10a_eager.cu")
FLASH_REGISTERS = FlashRung(name="flash_registers", chapter=10, file="10b_registers.cu")
FLASH_DOUBLE_BUFFER = FlashRung(
    name="flash_double_buffer", chapter=10, file="10c_double_buffer.cu", stages=2
)
FLASH_WIDE_WARPS = FlashRung(
    name="flash_wide_warps", chapter=10, file="10d_wide_warps.cu", stages=2
)
FLASH_RESCALE = FlashRung(name="flash_rescale", chapter=10, file="10e_rescale.cu", stages=2)

OVERLAP = (
    FLASH_EAGER,
    FLASH_REGISTERS,
    FLASH_DOUBLE_BUFFER,
    FLASH_WIDE_WARPS,
    FLASH_RESCALE,
)
