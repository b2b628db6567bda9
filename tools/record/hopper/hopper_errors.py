"""Whether chapter 11's kernels are right on a GPU, and where they are not."""

from __future__ import annotations

import itertools

import numpy as np
from recorded.flash_cases import Variant

from helpers.problem import flash_inputs as flash
from tools.record import flash_device
from tools.record.hopper.hopper_cases import ALL, STEPS, asked, fits

MANY = ((2, 8, 4096, 128), (2, 8, 4000, 64))  # batch, heads, n, d: against PyTorch in fp32
REPEATS = 5


def check(name: str) -> dict:
    """Relative errors of one step or variant against float64, and of large sizes against fp32."""
    import cupy as cp

    (one,) = (one for one in ALL if one.name == name)
    rows, wrong, seed = [], 0, itertools.count(1)
    elements = ("half", "nv_bfloat16") if one in STEPS else ("half",)
    for d, element, causal, n, (b, h) in itertools.product(
        (64, 128), elements, (0, 1), (1, 17, 64, 100, 257, 512), ((1, 1), (2, 3))
    ):
        if not fits(one, d):
            continue
        own, layout = asked(one, causal), ("bhnd", "bnhd")[h // 2]
        arrays = flash.make_inputs(b, h, n, d, element, next(seed))
        if layout == "bnhd":
            arrays = tuple(np.ascontiguousarray(x.swapaxes(1, 2)) for x in arrays)
        out, untouched = flash_device._launch(own, arrays, layout)
        exact = flash.reference(*arrays, layout, bool(causal))
        out, exact = (
            (x if layout == "bhnd" else x.swapaxes(1, 2)) for x in (flash.to_float(out), exact)
        )
        error = flash_device._error(out, exact)
        rows.append({"element": element, "shape": [b, h, n, d], "causal": causal, "error": error})
        if error > flash.TOLERANCE[element] or not untouched:
            wrong += 1
            if wrong <= 3:
                print(f"WRONG: {name} {rows[-1]}, untouched {untouched}, {layout}", flush=True)
                print(_where(out, exact), flush=True)
    cp.cuda.runtime.deviceSynchronize()
    worst = max(row["error"] / flash.TOLERANCE[row["element"]] for row in rows)
    print(f"{name}: {len(rows)} cases, {wrong} wrong, worst {worst:.3f} of allowed", flush=True)
    large = [] if wrong else [_check_large(one, *case) for case in itertools.product(MANY, (0, 1))]
    wrong += sum(not row["right"] for row in large)
    return {"wrong": wrong, "worst_of_allowed": worst, "rows": rows, "large": large}


def _check_large(one: Variant, shape, causal: int) -> dict:
    """Several launches against PyTorch's attention of the same values in fp32."""
    import cupy as cp
    import torch

    if not fits(one, shape[3]):
        return {"right": True}
    arrays = flash.make_inputs(*shape, seed=7)
    Q, K, V = map(cp.asarray, arrays)
    out = cp.empty(Q.shape, Q.dtype)
    launch = asked(one, causal).launch_of(Q, K, V, out)
    tensors = [torch.from_numpy(x.astype(np.float32)).cuda() for x in arrays]
    exact = torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=bool(causal))
    exact = exact.double().cpu().numpy()
    found = []
    for _ in range(REPEATS):
        out.fill(np.nan)
        launch.run()
        found.append(cp.asnumpy(out))
    same = all(np.array_equal(found[0], each) for each in found[1:])
    error = max(flash_device._error(each.astype(np.float64), exact) for each in found)
    right = same and error < flash.TOLERANCE["half"]
    print(f"  {shape}, causal {causal}: error {error:.2e}, {'' if same else 'NOT '}the same "
          f"{REPEATS} times{'' if right else ', WRONG'}", flush=True)  # fmt: skip
    if not right:
        print(_where(found[-1].astype(np.float64), exact), flush=True)
    return {"shape": list(shape), "causal": causal, "error": error, "same": same, "right": right}


def _where(out: np.ndarray, exact: np.ndarray) -> str:
    """Where [b, h, n, d] differ: the first place, and the largest errors by rows and columns."""
    off = np.abs(out - exact)
    off[~np.isfinite(off)] = np.inf
    limit = 0.02 * np.abs(exact).max()
    bad = np.argwhere(off > limit)
    if not len(bad):
        return f"  none above {limit:.2g}"
    first = tuple(bad[0].tolist())
    n, d = out.shape[2:]
    rows = [f"{off[:, :, i : i + 16].max():.1e}" for i in range(0, min(n, 256), 16)]
    columns = [f"{off[..., i : i + 8].max():.1e}" for i in range(0, d, 8)]
    heads = [f"{off[i].max():.1e}" for i in np.ndindex(out.shape[:2])][:8]
    return (
        f"  {len(bad):,} of {off.size:,} above {limit:.2g}, {int(np.isinf(off).sum()):,} not finite; "
        f"first {first}: {out[first]:.5g} for {exact[first]:.5g}\n"
        f"  row {first[2]}, columns 0-15: {np.round(out[first[:3]][:16], 3).tolist()}\n"
        f"  in its place:             {np.round(exact[first[:3]][:16], 3).tolist()}\n"
        f"  by 16 rows: {' '.join(rows)}\n  by 8 columns: {' '.join(columns)}\n"
        f"  by head: {' '.join(heads)}"
    )
