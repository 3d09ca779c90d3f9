#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a BERT encoder of BGE-base's shape with random weights: a model directory and its ONNX graph, for timing only.

    random_bert.py SOURCE OUT [--layers 12 --d-model 768 --heads 12 --d-ff 3072]

SOURCE is a model directory whose tokenizer is taken (all-MiniLM-L6-v2 has BGE's vocabulary). OUT gets config.json, model.safetensors,
the tokenizer, modules.json with [CLS] pooling and normalising, and onnx/model.onnx.
"""

import argparse
import json
import pathlib
import shutil

import torch
import transformers


class Hidden(torch.nn.Module):
    """The graph that peers run: last hidden state only."""

    def __init__(self, bert):
        super().__init__()
        self.bert = bert

    def forward(self, input_ids, attention_mask, token_type_ids):
        return self.bert(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids).last_hidden_state


def save_modules(out, d):
    modules = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
               {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
               {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]
    (out / "modules.json").write_text(json.dumps(modules, indent=2), encoding="utf-8")
    (out / "1_Pooling").mkdir(exist_ok=True)
    pooling = {"word_embedding_dimension": d, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False,
               "pooling_mode_max_tokens": False, "pooling_mode_mean_sqrt_len_tokens": False}
    (out / "1_Pooling" / "config.json").write_text(json.dumps(pooling, indent=2), encoding="utf-8")
    (out / "sentence_bert_config.json").write_text('{"max_seq_length": 512, "do_lower_case": false}', encoding="utf-8")


def export(bert, path):
    ids = torch.randint(1000, 20000, (2, 16))
    axes = {0: "batch", 1: "tokens"}
    names = ["input_ids", "attention_mask", "token_type_ids"]
    path.parent.mkdir(exist_ok=True)
    with torch.no_grad():
        torch.onnx.export(Hidden(bert), (ids, torch.ones_like(ids), torch.zeros_like(ids)), str(path), input_names=names,
                          output_names=["last_hidden_state"], dynamic_axes=dict.fromkeys(names + ["last_hidden_state"], axes),
                          opset_version=17, dynamo=False)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("source", type=pathlib.Path)
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--layers", type=int, default=12)
    p.add_argument("--d-model", type=int, default=768)
    p.add_argument("--heads", type=int, default=12)
    p.add_argument("--d-ff", type=int, default=3072)
    args = p.parse_args()
    torch.manual_seed(1)
    vocab = json.loads((args.source / "config.json").read_text(encoding="utf-8"))["vocab_size"]
    config = transformers.BertConfig(vocab_size=vocab, hidden_size=args.d_model, num_hidden_layers=args.layers,
                                     num_attention_heads=args.heads, intermediate_size=args.d_ff)
    # Eager attention with plain arithmetic is what the exporter turns into a graph that onnxruntime fuses.
    bert = transformers.BertModel._from_config(config, attn_implementation="eager", add_pooling_layer=False).eval()
    args.out.mkdir(parents=True, exist_ok=True)
    bert.save_pretrained(args.out)
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json"):
        if (args.source / name).exists():
            shutil.copy(args.source / name, args.out / name)
    save_modules(args.out, args.d_model)
    export(bert, args.out / "onnx" / "model.onnx")


if __name__ == "__main__":
    main()
