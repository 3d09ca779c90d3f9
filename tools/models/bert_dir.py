# SPDX-License-Identifier: Apache-2.0
"""What the converters beside this file share: writing a model.safetensors and the small files of a sentence-transformers directory.

The same input gives the same bytes, so that the result can be checked by its sha256: tensors in name order, compact header padded with
spaces to a multiple of 8. Standard library only.
"""
import json
import math
import os
import struct


def write_safetensors(path, shapes, chunks):
    """shapes: {name: dims} of float32 tensors; chunks(name): an iterable of the bytes of one."""
    names, header, at = sorted(shapes), {"__metadata__": {"format": "pt"}}, 0
    for name in names:
        end = at + 4 * math.prod(shapes[name])
        header[name] = {"dtype": "F32", "shape": shapes[name], "data_offsets": [at, end]}
        at = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for name in names:
            written = sum(f.write(c) for c in chunks(name))
            if written != 4 * math.prod(shapes[name]):
                raise ValueError(f"{name}: {written} bytes for shape {shapes[name]}")


def write_text(directory, name, text):
    path = os.path.join(directory, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="\n") as f:
        f.write(text + "\n")


def write_json(directory, name, value, **style):
    write_text(directory, name, json.dumps(value, ensure_ascii=False, **(style or {"indent": 2})))


def write_members(directory, name, value):
    """An object with one member a line."""
    members = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in value.items())
    write_text(directory, name, "{\n" + members + "\n}")


def modules():
    """modules.json of transformer, pooling, normalisation."""
    kinds = (("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize"))
    return [{"idx": i, "name": str(i), "path": path, "type": "sentence_transformers.models." + kind}
            for i, (path, kind) in enumerate(kinds)]


def write_mean_pooling(directory, width, max_tokens):
    write_json(directory, "1_Pooling/config.json", {
        "word_embedding_dimension": width, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True,
        "pooling_mode_max_tokens": False, "pooling_mode_mean_sqrt_len_tokens": False})
    write_json(directory, "sentence_bert_config.json", {"max_seq_length": max_tokens, "do_lower_case": False})
