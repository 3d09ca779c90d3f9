#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/FAMILY/CASE: tiny random models of every embedding family but BERT, and what the reference gives.

Each case is a whole model directory with expected.json and layers.safetensors beside it (README.md has the formats).
Weights are random but scaled so that mistakes show: every case names changes of its configuration (`probes`), and is
refused unless each of them moves a vector by more than three times what a test allows.

    make_family_goldens.py [FAMILY/CASE...]      all cases when none is named
"""

import dataclasses
import json
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

import tiny_tokenizers as tiny  # noqa: E402
from st_goldens import (  # noqa: E402
    TEXTS, Dense, Directory, Random, check_loaded, legacy, load, record, run, write_modules)

SHOWS = 3e-4  # what a probe must move at least; tests allow 1e-4


@dataclasses.dataclass
class Case(Directory):
    """One model directory."""

    name: str  # FAMILY/CASE
    tokenizer: tuple  # of tiny_tokenizers: Tokenizer, tokenizer_config.json
    config: dict  # config.json without vocab_size and dtype
    dtype: str = "float32"
    torch_dtype: bool = False  # the older name of that field
    spare_rows: int = 0  # embedding rows beyond the tokenizer's
    model_max_length: float = 512  # tokenizer_config.json
    prefix: str = ""  # before the names in the file
    extra: dict = dataclasses.field(default_factory=dict)  # tensors of the file that no embedder reads: name -> shape
    shards: int = 1  # files that the weights are spread over
    probes: tuple = ()  # changes of config.json that must show
    same: tuple = ()  # changes of config.json that must not: other spellings of the same model

    @property
    def family(self) -> str:
        return self.name.split("/")[0]

    @property
    def hidden(self) -> int:
        return self.config.get("hidden_size", self.config.get("dim", self.config.get("n_embd")))

    def file_config(self) -> dict:
        rows = self.tokenizer[0].get_vocab_size() + self.spare_rows
        return self.config | {"torch_dtype" if self.torch_dtype else "dtype": self.dtype, "vocab_size": rows}


# --- weights ---------------------------------------------------------------------------------------------------------

# (name, scale, offset), the first that fits. GELU's two forms differ most around -2: its inputs are kept there.
RULES = [
    (r"[nN]orm\w*\.weight$", 0.2, 1.0),
    (r"(intermediate\.dense|lin1)\.bias$", 0.1, -1.5),
    (r"bias$", 0.1, 0.0),
    (r"relative_attention_bias", 0.8, 0.0),
    (r"(?<!attention\.)output\.dense\.weight$|lin2\.weight$", 0.8, 0.0),
    (r"word_embeddings|tok_embeddings|embed_tokens", 0.4, 0.0),
    (r"mlp\.(Wo|down_proj)\.weight$", 0.5, 0.0),
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


FILE_NAMES = {}


# --- where layers are written down -----------------------------------------------------------------------------------


def bert_points(m):
    yield "embed", m.embeddings
    for i, layer in enumerate(m.encoder.layer):
        yield f"layer.{i}.attn_out", layer.attention.output.dense
        yield f"layer.{i}.attn_norm", layer.attention.output
        yield f"layer.{i}.ffn_out", layer.output.dense
        yield f"layer.{i}.residual", layer


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


POINTS = {"roberta": bert_points, "xlm-roberta": bert_points, "camembert": bert_points, "distilbert": distilbert_points,
          "mpnet": mpnet_points}


# --- one case --------------------------------------------------------------------------------------------------------


def write_directory(case: Case, at: Path) -> dict[str, torch.Tensor]:
    """Everything but what the reference gives; returns the weights under the reference's own names."""
    tok, tok_config = case.tokenizer
    (at / "tokenizer.json").write_text(tok.to_str() + "\n", encoding="utf-8")
    refcommon.write_json(at / "tokenizer_config.json", tok_config | {"model_max_length": case.model_max_length})
    refcommon.write_json(at / "config.json", case.file_config())
    rand = Random(case.name, case.dtype)
    weights = random_weights(case, at, rand)
    save_weights(case, weights, rand, at)
    write_modules(case, rand, at)
    return weights


def changed(at: Path, change: dict, texts) -> np.ndarray:
    """The vectors of `texts` with another config.json; a field that is None in `change` is left out."""
    with tempfile.TemporaryDirectory() as other:
        shutil.copytree(at, other, dirs_exist_ok=True)
        config = json.loads((at / "config.json").read_text(encoding="utf-8")) | change
        refcommon.write_json(Path(other) / "config.json", {k: v for k, v in config.items() if v is not None})
        model = load(Path(other), torch.float32)
        return np.stack([model.encode(t) for t in texts])


def check_probes(case: Case, at: Path) -> None:
    texts = [TEXTS[i] for i in (0, 3, 4, 6, 7)]
    plain = changed(at, {}, texts)
    scale = max(1.0, float(np.abs(plain).max()))
    for change in case.same:
        if not np.array_equal(plain, changed(at, change, texts)):
            raise ValueError(f"{case.name}: {change} should not change anything")
    for change in case.probes:
        moved = float(np.abs(plain - changed(at, change, texts)).max()) / scale
        if not moved > SHOWS:
            raise ValueError(f"{case.name}: {change} moves vectors by {moved:.2g} only")


def make(case: Case) -> int:
    """Writes one case; returns its size in bytes."""
    at = refcommon.GOLDEN / case.name
    shutil.rmtree(at, ignore_errors=True)
    at.mkdir(parents=True)
    weights = write_directory(case, at)
    model, exact = load(at, torch.float32), load(at, torch.float64)
    check_loaded(model, weights)
    size = record(case, model, exact, POINTS[case.family], at)
    check_probes(case, at)
    return size


# --- the cases -------------------------------------------------------------------------------------------------------


MEAN = legacy("mean_tokens")
CLS = legacy("cls_token")


def roberta(kind: str, **changes) -> dict:
    architecture = {"roberta": "Roberta", "xlm-roberta": "XLMRoberta", "camembert": "Camembert"}[kind]
    return {"architectures": [architecture + "Model"], "model_type": kind, "attention_probs_dropout_prob": 0.1,
            "bos_token_id": 0, "eos_token_id": 2, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 20,
            "initializer_range": 0.02, "intermediate_size": 37, "layer_norm_eps": 1e-5, "max_position_embeddings": 42,
            "num_attention_heads": 4, "num_hidden_layers": 2, "pad_token_id": 1,
            "position_embedding_type": "absolute", "type_vocab_size": 1, "use_cache": True} | changes


PAD_TEXTS = tuple(({}, t) for t in ("one <pad> two <pad><pad> three", "<pad>", "water<pad>"))

LONG = " ".join(TEXTS[i].strip() for i in (0, 6, 3, 7))  # hundreds of tokens


def mpnet(**changes) -> dict:
    return {"architectures": ["MPNetModel"], "model_type": "mpnet", "attention_probs_dropout_prob": 0.1, "bos_token_id": 0,
            "eos_token_id": 2, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 20,
            "initializer_range": 0.02, "intermediate_size": 37, "layer_norm_eps": 1e-5, "max_position_embeddings": 42,
            "num_attention_heads": 2, "num_hidden_layers": 2, "pad_token_id": 1, "relative_attention_num_buckets": 32,
            } | changes


CASES = [
    Case("roberta/mean_norm", tiny.roberta(), roberta("roberta"), pooling=MEAN, normalize=True,
         probes=({"hidden_act": "gelu_new"}, {"layer_norm_eps": 0.003}, {"num_attention_heads": 2})),
    Case("roberta/cls_prefix_f16", tiny.roberta(30), roberta("roberta", hidden_size=22, num_attention_heads=2,
                                                             intermediate_size=35, num_hidden_layers=1),
         pooling=CLS, dtype="float16", torch_dtype=True, prefix="roberta.", spare_rows=3,
         extra={"roberta.embeddings.position_ids": (1, 42), "lm_head.bias": (7,)},
         prompted=PAD_TEXTS, notes=("A pad token written in a text gets position pad_token_id and is not counted.",)),
    Case("xlm-roberta/mean_norm", tiny.xlm_roberta(), roberta("xlm-roberta", hidden_size=21, num_attention_heads=3),
         pooling=MEAN, normalize=True, probes=({"hidden_act": "gelu_new"},)),
    Case("xlm-roberta/cls_bge_m3", tiny.xlm_roberta(50), roberta("xlm-roberta", hidden_size=20, num_attention_heads=5,
                                                                 intermediate_size=41, max_position_embeddings=36),
         pooling=CLS, normalize=True, max_seq_length=34, torch_dtype=True,
         st_config={"prompts": {"query": "query: ", "document": "passage: "}, "default_prompt_name": None},
         prompted=(({"prompt_name": "query"}, TEXTS[0]), ({"prompt_name": "document"}, TEXTS[7]),
                   ({"prompt_name": "query"}, "")),
         extra={"pooler.dense.weight": (20, 20), "pooler.dense.bias": (20,)}),
    Case("camembert/mean", tiny.xlm_roberta(40, own_class="CamembertTokenizer"),
         roberta("camembert", hidden_size=18, num_attention_heads=2, bos_token_id=5, eos_token_id=6),
         pooling=MEAN, prefix="roberta."),
    Case("distilbert/mean_norm", tiny.distilbert(), {
        "activation": "gelu", "architectures": ["DistilBertModel"], "attention_dropout": 0.1, "dim": 21, "dropout": 0.1,
        "hidden_dim": 37, "initializer_range": 0.02, "max_position_embeddings": 40, "model_type": "distilbert",
        "n_heads": 3, "n_layers": 2, "pad_token_id": 0, "sinusoidal_pos_embds": False, "tie_weights_": True},
        pooling=MEAN, normalize=True, probes=({"activation": "gelu_new"}, {"n_heads": 7})),
    Case("distilbert/cls_relu_prefix", tiny.distilbert(140), {
        "activation": "relu", "architectures": ["DistilBertForMaskedLM"], "attention_dropout": 0.1, "dim": 20,
        "dropout": 0.1, "hidden_dim": 33, "initializer_range": 0.02, "max_position_embeddings": 40,
        "model_type": "distilbert", "n_heads": 2, "n_layers": 2, "pad_token_id": 0, "qa_dropout": 0.1,
        "seq_classif_dropout": 0.2, "sinusoidal_pos_embds": True, "tie_weights_": True},
        pooling=CLS, torch_dtype=True, prefix="distilbert.",
        extra={"vocab_projector.bias": (140,), "vocab_layer_norm.weight": (20,)},
        notes=("sinusoidal_pos_embds says how the table was filled at first; the file has the table.",),
        probes=({"activation": "gelu"},)),
    Case("mpnet/mean_norm", tiny.mpnet(), mpnet(), pooling=MEAN, normalize=True,
         probes=({"hidden_act": "gelu_new"}, {"layer_norm_eps": 0.003})),
    Case("mpnet/long_cls", tiny.mpnet(140), mpnet(hidden_size=18, num_attention_heads=3, intermediate_size=33,
                                                  num_hidden_layers=1, max_position_embeddings=212),
         pooling=CLS, max_seq_length=210, torch_dtype=True, prefix="mpnet.",
         prompted=(({}, LONG), *PAD_TEXTS),
         extra={"mpnet.embeddings.position_ids": (1, 212), "mpnet.pooler.dense.weight": (18, 18),
                "mpnet.pooler.dense.bias": (18,), "lm_head.bias": (141,)},
         notes=("Distances up to 200: past the 128 from which on all share a bucket.",)),
]


if __name__ == "__main__":
    run(CASES, make)
