#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/FAMILY/CASE: tiny random models of every embedding family but BERT, and what the reference gives.

Each case is a whole model directory with expected.json and layers.safetensors beside it (README.md has the formats).
Weights are random but scaled so that mistakes show: every case names changes of its configuration (`probes`), and is
refused unless each of them moves a vector by more than three times what a test allows.

    make_family_goldens.py [FAMILY/CASE...]      all cases when none is named
"""

import contextlib
import re
import shutil
import tempfile
from pathlib import Path

import refcommon

refcommon.offline()

import numpy as np  # noqa: E402
import torch  # noqa: E402
from safetensors.torch import save_file  # noqa: E402
from transformers import AutoConfig, AutoModel  # noqa: E402

import nomic_reference  # noqa: E402
from family_cases import CASES, Case  # noqa: E402
from st_goldens import TEXTS, Random, check_loaded, load, record, run, write_modules  # noqa: E402

SHOWS = 3e-4  # what a probe must move at least; tests allow 1e-4


# --- weights ---------------------------------------------------------------------------------------------------------

# (name, scale, offset), the first that fits. GELU's two forms differ most around -2: its inputs are kept there.
RULES = [
    (r"[nN]orm\w*\.weight$", 0.2, 1.0),
    (r"(intermediate\.dense|lin1|fc1)\.bias$", 0.1, -1.5),
    (r"bias$", 0.1, 0.0),
    (r"relative_attention_bias", 0.8, 0.0),
    (r"(?<!attention\.)output\.dense\.weight$|(lin2|fc2)\.weight$", 0.8, 0.0),
    (r"word_embeddings|tok_embeddings|embed_tokens", 0.4, 0.0),
    (r"mlp\.(Wo|down_proj)\.weight$", 0.9, 0.0),
    (r"", 0.3, 0.0),
]
GEMMA_RULES = [(r"norm\.weight$", 0.3, 0.0), (r"embed_tokens", 0.15, 0.0), *RULES]


def random_weights(case: Case, at: Path, rand: Random) -> dict[str, torch.Tensor]:
    """Weights under the names of the reference's own class, in the order in which that class has them."""
    with torch.device("meta"):
        shapes = {n: p.shape for n, p in AutoModel.from_config(AutoConfig.from_pretrained(at)).named_parameters()}
    out = {}
    for name, shape in shapes.items():
        if name.startswith("pooler."):
            continue
        rules = GEMMA_RULES if case.family == "gemma3_text" else RULES
        scale, offset = next((s, o) for pattern, s, o in rules if re.search(pattern, name))
        out[name] = rand(*shape, scale=scale, offset=offset)
    if case.own_nomic:
        for name in [n for n in out if "_proj" in n]:
            out[name.replace(".weight", ".bias")] = rand(len(out[name]))
    return out


def save_weights(case: Case, weights: dict[str, torch.Tensor], rand: Random, at: Path) -> None:
    named = {case.prefix + n: w.contiguous() for n, w in FILE_NAMES.get(case.family, lambda w: w)(weights).items()}
    for name, shape in case.extra.items():
        named[name] = torch.arange(shape[-1]).reshape(shape) if name.endswith("position_ids") else rand(*shape)
    if case.shards == 1:
        save_file(named, at / "model.safetensors", metadata={"format": "pt"})
        return
    where = {}
    for i, name in enumerate(named):
        where[name] = f"model-{i * case.shards // len(named) + 1:05}-of-{case.shards:05}.safetensors"
    for file in sorted(set(where.values())):
        save_file({n: w for n, w in named.items() if where[n] == file}, at / file, metadata={"format": "pt"})
    refcommon.write_json(at / "model.safetensors.index.json", {
        "metadata": {"total_size": sum(w.nbytes for w in named.values())}, "weight_map": where})


def joined(weights: dict, parts: list[str], whole: str) -> dict:
    """Tensors of `parts` stacked into one called `whole`, at the first one's place."""
    out = {}
    for name, value in weights.items():
        at = next((p for p in parts if p in name), None)
        if at == parts[0]:
            out[name.replace(at, whole)] = torch.cat([weights[name.replace(at, p)] for p in parts])
        elif at is None:
            out[name] = value
    return out


def renamed(weights: dict, names: dict[str, str]) -> dict:
    out = {}
    for name, value in weights.items():
        for old, new in names.items():
            name = name.replace(old, new)
        out[name] = value
    return out


QKV = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"]


def nomic_names(weights: dict) -> dict:
    return renamed(joined(weights, QKV, "attn.Wqkv"), {
        "embeddings.LayerNorm": "emb_ln", "layers.": "encoder.layers.", "self_attn.o_proj": "attn.out_proj",
        "up_proj": "fc11", "gate_proj": "fc12", "down_proj": "fc2", "post_attention_layernorm": "norm1",
        "post_mlp_layernorm": "norm2"})


def gte_names(weights: dict) -> dict:
    weights = joined(weights, QKV, "attention.qkv_proj")
    return renamed(joined(weights, ["mlp.up_proj", "mlp.gate_proj"], "mlp.up_gate_proj"), {
        "layers.": "encoder.layer.", "self_attn.o_proj": "attention.o_proj", "post_attention_layernorm": "attn_ln",
        "post_mlp_layernorm": "mlp_ln"})


def jina_names(weights: dict) -> dict:
    return renamed(joined(weights, QKV, "mixer.Wqkv"), {
        "embeddings.LayerNorm": "emb_ln", "layers.": "encoder.layers.", "self_attn.o_proj": "mixer.out_proj",
        "post_attention_layernorm": "norm1", "post_mlp_layernorm": "norm2"})


FILE_NAMES = {"nomic_bert": nomic_names, "jina_embeddings_v3": jina_names, "gte": gte_names, "new": gte_names}  # published names of those that differ


# --- where layers are written down -----------------------------------------------------------------------------------


def bert_points(m):
    yield "embed", m.embeddings
    for i, layer in enumerate(m.encoder.layer):
        yield f"layer.{i}.attn_out", layer.attention.output.dense
        yield f"layer.{i}.attn_norm", layer.attention.output
        yield f"layer.{i}.ffn_out", layer.output.dense
        yield f"layer.{i}.residual", layer


def electra_points(m):
    for name, module in bert_points(m):
        yield name, getattr(m, "embeddings_project", module) if name == "embed" else module


def distilbert_points(m):
    yield "embed", m.embeddings
    for i, layer in enumerate(m.transformer.layer):
        yield f"layer.{i}.attn_out", layer.attention.out_lin
        yield f"layer.{i}.attn_norm", layer.sa_layer_norm
        yield f"layer.{i}.ffn_out", layer.ffn.lin2
        yield f"layer.{i}.residual", layer


def mpnet_points(m):
    yield "embed", m.embeddings
    for i, layer in enumerate(m.encoder.layer):
        yield f"layer.{i}.attn_out", layer.attention.attn.o
        yield f"layer.{i}.attn_norm", layer.attention
        yield f"layer.{i}.ffn_out", layer.output.dense
        yield f"layer.{i}.residual", layer


def post_norm_rope_points(m):
    yield "embed", m.embeddings
    for i, layer in enumerate(m.layers):
        yield f"layer.{i}.attn_out", layer.self_attn.o_proj
        yield f"layer.{i}.attn_norm", layer.post_attention_layernorm
        yield f"layer.{i}.ffn_out", layer.mlp
        yield f"layer.{i}.residual", layer


def modernbert_points(m):
    yield "embed", m.embeddings
    for i, layer in enumerate(m.layers):
        yield f"layer.{i}.attn_out", layer.attn
        yield f"layer.{i}.attn_norm", layer.mlp_norm
        yield f"layer.{i}.ffn_out", layer.mlp
        yield f"layer.{i}.residual", layer
    yield "final", m.final_norm


def decoder_points(m):
    yield "embed", m.embed_tokens
    for i, layer in enumerate(m.layers):
        yield f"layer.{i}.attn_out", layer.self_attn.o_proj
        yield f"layer.{i}.attn_norm", layer.post_attention_layernorm
        yield f"layer.{i}.ffn_out", layer.mlp
        yield f"layer.{i}.residual", layer
    yield "final", m.norm


def gemma_points(m):
    yield "embed", m.embed_tokens
    for i, layer in enumerate(m.layers):
        yield f"layer.{i}.attn_out", layer.post_attention_layernorm
        yield f"layer.{i}.attn_norm", layer.pre_feedforward_layernorm
        yield f"layer.{i}.ffn_out", layer.post_feedforward_layernorm
        yield f"layer.{i}.residual", layer
    yield "final", m.norm


POINTS = {"electra": electra_points, "ernie": bert_points, "data2vec-text": bert_points,
          "roberta": bert_points, "xlm-roberta": bert_points, "camembert": bert_points, "distilbert": distilbert_points,
          "mpnet": mpnet_points, "modernbert": modernbert_points, "nomic_bert": post_norm_rope_points,
          "jina_embeddings_v3": post_norm_rope_points,
          "gte": post_norm_rope_points, "new": post_norm_rope_points, "qwen2": decoder_points, "qwen3": decoder_points,
          "llama": decoder_points, "mistral": decoder_points, "gemma3_text": gemma_points}


# --- one case --------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def with_config(at: Path, config: dict):
    """A copy of the directory with another config.json."""
    with tempfile.TemporaryDirectory() as other:
        shutil.copytree(at, other, dirs_exist_ok=True)
        refcommon.write_json(Path(other) / "config.json", config)
        yield Path(other)


def write_directory(case: Case, at: Path) -> dict[str, torch.Tensor]:
    """Everything but what the reference gives; returns the weights under the reference's own names."""
    tok, tok_config = case.tokenizer
    (at / "tokenizer.json").write_text(tok.to_str() + "\n", encoding="utf-8")
    refcommon.write_json(at / "tokenizer_config.json", tok_config | {"model_max_length": case.model_max_length})
    refcommon.write_json(at / "config.json", case.file_config())
    rand = Random(case.name, case.dtype)
    with with_config(at, case.reference_config()) as readable:
        weights = random_weights(case, readable, rand)
    save_weights(case, weights, rand, at)
    write_modules(case, rand, at)
    return weights


def check_probes(case: Case, at: Path) -> None:
    """The case can tell the models apart that `probes` names, and not those that `same` names."""
    texts = [TEXTS[i] for i in (0, 3, 4, 6, 7)]

    def vectors(change: dict) -> np.ndarray:
        config = {k: v for k, v in (case.reference_config() | change).items() if v is not None}
        with with_config(at, config) as other:
            model = load(other, torch.float32)
            return np.stack([model.encode(t) for t in texts])

    plain = vectors({})
    scale = max(1.0, float(np.abs(plain).max()))
    for change in case.same:
        if not np.array_equal(plain, vectors(change)):
            raise ValueError(f"{case.name}: {change} should not change anything")
    for change in case.probes:
        moved = float(np.abs(plain - vectors(change)).max()) / scale
        if not moved > SHOWS:
            raise ValueError(f"{case.name}: {change} moves vectors by {moved:.2g} only")


def stand_in(case: Case, model, weights: dict, dtype: torch.dtype) -> None:
    """Puts nomic_reference.py's model in the place of the one of transformers."""
    own = nomic_reference.NomicBert(case.file_config(), nomic_names(weights), model[0].model.config)
    model[0].model = own.to(dtype).eval()


def check_nomic(case: Case, at: Path, weights: dict, model) -> None:
    """nomic_reference.py agrees with transformers on a model that both have."""
    with with_config(at, case.reference_config()) as readable:
        other = load(readable, torch.float32)
    stand_in(case, other, weights, torch.float32)
    for text in TEXTS:
        if np.abs(other.encode(text) - model.encode(text)).max() > 1e-5:
            raise ValueError(f"nomic_reference.py and transformers differ on {text!r}")


def make(case: Case) -> int:
    """Writes one case; returns its size in bytes."""
    at = refcommon.GOLDEN / case.name
    shutil.rmtree(at, ignore_errors=True)
    at.mkdir(parents=True)
    weights = write_directory(case, at)
    with with_config(at, case.reference_config()) as readable:
        model, exact = load(readable, torch.float32), load(readable, torch.float64)
    if case.own_nomic:
        stand_in(case, model, weights, torch.float32)
        stand_in(case, exact, weights, torch.float64)
    else:
        check_loaded(model, weights)
    if case.family == "nomic_bert" and not case.own_nomic and case.read_as and not case.config["rotary_scaling_factor"]:
        check_nomic(case, at, weights, model)
    size = record(case, model, exact, POINTS[case.family], at)
    check_probes(case, at)
    return size


if __name__ == "__main__":
    run(CASES, make)
