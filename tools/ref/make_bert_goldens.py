#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/bert/: tiny random BERT-class models and what sentence-transformers gives for them.

Each case is a whole model directory (see README.md beside this file for the formats), `expected.json` with ids and
embeddings, and `layers.safetensors` with what each layer computed. Weights are random but scaled so that a wrong
activation (also one GELU for the other), eps, head split or position shows by more than 1e-4: matrices 0.2 and up,
LayerNorm weights 1 +- 0.2, biases not zero.

    make_bert_goldens.py [CASE...]      all cases when none is named
"""

import dataclasses
import shutil
from pathlib import Path

import refcommon

refcommon.offline()

import torch  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

import wordpiece  # noqa: E402
from tiny_tokenizers import vocabulary  # noqa: E402
from st_goldens import (  # noqa: E402
    PROMPTED, ST_PROMPTS, Dense, Directory, Random, check_loaded, legacy, load, record, run, write_modules,
    write_weights)

OUT = refcommon.GOLDEN / "bert"

@dataclasses.dataclass
class Case(Directory):
    """One model directory. Fields that a file states are written into that file as they are."""

    name: str
    hidden: int
    heads: int
    inter: int
    layers: int = 2
    act: str = "gelu"
    vocab: int = 200  # entries of the tokenizer
    spare_rows: int = 0  # embedding rows beyond them
    positions: int = 40
    types: int = 2
    eps: float = 1e-12
    dtype: str = "float32"
    f8: str = ""  # 8-bit float type of the file's matrices: config.json states `dtype`, in which vectors are
    shard_bytes: int = 0  # sharded as save_pretrained does it, this many bytes a file at most; 0: one file
    model_max_length: float = 512  # tokenizer_config.json
    baked: tuple[int, int] | None = None  # truncation and fixed padding written into tokenizer.json
    cased: bool = False
    specials_last: bool = False
    vocab_txt_only: bool = False
    bert_prefix: bool = False  # bert.*, LayerNorm.gamma/beta, pooler, position_ids, pre-training heads


CASES = [
    Case("mean_norm_gelu", hidden=30, heads=3, inter=37, pooling=legacy("mean_tokens"), normalize=True),
    Case("cls_norm_bge", hidden=30, heads=2, inter=37, types=1, pooling=legacy("cls_token"), normalize=True,
         positions=41, max_seq_length=41, specials_last=True),
    Case("max_relu", hidden=27, heads=3, inter=41, act="relu", eps=0.03, pooling=legacy("max_tokens")),
    Case("last_silu", hidden=22, heads=2, inter=35, layers=3, act="silu", pooling=legacy("lasttoken")),
    Case("sqrt_gelu_new", hidden=28, heads=2, inter=45, act="gelu_new", pooling=legacy("mean_sqrt_len_tokens"),
         spare_rows=7),
    Case("f16_gelu_tanh", hidden=42, heads=6, inter=53, act="gelu_pytorch_tanh", dtype="float16",
         pooling=legacy("mean_tokens"), normalize=True, vocab=220),
    Case("bf16", hidden=44, heads=2, inter=95, layers=1, dtype="bfloat16", pooling=legacy("mean_tokens"), normalize=True,
         vocab=260, notes=("The reference computes in float32 on the bfloat16 weights.",)),
    Case("f8_e4m3", hidden=30, heads=3, inter=37, dtype="bfloat16", f8="float8_e4m3fn", pooling=legacy("mean_tokens"),
         normalize=True, notes=("The reference computes in float32 on the float8 weights.",)),
    Case("f8_e5m2_sharded", hidden=28, heads=2, inter=43, f8="float8_e5m2", shard_bytes=6000,
         pooling=legacy("cls_token"), normalize=True,
         notes=("The reference computes in float32 on the float8 weights.",)),
    Case("sharded", hidden=26, heads=2, inter=39, layers=3, bert_prefix=True, shard_bytes=20000,
         pooling=legacy("mean_tokens"), normalize=True),
    Case("bert_prefix_gamma", hidden=30, heads=1, inter=31, bert_prefix=True, pooling=legacy("cls_token"),
         normalize=True,
         notes=("The file also has the pooler and heads of pre-training (cls.*), which the reference ignores.",)),
    Case("dense_tanh", hidden=30, heads=2, inter=37, pooling=legacy("mean_tokens"), dense=(Dense(19),), normalize=True),
    Case("prompts_included", hidden=26, heads=2, inter=41, pooling=legacy("mean_tokens", include_prompt=True),
         normalize=True, st_config=ST_PROMPTS, prompted=PROMPTED),
    Case("prompts_excluded", hidden=25, heads=5, inter=39, pooling=legacy("mean_tokens", include_prompt=False),
         normalize=True, st_config=ST_PROMPTS, prompted=PROMPTED, vocab=240),
    Case("cls_prompt_excluded", hidden=21, heads=3, inter=29, pooling=legacy("cls_token", include_prompt=False),
         st_config=ST_PROMPTS, prompted=PROMPTED),
    Case("multi_cls_mean", hidden=27, heads=3, inter=35, pooling=legacy("cls_token", "mean_tokens")),
    Case("multi_list", hidden=22, heads=2, inter=33, modern=True, max_seq_length=None, model_max_length=28,
         pooling={"pooling_mode": ["mean", "lasttoken", "cls"], "include_prompt": True},
         notes=("pooling_mode as a list: concatenated in the order of the list.",
                "No max_seq_length: the limit is model_max_length of tokenizer_config.json, 28, under the 40 positions.")),
    Case("modern_mean", hidden=36, heads=6, inter=37, layers=1, modern=True, max_seq_length=None, normalize=True,
         model_max_length=1e30, pooling={"pooling_mode": "mean", "include_prompt": True}, vocab=250,
         notes=("Neither max_seq_length nor a real model_max_length: the limit is max_position_embeddings.",)),
    Case("weighted_mean", hidden=23, heads=1, inter=31, pooling=legacy("weightedmean_tokens")),
    Case("plain_vocab_txt", hidden=26, heads=2, inter=37, model_max_length=1e30, vocab_txt_only=True,
         notes=("No modules.json: the reference pools by mean and does not normalise.",)),
    Case("cased", hidden=30, heads=6, inter=37, pooling=legacy("mean_tokens"), normalize=True, cased=True, vocab=210),
    Case("cased_st_lower", hidden=24, heads=2, inter=31, layers=1, pooling=legacy("mean_tokens"), cased=True, vocab=210,
         st_lower=True,
         notes=("do_lower_case of sentence_bert_config.json puts a Lowercase step before the normalizer of "
                "tokenizer.json: accents stay.",)),
    Case("short_window", hidden=30, heads=2, inter=37, pooling=legacy("mean_tokens"), normalize=True,
         max_seq_length=24, baked=(16, 20),
         notes=("tokenizer.json asks for truncation at 16 and padding to 20; the reference resets both and cuts at "
                "max_seq_length.",)),
    Case("truncate_dim", hidden=30, heads=2, inter=37, layers=1, pooling=legacy("mean_tokens"), normalize=True,
         st_config={"prompts": {}, "default_prompt_name": None, "truncate_dim": 11},
         notes=("truncate_dim of config_sentence_transformers.json cuts the normalised vector; it is not normalised "
                "again.",)),
]


# --- the model directory ---------------------------------------------------------------------------------------------


def tokenizer_of(case: Case) -> Tokenizer:
    vocab = vocabulary(case.vocab, case.cased)
    if case.specials_last:
        vocab = vocab[5:] + vocab[:5]
    return wordpiece.build(vocab, lowercase=not case.cased)


def write_tokenizer(case: Case, tok: Tokenizer, at: Path) -> None:
    if case.vocab_txt_only:
        vocab = sorted(tok.get_vocab().items(), key=lambda item: item[1])
        (at / "vocab.txt").write_text("".join(token + "\n" for token, _ in vocab), encoding="utf-8")
    else:
        if case.baked:
            tok.enable_truncation(case.baked[0])
            tok.enable_padding(length=case.baked[1], pad_id=tok.token_to_id("[PAD]"), pad_token="[PAD]")
        (at / "tokenizer.json").write_text(tok.to_str() + "\n", encoding="utf-8")
    config = {"tokenizer_class": "BertTokenizer", "do_lower_case": not case.cased, "strip_accents": None,
              "tokenize_chinese_chars": True, "model_max_length": case.model_max_length}
    config |= {f"{t.strip('[]').lower()}_token": t for t in wordpiece.SPECIAL}
    refcommon.write_json(at / "tokenizer_config.json", config)


def model_config(case: Case, tok: Tokenizer) -> dict:
    return {
        "architectures": ["BertForPreTraining" if case.bert_prefix else "BertModel"],
        "attention_probs_dropout_prob": 0.1,
        "hidden_act": case.act,
        "hidden_dropout_prob": 0.1,
        "hidden_size": case.hidden,
        "initializer_range": 0.02,
        "intermediate_size": case.inter,
        "layer_norm_eps": case.eps,
        "max_position_embeddings": case.positions,
        "model_type": "bert",
        "num_attention_heads": case.heads,
        "num_hidden_layers": case.layers,
        "pad_token_id": tok.token_to_id("[PAD]"),
        "position_embedding_type": "absolute",
        ("dtype" if case.modern else "torch_dtype"): case.dtype,
        "type_vocab_size": case.types,
        "vocab_size": case.vocab + case.spare_rows,
    }


def model_weights(case: Case, rand: Random) -> dict[str, torch.Tensor]:
    """Weights by their canonical BertModel names."""
    d, out = case.hidden, {}

    def linear(name: str, rows: int, columns: int, scale: float = 0.2, bias: float = 0.0) -> None:
        out[name + ".weight"] = rand(rows, columns, scale=scale)
        out[name + ".bias"] = rand(rows, scale=0.1, offset=bias)

    def norm(name: str) -> None:
        out[name + ".weight"], out[name + ".bias"] = rand(d, offset=1.0), rand(d, scale=0.1)

    # GELU's two forms differ most, measured by their value, around -2: keep its inputs there.
    up, down = ({"bias": -1.5}, {"scale": 0.8}) if case.act.startswith("gelu") else ({}, {})
    for table, rows in (("word", case.vocab + case.spare_rows), ("position", case.positions), ("token_type", case.types)):
        out[f"embeddings.{table}_embeddings.weight"] = rand(rows, d, scale=0.4 if table == "word" else 0.2)
    norm("embeddings.LayerNorm")
    for i in range(case.layers):
        at = f"encoder.layer.{i}."
        for part in ("query", "key", "value"):
            linear(at + "attention.self." + part, d, d)
        linear(at + "attention.output.dense", d, d)
        norm(at + "attention.output.LayerNorm")
        linear(at + "intermediate.dense", case.inter, d, **up)
        linear(at + "output.dense", d, case.inter, **down)
        norm(at + "output.LayerNorm")
    return out


def file_weights(case: Case, weights: dict, rand: Random) -> dict[str, torch.Tensor]:
    """The same weights under the names of the file, with what else real files hold."""
    if not case.bert_prefix:
        return weights
    old = {".LayerNorm.weight": ".LayerNorm.gamma", ".LayerNorm.bias": ".LayerNorm.beta"}
    out = {}
    for name, value in weights.items():
        for new_end, old_end in old.items():
            name = name.replace(new_end, old_end)
        out["bert." + name] = value
    out["bert.embeddings.position_ids"] = torch.arange(case.positions, dtype=torch.int64).unsqueeze(0)
    out["bert.pooler.dense.weight"], out["bert.pooler.dense.bias"] = rand(case.hidden, case.hidden), rand(case.hidden)
    out["cls.predictions.bias"] = rand(case.vocab + case.spare_rows)
    out["cls.seq_relationship.weight"], out["cls.seq_relationship.bias"] = rand(2, case.hidden), rand(2)
    return out


# --- what the reference makes of it ----------------------------------------------------------------------------------


def points(bert):
    """Where the layers of BERT-class models are written down."""
    yield "embed", bert.embeddings
    for i, layer in enumerate(bert.encoder.layer):
        yield f"layer.{i}.attn_out", layer.attention.output.dense
        yield f"layer.{i}.attn_norm", layer.attention.output
        yield f"layer.{i}.ffn_out", layer.output.dense
        yield f"layer.{i}.residual", layer


def make(case: Case) -> int:
    """Writes one case; returns its size in bytes."""
    at = OUT / case.name
    shutil.rmtree(at, ignore_errors=True)
    at.mkdir(parents=True)
    tok, rand = tokenizer_of(case), Random(case.name, case.dtype, case.f8)
    write_tokenizer(case, tok, at)
    refcommon.write_json(at / "config.json", model_config(case, tok))
    weights = model_weights(case, rand)
    write_weights(file_weights(case, weights, rand), at, case.shard_bytes)
    write_modules(case, rand, at)

    model, exact = load(at, torch.float32), load(at, torch.float64)
    check_loaded(model, weights)
    return record(case, model, exact, points, at)


if __name__ == "__main__":
    run(CASES, make)
