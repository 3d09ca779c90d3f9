#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""onnx_bert.py MODEL.onnx DIR: the weights of a BERT encoder out of an ONNX export, as float32 in a sentence-transformers directory.

An export that onnxruntime's quantize_dynamic has been over keeps three initialisers for each weight W: W_quantized (int8 or uint8), W_scale
(float, one or one a column) and W_zero_point; W = (q - zero_point) * scale, computed in double and rounded once to float32. A linear layer's
weight lies there as [in, out] under a name that means nothing; what it belongs to is the name of the MatMul node that reads it
(/encoder/layer.0/attention/self/query/MatMul_quant). Embedding tables, biases and norms have kept their names.

ONNX is protobuf; the few messages needed are read here by field number (onnx.proto): ModelProto.graph 7; GraphProto.node 1, .initializer 5;
NodeProto.input 1, .name 3, .op_type 4; TensorProto.dims 1, .data_type 2, .float_data 4, .int32_data 5, .name 8, .raw_data 9.
Standard library only.
"""
import json
import re
import struct
import sys

import bert_dir

FLOAT, UINT8, INT8 = 1, 2, 3  # TensorProto.DataType


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def message(data):
    """Yields (field number, value) of a protobuf message; length-delimited values are slices of data."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        wire = tag & 7
        if wire == 0:
            value, at = varint(data, at)
        else:
            if wire == 2:
                size, at = varint(data, at)
            elif wire in (1, 5):
                size = 8 if wire == 1 else 4
            else:
                raise ValueError(f"protobuf wire type {wire}")
            value = data[at:at + size]
            at += size
        yield tag >> 3, value


def integers(value):
    """A repeated integer field: one value, or several packed."""
    if isinstance(value, int):
        return [value]
    out, at = [], 0
    while at < len(value):
        v, at = varint(value, at)
        out.append(v)
    return out


class Initializer:
    def __init__(self, data):
        self.dims, self.kind, self.name = [], 0, ""
        raw, listed = None, bytearray()
        for field, value in message(data):
            if field == 1:
                self.dims += integers(value)
            elif field == 2:
                self.kind = value
            elif field == 8:
                self.name = bytes(value).decode()
            elif field == 9:
                raw = bytes(value)
            elif field == 4:
                listed += value
            elif field == 5:
                listed += bytes(v & 0xFF for v in integers(value))
        self.data = bytes(listed) if raw is None else raw

    def floats(self):
        if self.kind != FLOAT:
            raise ValueError(f"{self.name}: want float32")
        return struct.unpack(f"<{len(self.data) // 4}f", self.data)

    def bytes_as_ints(self):
        """int8 or uint8 values in the order 0..255 of their byte."""
        return [self.signed(b) for b in self.data]

    def signed(self, byte):
        return byte - 256 if self.kind == INT8 and byte > 127 else byte


class Weights:
    def __init__(self, path):
        with open(path, "rb") as f:
            model = memoryview(f.read())
        graph = next(value for field, value in message(model) if field == 7)
        self.init, self.matmuls = {}, []
        for field, value in message(graph):
            if field == 5:
                t = Initializer(value)
                self.init[t.name] = t
            elif field == 1:
                self.note_node(value)

    def note_node(self, data):
        inputs, name, op = [], "", ""
        for field, value in message(data):
            if field == 1:
                inputs.append(bytes(value).decode())
            elif field == 3:
                name = bytes(value).decode()
            elif field == 4:
                op = bytes(value).decode()
        if op in ("MatMul", "MatMulInteger"):
            self.matmuls.append((name, inputs))

    def float_tables(self, quantised):
        """For each column group of a quantised weight the 256 float32 that its bytes stand for."""
        base = quantised.name[:-len("_quantized")]
        scales = self.init[base + "_scale"].floats()
        zeros = self.init[base + "_zero_point"].bytes_as_ints()
        if len(zeros) == 1:
            zeros *= len(scales)
        return [[struct.pack("<f", s * (quantised.signed(b) - z)) for b in range(256)] for s, z in zip(scales, zeros)]

    def expand_rows(self, t):
        """A quantised table with one scale, as it lies."""
        table, = self.float_tables(t)
        return b"".join([table[b] for b in t.data])

    def expand_transposed(self, t):
        """[in, out] to [out, in]; quantised with one scale, or one an output."""
        columns = t.dims[1]
        if t.kind == FLOAT:
            rows = memoryview(t.data).cast("I")
            return b"".join(rows[c::columns].tobytes() for c in range(columns))
        tables = self.float_tables(t)
        if len(tables) == 1:
            tables *= columns
        return b"".join(b"".join([table[b] for b in t.data[c::columns]]) for c, table in enumerate(tables))

    def tensors(self):
        """{name: (dims, function that gives the bytes)} with Hugging Face names."""
        found = {}
        for name, t in self.init.items():
            if t.kind == FLOAT and re.match(r"(embeddings|encoder|pooler)\.", name) and not name.endswith("_scale"):
                found[name] = t.dims, lambda t=t: t.data
            elif name.startswith("embeddings.") and name.endswith("_quantized"):
                found[name[:-len("_quantized")]] = t.dims, lambda t=t: self.expand_rows(t)
        for node, inputs in self.matmuls:
            m = re.fullmatch(r"/((?:encoder|pooler)/?.*)/MatMul(?:_quant)?", node)
            t = self.init.get(inputs[1]) if len(inputs) > 1 else None
            if m and t:
                found[m[1].replace("/", ".") + ".weight"] = t.dims[::-1], lambda t=t: self.expand_transposed(t)
        return found


def main(source, directory):
    found = Weights(source).tensors()
    shapes = {name: dims for name, (dims, _) in found.items()}
    bert_dir.write_safetensors(directory + "/model.safetensors", shapes, lambda name: [found[name][1]()])

    vocabulary, width = shapes["embeddings.word_embeddings.weight"]
    positions = shapes["embeddings.position_embeddings.weight"][0]
    layers = sum(bool(re.fullmatch(r"encoder\.layer\.\d+\.output\.dense\.weight", name)) for name in shapes)
    bert_dir.write_members(directory, "config.json", {
        "architectures": ["BertModel"], "model_type": "bert", "hidden_act": "gelu", "hidden_size": width,
        "intermediate_size": shapes["encoder.layer.0.intermediate.dense.weight"][0], "layer_norm_eps": 1e-12,
        "max_position_embeddings": positions, "num_attention_heads": 12, "num_hidden_layers": layers, "pad_token_id": 0,
        "position_embedding_type": "absolute", "type_vocab_size": shapes["embeddings.token_type_embeddings.weight"][0],
        "vocab_size": vocabulary})
    bert_dir.write_mean_pooling(directory, width, positions)
    lines = ",\n".join("  " + json.dumps(m) for m in bert_dir.modules())
    bert_dir.write_text(directory, "modules.json", f"[\n{lines}\n]")
    bert_dir.write_json(directory, "tokenizer_config.json", {
        "tokenizer_class": "BertTokenizer", "do_lower_case": True, "tokenize_chinese_chars": True, "strip_accents": None,
        "model_max_length": 512, "unk_token": "[UNK]", "sep_token": "[SEP]", "pad_token": "[PAD]", "cls_token": "[CLS]",
        "mask_token": "[MASK]"}, separators=(", ", ": "))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
