"""Run a case on the GPU at hand through CuPy."""

from __future__ import annotations

import datetime
import importlib.util
import subprocess
from pathlib import Path

import numpy as np

from .cases import Case


def include_folders() -> list[str]:
    """CUDA header folders: those of the installed wheels, then the toolkit's."""
    spec = importlib.util.find_spec("nvidia")
    wheels = [Path(p) / "cu13" / "include" for p in spec.submodule_search_locations] if spec else []
    folders = [*wheels, Path("/usr/local/cuda/include")]
    return [str(folder) for folder in folders if (folder / "cuda_fp16.h").exists()]


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
