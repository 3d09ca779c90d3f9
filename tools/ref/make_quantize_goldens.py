#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/quantize: GGUF files that llama.cpp's own converter makes of tiny models, which `lath quantize` has to equal tensor by tensor,
and the models of it that tests/golden/decoder does not have: rows that are whole blocks, Gemma whose scores are scaled as files take for granted.

    make_quantize_goldens.py LLAMA_CPP      the folder of llama.cpp's sources (the sdist of llama-cpp-python has it as vendor/llama.cpp)

The files are without tokenizer: the converter knows tokenizers by what they make of one text, and none of these.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import refcommon

refcommon.offline()

import torch  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

import decoder_cases  # noqa: E402
import make_decoder_goldens as decoders  # noqa: E402
from decoder_cases import Case  # noqa: E402
from st_goldens import Random  # noqa: E402

sys.path[:0] = [sys.argv[1], f"{sys.argv[1]}/gguf-py"]
import gguf  # noqa: E402
from conversion import get_model_class  # noqa: E402
from conversion.base import ModelBase, ModelType, TextModel, get_model_architecture  # noqa: E402

OUT = refcommon.GOLDEN / "quantize"
WIDE = {"hidden_size": 64, "head_dim": 32, "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 32}
MODELS = [
    Case("llama_blocks", decoder_cases.llama(**WIDE, num_hidden_layers=2, rope_scaling=decoder_cases.LLAMA3), dtype="bfloat16"),
    Case("gemma2_blocks", decoder_cases.gemma2(**WIDE, query_pre_attn_scalar=32, num_hidden_layers=2), dtype="bfloat16"),
    Case("gemma3_blocks", decoder_cases.gemma3(**WIDE, query_pre_attn_scalar=32, sliding_window_pattern=3), dtype="bfloat16"),
]
TYPES = {"f32": gguf.LlamaFileType.ALL_F32, "f16": gguf.LlamaFileType.MOSTLY_F16, "bf16": gguf.LlamaFileType.MOSTLY_BF16, "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0}
FILES = {
    "quantize/llama_blocks": "q8_0", "quantize/gemma2_blocks": "q8_0", "quantize/gemma3_blocks": "q8_0",
    "decoder/llama3_scaling_tied": "f16", "decoder/llama_linear_biases": "f32", "decoder/mistral_plain_tied": "bf16", "decoder/qwen2_tied": "q8_0",
    "decoder/qwen3_yarn_tied": "f16", "decoder/phi3_longrope": "f32",
    "decoder/qwen3_moe": "bf16",
}


def make_model(case: Case) -> None:
    at = OUT / case.name
    at.mkdir(parents=True, exist_ok=True)
    refcommon.write_json(at / "config.json", case.file_config())
    weights = decoders.file_weights(decoders.random_weights(case, at, Random(case.name, case.dtype)))
    save_file({n: w.to(getattr(torch, case.dtype)) for n, w in weights.items()}, at / "model.safetensors", metadata={"format": "pt"})
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(refcommon.GOLDEN / "decoder/llama2" / name, at / name)


def convert(directory: Path, kind: str, out: Path) -> None:
    hparams = ModelBase.load_hparams(directory, False)
    model = get_model_class(get_model_architecture(hparams, ModelType.TEXT))
    with torch.inference_mode(), tempfile.TemporaryDirectory() as tmp:
        at, file = Path(tmp) / directory.name, Path(tmp) / "model.gguf"
        shutil.copytree(directory, at)
        # Of Gemma 3 it keeps the rows of tokens only: all are.
        refcommon.write_json(at / "tokenizer.json", {"model": {"vocab": {str(i): i for i in range(hparams["vocab_size"])}}, "added_tokens": []})
        model(at, TYPES[kind], file, eager=True).write()
        shutil.copy(file, out)


def main() -> None:
    OUT.mkdir(exist_ok=True)
    for case in MODELS:
        make_model(case)
    for cls in {get_model_class(a) for a in ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM", "Gemma2ForCausalLM", "Gemma3ForCausalLM", "Qwen3MoeForCausalLM", "Phi3ForCausalLM")}:
        cls.set_vocab = TextModel._set_vocab_none
    for name, kind in FILES.items():
        convert(refcommon.GOLDEN / name, kind, OUT / f"{Path(name).name}.{kind}.gguf")
        print(name, kind)


if __name__ == "__main__":
    main()
