"""Plausible wrong answers to the exercises of chapters 06 to 09."""

from __future__ import annotations

from exercise_answers import Wrong

_XOR_STORE = "s_K[ty][tx ^ ty] = element;"
_XOR_LOAD = "s_K[tx][k ^ tx];"
_MASK = "            if (key + j >= n) score = minus_infinity();\n"
_CORRECT_O = """        #pragma unroll
        for (int c = 0; c < HEAD_DIM; c++) r_O[c] *= correction;
"""
_WAIT = "    cp_async_commit();\n    cp_async_wait<0>();\n    __syncthreads();\n"
_PLACE_V = "s_V + place(16 * k + lane % 16, j + lane / 16)"
_PLACE_O = "s_P + place(row, j) + 2 * (lane % 4)"
_P_IS_INSIDE = "i + ty < N && first_row + tx < N"
_P = "inside ? P[(i + ty) * N + first_row + tx] : 0.0f"
_BARRIER = "    __syncthreads();  // the tile is whole before any thread reads what others copied\n"
_SUM = "s_P[k][ty] * s_dO[k][tx]"

WRONG: dict[str, tuple[Wrong, ...]] = {
    "06_transpose": (
        Wrong(
            "the load is scattered in turn",
            (
                (
                    "first_row + ty < N && first_col + tx < d",
                    "first_row + tx < N && first_col + ty < d",
                ),
                (
                    "s_K[ty][tx] = K[(first_row + ty) * d + first_col + tx];",
                    "s_K[tx][ty] = K[(first_row + tx) * d + first_col + ty];",
                ),
            ),
            "goal",
            ("global load sectors", "Let tx run along rows"),
        ),
        Wrong(
            "the tile is not turned",
            (("&s_K[tx][ty]", "&s_K[ty][tx]"),),
            "right",
            ("elements of KT",),
        ),
        Wrong(
            "the tile stays in its place",
            (
                ("row = first_col + ty", "row = first_row + ty"),
                ("col = first_row + tx", "col = first_col + tx"),
            ),
            "right",
            ("elements of KT",),
        ),
        Wrong(
            "rows of KT are d long",
            (("KT[row * N", "KT[row * d"),),
            "right",
            ("out-of-bounds", "KT["),
        ),
        Wrong(
            "no barrier",
            ((_BARRIER, ""),),
            "no race",
            ("s_K", "__syncthreads()"),
        ),
        Wrong(
            "atomics in place of stores",
            (
                ("row = first_col + ty", "row = first_col + tx"),
                ("col = first_row + tx", "col = first_row + ty"),
                ("&s_K[tx][ty]", "&s_K[ty][tx]"),
                ("KT[row * N + col] = *element", "atomicExch(&KT[row * N + col], *element)"),
            ),
            "goal",
            ("atomic operations",),
        ),
    ),
    "06_gradient": (
        Wrong(
            "a thread copies down a column",
            (
                (_P_IS_INSIDE, "i + tx < N && row < N"),
                (_P, "inside ? P[(i + tx) * N + row] : 0.0f"),
                (_SUM, "s_P[ty][k] * s_dO[k][tx]"),
            ),
            "goal",
            ("global load sectors",),
        ),
        Wrong(
            "P is not transposed",
            ((_SUM, "s_P[ty][k] * s_dO[k][tx]"),),
            "right",
            ("elements of dV",),
        ),
        Wrong(
            "rows of P past the last one",
            ((_P_IS_INSIDE, "first_row + tx < N"),),
            "right",
            ("out-of-bounds", "P["),
        ),
        Wrong(
            "another row of P", ((_SUM, "s_P[k][tx] * s_dO[k][tx]"),), "right", ("elements of dV",)
        ),
        Wrong(
            "columns of P past the last one",
            ((_P_IS_INSIDE, "i + ty < N"),),
            "right",
            ("out-of-bounds", "P["),
        ),
    ),
    "07_padding": (
        Wrong("an even pitch", (("pitch = 33;", "pitch = 34;"),), "goal", ("bank conflicts",)),
        Wrong(
            "a float4 of padding", (("pitch = 33;", "pitch = 36;"),), "goal", ("bank conflicts",)
        ),
        Wrong("rows that overlap", (("pitch = 33;", "pitch = 31;"),), "right", ("elements of KT",)),
        Wrong(
            "more than there is room for", (("pitch = 33;", "pitch = 37;"),), "right", ("shared",)
        ),
        Wrong(
            "the conflict has moved to the store",
            (
                ("pitch = 33;", "pitch = 32;"),
                ("s_K[ty * pitch + tx]", "s_K[tx * pitch + ty]"),
                ("= s_K[tx * pitch + ty]", "= s_K[ty * pitch + tx]"),
            ),
            "goal",
            ("shared store bank conflicts",),
        ),
        Wrong(
            "at one size",
            (("pitch = 33;", "pitch = N == 64 ? 33 : 32;"),),
            "goal",
            ("With N = 6", "bank conflicts"),
        ),
        Wrong(
            "copies past the counters",
            (
                ("pitch = 33;", "pitch = 32;"),
                (
                    "s_K[ty * pitch + tx] = K[(first_row + ty) * d + first_col + tx];",
                    'asm volatile("cp.async.ca.shared.global [%0], [%1], 4; cp.async.wait_all;" ::'
                    ' "r"((unsigned)__cvta_generic_to_shared(&s_K[tx * pitch + ty])),'
                    ' "l"(&K[(first_row + ty) * d + first_col + tx]) : "memory");',
                ),
                ("= s_K[tx * pitch + ty]", "= s_K[ty * pitch + tx]"),
            ),
            "goal",
            ("cp.async",),
        ),
    ),
    "07_xor": (
        Wrong("only the store", ((_XOR_LOAD, "s_K[tx][k];"),), "right", ("elements of S",)),
        Wrong(
            "neither",
            ((_XOR_STORE, "s_K[ty][tx] = element;"), (_XOR_LOAD, "s_K[tx][k];")),
            "goal",
            ("shared load bank conflicts",),
        ),
        Wrong(
            "four permutations",
            (
                (_XOR_STORE, "s_K[ty][tx ^ (ty % 4)] = element;"),
                (_XOR_LOAD, "s_K[tx][k ^ (tx % 4)];"),
            ),
            "goal",
            ("shared load bank conflicts",),
        ),
        Wrong(
            "padding",
            (
                ("float s_K[16][16];", "float s_K[16][17];"),
                (_XOR_STORE, "s_K[ty][tx] = element;"),
                (_XOR_LOAD, "s_K[tx][k];"),
            ),
            "goal",
            ("bytes of shared memory",),
        ),
        Wrong(
            "transposed on store",
            ((_XOR_STORE, "s_K[tx][ty] = element;"), (_XOR_LOAD, "s_K[k][tx];")),
            "goal",
            ("shared store bank conflicts",),
        ),
    ),
    "07_patch": (
        Wrong("a word of padding", (("pitch = 20;", "pitch = 17;"),), "right", ("multiple of 16",)),
        Wrong(
            "no padding", (("pitch = 20;", "pitch = 16;"),), "goal", ("shared load bank conflicts",)
        ),
        Wrong(
            "two float4 of padding", (("pitch = 20;", "pitch = 24;"),), "goal", ("bank conflicts",)
        ),
        Wrong(
            "float by float",
            (
                ("pitch = 20;", "pitch = 17;"),
                (
                    "r_Q[n] = *(const float4*)&s_Q[(ty + 8 * n) * pitch + k];",
                    "const float* a = &s_Q[(ty + 8 * n) * pitch + k];\n"
                    "r_Q[n] = make_float4(a[0], a[1], a[2], a[3]);",
                ),
                (
                    "r_K[n] = *(const float4*)&s_K[(tx + 8 * n) * pitch + k];",
                    "const float* b = &s_K[(tx + 8 * n) * pitch + k];\n"
                    "r_K[n] = make_float4(b[0], b[1], b[2], b[3]);",
                ),
            ),
            "goal",
            ("shared load instructions",),
        ),
        Wrong(
            "rows of another thread",
            (("(tx + 8 * n)", "(4 * tx + n)"),),
            "right",
            ("elements of S",),
        ),
        Wrong(
            "past the tile of Q",
            (
                (
                    "r_Q[n] = *(const float4*)&s_Q[(ty + 8 * n) * pitch + k];",
                    "const float* q = &Q[(block_row + ty + 8 * n) * d + i + k];\n"
                    "float* r = &r_Q[n].x;\n"
                    "for (int e = 0; e < 4; e++)\n"
                    "r[e] = block_row + ty + 8 * n < N && i + k + e < d ? q[e] : 0.0f;",
                ),
            ),
            "goal",
            ("global load sectors",),
        ),
    ),
    "08_online": (
        Wrong("no mask", ((_MASK, ""),), "right", ("n = 13", "elements of O")),
        Wrong("O is not corrected", ((_CORRECT_O, ""),), "right", ("n = 65", "elements of O")),
        Wrong(
            "the sum is not corrected",
            (("        row_sum *= correction;\n", ""),),
            "right",
            ("n = 65", "elements of O"),
        ),
        Wrong(
            "the other way round",
            (("expf(row_max - new_max)", "expf(new_max - row_max)"),),
            "right",
            ("every one of them is NaN",),
        ),
        Wrong(
            "corrected after the maximum was replaced",
            (
                ("        row_max = new_max;\n", ""),
                (
                    "        const float correction",
                    "        row_max = new_max;\n        const float correction",
                ),
            ),
            "right",
            ("n = 65", "elements of O"),
        ),
        Wrong(
            "a constant in place of the maximum",
            (("float new_max = row_max;", "float new_max = 30.0f;"),),
            "right",
            ("NaN",),
        ),
        Wrong(
            "past the end of registers",
            (("c < HEAD_DIM; c++) r_O[c] *=", "c <= HEAD_DIM; c++) r_O[c] *="),),
            "right",
            ("line 65", "out-of-bounds", "local arrays"),
        ),
        Wrong(
            "a small weight in place of none",
            (("score = minus_infinity();", "score = -20.0f;"),),
            "right",
            ("elements of O",),
        ),
    ),
    "08_copies": (
        Wrong("no wait", (("    cp_async_wait<0>();\n", ""),), "no race", ("cp.async",)),
        Wrong("no group", (("    cp_async_commit();\n", ""),), "no race", ("cp.async",)),
        Wrong(
            "the wait comes first",
            ((_WAIT, "    cp_async_wait<0>();\n    cp_async_commit();\n    __syncthreads();\n"),),
            "no race",
            ("cp.async",),
        ),
        Wrong(
            "no barrier",
            ((_WAIT, "    cp_async_commit();\n    cp_async_wait<0>();\n"),),
            "no race",
            ("s_K", "__syncthreads()"),
        ),
        Wrong(
            "rows past the last one",
            (("first + row < n ? 16 : 0", "16"),),
            "right",
            ("out-of-bounds", "K["),
        ),
        Wrong(
            "loads and stores",
            (
                (
                    "cp_async_16(&s_K[row][chunk], from, first + row < n ? 16 : 0);",
                    "s_K[row][chunk] = first + row < n ? *(const float4*)from"
                    " : make_float4(0, 0, 0, 0);",
                ),
            ),
            "goal",
            ("cp_async_16", "expected"),
        ),
        Wrong(
            "a byte too many",
            (("n ? 16 : 0", "n ? 17 : 0"),),
            "right",
            ("copies 16 bytes and is to read 17",),
        ),
    ),
    "08_fragments": (
        Wrong(
            "neighbouring registers",
            (("r_K[0], r_K[2]", "r_K[0], r_K[1]"), ("r_K[1], r_K[3]", "r_K[2], r_K[3]")),
            "right",
            ("elements of S",),
        ),
        Wrong(
            "rows and columns of a lane",
            (("lane / 4 + 8", "lane % 4 + 8"), ("2 * (lane % 4)", "2 * (lane / 4)")),
            "right",
            ("elements of S",),
        ),
        Wrong(
            "no lower half", (("lane / 4 + 8 * (i / 2)", "lane / 4"),), "right", ("elements of S",)
        ),
        Wrong(
            "no pairs",
            (("2 * (lane % 4) + i % 2", "lane % 4 + 4 * (i % 2)"),),
            "right",
            ("elements of S",),
        ),
        Wrong(
            "one product",
            (("        mma_m16n8k16<half>(r_S[1], r_Q, r_K[1], r_K[3]);\n", ""),),
            "right",
            ("elements of S",),
        ),
    ),
    "09_latin": (
        Wrong(
            "data are lost", (("row ^ col", "row * col % 8"),), "right", ("elements of columns",)
        ),
        Wrong(
            "pairs of rows alike",
            (("row ^ col", "(row / 2) ^ col"),),
            "goal",
            ("shared load bank conflicts",),
        ),
        Wrong(
            "all rows alike", (("row ^ col", "col ^ 5"),), "goal", ("shared load bank conflicts",)
        ),
        Wrong(
            "past the end of a row",
            (("row ^ col", "row + col"),),
            "right",
            ("out-of-bounds", "s_rows"),
        ),
        Wrong(
            "padding",
            (("float4 s_rows[8][8];", "float4 s_rows[8][9];"), ("row ^ col", "col")),
            "goal",
            ("bytes of shared memory",),
        ),
        Wrong(
            "the read path forgets it",
            (("s_rows[x][place(x, y)]", "s_rows[x][y]"),),
            "right",
            ("elements of columns",),
        ),
        Wrong(
            "without the tile",
            (
                ("s_rows[x][place(x, y)]", "rows[first + 8 * x + y]"),
                ("    s_rows[y][place(y, x)] = rows[first + 8 * y + x];\n", ""),
            ),
            "goal",
            ("put back", "s_rows"),
        ),
    ),
    "09_paths": (
        Wrong("half a swizzle", (("row % 8", "row % 4"),), "goal", ("shared load bank conflicts",)),
        Wrong(
            "no swizzle", (("chunk ^ (row % 8)", "chunk"),), "goal", ("shared load bank conflicts",)
        ),
        Wrong(
            "V is read as if it were not swizzled",
            ((_PLACE_V, "s_V + 64 * (16 * k + lane % 16) + 8 * (j + lane / 16)"),),
            "right",
            ("elements of O",),
        ),
        Wrong(
            "O is written as if it were not swizzled",
            ((_PLACE_O, "s_P + 64 * row + 8 * j + 2 * (lane % 4)"),),
            "right",
            ("elements of O",),
        ),
        Wrong(
            "the offset is swizzled too",
            ((_PLACE_O, "s_P + place(row, j + lane % 4)"),),
            "right",
            ("elements of O",),
        ),
        Wrong(
            "the whole row",
            (("chunk ^ (row % 8)", "chunk ^ row"),),
            "right",
            ("out-of-bounds", "s_V"),
        ),
        Wrong(
            "O past its tile",
            (
                (
                    "*to = pair;",
                    "if (first + row < m)\n"
                    "*(unsigned*)(O + (first + row) * 64 + 8 * j + 2 * (lane % 4)) = pair;",
                ),
                ("        if (first + row < m) {", "        if (false) {"),
            ),
            "goal",
            ("global store sectors",),
        ),
    ),
}
