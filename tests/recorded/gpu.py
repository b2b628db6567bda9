"""Run a case on the GPU at hand through CuPy."""

from __future__ import annotations

import numpy as np

from .cases import Case
from .nvrtc_check import include_folders


def launch(case: Case) -> list[np.ndarray]:
    """What the kernel left in its output arrays. Raises what CuPy raises."""
    import cupy as cp

    arguments = [cp.asarray(a) if isinstance(a, np.ndarray) else a for a in case.make_args()]
    options = case.options
    if "#include" in case.code:
        options += tuple(f"-I{folder}" for folder in include_folders())
    kernel = cp.RawKernel(case.code, case.entry, options=options)
    kernel(case.grid, case.block, tuple(arguments), shared_mem=case.shared_mem)
    cp.cuda.runtime.deviceSynchronize()
    return [cp.asnumpy(arguments[i]) for i in case.outputs]


def describe() -> dict[str, str]:
    """Names and versions of the GPU and of the software that ran."""
    import datetime
    import subprocess

    import cupy as cp

    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        driver = (
            subprocess.run(query, capture_output=True, text=True, timeout=30)
            .stdout.split("\n")[0]
            .strip()
        )
    except (OSError, subprocess.TimeoutExpired):
        driver = "unknown"
    return {
        "gpu": cp.cuda.runtime.getDeviceProperties(0)["name"].decode(),
        "compute_capability": cp.cuda.Device().compute_capability,
        "driver": driver,
        "cuda_driver": str(cp.cuda.runtime.driverGetVersion()),
        "cuda_runtime": str(cp.cuda.runtime.runtimeGetVersion()),
        "nvrtc": ".".join(map(str, cp.cuda.nvrtc.getVersion())),
        "cupy": cp.__version__,
        "numpy": np.__version__,
        "date": datetime.date.today().isoformat(),
    }
