# SPDX-License-Identifier: Apache-2.0
"""Shared by the scripts that make goldens of embedding models: the texts, seeded weights, sentence-transformers files
(modules.json and the folders that it names), and the record of what the reference gives for a directory.

README.md beside this file has the formats of what is written.
"""

import dataclasses
import json
import logging
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


@dataclasses.dataclass(kw_only=True)
class Directory:
    """What sentence-transformers' files of one model directory say. Fields that a file states are written as they are."""

    pooling: dict | None = None  # 1_Pooling/config.json without the dimension; None: no modules.json
    dense: tuple = ()  # Dense modules after it
    normalize: bool = False
    modern: bool = False  # files as sentence-transformers 6 writes them, else as versions 2 to 5 did
    max_seq_length: int | None = 40  # sentence_bert_config.json; None: not stated
    st_lower: bool = False  # do_lower_case of sentence_bert_config.json
    st_config: dict | None = None  # config_sentence_transformers.json
    empty: str = ""  # what stands for the empty text, where the tokenizer makes nothing of that
    prompted: tuple = ()  # (keyword arguments of encode, text) beyond the plain texts
    notes: tuple = ()


@dataclasses.dataclass
class Dense:
    """One Dense module: outputs, whether it has a bias, its activation."""

    out: int
    bias: bool = True
    activation: str = "torch.nn.modules.activation.Tanh"


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


class Random:
    """Seeded weights, in the order in which they are asked for."""

    def __init__(self, name: str, dtype: str, matrices: str = ""):
        self.rng = np.random.Generator(np.random.PCG64(zlib.crc32(name.encode())))
        self.dtype, self.matrices = getattr(torch, dtype), getattr(torch, matrices or dtype)

    def __call__(self, *shape: int, scale: float = 0.2, offset: float = 0.0) -> torch.Tensor:
        values = self.rng.standard_normal(shape, dtype=np.float32) * np.float32(scale) + np.float32(offset)
        return torch.from_numpy(values).to(self.matrices if len(shape) > 1 else self.dtype)


MODULE_TYPES = {
    False: {m: f"sentence_transformers.models.{m}" for m in ("Transformer", "Pooling", "Dense", "Normalize")},
    True: {
        "Transformer": "sentence_transformers.base.modules.transformer.Transformer",
        "Pooling": "sentence_transformers.sentence_transformer.modules.pooling.Pooling",
        "Dense": "sentence_transformers.base.modules.dense.Dense",
        "Normalize": "sentence_transformers.base.modules.normalize.Normalize",
    },
}


def write_weights(weights: dict[str, torch.Tensor], at: Path, shard_bytes: int = 0) -> None:
    """model.safetensors, or shards and their index as save_pretrained of transformers writes them."""
    if not shard_bytes:
        save_file(weights, at / "model.safetensors", metadata={"format": "pt"})
        return
    split = split_torch_state_dict_into_shards(weights, filename_pattern="model{suffix}.safetensors",
                                               max_shard_size=shard_bytes)
    for file, names in split.filename_to_tensors.items():
        save_file({n: weights[n] for n in names}, at / file, metadata={"format": "pt"})
    index = {"metadata": {"total_parameters": sum(w.numel() for w in weights.values())} | split.metadata,
             "weight_map": split.tensor_to_filename}
    text = json.dumps(index, indent=2, sort_keys=True) + "\n"
    (at / "model.safetensors.index.json").write_text(text, encoding="utf-8")


def write_modules(case, rand: Random, at: Path) -> None:
    """modules.json and the folders it names."""
    if case.pooling is None:
        return
    names = ["Transformer", "Pooling"] + ["Dense"] * len(case.dense) + ["Normalize"] * case.normalize
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
    width = case.hidden
    for i, dense in enumerate(case.dense):
        refcommon.write_json(at / paths[2 + i] / "config.json", {
            "in_features": width, "out_features": dense.out, "bias": dense.bias,
            "activation_function": dense.activation})
        weights = {"linear.weight": rand(dense.out, width)} | ({"linear.bias": rand(dense.out)} if dense.bias else {})
        save_file(weights, at / paths[2 + i] / "model.safetensors", metadata={"format": "pt"})
        width = dense.out
    if case.st_config is not None:
        refcommon.write_json(at / "config_sentence_transformers.json", case.st_config)


def forget_lengths(rope) -> None:
    """Dynamic NTK goes by the longest text so far: here every text is the first."""
    rope.inv_freq, rope.max_seq_len_cached = rope.original_inv_freq, rope.original_max_seq_len


def load(at: Path, dtype: torch.dtype) -> SentenceTransformer:
    """The model as sentence-transformers loads it, every module computing in `dtype` with plain attention."""
    model = SentenceTransformer(str(at), device="cpu", model_kwargs={"dtype": dtype, "attn_implementation": "eager"})
    rope = getattr(model[0].auto_model, "rotary_emb", None)
    if getattr(rope, "rope_type", None) == "dynamic":
        rope.register_forward_pre_hook(lambda m, _args: forget_lengths(m))
    return model.to(dtype).eval()


def trace(model: SentenceTransformer, text: str, points) -> tuple[np.ndarray, dict[str, torch.Tensor]]:
    """encode(text), and what its forward pass computed on the way. points(model) gives (name, module) to write down."""
    seen: dict[str, torch.Tensor] = {}
    hooks = []

    def keep(module, name: str) -> None:
        hooks.append(module.register_forward_hook(
            lambda _m, _in, out: seen.__setitem__(name, (out[0] if isinstance(out, tuple) else out)[0].clone())))

    for name, module in points(model[0].auto_model):
        keep(module, name)
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


def write_expected(case, model: SentenceTransformer, entries: list[dict], error: float, at: Path) -> None:
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


def check_ids(case, entries: list[dict], model: SentenceTransformer, at: Path) -> None:
    """The ids follow from tokenizer.json alone: the limit is applied, what the file bakes in is not."""
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


def record(case, model: SentenceTransformer, exact: SentenceTransformer, points, at: Path) -> int:
    """Writes expected.json and layers.safetensors of a directory that is complete but for them; returns its size."""
    entries, error, tensors = [], 0.0, {}
    texts = [t or case.empty for t in TEXTS]
    for how, text in [({}, t) for t in texts] + list(case.prompted):
        made, diff = entry(model, exact, text, how)
        entries.append(made)
        error = max(error, diff)
    for index in TRACED:
        vector, seen = trace(model, texts[index], points)
        if not np.array_equal(vector, entries[index]["embedding"]):
            raise ValueError("a traced run gives other values")
        tensors |= {f"t{index}.{name}": value.contiguous() for name, value in seen.items()}
    if (at / "tokenizer.json").exists():
        check_ids(case, entries, model, at)
    save_file(tensors, at / "layers.safetensors")
    write_expected(case, model, entries, error, at)
    return sum(f.stat().st_size for f in at.rglob("*") if f.is_file())


def run(cases, make) -> None:
    """make(case) for the cases that the command line names, all when it names none."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    wanted = sys.argv[1:]
    unknown = set(wanted) - {c.name for c in cases}
    if unknown:
        sys.exit(f"no such case: {', '.join(sorted(unknown))}")
    for case in cases:
        if not wanted or case.name in wanted:
            print(f"{case.name}: {make(case)} bytes", flush=True)
