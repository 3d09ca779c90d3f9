#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/unit/tensor/quant/blocks.bin: blocks of every GGUF element type and what the `gguf` package's dequantize makes of them.

    make_quant_goldens.py FILE

Records, little-endian: u32 id, u32 blocks, u32 block bytes, u32 numbers a block, the blocks, the numbers as f32. Bytes are
random; scales take zeros, subnormals, the largest halves and infinity in turn. The package has no decoder of Q8_K, an
intermediate type of f32 scale, 256 int8 and sums: its numbers are scale * int8, as ggml's dequantize_row_q8_K has them.
"""

import struct
import sys

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as T
from gguf.quants import dequantize

# Byte offsets of the binary16 scales in a block.
HALVES = {T.F16: [0], T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0], T.Q2_K: [80, 82], T.Q3_K: [108],
          T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208], T.IQ4_NL: [0], T.IQ4_XS: [0]}
OTHERS = [T.F32, T.BF16, T.Q8_K, T.MXFP4]
EXTREME = [0x3C00, 0x0001, 0x8000, 0x7BFF, 0x83FF, 0x7C00]


def blocks_of(t: T, n: int, size: int, rng: np.random.Generator) -> np.ndarray:
    raw = rng.integers(0, 256, (n, size), dtype=np.uint8)
    for k, at in enumerate(HALVES.get(t, [])):
        for i in range(n):
            half = EXTREME[(i + k) % 6] if i < 6 else int(np.float16(rng.normal(0, 0.05)).view(np.uint16))
            raw[i, at:at + 2] = [half & 255, half >> 8]
    if t == T.Q8_K:
        raw[:, :4] = np.array([1.0, 1e-45, -0.0, 3e38, 1e-38, np.inf, 0.1][:n], "<f4").view(np.uint8).reshape(n, 4)
    if t == T.MXFP4:
        raw[:, 0] = [0, 1, 2, 127, 254, 255, 120][:n]
    return raw


def main() -> None:
    rng = np.random.default_rng(6)
    out = b""
    for t in sorted([*HALVES, *OTHERS]):
        numbers, size = GGML_QUANT_SIZES[t]
        n = 7
        raw = blocks_of(t, n, size, rng)
        with np.errstate(all="ignore"):
            if t == T.Q8_K:
                values = raw[:, :4].copy().view("<f4") * raw[:, 4:260].copy().view(np.int8).astype(np.float32)
            else:
                values = dequantize(raw, t)
        out += struct.pack("<4I", int(t), n, size, numbers) + raw.tobytes() + np.ascontiguousarray(values, "<f4").tobytes()
    with open(sys.argv[1], "wb") as f:
        f.write(out)


if __name__ == "__main__":
    main()
