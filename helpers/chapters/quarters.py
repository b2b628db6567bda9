"""P^T G as tensor cores make it, from quarters of tiles in any order and turned or not."""

import numpy as np


def by_quarters(
    P: np.ndarray,
    G: np.ndarray,
    order: tuple[int, ...] = (0, 2, 1, 3),
    turned: str = "PG",
    pairs: tuple[int, ...] = (0, 1, 2, 3),
) -> np.ndarray:
    """D = P^T G, made of tiles whose quarters come as `ldmatrix` brings them.

    Args:
        P: of shape (m, n).
        G: of shape (m, 64).
        order: the quarters of P's tile in the registers of A.
        turned: of which of the two each quarter is transposed.
        pairs: the quarters of G's tile for the first 8 columns, and for the last.
    """
    p, g = (_quarters(x, name in turned) for name, x in (("P", P), ("G", G)))
    A = np.block([[p[order[0]], p[order[2]]], [p[order[1]], p[order[3]]]])
    # A register of B holds neighbours of a column: as if transposed quarters were multiplied.
    g = [x.swapaxes(2, 3) for x in g]
    B = np.block([[g[pairs[0]], g[pairs[2]]], [g[pairs[1]], g[pairs[3]]]])
    D = np.einsum("qkab,qcbd->kacd", A, B)
    return D.reshape(-1, G.shape[1])[: P.shape[1]]


def _quarters(x: np.ndarray, turned: bool) -> list[np.ndarray]:
    """The quarters of all tiles of 16 x 16, [row of tiles, column of tiles, 8, 8] each."""
    rows, columns = (-(-size // 16) for size in x.shape)
    padded = np.zeros((16 * rows, 16 * columns))
    padded[: x.shape[0], : x.shape[1]] = x
    tiles = padded.reshape(rows, 16, columns, 16).swapaxes(1, 2)
    first, last = slice(0, 8), slice(8, 16)
    found = [tiles[:, :, r, c] for c in (first, last) for r in (first, last)]
    return [q.swapaxes(2, 3) if turned else q for q in found]
