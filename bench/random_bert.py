#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes an encoder of a real model's shape with random weights: a model directory and its ONNX graph, for timing only.

    random_bert.py SOURCE OUT [--family bert] [--dtype bfloat16] [--layers 12 --d-model 768 --heads 12 --d-ff 3072]

Families: bert (BGE-base's shape), roberta, xlm-roberta (multilingual-e5-base), mpnet (all-mpnet-base-v2), distilbert (6 layers),
modernbert (ModernBERT-base), nomic_bert (nomic-embed-text), gte (gte-base-en-v1.5), qwen3 (Qwen3-Embedding-0.6B; no graph, its
peer is sentence-transformers; SOURCE needs the tokenizer alone), qwen3_5 (Qwen3.5-0.8B as a language model, for gen_peers.py). SOURCE is a model directory whose tokenizer and
number of vocabulary rows are taken: one of the family, or whose ids fit (all-MiniLM-L6-v2 has BGE's vocabulary). OUT gets config.json,
model.safetensors, the tokenizer, modules.json with [CLS] pooling and normalising, and onnx/model.onnx.
"""

import argparse
import json
import math
import pathlib
import shutil

import torch
import transformers


TYPED = ["input_ids", "attention_mask", "token_type_ids"]
UNTYPED = TYPED[:2]


def usual(args, vocab, **more):
    return {"vocab_size": vocab, "hidden_size": args.d_model, "num_hidden_layers": args.layers or 12,
            "num_attention_heads": args.heads, "intermediate_size": args.d_ff or 3072} | more


def distilbert(args, vocab):
    return {"vocab_size": vocab, "dim": args.d_model, "n_layers": args.layers or 6, "n_heads": args.heads, "hidden_dim": args.d_ff or 3072}


def behind_pad(args, vocab, **more):
    return usual(args, vocab, max_position_embeddings=514, layer_norm_eps=1e-5, **more)


def roberta(args, vocab):
    return behind_pad(args, vocab, type_vocab_size=1)


def modernbert(args, vocab):
    return usual(args, vocab, num_hidden_layers=args.layers or 22, intermediate_size=args.d_ff or 1152, pad_token_id=0,
                 bos_token_id=101, cls_token_id=101, eos_token_id=102, sep_token_id=102)


def qwen3(args, vocab):
    args.d_model = 1024
    return {"vocab_size": 151936, "hidden_size": 1024, "num_hidden_layers": args.layers or 28, "num_attention_heads": 16,
            "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": args.d_ff or 3072, "rope_parameters": {
                "rope_type": "default", "rope_theta": 1e6}, "tie_word_embeddings": True}


def qwen3_5(args, vocab):
    args.d_model = 1024
    return {"vocab_size": 248320, "hidden_size": 1024, "num_hidden_layers": args.layers or 24, "num_attention_heads": 8,
            "num_key_value_heads": 2, "head_dim": 256, "intermediate_size": args.d_ff or 3584, "linear_num_key_heads": 16,
            "linear_num_value_heads": 16, "full_attention_interval": 4, "rope_parameters": {
                "rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.25, "mrope_section": [11, 11, 10]},
            "max_position_embeddings": 262144, "tie_word_embeddings": True}


def rotary(args, vocab):
    return usual(args, vocab, pad_token_id=0)


# configuration, inputs of the graph
FAMILIES = {"bert": (usual, TYPED), "roberta": (roberta, UNTYPED), "xlm-roberta": (roberta, UNTYPED),
            "mpnet": (behind_pad, UNTYPED), "distilbert": (distilbert, UNTYPED), "modernbert": (modernbert, UNTYPED),
            "nomic_bert": (rotary, TYPED), "gte": (rotary, TYPED), "qwen3": (qwen3, None),
            "qwen3_5": (qwen3_5, None)}


def remember(model):
    """Gates of delta nets as Mamba-2 begins (Dao and Gu 2024): decays from 0.2 to 0.99 a token, so that states hold something."""
    for name, p in model.named_parameters():
        if name.endswith("dt_bias"):
            dt = torch.exp(torch.empty(p.shape).uniform_(math.log(1e-3), math.log(1e-1)))
            p.data.copy_(dt + torch.log(-torch.expm1(-dt)))  # softplus makes dt of it
        elif name.endswith("A_log"):
            p.data.copy_(torch.empty(p.shape).uniform_(1, 16).log())


def make_model(args, config):
    if args.family != "qwen3_5":
        # Eager attention with plain arithmetic is what the exporter turns into a graph that onnxruntime fuses.
        return transformers.AutoModel.from_config(config, attn_implementation="eager").eval().to(getattr(torch, args.dtype))
    torch.set_default_dtype(getattr(torch, args.dtype))
    model = transformers.AutoModelForCausalLM.from_config(config)
    remember(model)
    return model


class Hidden(torch.nn.Module):
    """The graph that peers run: last hidden state only."""

    def __init__(self, encoder, names):
        super().__init__()
        self.encoder, self.names = encoder, names

    def forward(self, *inputs):
        return self.encoder(**dict(zip(self.names, inputs))).last_hidden_state


def save_modules(out, d, last):
    modules = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
               {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
               {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]
    (out / "modules.json").write_text(json.dumps(modules, indent=2), encoding="utf-8")
    (out / "1_Pooling").mkdir(exist_ok=True)
    pooling = {"word_embedding_dimension": d, "pooling_mode_cls_token": not last, "pooling_mode_lasttoken": last, "pooling_mode_mean_tokens": False,
               "pooling_mode_max_tokens": False, "pooling_mode_mean_sqrt_len_tokens": False}
    (out / "1_Pooling" / "config.json").write_text(json.dumps(pooling, indent=2), encoding="utf-8")
    (out / "sentence_bert_config.json").write_text('{"max_seq_length": 512, "do_lower_case": false}', encoding="utf-8")


def export(encoder, names, path):
    ids = torch.randint(1000, 20000, (2, 16))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)}
    axes = {0: "batch", 1: "tokens"}
    path.parent.mkdir(exist_ok=True)
    with torch.no_grad():
        torch.onnx.export(Hidden(encoder, names), tuple(inputs[n] for n in names), str(path), input_names=names,
                          output_names=["last_hidden_state"], dynamic_axes=dict.fromkeys(names + ["last_hidden_state"], axes),
                          opset_version=17, dynamo=False)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("source", type=pathlib.Path)
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--family", choices=FAMILIES, default="bert")
    p.add_argument("--layers", type=int, help="default: the family's")
    p.add_argument("--d-model", type=int, default=768)
    p.add_argument("--dtype", default="float32")
    p.add_argument("--heads", type=int, default=12)
    p.add_argument("--d-ff", type=int, help="default: the family's")
    args = p.parse_args()
    torch.manual_seed(1)
    config = args.source / "config.json"
    vocab = json.loads(config.read_text(encoding="utf-8"))["vocab_size"] if config.exists() else 0
    settings, names = FAMILIES[args.family]
    config = transformers.AutoConfig.for_model({"qwen3_5": "qwen3_5_text"}.get(args.family, args.family), **settings(args, vocab))
    encoder = make_model(args, config)
    args.out.mkdir(parents=True, exist_ok=True)
    encoder.save_pretrained(args.out)
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json"):
        if (args.source / name).exists():
            shutil.copy(args.source / name, args.out / name)
    if args.family != "qwen3_5":
        save_modules(args.out, args.d_model, names is None)
    if names:
        export(encoder, names, args.out / "onnx" / "model.onnx")


if __name__ == "__main__":
    main()
