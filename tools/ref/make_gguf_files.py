#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes small GGUF files with the `gguf` package's writer: the corpus of tests/fuzz/fuzz_gguf.c and the good files of tests/unit/store/test_gguf.c,
and the tokenizer of tests/golden/qwen3/embedding_old as a GGUF file carries it.

    make_gguf_files.py DIR           the corpus
    make_gguf_files.py DIR tokenizer DIR/qwen2.gguf
    make_gguf_files.py DIR written   DIR/written.gguf, which the writer has to make byte for byte (tests/unit/store/test_gguf_write.c)
"""

import json
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


def tokenizer(path: Path) -> None:
    golden = Path(__file__).resolve().parents[2] / "tests/golden/qwen3/embedding_old/tokenizer.json"
    t = json.loads(golden.read_text(encoding="utf-8"))
    tokens = {i: w for w, i in t["model"]["vocab"].items()} | {a["id"]: a["content"] for a in t["added_tokens"]}
    special = {a["id"] for a in t["added_tokens"] if a["special"]}
    w = GGUFWriter(str(path), "qwen3")
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("qwen2")
    w.add_token_list([tokens[i] for i in range(len(tokens))])
    w.add_token_types([3 if i in special else 1 for i in range(len(tokens))])
    w.add_token_merges([" ".join(m) for m in t["model"]["merges"]])
    w.add_eos_token_id(t["model"]["vocab"].get("<|endoftext|>", min(special)))
    w.add_add_bos_token(False)
    w.add_add_eos_token(True)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.close()


def written(path: Path) -> None:
    w = GGUFWriter(str(path), "llama")
    w.add_key_value("llama.block_count", 4000000000, V.UINT32)
    w.add_key_value("a.i32", -7, V.INT32)
    w.add_key_value("a.f32", 1e-5, V.FLOAT32)
    w.add_key_value("a.bool", True, V.BOOL)
    w.add_key_value("a.text", "h\u00e9", V.STRING)
    w.add_array("a.numbers", [1, -2, 3])
    w.add_array("a.scores", [0.5, -1.25])
    w.add_array("a.texts", ["", "one", "two words"])
    for name, shape, t, n in [("a.vector", (5,), T.F32, 20), ("a.matrix", (3, 34), T.Q8_0, 102), ("a.cube", (2, 2, 32), T.F16, 256)]:
        data = ((np.arange(n) * 7 + n) % 256).astype(np.uint8)
        kind = {T.F32: np.float32, T.F16: np.float16}.get(t, np.uint8)
        w.add_tensor(name, data.view(kind).reshape(shape), raw_dtype=t)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def main() -> None:
    out = Path(sys.argv[1])
    if sys.argv[2:] == ["written"]:
        written(out / "written.gguf")
        return
    if sys.argv[2:] == ["tokenizer"]:
        tokenizer(out / "qwen2.gguf")
        return
    write(out / "kinds.gguf", None, True, [T.F32, T.Q8_0])
    write(out / "align.gguf", 64, False, [T.F16, T.Q4_0, T.Q5_1])
    write(out / "empty.gguf", None, False, [])


if __name__ == "__main__":
    main()
