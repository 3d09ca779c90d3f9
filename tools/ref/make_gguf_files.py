#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes small GGUF files with the `gguf` package's writer: the corpus of tests/fuzz/fuzz_gguf.c and the good files of tests/unit/store/test_gguf.c.

    make_gguf_files.py DIR
"""

import sys
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType as T, GGUFValueType as V, GGUFWriter, quants


def write(path: Path, alignment: int | None, kinds: bool, types: list[T]) -> None:
    w = GGUFWriter(str(path), "llama")
    if alignment:
        w.add_custom_alignment(alignment)
    if kinds:
        w.add_key_value("a.u8", 200, V.UINT8)
        w.add_key_value("a.i8", -100, V.INT8)
        w.add_key_value("a.u16", 60000, V.UINT16)
        w.add_key_value("a.i16", -30000, V.INT16)
        w.add_key_value("a.u32", 4000000000, V.UINT32)
        w.add_key_value("a.i32", -2000000000, V.INT32)
        w.add_key_value("a.f32", 0.5, V.FLOAT32)
        w.add_key_value("a.bool", True, V.BOOL)
        w.add_key_value("a.u64", 2**63 + 1, V.UINT64)
        w.add_key_value("a.i64", -(2**62), V.INT64)
        w.add_key_value("a.f64", -0.1, V.FLOAT64)
        w.add_array("a.strings", ["", "b", "ccc"])
        w.add_array("a.floats", [1.5, -2.0])
        w.add_array("a.nested", [[1, 2], [3]])
    rng = np.random.default_rng(1)
    for t in types:
        x = rng.standard_normal((3, 64), dtype=np.float32)
        w.add_tensor(f"t.{t.name}", x if t == T.F32 else quants.quantize(x, t), raw_dtype=t)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def main() -> None:
    out = Path(sys.argv[1])
    write(out / "kinds.gguf", None, True, [T.F32, T.Q8_0])
    write(out / "align.gguf", 64, False, [T.F16, T.Q4_0, T.Q5_1])
    write(out / "empty.gguf", None, False, [])


if __name__ == "__main__":
    main()
