"""Why settings cannot run, in one sentence, found out before anything runs."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..kernels.arguments import MAX_THREADS, SHARED_WITHOUT_OPT_IN, launch_shape, shared_memory
from ..kernels.source import KernelError, Value
from ..simulator.errors import SimulatorError
from .subject import Launch, Refused, Subject

_REFUSED_BY_SOURCE = re.compile(
    r'(?:static assertion failed(?: with)?|#error directive:)\s*"?(?P<why>[^"\n]*)'
)


def refusal(subject: Subject, settings: Mapping[str, Value]) -> str | None:
    """Why `settings` cannot run, in one sentence, or None if nothing speaks against it.

    Looks at the geometry, and asks the compiler what the source refuses and how much shared memory
    it declares; runs nothing.
    """
    try:
        for launch in subject.launches(settings):
            if reason := refusal_of(launch):
                return reason
    except Refused as error:
        return str(error)
    except (KernelError, SimulatorError):
        return None  # an error in the source, which is told where it is run
    return None


def refusal_of(launch: Launch) -> str | None:
    """Why a launch cannot run, or None.

    Raises:
        SimulatorError: of kind `compile`, if the source does not compile for another reason.
    """
    kernel = launch.kernel
    try:
        _, block = launch_shape(kernel.entry, launch.grid, launch.block)
        static, most_threads = compiled(kernel)
        if static > SHARED_WITHOUT_OPT_IN:
            return (
                f"{kernel.entry}: its tiles take {static:,} bytes of shared memory, and a block "
                f"can declare at most {SHARED_WITHOUT_OPT_IN:,}; use smaller tiles."
            )
        shared_memory(kernel.entry, launch.shared_mem, static)
    except KernelError as error:
        return str(error)
    except SimulatorError as error:
        found = _REFUSED_BY_SOURCE.search(str(error))
        if error.kind != "compile" or not found:
            raise
        return f"{kernel.file.name} line {error.line} says: {found['why'].rstrip('.')}."
    threads = block[0] * block[1] * block[2]
    if threads > most_threads:
        return (
            f"{kernel.entry}: a block has {threads:,} threads, and its __launch_bounds__ promise "
            f"at most {most_threads:,}."
        )
    return None


def compiled(kernel) -> tuple[int, int]:
    """Bytes of static shared memory, and the threads that a block may have.

    Raises:
        SimulatorError: of kind `compile`.
    """
    from ..simulator.compile.compiler import compile_ptx
    from ..simulator.launch import prepare
    from ..simulator.ptx.ptxas import shared_places

    made = compile_ptx(kernel.code, kernel.options)
    mangled = made.entry(kernel.entry)
    prepared = prepare(made)
    prepared.need(mangled)  # the run needs it: one that was only asked about begins sooner
    module = prepared.module
    _, static, _ = shared_places(module, mangled)
    return static, module.functions[mangled].bounds.get("maxntid", MAX_THREADS)
