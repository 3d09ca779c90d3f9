#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/unit/tensor/quant/encoded.bin: numbers, and the blocks that others make of them.

    make_quant_encode_goldens.py FILE LIBGGML

F16, BF16 and the types of 32 numbers: blocks of the `gguf` package's quantize, which the encoders have to equal. Q4_K and Q6_K, which the
package cannot make: those of ggml's own quantiser (LIBGGML: libggml-base.so of a llama.cpp build), whose error is the bar.
Records, little-endian: u32 id, u32 blocks, u32 block bytes, u32 numbers a block, the numbers as f32, the blocks.
"""

import ctypes
import struct
import sys

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as T
from gguf.quants import quantize

EXACT = [T.F16, T.BF16, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0]
SEARCHED = [T.Q4_K, T.Q6_K]


def edges(n: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Blocks of zeros, one number, equal extremes of both signs, ties of the rounding, the least and the largest scales. None under them:
    there the package casts infinities to integers, which is what the processor likes."""
    one = np.zeros(n)
    one[n // 3] = -3.25
    tie = np.arange(n) % 9 - 4.0
    halves = (np.arange(n) % 15 - 7) + 0.5
    return [np.zeros(n), one, tie, -tie, halves, np.full(n, 0.7), np.full(n, -0.7), rng.normal(0, 1e-7, n), rng.normal(0, 3e4, n).clip(-6e4, 6e4),
            rng.exponential(1, n) + 5, np.where(np.arange(n) == 5, 1000.0, rng.normal(0, 1e-3, n))]


def singles(t: T, rng: np.random.Generator) -> np.ndarray:
    """Numbers around the halfway points of a 16-bit type, subnormals and both zeros."""
    mantissa = 10 if t == T.F16 else 7
    base = rng.normal(0, 1, 200) * 10.0 ** rng.integers(-6, 4, 200)
    steps = np.round(np.abs(base) / 2.0 ** np.floor(np.log2(np.abs(base))) * 2**mantissa)
    ties = (steps + 0.5) / 2**mantissa * 2.0 ** np.floor(np.log2(np.abs(base))) * np.sign(base)
    return np.concatenate([base, ties, ties * (1 + 2.0**-22), ties * (1 - 2.0**-22), [0.0, -0.0, 2.0**-24, 2.0**-25, 3 * 2.0**-25, -(2.0**-26), 65504, -65519]])


def numbers_of(t: T, n: int, rng: np.random.Generator) -> np.ndarray:
    if n == 1:
        return singles(t, rng).astype(np.float32).reshape(-1, 1)
    if t in SEARCHED:
        rows = [rng.normal(0, 0.02, n) for _ in range(8)] + [rng.standard_t(4, n) * 0.02 for _ in range(8)]
        rows += [rng.uniform(-1, 1, n), rng.exponential(1, n), rng.normal(0, 1, n) * np.repeat(10.0 ** rng.uniform(-3, 0, n // 32), 32)]
    else:
        rows = edges(n, rng) + [rng.normal(0, 0.02, n) for _ in range(20)]
    return np.array(rows, np.float32)


def blocks_of_ggml(x: np.ndarray, t: T, path: str) -> np.ndarray:
    g = ctypes.CDLL(path)
    g.ggml_quantize_chunk.restype = ctypes.c_size_t
    g.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    out = np.zeros((len(x), GGML_QUANT_SIZES[t][1]), np.uint8)
    g.ggml_quantize_chunk(int(t), x.ctypes.data, out.ctypes.data, 0, len(x), x.shape[1], None)
    return out


def main() -> None:
    rng = np.random.default_rng(66)
    out = b""
    for t in EXACT + SEARCHED:
        n, size = GGML_QUANT_SIZES[t]
        x = numbers_of(t, n, rng)
        with np.errstate(all="ignore"):
            raw = blocks_of_ggml(x, t, sys.argv[2]) if t in SEARCHED else np.ascontiguousarray(quantize(x, t)).view(np.uint8)
        out += struct.pack("<4I", int(t), len(x), size, n) + x.astype("<f4").tobytes() + raw.tobytes()
    with open(sys.argv[1], "wb") as f:
        f.write(out)


if __name__ == "__main__":
    main()
