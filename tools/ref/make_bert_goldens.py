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
import json
import logging
import shutil
import sys
import warnings
import zlib
from pathlib import Path

import refcommon

refcommon.offline()

import numpy as np  # noqa: E402
import torch  # noqa: E402
from huggingface_hub import split_torch_state_dict_into_shards  # noqa: E402
from safetensors.torch import save_file  # noqa: E402
from sentence_transformers import SentenceTransformer  # noqa: E402
from tokenizers import Tokenizer, normalizers  # noqa: E402

import wordpiece  # noqa: E402

OUT = refcommon.GOLDEN / "bert"
TRACED = (0, 3)  # the texts whose layers are written down

TEXTS = [
    "The green river runs.",
    "",
    "water",
    "Small houses by the old river, 12 miles.",
    "Café naïve ÜBER: 中国人 東京 Straße ガか",
    "?!... (a) -- \"b\" #1; d/e & f_g @h [i] {j} $5 <k> ~ `l`",
    "One day a young woman from the white mountain house walked to the water and read a long letter of fire and light",
    "The last night was dark and cold. " * 8,
    "Москва и Αθήνα, 한국어 😀 unbelievably\u200b\tnew [MASK] lines\nhere",
]

WORDS = (
    "the of and to in is was for on by an this that from not one old day night man woman house water fire river green "
    "small long last text query read mile mountain light dark north run walk away cold young letter line code white he "
    "she they we you two new time year stone good first document passage search write cafe naive uber south here blue "
    "red black city road tree bird sun moon star snow rain wind word model token data school friend hand door table "
    "open close ago big bad end free hard high home just keep kind know land left life make more most move much name "
    "next only over part place play right same say seem self show side still such take tell than their thing think"
).split()
ENDINGS = "s ed ing er est ly ness ment tion able ful less y es en ize ation th al ic un re be li ev ab".split()
LETTERS = "abcdefghijklmnopqrstuvwxyz"
PUNCTUATION = ". , ? ! - ; : ' \" ( ) [ ] { } / & @ # $ < > ~ ` _".split()
UPPER_WORDS = "The One Small Caf\u00e9 \u00dc B E R St na\u00efve \u041c A".split()


def vocabulary(size: int, cased: bool) -> list[str]:
    """The first `size` of: specials, letters, digits, marks, characters of other scripts, endings, words."""
    other = list("中国人東京日本水ßøæαθмоскваикかが")
    marks = list("éïüÜ") if cased else list("カ")
    entries = wordpiece.SPECIAL + list(LETTERS) + ["##" + c for c in LETTERS] + list("0123456789")
    entries += ["##" + c for c in "0123456789"] + PUNCTUATION + other + ["##" + c for c in "ßαθοсваη"] + marks
    entries += ["##" + e for e in ENDINGS] + (UPPER_WORDS if cased else []) + WORDS
    entries = wordpiece.unique(entries)
    if len(entries) < size:
        raise ValueError(f"only {len(entries)} entries for a vocabulary of {size}")
    return entries[:size]


@dataclasses.dataclass
class Case:
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
    pooling: dict | None = None  # 1_Pooling/config.json without the dimension; None: no modules.json
    dense: int = 0  # outputs of 2_Dense; 0: no such module
    normalize: bool = False
    modern: bool = False  # files as sentence-transformers 6 writes them, else as versions 2 to 5 did
    max_seq_length: int | None = 40  # sentence_bert_config.json; None: not stated
    model_max_length: float = 512  # tokenizer_config.json
    baked: tuple[int, int] | None = None  # truncation and fixed padding written into tokenizer.json
    cased: bool = False
    specials_last: bool = False
    vocab_txt_only: bool = False
    st_lower: bool = False  # do_lower_case of sentence_bert_config.json
    bert_prefix: bool = False  # bert.*, LayerNorm.gamma/beta, pooler, position_ids, pre-training heads
    st_config: dict | None = None  # config_sentence_transformers.json
    prompted: tuple = ()  # (keyword arguments of encode, text) beyond the plain texts
    notes: tuple = ()


def legacy(*modes: str, **more) -> dict:
    """The boolean form of a pooling config; the order of the keys is the one old files have."""
    keys = ["cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"]
    return {f"pooling_mode_{k}": k in modes for k in keys} | more


PROMPTS = {"query": "query: ", "document": "A passage to read: ", "glued": "un"}
ST_PROMPTS = {
    "__version__": {"sentence_transformers": "3.0.1", "transformers": "4.41.2", "pytorch": "2.3.0"},
    "prompts": PROMPTS,
    "default_prompt_name": "query",
    "similarity_fn_name": "cosine",
}
PROMPTED = tuple(
    (how, text)
    for how in ({"prompt_name": "document"}, {"prompt_name": "glued"}, {"prompt": ""}, {"prompt": "Search, code - "})
    for text in (TEXTS[0], TEXTS[1], TEXTS[7])
    if not (how == {"prompt": ""} and text == TEXTS[7])
)

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
    Case("dense_tanh", hidden=30, heads=2, inter=37, pooling=legacy("mean_tokens"), dense=19, normalize=True),
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


class Random:
    """Seeded weights, in the order in which they are asked for."""

    def __init__(self, name: str, dtype: str, matrices: str = ""):
        self.rng = np.random.Generator(np.random.PCG64(zlib.crc32(name.encode())))
        self.dtype, self.matrices = getattr(torch, dtype), getattr(torch, matrices or dtype)

    def __call__(self, *shape: int, scale: float = 0.2, offset: float = 0.0) -> torch.Tensor:
        values = self.rng.standard_normal(shape, dtype=np.float32) * np.float32(scale) + np.float32(offset)
        return torch.from_numpy(values).to(self.matrices if len(shape) > 1 else self.dtype)


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


def write_weights(case: Case, weights: dict[str, torch.Tensor], at: Path) -> None:
    """model.safetensors, or shards and their index as save_pretrained of transformers writes them."""
    if not case.shard_bytes:
        save_file(weights, at / "model.safetensors", metadata={"format": "pt"})
        return
    split = split_torch_state_dict_into_shards(weights, filename_pattern="model{suffix}.safetensors",
                                               max_shard_size=case.shard_bytes)
    for file, names in split.filename_to_tensors.items():
        save_file({n: weights[n] for n in names}, at / file, metadata={"format": "pt"})
    index = {"metadata": {"total_parameters": sum(w.numel() for w in weights.values())} | split.metadata,
             "weight_map": split.tensor_to_filename}
    text = json.dumps(index, indent=2, sort_keys=True) + "\n"
    (at / "model.safetensors.index.json").write_text(text, encoding="utf-8")


MODULE_TYPES = {
    False: {m: f"sentence_transformers.models.{m}" for m in ("Transformer", "Pooling", "Dense", "Normalize")},
    True: {
        "Transformer": "sentence_transformers.base.modules.transformer.Transformer",
        "Pooling": "sentence_transformers.sentence_transformer.modules.pooling.Pooling",
        "Dense": "sentence_transformers.base.modules.dense.Dense",
        "Normalize": "sentence_transformers.base.modules.normalize.Normalize",
    },
}


def write_modules(case: Case, rand: Random, at: Path) -> None:
    """modules.json and the folders it names."""
    if case.pooling is None:
        return
    names = ["Transformer", "Pooling"] + ["Dense"] * bool(case.dense) + ["Normalize"] * case.normalize
    paths = [""] + [f"{i}_{name}" for i, name in enumerate(names) if i]
    types = MODULE_TYPES[case.modern]
    refcommon.write_json(at / "modules.json", [
        {"idx": i, "name": str(i), "path": path, "type": types[name]} for i, (name, path) in enumerate(zip(names, paths))
    ])
    dim_key = "embedding_dimension" if case.modern else "word_embedding_dimension"
    refcommon.write_json(at / "1_Pooling" / "config.json", {dim_key: case.hidden} | case.pooling)
    if case.modern:
        sbert = {"transformer_task": "feature-extraction", "module_output_name": "token_embeddings", "modality_config": {
            "text": {"method": "forward", "method_output_name": "last_hidden_state"}}}
        if case.normalize:
            refcommon.write_json(at / paths[-1] / "config.json", {
                "module_input_name": "sentence_embedding", "module_output_name": "sentence_embedding"})
    else:
        sbert = {"max_seq_length": case.max_seq_length, "do_lower_case": case.st_lower}
    refcommon.write_json(at / "sentence_bert_config.json", sbert)
    if case.dense:
        refcommon.write_json(at / "2_Dense" / "config.json", {
            "in_features": case.hidden, "out_features": case.dense, "bias": True,
            "activation_function": "torch.nn.modules.activation.Tanh"})
        save_file({"linear.weight": rand(case.dense, case.hidden), "linear.bias": rand(case.dense)},
                  at / "2_Dense" / "model.safetensors", metadata={"format": "pt"})
    if case.st_config is not None:
        refcommon.write_json(at / "config_sentence_transformers.json", case.st_config)


# --- what the reference makes of it ----------------------------------------------------------------------------------


def load(at: Path, dtype: torch.dtype) -> SentenceTransformer:
    """The model as sentence-transformers loads it, every module computing in `dtype` with plain attention."""
    model = SentenceTransformer(str(at), device="cpu", model_kwargs={"dtype": dtype, "attn_implementation": "eager"})
    return model.to(dtype).eval()


def trace(model: SentenceTransformer, text: str) -> tuple[np.ndarray, dict[str, torch.Tensor]]:
    """encode(text), and what its forward pass computed on the way."""
    seen: dict[str, torch.Tensor] = {}
    bert, hooks = model[0].auto_model, []

    def keep(module, name: str) -> None:
        hooks.append(module.register_forward_hook(
            lambda _m, _in, out: seen.__setitem__(name, (out[0] if isinstance(out, tuple) else out)[0].clone())))

    keep(bert.embeddings, "embed")
    for i, layer in enumerate(bert.encoder.layer):
        keep(layer.attention.output.dense, f"layer.{i}.attn_out")
        keep(layer.attention.output, f"layer.{i}.attn_norm")
        keep(layer.output.dense, f"layer.{i}.ffn_out")
        keep(layer, f"layer.{i}.residual")
    hooks.append(model[1].register_forward_hook(
        lambda _m, _in, out: seen.__setitem__("pooled", out["sentence_embedding"][0].clone())))
    vector = model.encode(text)
    for hook in hooks:
        hook.remove()
    return vector, seen


def check_loaded(model: SentenceTransformer, weights: dict[str, torch.Tensor]) -> None:
    """Every weight of the model is the one that was meant, whatever it was called in the file."""
    have = model[0].auto_model.state_dict()
    for name, value in weights.items():
        if not torch.equal(have[name], value.float()):
            raise ValueError(f"{name} was not loaded as written")


def entry(model: SentenceTransformer, exact: SentenceTransformer, text: str, how: dict) -> tuple[dict, float]:
    """One element of `texts`, and the largest difference of its embedding to float64."""
    prompt = model._resolve_prompt(how.get("prompt"), how.get("prompt_name"))
    features = model.preprocess([text], prompt=prompt)
    ids = features["input_ids"][0].tolist()
    vector = model.encode(text, **how)
    made = {"text": text} | how | {
        "ids": ids,
        "n_tokens_untruncated": len(model.tokenizer((prompt or "") + text, truncation=False)["input_ids"]),
    }
    if not model[1].include_prompt and "prompt_length" in features:
        made["prompt_tokens"] = int(features["prompt_length"])
    made["embedding"] = vector
    return made, float(np.abs(vector.astype(np.float64) - exact.encode(text, **how)).max())


def write_expected(case: Case, model: SentenceTransformer, entries: list[dict], error: float, at: Path) -> None:
    packages = ("torch", "transformers", "sentence-transformers", "tokenizers", "safetensors", "numpy")
    pooling = model[1].pooling_mode
    head = {
        "case": case.name,
        "reference": refcommon.versions(*packages),
        "pooling": pooling if isinstance(pooling, str) else list(pooling),
        "normalized": case.normalize,
        "dim": len(entries[0]["embedding"]),
        "max_tokens": int(model.max_seq_length),
        "max_abs_f32_minus_f64": float(f"{error:.2g}"),
        "notes": list(case.notes),
    }
    lines = [f" {refcommon.dumps(k)}: {refcommon.dumps(v)}," for k, v in head.items()]
    rows = []
    for e in entries:
        plain = {k: v for k, v in e.items() if k != "embedding"}
        rows.append(f'  {refcommon.dumps(plain)[:-1]}, "embedding": {refcommon.f32_list(e["embedding"])}}}')
    body = "\n".join(["{"] + lines + [' "texts": ['] + [",\n".join(rows)] + [" ]", "}"])
    json.loads(body)
    (at / "expected.json").write_text(body + "\n", encoding="utf-8")


def check_ids(case: Case, entries: list[dict], model: SentenceTransformer, at: Path) -> None:
    """The ids follow from tokenizer.json alone: the limit is applied, what the file bakes in is not."""
    if case.vocab_txt_only:
        return
    tok = Tokenizer.from_file(str(at / "tokenizer.json"))
    tok.no_padding()
    if case.st_lower:
        tok.normalizer = normalizers.Sequence([normalizers.Lowercase(), tok.normalizer])
    tok.enable_truncation(int(model.max_seq_length))
    for e in entries:
        prompt = model._resolve_prompt(e.get("prompt"), e.get("prompt_name")) or ""
        text = prompt + e["text"]
        if tok.encode(text).ids != e["ids"]:
            raise ValueError(f"{case.name}: tokenizer.json and the reference differ on {text!r}")


def make(case: Case) -> int:
    """Writes one case; returns its size in bytes."""
    at = OUT / case.name
    shutil.rmtree(at, ignore_errors=True)
    at.mkdir(parents=True)
    tok, rand = tokenizer_of(case), Random(case.name, case.dtype, case.f8)
    write_tokenizer(case, tok, at)
    refcommon.write_json(at / "config.json", model_config(case, tok))
    weights = model_weights(case, rand)
    write_weights(case, file_weights(case, weights, rand), at)
    write_modules(case, rand, at)

    model, exact = load(at, torch.float32), load(at, torch.float64)
    check_loaded(model, weights)
    entries, error, tensors = [], 0.0, {}
    for how, text in [({}, t) for t in TEXTS] + list(case.prompted):
        made, diff = entry(model, exact, text, how)
        entries.append(made)
        error = max(error, diff)
    for index in TRACED:
        vector, seen = trace(model, TEXTS[index])
        if not np.array_equal(vector, entries[index]["embedding"]):
            raise ValueError("a traced run gives other values")
        tensors |= {f"t{index}.{name}": value.contiguous() for name, value in seen.items()}
    check_ids(case, entries, model, at)
    save_file(tensors, at / "layers.safetensors")
    write_expected(case, model, entries, error, at)
    return sum(f.stat().st_size for f in at.rglob("*") if f.is_file())


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    wanted = sys.argv[1:]
    unknown = set(wanted) - {c.name for c in CASES}
    if unknown:
        sys.exit(f"no such case: {', '.join(sorted(unknown))}")
    for case in CASES:
        if not wanted or case.name in wanted:
            print(f"{case.name}: {make(case)} bytes", flush=True)


if __name__ == "__main__":
    main()
