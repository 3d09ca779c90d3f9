#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/rerank/CASE: tiny random cross-encoders and what the reference scores pairs with.

Each case is a whole model directory with expected.json beside it (README.md has the formats).

    make_rerank_goldens.py [CASE...]      all cases when none is named
"""

import dataclasses
import json
import re
import shutil
from pathlib import Path

import refcommon

refcommon.offline()

import numpy as np  # noqa: E402
import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from sentence_transformers import CrossEncoder  # noqa: E402
from sentence_transformers.cross_encoder.modules import LogitScore  # noqa: E402
from sentence_transformers.util import import_from_string  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402
from transformers import (  # noqa: E402
    AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer)

import family_cases  # noqa: E402
import nomic_reference  # noqa: E402
from make_family_goldens import FILE_NAMES, RULES as EMBEDDER_RULES, with_config  # noqa: E402
import tiny_tokenizers as tiny  # noqa: E402
from st_goldens import Random, run  # noqa: E402

OUT = refcommon.GOLDEN / "rerank"
IDENTITY = "torch.nn.modules.linear.Identity"
SIGMOID = "torch.nn.modules.activation.Sigmoid"

LONG_TEXT = "The last night was dark and cold. One day a young woman from the white mountain house walked to the water. " * 3
PAIRS = [
    ("green river", "The green river runs."),
    ("green river", "Small houses by the old river, 12 miles."),
    ("green river", ""),
    ("", "water"),
    ("Where is the old house?", LONG_TEXT),
    (LONG_TEXT, "water and fire"),
    (LONG_TEXT, LONG_TEXT[::-1]),
    ("Caf\u00e9 na\u00efve \u00dcBER", "\u4e2d\u56fd\u4eba \u6771\u4eac Stra\u00dfe \u041c\u043e\u0441\u043a\u0432\u0430 \u30ab\u3099\u304b \U0001f600\nlines\there"),
    ("a", "a"),
    ("One day a young woman from the white house", "read a long letter of fire and light by the small water"),
]

RERANK_INSTRUCTION = "Given a web search query, retrieve relevant passages that answer the query"
PREFIX = ("<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
          "provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n")
SUFFIX = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
CHAT_TEMPLATE = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. "
    "Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n"
    "<Instruct>: {{ messages | selectattr(\"role\", \"eq\", \"system\") | map(attribute=\"content\") | first | default(\""
    + RERANK_INSTRUCTION + "\") }}\n"
    "<Query>: {{ messages | selectattr(\"role\", \"eq\", \"query\") | map(attribute=\"content\") | first }}\n"
    "<Document>: {{ messages | selectattr(\"role\", \"eq\", \"document\") | map(attribute=\"content\") | first }}"
    "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n\n")  # Jinja drops the last newline


@dataclasses.dataclass
class Case:
    """One cross-encoder."""

    name: str
    tokenizer: tuple
    config: dict  # config.json without vocab_size, dtype and labels
    labels: int = 1
    declared: dict = dataclasses.field(default_factory=dict)  # further fields of config.json: the activation
    st_config: dict | None = None  # config_sentence_transformers.json
    saved: bool = False  # as the package saves it: with modules.json, and st_config's activation and prompts
    dtype: str = "float32"
    torch_dtype: bool = True
    model_max_length: int = 40
    kind: str = "classifier"  # classifier, causal (scored by the model card's code), logit_score (by the package)
    prompts: tuple = ()  # (keyword arguments of predict, query, document) beyond PAIRS
    pairs: tuple = tuple(PAIRS)
    probes: tuple = ()
    notes: tuple = ()

    def file_config(self) -> dict:
        config = self.config | {"torch_dtype" if self.torch_dtype else "dtype": self.dtype,
                                "vocab_size": self.tokenizer[0].get_vocab_size()} | self.declared
        if self.kind == "classifier":
            names = ["LABEL_0"] if self.labels == 1 else ["contradiction", "entailment", "neutral"]
            config |= {"id2label": {str(i): n for i, n in enumerate(names)}, "label2id": {n: i for i, n in enumerate(names)}}
        return config


# --- the directory ---------------------------------------------------------------------------------------------------

RULES = [(r"(classifier|out_proj|score|pre_classifier|pooler\.dense|head\.dense)\.weight$", 0.45, 0.0), *EMBEDDER_RULES]


def write_directory(case: Case, at: Path) -> dict[str, torch.Tensor]:
    tok, tok_config = case.tokenizer
    (at / "tokenizer.json").write_text(tok.to_str() + "\n", encoding="utf-8")
    refcommon.write_json(at / "tokenizer_config.json", tok_config | {"model_max_length": case.model_max_length})
    refcommon.write_json(at / "config.json", case.file_config())
    kind = AutoModelForSequenceClassification if case.kind == "classifier" else AutoModelForCausalLM
    with torch.device("meta"):
        shapes = {n: p.shape for n, p in kind.from_config(AutoConfig.from_pretrained(at)).named_parameters()}
    rand, weights = Random("rerank/" + case.name, case.dtype), {}
    for name, shape in shapes.items():
        if name != "lm_head.weight":  # tied
            scale, offset = next((s, o) for pattern, s, o in RULES if re.search(pattern, name))
            weights[name] = rand(*shape, scale=scale, offset=offset)
    published = FILE_NAMES.get(case.config["model_type"], dict)(weights)
    save_file(published, at / "model.safetensors", metadata={"format": "pt"})
    if case.st_config is not None and not case.saved:
        refcommon.write_json(at / "config_sentence_transformers.json", case.st_config)
    return weights


def load(at: Path, dtype: torch.dtype) -> CrossEncoder:
    model = CrossEncoder(str(at), device="cpu", model_kwargs={"dtype": dtype, "attn_implementation": "eager"})
    return model.to(dtype).eval()


# --- what the reference makes of it ----------------------------------------------------------------------------------


def entry(model: CrossEncoder, exact: CrossEncoder, query: str, document: str, how: dict) -> tuple[dict, float]:
    """One element of `pairs`, and the largest difference of its logits to float64."""
    pair, raw = [(query, document)], torch.nn.Identity()
    prompt = model._resolve_prompt(how.get("prompt"), how.get("prompt_name"))
    features = model.preprocess(pair, prompt=prompt)
    whole = model.preprocess(pair, prompt=prompt, processing_kwargs={"text": {"truncation": False}})
    made = {"query": query, "document": document} | how | {"ids": features["input_ids"][0].tolist()}
    if "token_type_ids" in features:
        made["types"] = features["token_type_ids"][0].tolist()
    made |= {"n_tokens": len(made["ids"]), "n_tokens_untruncated": whole["input_ids"].shape[1]}
    made["logits"] = np.atleast_1d(model.predict(pair, activation_fn=raw, **how)[0])
    made["scores"] = np.atleast_1d(model.predict(pair, **how)[0])
    far = np.atleast_1d(exact.predict(pair, activation_fn=raw, **how)[0])
    return made, float(np.abs(made["logits"].astype(np.float64) - far).max())


class ModelCard:
    """Scores as the model card of Qwen3-Reranker computes them."""

    def __init__(self, at: Path, dtype: torch.dtype):
        self.tokenizer = AutoTokenizer.from_pretrained(at, padding_side="left")
        self.model = AutoModelForCausalLM.from_pretrained(at, dtype=dtype, attn_implementation="eager").eval()
        self.max_seq_length = self.tokenizer.model_max_length
        self.prefix = self.tokenizer.encode(PREFIX, add_special_tokens=False)
        self.suffix = self.tokenizer.encode(SUFFIX, add_special_tokens=False)

    def ids(self, query: str, document: str, instruction: str, limit: int) -> list[int]:
        text = f"<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {document}"
        room = limit - len(self.prefix) - len(self.suffix)
        made = self.tokenizer([text], padding=False, truncation="longest_first", return_attention_mask=False, max_length=room)
        return self.prefix + made["input_ids"][0] + self.suffix

    @torch.no_grad()
    def logit(self, ids: list[int]) -> tuple[float, float]:
        """The logit of yes less that of no, and the probability of yes between the two."""
        last = self.model(input_ids=torch.tensor([ids])).logits[0, -1]
        no, yes = (last[self.tokenizer.convert_tokens_to_ids(t)] for t in ("no", "yes"))
        return (yes - no).item(), torch.log_softmax(torch.stack([no, yes]), dim=0)[1].exp().item()


def card_entry(model: ModelCard, exact: ModelCard, query: str, document: str, how: dict) -> tuple[dict, float]:
    instruction = how.get("prompt", RERANK_INSTRUCTION)
    ids = model.ids(query, document, instruction, model.max_seq_length)
    logit, score = model.logit(ids)
    made = {"query": query, "document": document} | how | {
        "ids": ids, "n_tokens": len(ids), "n_tokens_untruncated": len(model.ids(query, document, instruction, 1 << 20)),
        "logits": np.float32([logit]), "scores": np.float32([score])}
    return made, abs(logit - exact.logit(ids)[0])


def check_ids(case: Case, entries: list[dict], at: Path, limit: int) -> None:
    """Ids and types follow from tokenizer.json alone."""
    tok = Tokenizer.from_file(str(at / "tokenizer.json"))
    tok.no_padding()
    tok.enable_truncation(limit, strategy="longest_first")
    for e in entries:
        prompts = (case.st_config or {}).get("prompts", {}) if case.saved else {}
        default = (case.st_config or {}).get("default_prompt_name")
        prompt = e["prompt"] if "prompt" in e else prompts.get(e.get("prompt_name", default), "")
        made = tok.encode(prompt + e["query"], e["document"])
        if made.ids != e["ids"] or ("types" in e and made.type_ids != e["types"]):
            raise ValueError(f"{case.name}: tokenizer.json and the reference differ on {e['query']!r}, {e['document']!r}")


def write_expected(case: Case, activation: str, limit: int, entries: list[dict], error: float, at: Path) -> None:
    head = {
        "case": "rerank/" + case.name,
        "reference": refcommon.versions("torch", "transformers", "sentence-transformers", "tokenizers", "safetensors", "numpy"),
        "num_labels": case.labels, "activation": activation, "max_tokens": limit,
        "max_abs_f32_minus_f64": float(f"{error:.2g}"), "notes": list(case.notes)}
    lines = [f" {refcommon.dumps(k)}: {refcommon.dumps(v)}," for k, v in head.items()]
    rows = []
    for e in entries:
        plain = {k: v for k, v in e.items() if k not in ("logits", "scores")}
        rows.append(f'  {refcommon.dumps(plain)[:-1]}, "logits": {refcommon.f32_list(e["logits"])}, '
                    f'"scores": {refcommon.f32_list(e["scores"])}}}')
    body = "\n".join(["{"] + lines + [' "pairs": ['] + [",\n".join(rows)] + [" ]", "}"])
    json.loads(body)
    (at / "expected.json").write_text(body + "\n", encoding="utf-8")


def save_as_package(case: Case, at: Path, weights: dict[str, torch.Tensor]) -> None:
    """Makes the directory what sentence-transformers saves of it, with a chat template where it scores logits."""
    causal = case.kind == "logit_score"
    model = CrossEncoder(str(at), device="cpu", model_kwargs={"dtype": getattr(torch, case.dtype)},
                         processor_kwargs={"chat_template": CHAT_TEMPLATE} if causal else {})
    if causal and not isinstance(model[1], LogitScore):
        raise ValueError("the package does not score with LogitScore any more")
    model.prompts, model.default_prompt_name = dict(case.st_config["prompts"]), case.st_config["default_prompt_name"]
    if case.st_config.get("activation_fn"):
        model.activation_fn = import_from_string(case.st_config["activation_fn"])()
    shutil.rmtree(at)
    model.save_pretrained(str(at), create_model_card=False)
    for name in ("generation_config.json", ".gitattributes"):
        (at / name).unlink(missing_ok=True)
    if case.declared:
        config = json.loads((at / "config.json").read_text(encoding="utf-8"))
        refcommon.write_json(at / "config.json", config | case.declared)
    have = load_file(at / "model.safetensors")
    if any(not torch.equal(have[n], w) for n, w in weights.items()):
        raise ValueError(f"{case.name}: saved weights differ")


def check_probes(case: Case, entries: list[dict], at: Path) -> None:
    for change in case.probes:
        config = json.loads((at / "config.json").read_text(encoding="utf-8"))
        with with_config(at, config | change) as other:
            moved = load(other, torch.float32)
            far = max(float(np.abs(moved.predict([(e["query"], e["document"])], activation_fn=torch.nn.Identity())[0]
                                   - e["logits"]).max()) for e in entries[:5])
        if not far > 3e-3:
            raise ValueError(f"{case.name}: {change} moves logits by {far:.2g} only")


def make(case: Case) -> int:
    """Writes one case; returns its size in bytes."""
    at = OUT / case.name
    shutil.rmtree(at, ignore_errors=True)
    at.mkdir(parents=True)
    weights = write_directory(case, at)
    if case.kind == "causal":
        model, exact, one, activation = ModelCard(at, torch.float32), ModelCard(at, torch.float64), card_entry, "sigmoid"
    else:
        if case.saved:
            save_as_package(case, at, weights)
        model, exact, one = load(at, torch.float32), load(at, torch.float64), entry
        activation = type(model.activation_fn).__name__.lower()
        have = model[0].model.state_dict()
        if any(not torch.equal(have[n], w.float()) for n, w in weights.items()):
            raise ValueError(f"{case.name}: weights were not loaded as written")
    entries, error = [], 0.0
    for how, query, document in [({}, q, d) for q, d in case.pairs] + list(case.prompts):
        made, diff = one(model, exact, query, document, how)
        entries.append(made)
        error = max(error, diff)
    limit = int(model.max_seq_length)
    if case.kind == "logit_score":
        card = ModelCard(at, torch.float32)
        if any(e["ids"] != card.ids(e["query"], e["document"], RERANK_INSTRUCTION, limit) for e in entries[:len(case.pairs)]):
            raise ValueError(f"{case.name}: the chat template is not what the model card's code does")
    if case.kind == "classifier":
        check_ids(case, entries, at, limit)
        check_probes(case, entries, at)
    spread = np.ptp([e["logits"][0] for e in entries])
    if not spread > 0.1:
        raise ValueError(f"{case.name}: logits within {spread}")
    write_expected(case, activation, limit, entries, error, at)
    return sum(f.stat().st_size for f in at.rglob("*") if f.is_file())


# --- the cases -------------------------------------------------------------------------------------------------------


def bert(**changes) -> dict:
    return {"architectures": ["BertForSequenceClassification"], "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu",
            "hidden_dropout_prob": 0.1, "hidden_size": 21, "initializer_range": 0.02, "intermediate_size": 37,
            "layer_norm_eps": 1e-12, "max_position_embeddings": 44, "model_type": "bert", "num_attention_heads": 3,
            "num_hidden_layers": 2, "pad_token_id": 0, "position_embedding_type": "absolute", "type_vocab_size": 2,
            "use_cache": True} | changes


def edited(tokenizer: tuple, **changes) -> tuple:
    """The same tokenizer with other fields in tokenizer_config.json."""
    return tokenizer[0], tokenizer[1] | changes


def declared(path: str) -> dict:
    """The activation as versions 4 and 5 wrote it into config.json."""
    return {"sentence_transformers": {"activation_fn": path, "version": "4.1.0"}}


def st(path: str | None, **more) -> dict:
    """config_sentence_transformers.json as version 6 writes it."""
    return {"__version__": {"sentence_transformers": "6.2.0", "transformers": "5.24.0", "pytorch": "2.15.0"},
            "activation_fn": path, "default_prompt_name": None, "model_type": "CrossEncoder", "prompts": {}} | more


def qwen3_causal(**changes) -> dict:
    return family_cases.qwen3(intermediate_size=29, num_hidden_layers=1) | {"eos_token_id": 298} | changes



CASES = [
    Case("bert_msmarco", tiny.bert(), bert(), declared=declared(IDENTITY), probes=({"layer_norm_eps": 0.01},),
         notes=("Identity from config.json's sentence_transformers.activation_fn.",)),
    Case("bert_sigmoid_default", tiny.bert(140), bert(hidden_size=20, num_attention_heads=2, hidden_act="relu",
                                                      num_hidden_layers=1), model_max_length=44, dtype="float16",
         notes=("Nothing declares an activation: one label, so sigmoid.",)),
    Case("bert_no_types", edited(tiny.bert(), model_input_names=["input_ids", "attention_mask"]), bert(num_hidden_layers=1),
         notes=("tokenizer_config.json lists no token_type_ids: the model gets none, type 0 for all.",)),
    Case("bert_three_labels", tiny.bert(), bert(num_hidden_layers=1), labels=3,
         notes=("Several labels and nothing declared: identity.",)),
    Case("roberta_oldest_identity", tiny.roberta(), family_cases.roberta("roberta") | {
        "architectures": ["RobertaForSequenceClassification"]},
         declared={"sbert_ce_default_activation_function": IDENTITY},
         notes=("Identity from the field of versions before 4.",)),
    Case("xlm_roberta_st_config_alone", tiny.xlm_roberta(), family_cases.roberta("xlm-roberta", hidden_size=21, num_attention_heads=3) | {
        "architectures": ["XLMRobertaForSequenceClassification"]}, st_config=st(SIGMOID), declared=declared(IDENTITY),
         dtype="bfloat16",
         notes=("config_sentence_transformers.json is not read where there is no modules.json: identity, from config.json.",)),
    Case("xlm_roberta_saved", tiny.xlm_roberta(40), family_cases.roberta("xlm-roberta", hidden_size=18, num_attention_heads=2) | {
        "architectures": ["XLMRobertaForSequenceClassification"]}, saved=True, st_config=st(IDENTITY),
         declared=declared(SIGMOID), dtype="float16",
         notes=("config_sentence_transformers.json says identity, config.json sigmoid: the first is followed.",)),
    Case("xlm_roberta_saved_prompts", tiny.xlm_roberta(50), family_cases.roberta("xlm-roberta", num_hidden_layers=1) | {
        "architectures": ["XLMRobertaForSequenceClassification"]}, saved=True,
         st_config=st(SIGMOID, prompts={"query": "query: ", "ask": "read: "}, default_prompt_name="query"),
         prompts=(({"prompt_name": "ask"}, *PAIRS[0]), ({"prompt": ""}, *PAIRS[0]), ({"prompt": "the "}, *PAIRS[2])),
         notes=("A prompt goes before the query only.",)),
    Case("camembert", tiny.xlm_roberta(40, own_class="CamembertTokenizer"), family_cases.roberta(
        "camembert", hidden_size=18, num_attention_heads=2, bos_token_id=5, eos_token_id=6) | {
            "architectures": ["CamembertForSequenceClassification"]}, declared=declared(IDENTITY)),
    Case("data2vec_text", tiny.roberta(40), family_cases.roberta("data2vec-text", hidden_size=21, num_attention_heads=3,
                                                                 num_hidden_layers=1) | {
        "architectures": ["Data2VecTextForSequenceClassification"]}, dtype="float16"),
    Case("ernie", tiny.bert(), family_cases.bert_like("ernie", "ErnieForSequenceClassification", use_task_id=True,
                                                      task_type_vocab_size=3, type_vocab_size=4, num_hidden_layers=1),
         declared=declared(IDENTITY), probes=({"use_task_id": False},)),
    Case("electra", tiny.bert(140), family_cases.bert_like("electra", "ElectraForSequenceClassification", embedding_size=13,
                                                           hidden_size=22, num_attention_heads=2, num_hidden_layers=1),
         dtype="bfloat16", probes=({"hidden_act": "silu"},),
         notes=("The head's activation is GELU, whatever summary_activation says.",)),
    Case("nomic_bert", tiny.bert(), nomic_reference.modern_config(family_cases.nomic() | {"vocab_size": 0}) | {
        "architectures": ["NomicBertForSequenceClassification"]}, declared=declared(IDENTITY)),
    Case("jina_embeddings_v3", tiny.xlm_roberta(30), family_cases.jina(
        architectures=["JinaEmbeddingsV3ForSequenceClassification"]), torch_dtype=False),
    Case("distilbert", tiny.distilbert(), family_cases.distilbert() | {
        "architectures": ["DistilBertForSequenceClassification"], "seq_classif_dropout": 0.2, "problem_type": None}),
    Case("mpnet", tiny.mpnet(), family_cases.mpnet() | {"architectures": ["MPNetForSequenceClassification"]},
         declared=declared(IDENTITY)),
    Case("modernbert_cls", tiny.modernbert(), family_cases.modernbert(
        hidden_size=18, num_attention_heads=3, num_hidden_layers=2, global_attn_every_n_layers=2, classifier_pooling="cls",
        architectures=["ModernBertForSequenceClassification"]), model_max_length=60,
         probes=({"classifier_pooling": "mean"}, {"local_attention": 8}, {"classifier_activation": "silu"})),
    Case("modernbert_mean", tiny.modernbert(30), family_cases.modernbert(
        30, hidden_size=20, num_hidden_layers=1, classifier_pooling="mean", classifier_bias=True, norm_bias=True,
        classifier_activation="silu", architectures=["ModernBertForSequenceClassification"]), model_max_length=60,
         dtype="bfloat16", saved=True, st_config=st(IDENTITY), probes=({"classifier_pooling": "cls"}, {"classifier_activation": "gelu"})),
    Case("gte", tiny.xlm_roberta(50), family_cases.gte(architectures=["GteForSequenceClassification"]), torch_dtype=False),
    Case("qwen3_seq_cls", tiny.qwen(30, appended=None), qwen3_causal(pad_token_id=291) | {
        "architectures": ["Qwen3ForSequenceClassification"]}, pairs=tuple(p for p in PAIRS if p != ("", "")),
         dtype="bfloat16", model_max_length=70,
         notes=("Plain pairs, as the package feeds a sequence classifier: query and document stand side by side.",)),
    Case("qwen3_reranker_card", tiny.qwen(40, appended=None), qwen3_causal(), kind="causal", dtype="bfloat16",
         model_max_length=260,
         prompts=(({"prompt": "Find the river"}, *PAIRS[0]), ({"prompt": "Find the river"}, *PAIRS[4])),
         notes=("No modules.json: prefix, suffix and truncation of the text between them as in the model card's code; "
                "scores are the probability of yes.", "`prompt` is the instruction.")),
    Case("qwen3_reranker_st6", tiny.qwen(40, appended=None), qwen3_causal(), kind="logit_score", saved=True, dtype="bfloat16",
         model_max_length=260, st_config={"prompts": {"web": RERANK_INSTRUCTION, "river": "Find the river"},
                                          "default_prompt_name": "web"},
         prompts=(({"prompt_name": "river"}, *PAIRS[0]), ({"prompt": "Find the river"}, *PAIRS[4]), ({"prompt": ""}, *PAIRS[1])),
         notes=("The directory is as the package saves it; the prompt is the system message of the chat template.",)),
]


if __name__ == "__main__":
    run(CASES, make)
