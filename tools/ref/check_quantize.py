#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares GGUF files that `lath quantize` writes with what the reference and other engines make of them.

    check_quantize.py --program build/lath                   the tiny models of tests/golden/decoder and of tests/golden/quantize
    check_quantize.py --program build/lath --models DIR      also the tokenizers of real models in DIR
    check_quantize.py ... --real GGUF FOLDER EXPECTED        also Gemma 3 270M: its numbers as a Hugging Face folder with the tokenizer of FOLDER, written again;
                                                             EXPECTED has what transformers makes of the same numbers (tests/golden/real)

For each model directory and type: the file is opened by the `gguf` package, which reads keys and tensors, and its tensors are compared with what
the package makes of the directory's own (the converter's conventions are undone first); it is opened by llama.cpp (the package llama-cpp-python),
whose logits for the golden prompts have to be those of transformers for f32, within a bound for the others, and whose greedy tokens have to be
transformers' wherever these were not a close choice. Models of whole blocks: transformers computes with the weights that the package decodes from
the file; lath and llama.cpp have to give the same logits, within what activations of 8 bits cost. Tokenizers: the ids of llama.cpp and of lath on the
written file against the `tokenizers` package. What such a file cannot say is listed as refused and is right only for the directories named in REFUSED.
"""

import argparse
import ctypes
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import refcommon

refcommon.offline()

import gguf  # noqa: E402
import llama_cpp  # noqa: E402
import numpy as np  # noqa: E402
import tokenizers  # noqa: E402
from safetensors.torch import load_file  # noqa: E402

import torture_texts  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
L = llama_cpp.llama_cpp
# What no key says: scores scaled by a size of their own, caps that are off, kinds of layers, yarn with factors of its own, a part that sees images, which
# layers have experts and that their weights do not add up to 1.
REFUSED = {
    "gemma2_caps", "gemma2_default_caps", "gemma2_no_caps_biases", "gemma3_new_form_cap", "gemma3_pattern_linear", "gemma3_with_images",
    "llama_yarn", "qwen2_second_layer_slides", "qwen3_moe_some_dense", "smollm3_slides", "smollm3_unturned",
    "qwen3_next", "qwen3_next_fused",
}
# Lengths of prompts that llama.cpp computes as the reference does, where that is not all: its Llama has no sliding window; files do not say "dynamic"
# scaling, which counts past the model's length; of longrope it takes the factors of long texts wherever its context (256 at least) is long.
ALIKE = {"mistral_window": (1, 6), "llama_dynamic": (1, 32), "phi3_longrope": (34, 128), "phi4_partial_tied": (26, 128), "phi3_window": (1, 8)}
# llama.cpp's Qwen3 has no bias on what attention gives, its delta nets have heads of one size.
NOT_OPENED = {"qwen3_bias_untied", "qwen3_5_text", "qwen3_5_with_images", "qwen3_5_moe_text", "qwen3_5_moe_with_images", "qwen3_5_strong_decay",
              "qwen3_5_weak_decay", "qwen3_5_last_linear"}
TYPES = {"f32": 1e-4, "f16": 3e-2, "bf16": 0.2, "q8_0": 3e-2}  # error of logits, of the largest; their rows are too short for blocks: F16
WHOLE_BLOCKS = {"qwen3_5_real_heads": 0.1}  # but for these: their q8_0 is as BLOCKS below
CLOSE = 1e-3  # of the first and the second choice


@L.llama_log_callback
def quiet(_level, _text, _data):
    pass


def run(program: str, directory: Path, out: Path, kind: str) -> str | None:
    """None, or why lath refuses."""
    r = subprocess.run([program, "quantize", "-m", directory, "-o", out, "--type", kind, "-q", "--name", "tiny"], capture_output=True, text=True)
    if r.returncode not in (0, 4):
        raise SystemExit(f"{directory}: exit {r.returncode}: {r.stderr}")
    return r.stderr.strip() if r.returncode else None


# ------------------------------------------------------------------------------------------------------------- the package


def unpermute(x: np.ndarray, head: int) -> np.ndarray:
    return x.reshape(-1, head // 2, 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def facts(r: gguf.GGUFReader):
    """Architecture, numbers of a head, the package's own map of Hugging Face's names."""
    arch = r.get_field("general.architecture").contents()
    names = gguf.get_tensor_name_map({v: k for k, v in gguf.MODEL_ARCH_NAMES.items()}[arch], r.get_field(f"{arch}.block_count").contents())
    return arch, r.get_field(f"{arch}.attention.key_length").contents(), names


HYBRIDS = ("qwen35", "qwen35moe", "qwen3next")


def text_config(directory: Path) -> dict:
    config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    return config.get("text_config", config)


def one_name(name: str) -> str:
    """Of the text part, as the package knows it; empty: of another part."""
    name = name.replace("model.language_model.", "model.")
    return "" if name.startswith(("model.visual.", "visual.", "mtp.")) else name.replace(".dt_bias", ".dt_proj.bias")


def reordered(arch: str, config: dict, name: str, x: np.ndarray) -> dict:
    """What a tensor of a model with delta nets is in the file, by what stands in the place of its own name; numbers as they are."""
    keys, values, d_k, d_v = (config[f"linear_{n}"] for n in ("num_key_heads", "num_value_heads", "key_head_dim", "value_head_dim"))
    shared = values // keys

    def tiled(part: np.ndarray, size: int, axis: int = 0) -> np.ndarray:
        if arch == "qwen3next":
            return part
        part = np.moveaxis(part, axis, 0)
        out = part.reshape(keys, shared, size, *part.shape[1:]).swapaxes(0, 1).reshape(part.shape)
        return np.moveaxis(out, 0, axis)

    if name.endswith("in_proj_qkvz.weight"):
        heads = x.reshape(keys, -1, *x.shape[1:])
        parts = np.split(heads, np.cumsum([d_k, d_k, shared * d_v]), axis=1)
        q, k, v, z = (p.reshape(-1, *x.shape[1:]) for p in parts)
        return {"in_proj_qkv.weight": np.concatenate([q, k, v]), "in_proj_z.weight": z}
    if name.endswith(("in_proj_qkv.weight", "conv1d.weight")):
        x = x.squeeze(1) if x.ndim == 3 else x
        return {"": np.concatenate([x[: 2 * keys * d_k], tiled(x[2 * keys * d_k :], d_v)])}
    if name.endswith("in_proj_z.weight"):
        return {"": tiled(x, d_v)}
    if name.endswith(("in_proj_a.weight", "in_proj_b.weight", "A_log", "dt_proj.bias")):
        return {"": tiled(x, 1)}
    if name.endswith("linear_attn.out_proj.weight"):
        return {"": tiled(x, d_v, axis=1)}
    if name.endswith("experts.gate_up_proj"):
        gate, up = np.split(x, 2, axis=1)
        return {"gate_proj.weight": gate, "up_proj.weight": up}
    return {"": x}


def changed(arch: str, name: str, x: np.ndarray) -> np.ndarray:
    """The numbers as the file has them."""
    if arch in HYBRIDS and name.endswith("A_log"):
        return -np.exp(x)
    shifted = arch in ("gemma2", "gemma3") or (arch in HYBRIDS and not name.endswith("linear_attn.norm.weight"))
    return x + 1 if shifted and name.endswith("norm.weight") else x


def unchanged(arch: str, name: str, x: np.ndarray) -> np.ndarray:
    """Back again."""
    if arch in HYBRIDS and name.endswith("A_log"):
        return np.log(-x)
    return x - (changed(arch, name, np.zeros(1, np.float32)) if name.endswith("norm.weight") else 0)


def parts_of(arch: str, names, config: dict, name: str, x: np.ndarray) -> dict:
    """Names in the file, and in which order it has the tensor."""
    if arch not in HYBRIDS:
        return {names.get_name(name, try_suffixes=(".weight", ".bias")): x}
    out = {}
    for end, part in reordered(arch, config, name, x).items():
        full = name if not end else name[: name.rindex("in_proj_qkvz" if "in_proj" in name else "gate_up_proj")] + end
        full += ".weight" if full.endswith("experts.down_proj") else ""
        out[names.get_name(full, try_suffixes=(".weight", ".bias"))] = part
    return out


def is_permuted(arch: str, name: str) -> bool:
    return arch in ("llama", "granite", "smollm3") and any(f".attn_{p}." in name for p in "qk")


def fused(weights: dict) -> dict:
    """Experts of a layer as one tensor, as the reference's classes have them."""
    import torch

    out, experts = {}, {}
    for name, x in weights.items():
        base, _, rest = name.partition(".experts.")
        if not rest or not rest[0].isdigit():
            out[name] = x
            continue
        experts.setdefault((base, rest.split(".")[1]), {})[int(rest.split(".")[0])] = x
    joined = {k: torch.stack([v[i] for i in range(len(v))]) for k, v in experts.items()}
    for base in {b for b, _ in joined}:
        out[f"{base}.experts.gate_up_proj"] = torch.cat([joined[base, "gate_proj"], joined[base, "up_proj"]], 1)
        out[f"{base}.experts.down_proj"] = joined[base, "down_proj"]
    return out


def decoded(directory: Path, path: Path) -> dict:
    """The directory's tensors as the file has them."""
    import torch

    r = gguf.GGUFReader(path)
    arch, head, names = facts(r)
    config = text_config(directory)
    have = {t.name: gguf.quants.dequantize(t.data, t.tensor_type) for t in r.tensors}
    out = {}
    for name, t in fused(load_file(directory / "model.safetensors")).items():
        own = one_name(name)
        x = np.empty(t.numel(), np.float32)
        for new, at in parts_of(arch, names, config, own, np.arange(t.numel()).reshape(t.shape)).items():
            part = unpermute(have[new], head) if is_permuted(arch, new) else have[new]
            x[at.ravel()] = unchanged(arch, own, part).ravel()
        out[name] = torch.from_numpy(x.reshape(t.shape))
    return out


def same_numbers(want: np.ndarray, data: np.ndarray, new: str) -> bool:
    if new.endswith(".ssm_a"):  # another exp
        return np.allclose(data, want, rtol=1e-6, atol=0)
    return np.array_equal(np.ascontiguousarray(want).view(np.uint8).ravel(), np.ascontiguousarray(data).view(np.uint8).ravel())


def check_tensors(directory: Path, path: Path, kind: str) -> int:
    """The package's names and its own quantize give the same bytes."""
    r = gguf.GGUFReader(path)
    arch, head, names = facts(r)
    config = text_config(directory)
    have = {t.name: t for t in r.tensors}
    n = 0
    plain = ("ffn_gate_inp", "ssm_conv1d")
    for f in sorted(directory.glob("model*.safetensors")):
        for name, t in load_file(f).items():
            if ".experts." in name and arch not in HYBRIDS:
                continue  # one tensor in the file; llama.cpp's logits tell
            if ".experts." in name and name.rsplit(".experts.")[1][0].isdigit():
                continue
            name = one_name(name if name.startswith(("model.", "lm_head.", "mtp.")) else f"model.{name}")
            for new, x in parts_of(arch, names, config, name, t.float().numpy()).items() if name else ():
                if new is None or new not in have:
                    if new == "output.weight":
                        continue
                    raise SystemExit(f"{path}: {name} ({new}) is not in it")
                got = have[new]
                x = changed(arch, name, x)
                want = gguf.quants.quantize(x, got.tensor_type) if got.tensor_type not in (gguf.GGMLQuantizationType.Q4_K, gguf.GGMLQuantizationType.Q6_K) else None
                data = unpermute(got.data, head) if is_permuted(arch, new) else got.data
                if want is not None and not same_numbers(want, data, new):
                    raise SystemExit(f"{path}: {new} differs from what the package makes of {name}")
                if x.ndim == 2 and not any(p in new for p in plain) and kind in ("f32", "f16", "bf16") and got.tensor_type.name != kind.upper():
                    raise SystemExit(f"{path}: {new} is {got.tensor_type.name}")
                n += 1
    return n


# --------------------------------------------------------------------------------------------------------------- llama.cpp


class Engine:
    def __init__(self, path: Path, vocab_only: bool = False):
        params = L.llama_model_default_params()
        params.vocab_only = vocab_only
        self.model = L.llama_model_load_from_file(str(path).encode(), params)
        if not self.model:
            raise SystemExit(f"{path}: llama.cpp does not open it")
        self.vocab = L.llama_model_get_vocab(self.model)
        self.ctx = None
        if not vocab_only:
            c = L.llama_context_default_params()
            c.n_ctx, c.n_batch, c.n_ubatch, c.n_threads, c.n_threads_batch = 128, 128, 128, 1, 1
            c.type_k = c.type_v = 0  # f32
            c.flash_attn_type = 0
            self.ctx = L.llama_init_from_model(self.model, c)

    def close(self):
        if self.ctx:
            L.llama_free(self.ctx)
        L.llama_model_free(self.model)

    def logits(self, ids: list[int]) -> np.ndarray:
        L.llama_memory_clear(L.llama_get_memory(self.ctx), True)
        batch = L.llama_batch_init(len(ids), 0, 1)
        batch.n_tokens = len(ids)
        for i, t in enumerate(ids):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = t, i, 1, 1
            batch.seq_id[i][0] = 0
        if L.llama_decode(self.ctx, batch) != 0:
            raise SystemExit("llama_decode failed")
        n = L.llama_vocab_n_tokens(self.vocab)
        out = np.stack([np.ctypeslib.as_array(L.llama_get_logits_ith(self.ctx, i), (n,)).copy() for i in range(len(ids))])
        L.llama_batch_free(batch)
        return out

    def tokenize(self, text: str) -> list[int]:
        data = text.encode()
        buffer = (ctypes.c_int32 * (len(data) + 16))()
        n = L.llama_tokenize(self.vocab, data, len(data), buffer, len(buffer), True, True)
        return list(buffer[:n])


def check_llama_cpp(directory: Path, path: Path, kind: str) -> str:
    want = {k: v.numpy() for k, v in load_file(directory / "expected.safetensors").items()}
    e = Engine(path)
    worst = largest = 0.0
    least, most = ALIKE.get(directory.name, (1, 128))
    for k in sorted(k for k in want if k.endswith(".logits")):
        prompt = want[k.replace("logits", "ids")].tolist()
        if not least <= len(prompt) <= most:
            continue
        rows = want.get(k.replace("logits", "rows"), np.arange(len(prompt)))
        worst = max(worst, float(np.abs(e.logits(prompt)[rows, : want[k].shape[1]] - want[k]).max()))
        largest = max(largest, float(np.abs(want[k]).max()))
    ids, same = want["p1.ids"].tolist(), 0  # the prompt that was gone on with
    for token, gap in zip(want["greedy.ids"].tolist(), want["greedy.gaps"].tolist()):
        if gap < max(CLOSE, 2 * worst) or not least <= len(ids) < most:
            break
        if int(e.logits(ids)[-1].argmax()) != token:
            raise SystemExit(f"{path}: token {same} differs, and the choice was {gap} clear")
        ids.append(token)
        same += 1
    e.close()
    if worst > max(TYPES[kind], WHOLE_BLOCKS.get(directory.name, 0) if kind == "q8_0" else 0) * largest:
        raise SystemExit(f"{path}: logits differ by {worst}, the largest is {largest}")
    return f"logits {worst / largest:.1e}, {same} greedy tokens"


# ------------------------------------------------------------------------------------------------------------------ blocks

BLOCKS = ["f32", "bf16", "q8_0", "q4_0", "q4_k", "q6_k"]
# What activations of 8 bits may move logits by: a part of the largest, or of what the rounded weights do to this model, where other experts may be chosen for
# it twice that.
INTEGER, OF_MOVED, OF_EXPERTS = 0.1, 1.0, 2.0


def reference(config: Path, weights: dict, ids: list[int]) -> np.ndarray:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(config), dtype=torch.float32, attn_implementation="eager").eval()
    missing, unexpected = model.load_state_dict(weights, strict=False)
    if unexpected or [n for n in missing if n != "lm_head.weight"]:
        raise SystemExit(f"{config}: {missing} {unexpected}")
    model.tie_weights()
    with torch.no_grad():
        return model(input_ids=torch.tensor([ids])).logits[0].numpy()


def logits_of_lath(program: str, path: Path, ids: list[int]) -> np.ndarray:
    out = path.with_suffix(".npy")
    subprocess.run([program, "logits", "-m", path, "--ids", ",".join(map(str, ids)), "--all-positions", "--precision", "exact", "-o", out], check=True, capture_output=True)
    return np.load(out)


DELTA = {"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 64, "linear_value_head_dim": 64, "full_attention_interval": 2}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 256, "shared_expert_intermediate_size": 256}
WIDE = (("llama", "LlamaForCausalLM", {}), ("qwen3", "Qwen3ForCausalLM", {"tie_word_embeddings": True}),
        ("gemma3_text", "Gemma3ForCausalLM", {"query_pre_attn_scalar": 64, "sliding_window": 16}),
        ("qwen3_5_text", "Qwen3_5ForCausalLM", DELTA), ("qwen3_5_moe_text", "Qwen3_5MoeForCausalLM", DELTA | EXPERTS),
        ("qwen3_next", "Qwen3NextForCausalLM", DELTA | EXPERTS))


def wide_model(at: Path, kind: str, architecture: str, **more) -> None:
    """Rows of 256 and 512 numbers."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.for_model(kind, vocab_size=101, hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                                  head_dim=64, max_position_embeddings=128, architectures=[architecture], **more)
    torch.manual_seed(3)
    model = AutoModelForCausalLM.from_config(config)
    for p in model.parameters():
        if p.dim() > 1:
            torch.nn.init.normal_(p, std=0.08)
    model.to(torch.bfloat16).save_pretrained(at)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (at / name).write_bytes((ROOT / "tests/golden/decoder/llama2" / name).read_bytes())


def check_blocks(program: str, directory: Path, out: Path) -> int:
    rng = np.random.default_rng(7)
    ids = [1, *rng.integers(3, 101, 40).tolist()]
    for kind in BLOCKS:
        if why := run(program, directory, out, kind):
            raise SystemExit(why)
        check_tensors(directory, out, kind)
        want = reference(directory, decoded(directory, out), ids)
        plain = reference(directory, {n: t.float() for n, t in fused(load_file(directory / "model.safetensors")).items()}, ids)
        e = Engine(out)
        largest = np.abs(want).max()
        have = e.logits(ids)
        e.close()
        if kind == "f32" and (have.argmax(1) != want.argmax(1)).any():
            raise SystemExit(f"{directory.name}: llama.cpp chooses other tokens")
        ours, theirs = np.abs(logits_of_lath(program, out, ids) - want).max() / largest, np.abs(have - want).max() / largest
        types = sorted({t.tensor_type.name for t in gguf.GGUFReader(out).tensors})
        moved = np.abs(plain - want).max() / largest
        print(f"{directory.name} {kind} ({', '.join(types)}): logits of lath {ours:.1e}, of llama.cpp {theirs:.1e}, moved by the type {moved:.1e}")
        exact = 3e-3 if "gemma" in directory.name else 1e-4  # llama.cpp looks GELU up in a table of f16
        part = OF_EXPERTS if "num_experts" in text_config(directory) else OF_MOVED
        if ours > 1e-4 or theirs > (exact if kind == "f32" else max(part * INTEGER, part * moved)):
            raise SystemExit(f"{directory.name} {kind}: logits differ")
    return len(BLOCKS)


# -------------------------------------------------------------------------------------------------------------- tokenizers


def sample_texts(rng: random.Random, special: list[str]) -> list[str]:
    texts = list(torture_texts.PROSE) + list(torture_texts.CASES) + ["", " ", "\n", "a  b", "\n\n  c"]
    for name in ("README.md", "docs/architecture.md", "src/tok/tok_load.c"):
        texts += (ROOT / name).read_text(encoding="utf-8").split("\n\n")
    return [t for t in texts if isinstance(t, str)] + [f"a{rng.choice(special)} b{rng.choice(special)}{rng.choice(special)}\n c" for _ in range(100)]


def check_tokenizer(program: str, directory: Path, path: Path) -> str:
    """Texts that are not in the form that the tokenizer's own normalizer gives are counted apart: llama.cpp normalizes none."""
    hf = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
    special = [a.content for a in hf.get_added_tokens_decoder().values() if "\u2581" not in a.content]
    texts = sample_texts(random.Random(5), special)
    e = Engine(path, vocab_only=True)
    apart = 0
    lines = subprocess.run([program, "tokenize", "-m", path, "--field", "t"], input="\n".join(json.dumps({"t": t}) for t in texts) + "\n",
                           capture_output=True, text=True, check=True).stdout.split("\n")
    for text, line in zip(texts, lines):
        want = hf.encode(text).ids
        if [int(i) for i in line.split()] != want:
            raise SystemExit(f"{path}: lath: {text!r}: {line}, want {want}")
        got = e.tokenize(text)
        if got == want:
            continue
        if hf.normalizer is None or hf.normalizer.normalize_str(text).replace("\u2581", " ") == text:
            raise SystemExit(f"{path}: llama.cpp: {text!r}: {got}, want {want}")
        apart += 1
    e.close()
    return f"{len(texts)} texts, {apart} not normalized by llama.cpp"


TINY = {  # configurations for real tokenizers: one layer, a row for each token
    "tokenizer-qwen3": ("qwen3", 151936), "tokenizer-llama3_1": ("llama", 128256), "tokenizer-gemma3": ("gemma3_text", 262144),
}


def tiny_model(tokenizer: Path, at: Path) -> None:
    """A model directory of no use around a real tokenizer."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    kind, vocab = TINY[tokenizer.name]
    config = AutoConfig.for_model(kind, vocab_size=vocab, hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
                                  head_dim=16, tie_word_embeddings=True, max_position_embeddings=64, query_pre_attn_scalar=16)
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(config).to(torch.float16).save_pretrained(at)
    for f in tokenizer.iterdir():
        (at / f.name).write_bytes(f.read_bytes())


# -------------------------------------------------------------------------------------------------------------- real weights


def gemma_folder(path: Path, tokenizer: Path, at: Path) -> None:
    """The numbers of a GGUF file of Gemma 3 under Hugging Face's names, as f32."""
    import torch
    from safetensors.torch import save_file

    r = gguf.GGUFReader(path)
    size = lambda key: r.get_field(f"gemma3.{key}").contents()  # noqa: E731
    config = {"architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "hidden_size": size("embedding_length"), "intermediate_size": size("feed_forward_length"),
              "num_hidden_layers": size("block_count"), "num_attention_heads": size("attention.head_count"), "num_key_value_heads": size("attention.head_count_kv"),
              "head_dim": size("attention.key_length"), "query_pre_attn_scalar": size("attention.key_length"), "sliding_window": size("attention.sliding_window"),
              "max_position_embeddings": size("context_length"), "rope_theta": size("rope.freq_base"), "rope_local_base_freq": 10000.0, "sliding_window_pattern": 6,
              "rms_norm_eps": 1e-6, "vocab_size": len(r.get_field("tokenizer.ggml.tokens").data), "hidden_activation": "gelu_pytorch_tanh", "bos_token_id": 2, "eos_token_id": 1}
    refcommon.write_json(at / "config.json", config)
    _, _, names = facts(r)
    parts = ["input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"]
    parts += [f"self_attn.{n}" for n in ("q_proj", "k_proj", "v_proj", "o_proj", "q_norm", "k_norm")] + [f"mlp.{n}_proj" for n in ("gate", "up", "down")]
    own = {t.name: t for t in r.tensors}
    weights = {}
    for name in ["model.embed_tokens", "model.norm"] + [f"model.layers.{i}.{n}" for i in range(config["num_hidden_layers"]) for n in parts]:
        t = own[names.get_name(f"{name}.weight", try_suffixes=(".weight",))]
        x = gguf.quants.dequantize(t.data, t.tensor_type)
        weights[f"{name}.weight"] = torch.from_numpy(np.array(x - 1 if name.endswith("norm") else x, np.float32))
    save_file(weights, at / "model.safetensors")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (at / name).write_bytes((tokenizer / name).read_bytes())


def check_real(program: str, directory: Path, out: Path, expected: Path) -> None:
    prompts = json.loads(expected.read_text(encoding="utf-8"))["texts"]
    for kind, most in (("f32", 0.02), ("f16", 0.1), ("q8_0", 1.0), ("q4_k", 5.0)):
        if why := run(program, directory, out, kind):
            raise SystemExit(why)
        e = Engine(out)
        same, n, moved = 0, 0, 0.0
        for p in prompts:
            ids, greedy = p["ids"], p["greedy"]
            if e.tokenize(p["text"]) != ids:
                raise SystemExit(f"{kind}: other tokens: {p['text']}")
            got = e.logits(ids + greedy[:-1])[len(ids) - 1 :].astype(np.float64)
            logp = got - np.log(np.exp(got).sum(1, keepdims=True))
            same, n = same + sum(int(a == b) for a, b in zip(got.argmax(1).tolist(), greedy)), n + len(greedy)
            moved = max(moved, max(abs(v - logp[i][t]) for i, step in enumerate(p["steps"]) for t, v in step))
        e.close()
        print(f"Gemma 3 270M {kind}: llama.cpp chooses {same} of {n} tokens as transformers does, log-probabilities within {moved:.3f}")
        if moved > most or (kind in ("f32", "f16") and same != n):
            raise SystemExit(f"{kind}: another model")


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("--program", default="build/lath")
    p.add_argument("--models", type=Path)
    p.add_argument("--real", type=Path, nargs=3, metavar=("GGUF", "FOLDER", "EXPECTED"))
    args = p.parse_args()
    L.llama_backend_init()
    L.llama_log_set(quiet, ctypes.c_void_p(0))
    n = 0
    with tempfile.TemporaryDirectory() as tmp:
        out = Path(tmp) / "model.gguf"
        for directory in sorted((ROOT / "tests/golden/decoder").iterdir()):
            if not (directory / "config.json").exists():
                continue
            for kind in TYPES:
                why = run(args.program, directory, out, kind)
                if (why is not None) != (directory.name in REFUSED):
                    raise SystemExit(f"{directory.name}: {why or 'is not refused'}")
                if why:
                    print(f"{directory.name}: refused: {why.split(': ', 2)[-1]}")
                    break
                tensors = check_tensors(directory, out, kind)
                same = "not for llama.cpp" if directory.name in NOT_OPENED else check_llama_cpp(directory, out, kind)
                print(f"{directory.name} {kind}: {tensors} tensors, {same}")
                n += 1
        for directory in sorted(d for d in (ROOT / "tests/golden/quantize").iterdir() if d.is_dir()):
            n += check_blocks(args.program, directory, out)
        for kind, architecture, more in WIDE:
            wide = Path(tmp) / f"wide_{kind}"
            wide_model(wide, kind, architecture, **more)
            n += check_blocks(args.program, wide, out)
        if args.real:
            real = Path(tmp) / "real"
            real.mkdir()
            gemma_folder(args.real[0], args.real[1], real)
            check_real(args.program, real, out, args.real[2])
            n += 4
        for name in TINY if args.models else []:
            tiny_model(args.models / name, Path(tmp))
            if why := run(args.program, Path(tmp), out, "q8_0"):
                raise SystemExit(why)
            print(f"{name}: {check_tokenizer(args.program, Path(tmp), out)}")
            n += 1
    print(f"{n} passed, 0 failed")


if __name__ == "__main__":
    sys.exit(main())
