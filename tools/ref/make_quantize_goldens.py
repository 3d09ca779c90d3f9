#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/quantize: GGUF files that llama.cpp's own converter makes of tiny models, which `lath quantize` has to equal tensor by tensor,
and the models of it that tests/golden/decoder does not have: rows that are whole blocks, Gemma whose scores are scaled as files take for granted,
delta nets with heads of sizes that llama.cpp opens. And of tests/golden/gguf the models with delta nets, which the converter puts into another order: what the
reference gives for the directory is what they have to give.

    make_quantize_goldens.py LLAMA_CPP      the folder of llama.cpp's sources (the sdist of llama-cpp-python has it as vendor/llama.cpp)
    make_quantize_goldens.py LLAMA_CPP --seeds DIR      tests/fuzz/corpus/fuzz_gguf_model: the smallest such models with delta nets

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
import hybrid_cases  # noqa: E402
import make_decoder_goldens as decoders  # noqa: E402
from decoder_cases import Case  # noqa: E402
from hybrid_cases import FULL, LINEAR, Hybrid  # noqa: E402
from st_goldens import Random  # noqa: E402

sys.path[:0] = [sys.argv[1], f"{sys.argv[1]}/gguf-py"]
import gguf  # noqa: E402
from conversion import get_model_class  # noqa: E402
from conversion.base import ModelBase, ModelType, TextModel, get_model_architecture  # noqa: E402

import make_gguf_models as gguf_models  # noqa: E402

OUT = refcommon.GOLDEN / "quantize"
HYBRIDS = ("Qwen3_5ForCausalLM", "Qwen3_5MoeForCausalLM", "Qwen3NextForCausalLM")
WIDE = {"hidden_size": 64, "head_dim": 32, "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 32}
# Value heads of half a block, in another order in the file; sizes of heads that llama.cpp opens, too.
DELTA = {"hidden_size": 32, "head_dim": 16, "num_attention_heads": 2, "num_key_value_heads": 1, "num_hidden_layers": 2, "layer_types": [LINEAR, FULL],
         "linear_num_key_heads": 2, "linear_num_value_heads": 6, "linear_key_head_dim": 16, "linear_value_head_dim": 16,
         "intermediate_size": 32}
TURNS = {"rope_parameters": {"rope_theta": 300.0, "rope_type": "default", "partial_rotary_factor": 0.5, "mrope_section": [2, 1, 1], "mrope_interleaved": True}}
EXPERTS = {"num_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32}
MODELS = [
    Case("llama_blocks", decoder_cases.llama(**WIDE, num_hidden_layers=2, rope_scaling=decoder_cases.LLAMA3), dtype="bfloat16"),
    Case("gemma2_blocks", decoder_cases.gemma2(**WIDE, query_pre_attn_scalar=32, num_hidden_layers=2), dtype="bfloat16"),
    Case("gemma3_blocks", decoder_cases.gemma3(**WIDE, query_pre_attn_scalar=32, sliding_window_pattern=3), dtype="bfloat16"),
    Hybrid("qwen3_5_blocks", hybrid_cases.text(**DELTA, **TURNS), dtype="bfloat16"),
    Hybrid("qwen3_5_moe_blocks", decoder_cases.drop(hybrid_cases.moe(**DELTA, **TURNS, **EXPERTS, tie_word_embeddings=True), "intermediate_size"),
           dtype="bfloat16", fused=True),
    Hybrid("qwen3_next_blocks", hybrid_cases.following(**DELTA, **EXPERTS, partial_rotary_factor=0.5, tie_word_embeddings=True), dtype="bfloat16"),
]
TYPES = {"f32": gguf.LlamaFileType.ALL_F32, "f16": gguf.LlamaFileType.MOSTLY_F16, "bf16": gguf.LlamaFileType.MOSTLY_BF16, "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0}
FILES = {
    "quantize/llama_blocks": "q8_0", "quantize/gemma2_blocks": "q8_0", "quantize/gemma3_blocks": "q8_0",
    "decoder/llama3_scaling_tied": "f16", "decoder/llama_linear_biases": "f32", "decoder/mistral_plain_tied": "bf16", "decoder/qwen2_tied": "q8_0",
    "decoder/qwen3_yarn_tied": "f16", "decoder/phi3_longrope": "f32",
    "decoder/qwen3_moe": "bf16", "quantize/qwen3_5_blocks": "q8_0", "quantize/qwen3_5_moe_blocks": "q8_0", "quantize/qwen3_next_blocks": "q8_0",
}
# Models that are read, and whether with the blocks that predict further tokens.
READ = {"decoder/qwen3_5_weak_decay": ("f32", False), "decoder/qwen3_5_moe_with_images": ("bf16", True), "quantize/qwen3_next_blocks": ("bf16", False)}


def make_model(case: Case, at: Path) -> None:
    at.mkdir(parents=True, exist_ok=True)
    refcommon.write_json(at / "config.json", case.file_config())
    weights = decoders.file_weights(decoders.random_weights(case, at, Random(case.name, case.dtype)), getattr(case, "fused", False))
    save_file({n: w if n.endswith("A_log") else w.to(getattr(torch, case.dtype)) for n, w in weights.items()}, at / "model.safetensors", metadata={"format": "pt"})
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(refcommon.GOLDEN / "decoder/llama2" / name, at / name)


def convert(directory: Path, kind: str, out: Path, further: bool = False) -> None:
    hparams = ModelBase.load_hparams(directory, False)
    model = get_model_class(get_model_architecture(hparams, ModelType.TEXT))
    model.no_mtp = not further
    with torch.inference_mode(), tempfile.TemporaryDirectory() as tmp:
        at, file = Path(tmp) / directory.name, Path(tmp) / "model.gguf"
        shutil.copytree(directory, at)
        # Of Gemma 3 it keeps the rows of tokens only: all are.
        vocab = hparams.get("text_config", hparams)["vocab_size"]
        refcommon.write_json(at / "tokenizer.json", {"model": {"vocab": {str(i): i for i in range(vocab)}}, "added_tokens": []})
        model(at, TYPES[kind], file, eager=True).write()
        shutil.copy(file, out)


def convert_to_read(name: str, kind: str, further: bool) -> None:
    """With the tokens of the other files of tests/golden/gguf, and with what the reference gives where no other directory has it."""
    directory, out = refcommon.GOLDEN / name, refcommon.GOLDEN / "gguf" / Path(name).name
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    convert(directory, kind, out / "model.gguf", further)
    if not (directory / "expected.safetensors").exists():
        gguf_models.write_expected(directory, Random(name, "float32"), out)


def with_tokens() -> None:
    """Models with delta nets get the tokens of make_gguf_models.py."""
    for cls in {get_model_class(a) for a in HYBRIDS}:
        cls.set_vocab = lambda self: gguf_models.write_tokens(self.gguf_writer)


def seeds(out: Path) -> None:
    tiny = {"hidden_size": 8, "head_dim": 4, "num_attention_heads": 2, "num_key_value_heads": 1, "num_hidden_layers": 2, "layer_types": [LINEAR, FULL],
            "linear_num_key_heads": 1, "linear_num_value_heads": 2, "linear_key_head_dim": 4, "linear_value_head_dim": 4, "tie_word_embeddings": True}
    experts = {"num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 4, "shared_expert_intermediate_size": 4}
    for case in (Hybrid("qwen3_5", hybrid_cases.text(**tiny, intermediate_size=8)),
                 Hybrid("qwen3_next", hybrid_cases.following(**tiny, **experts, partial_rotary_factor=0.5))):
        with tempfile.TemporaryDirectory() as tmp:
            at = Path(tmp) / case.name
            make_model(case, at)
            convert(at, "f32", out / f"{case.name}.gguf")


def main() -> None:
    if sys.argv[2:3] == ["--seeds"]:
        with_tokens()
        seeds(Path(sys.argv[3]))
        return
    OUT.mkdir(exist_ok=True)
    for case in MODELS:
        make_model(case, OUT / case.name)
    for cls in {get_model_class(a) for a in ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM", "Gemma2ForCausalLM", "Gemma3ForCausalLM", "Qwen3MoeForCausalLM", "Phi3ForCausalLM", *HYBRIDS)}:
        cls.set_vocab = TextModel._set_vocab_none
    for name, kind in FILES.items():
        convert(refcommon.GOLDEN / name, kind, OUT / f"{Path(name).name}.{kind}.gguf")
        print(name, kind)
    with_tokens()
    for name, (kind, further) in READ.items():
        convert_to_read(name, kind, further)
        print(name, kind)


if __name__ == "__main__":
    main()
