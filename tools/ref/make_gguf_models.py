#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/gguf/CASE/model.gguf and tests/golden/gguf_embed/FAMILY/CASE/model.gguf: tiny models as GGUF files, written by the `gguf` package and
named by its own table of tensors.

Most are the models of tests/golden/decoder in the form that llama.cpp's converters give them (rows of queries and keys permuted, norms of Gemma stored
as 1 + weight, factors of frequencies as a tensor), in F32: what the reference gives for the directory is what the file has to give. Cases with tensors
of blocks have an expected.safetensors of their own: what the reference gives for the numbers that the `gguf` package makes of the blocks.

Embedders are those of tests/golden/FAMILY with their own tokenizers.

    make_gguf_models.py [CASE...]      all cases when none is named
    make_gguf_models.py --seeds DIR    tests/fuzz/corpus/fuzz_gguf_model: the smallest models of some architectures
"""

import dataclasses
import json
import math
import shutil
import sys
import tempfile
from pathlib import Path

import refcommon

refcommon.offline()

import gguf  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from gguf import GGMLQuantizationType as T, quants  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

import make_decoder_goldens as decoders  # noqa: E402
import tiny_tokenizers as tiny  # noqa: E402
from decoder_cases import LLAMA3, VOCAB, Case, decoder, gemma3, granite, llama, longrope, phi3, qwen3_moe, smollm3  # noqa: E402
from st_goldens import Random  # noqa: E402

ARCHS = {"llama": "llama", "mistral": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "qwen3_moe": "qwen3moe",
         "gemma2": "gemma2", "gemma3_text": "gemma3", "phi3": "phi3", "granite": "granite", "smollm3": "smollm3", "bert": "bert", "nomic_bert": "nomic-bert"}
PERMUTED = {"llama", "granite", "smollm3"}

# Cases of tests/golden/decoder that a GGUF file can say. Left out: what no key or tensor stands for.
FROM_DECODERS = ("llama2", "llama3_scaling_tied", "llama_linear_biases", "llama_yarn", "mistral_window", "mistral_plain_tied",
                 "qwen2_tied", "qwen3_yarn_tied", "qwen3_bias_untied", "qwen3_moe", "gemma2_caps", "gemma2_default_caps",
                 "gemma3_pattern_linear", "gemma3_new_form_cap", "phi3_window", "phi3_longrope", "phi4_partial_tied",
                 "granite_factors", "granite_plain")


@dataclasses.dataclass
class Blocks:
    """A model with the type of each matrix, by what its name in the file ends with; other tensors are F32."""

    case: Case
    types: dict


SMALL = dict(hidden_size=64, intermediate_size=96, num_attention_heads=4, num_key_value_heads=2, head_dim=16)
LARGE = dict(hidden_size=256, intermediate_size=256, num_attention_heads=4, num_key_value_heads=2, head_dim=64)
BLOCKS = [
    Blocks(Case("smollm3_fourth_unturned", smollm3(num_hidden_layers=4, no_rope_layer_interval=4, no_rope_layers=[1, 1, 1, 0],
                                                   layer_types=["full_attention"] * 4, tie_word_embeddings=False), head=0.2), {}),
    Blocks(Case("types_of_32", llama(rope_theta=500.0, **SMALL)),
           {"token_embd": T.Q8_0, "output": T.Q5_0, "attn_q": T.Q4_0, "attn_k": T.Q4_1, "attn_v": T.Q5_1, "attn_output": T.IQ4_NL,
            "ffn_gate": T.F16, "ffn_up": T.BF16, "ffn_down": T.MXFP4}),
    Blocks(Case("types_of_256", llama(num_hidden_layers=1, rope_theta=500.0, **LARGE)),
           {"token_embd": T.Q6_K, "output": T.Q8_0, "attn_q": T.Q4_K, "attn_k": T.Q5_K, "attn_v": T.Q6_K, "attn_output": T.Q3_K,
            "ffn_gate": T.Q2_K, "ffn_up": T.IQ4_XS, "ffn_down": T.Q4_K}),
    Blocks(Case("qwen3_moe_blocks", qwen3_moe(num_hidden_layers=1, moe_intermediate_size=32, num_experts=5, num_experts_per_tok=2, **SMALL)),
           {"token_embd": T.Q8_0, "output": T.Q8_0, "attn_q": T.Q4_0, "attn_k": T.Q8_0, "attn_v": T.Q5_0, "attn_output": T.Q5_1,
            "ffn_gate_exps": T.Q4_0, "ffn_up_exps": T.Q5_0, "ffn_down_exps": T.Q8_0}),
    Blocks(Case("gemma3_tied_blocks", gemma3(num_hidden_layers=2, sliding_window_pattern=2, query_pre_attn_scalar=16,
                                             rope_theta=5e4, rope_local_base_freq=1e4,
                                             **(SMALL | {"num_attention_heads": 2, "num_key_value_heads": 1}))),
           {"token_embd": T.Q8_0, "attn_q": T.Q5_0, "attn_k": T.Q5_0, "attn_v": T.Q8_0, "attn_output": T.Q4_0, "ffn_gate": T.Q5_0,
            "ffn_up": T.Q5_0, "ffn_down": T.Q4_1}),
]
EMBEDDERS = ("bert/cls_norm_bge", "bert/mean_norm_gelu", "nomic_bert/v15", "qwen3/embedding_old")
# Where the halves of a block's scales are: types that the package only decodes.
SCALES = {T.Q2_K: (80, 82), T.Q3_K: (108,), T.Q4_K: (0, 2), T.Q5_K: (0, 2), T.Q6_K: (208,), T.IQ4_NL: (0,), T.IQ4_XS: (0,)}


# ------------------------------------------------------------------------------------------------------------ conventions

def permute(w: np.ndarray, heads: int) -> np.ndarray:
    """Rows of a head from halves to neighbouring pairs."""
    return w.reshape(heads, 2, -1, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def unpermute(w: np.ndarray, heads: int) -> np.ndarray:
    return w.reshape(heads, -1, 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def heads_of(config: dict, name: str) -> int | None:
    """The heads whose rows are permuted in the tensor of that name, if they are."""
    if config["arch"] not in PERMUTED:
        return None
    return next((n for part, n in (("q_proj.", config["num_attention_heads"]), ("k_proj.", config["num_key_value_heads"]))
                 if part in name), None)


def to_file(config: dict, name: str, value: np.ndarray) -> np.ndarray:
    heads = heads_of(config, name)
    if heads:
        return permute(value, heads)
    if "gemma" in config["arch"] and name.endswith("norm.weight"):
        value = value + 1
        # No key says another scale of the scores than the head's size.
        if name.endswith("q_norm.weight"):
            value = value * math.sqrt(config["head_dim"] / config["query_pre_attn_scalar"])
    if config["arch"] == "gemma2" and "q_proj" in name:
        value = value * math.sqrt(config["head_dim"] / config["query_pre_attn_scalar"])
    return value


def to_directory(config: dict, name: str, value: np.ndarray) -> np.ndarray:
    """Back again, for matrices of blocks."""
    heads = heads_of(config, name)
    return unpermute(value, heads) if heads else value


def split_experts(weights: dict) -> dict:
    """Back again."""
    out = {}
    for name, value in weights.items():
        if value.ndim != 3:
            out[name] = value
            continue
        base, leaf = name.split(".experts.")
        out |= {f"{base}.experts.{i}.{leaf}": part.contiguous() for i, part in enumerate(value)}
    return out


def joined_experts(weights: dict) -> dict:
    """Experts of a layer as one tensor."""
    out, experts = {}, {}
    for name, value in weights.items():
        if ".experts." not in name:
            out[name] = value
            continue
        base, rest = name.split(".experts.")
        experts.setdefault(f"{base}.experts.{rest.split('.', 1)[1]}", {})[int(rest.split(".")[0])] = value
    return out | {name: torch.stack([parts[i] for i in range(len(parts))]) for name, parts in experts.items()}


# ---------------------------------------------------------------------------------------------------------------- metadata

def rope_of(config: dict) -> dict:
    params = config.get("rope_parameters") or {}
    if "full_attention" in params:
        return params["full_attention"] | {"local": params["sliding_attention"]["rope_theta"]}
    out = dict(config.get("rope_scaling") or params)
    out["rope_type"] = out.get("rope_type", out.get("type", "default"))
    out.setdefault("rope_theta", params.get("rope_theta") or config.get("rope_theta") or 10000.0)
    if "rope_local_base_freq" in config:
        out["local"] = config["rope_local_base_freq"]
    return out


def magnitude(factor: float, scale: float) -> float:
    return 0.1 * scale * math.log(factor) + 1 if factor > 1 else 1.0


def write_rope(w: gguf.GGUFWriter, config: dict) -> None:
    rope = rope_of(config)
    kind, dim = rope["rope_type"], config["head_dim"]
    original = config.get("original_max_position_embeddings") or rope.get("original_max_position_embeddings")
    w.add_rope_freq_base(rope["rope_theta"])
    if "local" in rope and rope["local"] != 10000.0:
        w.add_rope_freq_base_swa(rope["local"])
    turning = int(dim * config.get("partial_rotary_factor", 1.0))
    if config["arch"] in ("llama", "phi3"):
        w.add_rope_dimension_count(turning)
    if kind == "linear":
        w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        w.add_rope_scaling_factor(rope["factor"])
    elif kind == "yarn":
        w.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        w.add_rope_scaling_factor(rope["factor"])
        w.add_rope_scaling_orig_ctx_len(original)
        if "mscale" in rope:
            w.add_rope_scaling_yarn_attn_factor(magnitude(rope["factor"], rope["mscale"]) / magnitude(rope["factor"], rope["mscale_all_dim"]))
            w.add_rope_scaling_yarn_beta_fast(rope["beta_fast"])
            w.add_rope_scaling_yarn_beta_slow(rope["beta_slow"])
    elif kind == "longrope":
        scale = config["max_position_embeddings"] / original
        w.add_rope_scaling_orig_ctx_len(original)
        w.add_rope_scaling_attn_factors(rope.get("attention_factor") or math.sqrt(1 + math.log(scale) / math.log(original)))
        w.add_tensor("rope_factors_long.weight", np.array(rope["long_factor"], np.float32))
        w.add_tensor("rope_factors_short.weight", np.array(rope["short_factor"], np.float32))
    elif kind == "llama3":
        w.add_tensor("rope_freqs.weight", llama3_factors(rope, dim))
    elif kind != "default":
        raise ValueError(kind)


def llama3_factors(rope: dict, dim: int) -> np.ndarray:
    low, high, length = rope["low_freq_factor"], rope["high_freq_factor"], rope["original_max_position_embeddings"]
    out = []
    for i in range(0, dim, 2):
        wavelength = 2 * math.pi * rope["rope_theta"] ** (i / dim)
        blend = (length / wavelength - low) / (high - low)
        out.append(1.0 if wavelength < length / high else rope["factor"] if wavelength > length / low
                   else 1 / ((1 - blend) / rope["factor"] + blend))
    return np.array(out, np.float32)


def write_keys(w: gguf.GGUFWriter, config: dict) -> None:
    kind = config["model_type"]
    w.add_context_length(config["max_position_embeddings"])
    w.add_embedding_length(config["hidden_size"])
    w.add_block_count(config["num_hidden_layers"])
    w.add_feed_forward_length(config["intermediate_size"])
    w.add_head_count(config["num_attention_heads"])
    if config["num_key_value_heads"] != config["num_attention_heads"]:
        w.add_head_count_kv([config["num_key_value_heads"]] * config["num_hidden_layers"] if kind == "qwen3"
                            else config["num_key_value_heads"])
    if kind != "phi3" and config["head_dim"] * config["num_attention_heads"] != config["hidden_size"] or "gemma" in kind:
        w.add_key_length(config["head_dim"])
        w.add_value_length(config["head_dim"])
    w.add_layer_norm_rms_eps(config["rms_norm_eps"])
    w.add_vocab_size(VOCAB)
    if config.get("sliding_window") and kind not in ("qwen2", "qwen3", "qwen3_moe"):
        w.add_sliding_window(config["sliding_window"])
    if kind == "gemma3_text":
        types = config.get("layer_types")
        w.add_sliding_window_pattern([t == "sliding_attention" for t in types] if types else config["sliding_window_pattern"])
    if config.get("attn_logit_softcapping"):
        w.add_attn_logit_softcapping(config["attn_logit_softcapping"])
    if config.get("final_logit_softcapping"):
        w.add_final_logit_softcapping(config["final_logit_softcapping"])
    if kind == "granite":
        w.add_logit_scale(config.get("logits_scaling", 1.0))
        w.add_attention_scale(config.get("attention_multiplier", 1.0))
        for key, add in (("residual_multiplier", w.add_residual_scale), ("embedding_multiplier", w.add_embedding_scale)):
            if key in config:
                add(config[key])
    if kind == "qwen3_moe":
        w.add_expert_count(config["num_experts"])
        w.add_expert_used_count(config["num_experts_per_tok"])
        w.add_expert_feed_forward_length(config["moe_intermediate_size"])


def write_tokens(w: gguf.GGUFWriter) -> None:
    """The entries of tiny.letters(), filled up to the embeddings' rows; models are run on ids."""
    vocab = tiny.letters()[0].get_vocab()
    tokens = sorted(vocab, key=vocab.get)
    tokens += [f"[PAD{i}]" for i in range(len(tokens), VOCAB)]
    w.add_tokenizer_model("llama")
    w.add_tokenizer_pre("default")
    w.add_token_list(tokens)
    w.add_token_scores([0.0] * VOCAB)
    w.add_token_types([2] + [3] * 2 + [1] * (VOCAB - 3))
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)
    w.add_unk_token_id(0)
    w.add_chat_template("{{ messages[0]['content'] }}")


# -------------------------------------------------------------------------------------------------------------------- files

def config_of(case_config: dict) -> dict:
    config = dict(case_config)
    config["arch"] = ARCHS[config["model_type"]]
    config.setdefault("head_dim", config["hidden_size"] // config["num_attention_heads"])
    return config


def file_name(names: gguf.TensorNameMap, name: str) -> str:
    stem, _, leaf = name.rpartition(".")
    if leaf not in ("weight", "bias"):
        stem, leaf = name, "weight"
    return f"{names.get_name(stem)}.{leaf}"


def write_model(config: dict, tensors: dict, path: Path) -> None:
    """tensors: name in the file to (numbers or blocks, type)."""
    w = gguf.GGUFWriter(str(path), config["arch"])
    w.add_type("model")
    write_keys(w, config)
    write_rope(w, config)
    write_tokens(w)
    for name, (value, kind) in tensors.items():
        w.add_tensor(name, np.ascontiguousarray(value), raw_dtype=kind)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def names_of(config: dict) -> gguf.TensorNameMap:
    arch = next(a for a, n in gguf.MODEL_ARCH_NAMES.items() if n == config["arch"])
    return gguf.get_tensor_name_map(arch, config["num_hidden_layers"])


def from_decoder(case: str, out: Path) -> None:
    at = refcommon.GOLDEN / "decoder" / case
    config = config_of(json.loads((at / "config.json").read_text(encoding="utf-8")))
    weights, names = joined_experts(load_file(at / "model.safetensors")), names_of(config)
    write_model(config, {file_name(names, n): (to_file(config, n, v.float().numpy()), T.F32) for n, v in weights.items()},
                out / "model.gguf")


def random_blocks(kind: T, shape: tuple, spread: float, rng) -> np.ndarray:
    """Any bits, under scales that give numbers of about that spread."""
    numbers, size = gguf.GGML_QUANT_SIZES[kind]
    raw = rng.integers(0, 256, (shape[0], shape[1] // numbers, size), dtype=np.uint8)

    def scale(value: float) -> None:
        for at in SCALES[kind]:
            d = (value * rng.uniform(0.5, 1.0, raw.shape[:2])).astype("<f2")
            raw[..., at:at + 2] = d.view(np.uint8).reshape(*raw.shape[:2], 2)

    scale(1.0)
    scale(spread / float(quants.dequantize(raw.reshape(shape[0], -1), kind).std()))
    return raw.reshape(shape[0], -1)


def write_expected(at: Path, rand: Random, out: Path) -> None:
    """What the reference gives for the directory."""
    prompts = [torch.from_numpy(rand.rng.integers(0, VOCAB, n)) for n in decoders.LENGTHS]
    expected: dict[str, torch.Tensor] = {}
    for i, ids in enumerate(prompts):
        seen: dict[str, torch.Tensor] = {}
        expected[f"p{i}.ids"] = ids.to(torch.int32)
        expected[f"p{i}.logits"] = decoders.logits(at, ids, seen=seen)
        if i == decoders.GREEDY:
            expected |= {f"p{i}.{name}": value for name, value in seen.items()}
    tokens, gaps = decoders.greedy(at, prompts[decoders.GREEDY])
    expected |= {"greedy.ids": tokens.to(torch.int32), "greedy.gaps": gaps}
    versions = refcommon.versions("torch", "transformers", "gguf")
    save_file({n: t.contiguous() for n, t in expected.items()}, out / "expected.safetensors",
              metadata={"reference": ", ".join(f"{k} {v}" for k, v in versions.items())})


def with_blocks(b: Blocks, out: Path) -> None:
    rand = Random(b.case.name, "float32")
    rng = np.random.default_rng(7)
    config = config_of(b.case.file_config())
    names, tensors = names_of(config), {}
    with tempfile.TemporaryDirectory() as tmp:
        at = Path(tmp)
        tok, tok_config = tiny.letters()
        (at / "tokenizer.json").write_text(tok.to_str() + "\n", encoding="utf-8")
        refcommon.write_json(at / "tokenizer_config.json", tok_config)
        refcommon.write_json(at / "config.json", b.case.file_config())
        weights = joined_experts(decoders.file_weights(decoders.random_weights(b.case, at, rand)))
        for name, value in weights.items():
            if b.types and value.ndim > 1 and "embed" not in name:  # the rules are for rows of about 20
                value = weights[name] = value * math.sqrt(20 / value.shape[-1])
            own = file_name(names, name)
            part = own.removesuffix(".weight").split(".")[-1]
            kind = b.types.get(part, T.F32) if value.ndim > 1 else T.F32
            x = to_file(config, name, value.numpy())
            if kind in SCALES:
                raw = random_blocks(kind, x.shape, float(x.std()), rng)
            else:
                raw = x if kind == T.F32 else quants.quantize(x, kind)
            tensors[own] = raw, kind
            if kind != T.F32:
                weights[name] = torch.from_numpy(to_directory(config, name, quants.dequantize(raw, kind)).copy())
        save_file({n: v.contiguous() for n, v in split_experts(weights).items()}, at / "model.safetensors", metadata={"format": "pt"})
        write_expected(at, rand, out)
    write_model(config, tensors, out / "model.gguf")


# ---------------------------------------------------------------------------------------------------------------- embedders

def usual_names(config: dict) -> dict:
    """nomic-bert's own fields under the names that the others have."""
    names = {"n_embd": "hidden_size", "n_head": "num_attention_heads", "n_inner": "intermediate_size", "n_layer": "num_hidden_layers",
             "n_positions": "max_position_embeddings", "layer_norm_epsilon": "layer_norm_eps", "rotary_emb_base": "rope_theta"}
    return {names.get(k, k): v for k, v in config.items()}


def write_wordpiece(w: gguf.GGUFWriter, t: dict) -> None:
    """Words begin with U+2581, what goes on with a word is bare."""
    vocab = sorted(t["model"]["vocab"], key=t["model"]["vocab"].get)
    special = {a["content"] for a in t["added_tokens"]}
    w.add_tokenizer_model("bert")
    w.add_tokenizer_pre("default")
    w.add_token_list([e if e in special else e[2:] if e.startswith("##") else "\u2581" + e for e in vocab])
    w.add_token_types([3 if e in special else 1 for e in vocab])
    w.add_token_type_count(2)
    for token, add in (("[UNK]", w.add_unk_token_id), ("[SEP]", w.add_sep_token_id), ("[PAD]", w.add_pad_token_id),
                       ("[CLS]", w.add_bos_token_id), ("[MASK]", w.add_mask_token_id)):
        add(vocab.index(token))


def write_bytelevel(w: gguf.GGUFWriter, t: dict) -> None:
    tokens = {i: word for word, i in t["model"]["vocab"].items()} | {a["id"]: a["content"] for a in t["added_tokens"]}
    special = {a["id"] for a in t["added_tokens"] if a["special"]}
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("qwen2")
    w.add_token_list([tokens[i] for i in range(len(tokens))])
    w.add_token_types([3 if i in special else 1 for i in range(len(tokens))])
    w.add_token_merges([" ".join(m) for m in t["model"]["merges"]])
    w.add_eos_token_id(next(a["id"] for a in t["added_tokens"] if a["content"] == "<|endoftext|>"))
    w.add_add_bos_token(False)
    w.add_add_eos_token(True)


def embedder(case: str, out: Path) -> None:
    at = refcommon.GOLDEN / case
    config = usual_names(json.loads((at / "config.json").read_text(encoding="utf-8")))
    expected = json.loads((at / "expected.json").read_text(encoding="utf-8"))
    config = config_of(config)
    config.setdefault("num_key_value_heads", config["num_attention_heads"])
    names, window = names_of(config), expected["max_tokens"]
    encoder = config["arch"] in ("bert", "nomic-bert")
    w = gguf.GGUFWriter(str(out / "model.gguf"), config["arch"])
    if encoder:
        w.add_context_length(window)
        w.add_embedding_length(config["hidden_size"])
        w.add_block_count(config["num_hidden_layers"])
        w.add_feed_forward_length(config["intermediate_size"])
        w.add_head_count(config["num_attention_heads"])
        w.add_layer_norm_eps(config["layer_norm_eps"])
        w.add_causal_attention(False)
        if "rope_theta" in config:
            w.add_rope_freq_base(config["rope_theta"])
    else:
        write_keys(w, config | {"max_position_embeddings": window})
        write_rope(w, config)
    w.add_pooling_type({"mean": gguf.PoolingType.MEAN, "cls": gguf.PoolingType.CLS, "lasttoken": gguf.PoolingType.LAST}[expected["pooling"]])
    t = json.loads((at / "tokenizer.json").read_text(encoding="utf-8"))
    (write_wordpiece if encoder else write_bytelevel)(w, t)
    for name, value in load_file(at / "model.safetensors").items():
        name = name.removeprefix("bert.")
        if name.startswith("pooler."):
            continue
        own = file_name(names, name if encoder or name.startswith("model.") else "model." + name)
        x = to_file(config, name, value.float().numpy())
        w.add_tensor(own, np.ascontiguousarray(x[:window] if own == "position_embd.weight" else x), raw_dtype=T.F32)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


# -------------------------------------------------------------------------------------------------------------------- seeds

TINY = dict(hidden_size=8, intermediate_size=8, num_attention_heads=2, num_key_value_heads=1, head_dim=4, num_hidden_layers=1)
SEEDS = (
    Case("llama", llama(**TINY, rope_scaling=LLAMA3)),
    Case("llama_biases", llama(**TINY, attention_bias=True, mlp_bias=True, rope_scaling={"rope_type": "linear", "factor": 2.0})),
    Case("qwen3", decoder("qwen3", "Qwen3", **TINY, tie_word_embeddings=True, original_max_position_embeddings=64,
                          rope_scaling={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64})),
    Case("gemma3", gemma3(**(TINY | {"num_hidden_layers": 2}), query_pre_attn_scalar=4, sliding_window_pattern=2)),
    Case("phi3", phi3(**{k: v for k, v in TINY.items() if k != "head_dim"}, max_position_embeddings=1024, rope_scaling=longrope(2))),
    Case("granite", granite(**TINY)),
)


def seed(case: Case, path: Path) -> None:
    config = config_of(case.file_config())
    names = names_of(config)
    with tempfile.TemporaryDirectory() as tmp:
        refcommon.write_json(Path(tmp) / "config.json", case.file_config())
        weights = decoders.random_weights(case, Path(tmp), Random(case.name, "float32"))
    write_model(config, {file_name(names, n): (to_file(config, n, v.numpy()), T.F32) for n, v in weights.items()}, path)


def main() -> None:
    wanted = sys.argv[1:]
    if wanted[:1] == ["--seeds"]:
        for case in SEEDS:
            seed(case, Path(wanted[1]) / f"{case.name}.gguf")
        shutil.copy(refcommon.GOLDEN / "gguf_embed/nomic_bert/v15/model.gguf", Path(wanted[1]) / "nomic.gguf")
        return
    makers = {c: lambda out, c=c: from_decoder(c, out) for c in FROM_DECODERS} | {
        b.case.name: lambda out, b=b: with_blocks(b, out) for b in BLOCKS} | {
        e: lambda out, e=e: embedder(e, out) for e in EMBEDDERS}
    if unknown := set(wanted) - makers.keys():
        sys.exit(f"no such case: {', '.join(sorted(unknown))}")
    for name, make in makers.items():
        if wanted and name not in wanted:
            continue
        out = refcommon.GOLDEN / ("gguf_embed" if "/" in name else "gguf") / name
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        make(out)
        print(f"{name}: {sum(f.stat().st_size for f in out.iterdir())} bytes")


if __name__ == "__main__":
    main()
