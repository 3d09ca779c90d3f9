#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/unit/tok/pipelines.jsonl: small tokenizer files that use each supported component, and what the pinned `tokenizers` package makes of
difficult texts and ids with them.

A line is {"name", "tokenizer": the file as text} or a case of the file before it: {"text", "special", "ids", "types", "offsets" (bytes)} or
{"decode": ids, "skip", "text"}.

usage: make_tok_pipelines.py OUTPUT_FILE
"""
import json
import sys

import tokenizers
from tokenizers import Tokenizer

import tok_components

PINNED = "0.23"
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "un", "##aff", "##able", "##s", "a", "##a", "b", "e", "##e", "i", "##i", "##ing",
         "ing", "!", ".", ",", "'", "is", "it", "don", "t", "中", "##文", "文", "\u1112", "##\u1161", "##\u11ab", "é", "##é", "É", "hello", "world", "ѐ",
         "##b", "##ing!", "ok", "の", "##\u0307", "x", "##x", "-", "##-", "#", "##\u0301", "aé", "日"]
VOCAB = {w: i for i, w in enumerate(WORDS)}
BERT_SPLIT = {"type": "BertPreTokenizer"}
TEMPLATE = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]},
                       "[SEP]": {"id": "[SEP]", "ids": [3, 0], "tokens": ["[SEP]", "[PAD]"]}},
}
TWICE = dict(TEMPLATE, single=[{"Sequence": {"id": "A", "type_id": 2}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}, {"Sequence": {"id": "A", "type_id": 3}}])


def bert(clean=True, cjk=True, strip=None, lower=True):
    return {"type": "BertNormalizer", "clean_text": clean, "handle_chinese_chars": cjk, "strip_accents": strip, "lowercase": lower}


def sequence(*items):
    return {"type": "Sequence", "normalizers": list(items)}


def splits(*items):
    return {"type": "Sequence", "pretokenizers": list(items)}


def added(content, **flags):
    d = {"id": 0, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    d.update(flags)
    return d


SPECIAL = [added(c, id=VOCAB[c], special=True) for c in WORDS[:5]]
MORE = SPECIAL + [
    added("<l>", lstrip=True), added("<r>", rstrip=True), added("<lr>", lstrip=True, rstrip=True, special=True), added("<w>", single_word=True),
    added("WORD", normalized=True), added("été", normalized=True, single_word=True), added("<"), added("<lrx"),
    added("cat", special=True, single_word=True), added(""), added("Ok Go", normalized=True, special=True),
]


def pipeline(normalizer, pre=BERT_SPLIT, post=None, tokens=SPECIAL, decoder=None, **model):
    m = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": VOCAB}
    m.update(model)
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": tokens, "normalizer": normalizer, "pre_tokenizer": pre,
            "post_processor": post, "decoder": decoder, "model": {k: v for k, v in m.items() if v is not None}}


def punctuation(behavior):
    return pipeline(bert(), pre=splits({"type": "WhitespaceSplit"}, {"type": "Punctuation", "behavior": behavior}))


PUNCT = ["the!cat ,!a'", "!!", "!a!!b!"]
WORDPIECE = {"type": "WordPiece", "prefix": "##", "cleanup": True}
DECODE = [[2, 5, 6, 10, 20, 21, 3], [9, 8, 7], [26, 23, 27, 23, 10], [1, 0], []]
PIPELINES = [
    ("uncased", pipeline(bert(), post=TEMPLATE, decoder=WORDPIECE), [
        "", "  ", "The CATS unaffable!", "Unaffables, it's", "don't", "\tthe\u00a0cat\u2028is\r\nit\0\ufffd\u200b", "café É", "e\u0301e\u0327\u0301",
        "中文日cat", "한", "\u0130\u0130", "ΑΣ", "\u0344\u0323a", "a\U0001d165\u0301\U0001d16db", "[CLS] the [MASK] cat[SEP]", "[cls]", "\ue000a\u0378",
        "a\x07b", "\uf900\U0002f800", "the " * 40 + "É", "x" * 100, "x" * 101, "É" * 50]),
    ("cased", pipeline(bert(lower=False)), ["The cat É é", "中the文", "[MASK]x"]),
    ("accents kept", pipeline(bert(strip=False)), ["É é", "\u0130", "e\u0301"]),
    ("accents only", pipeline(bert(strip=True, lower=False)), ["É é ÀB", "\u1e69\U0001d165\U0001d16ea"]),
    ("unclean", pipeline(bert(clean=False, cjk=False)), ["a\0b", "the\u200bcat", "中文", "a\u00a0b"]),
    ("nfd lower strip", pipeline(sequence({"type": "NFD"}, {"type": "Lowercase"}, {"type": "StripAccents"}), pre={"type": "Whitespace"}),
     ["The É-é!!", "x!.x", "\u093e\u093fa", "aé", "日 の"]),
    ("nfd", pipeline({"type": "NFD"}, pre={"type": "WhitespaceSplit"}), ["é", "\u1e69\u0323", "e\u0323\u0302 a", "각", "e" + "\u0301\u0323" * 40 + "a"]),
    ("twice", pipeline(sequence(bert(), {"type": "NFD"}, {"type": "Lowercase"}), post=TWICE), ["the É cat", "日a"]),
    ("nothing", pipeline(None, pre=None), ["the", "the cat", "aé", ""]),
    ("bert processing", pipeline(bert(), post={"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}), ["the cat", ""]),
    ("removed", punctuation("Removed"), PUNCT),
    ("previous", punctuation("MergedWithPrevious"), PUNCT),
    ("next", punctuation("MergedWithNext"), PUNCT),
    ("contiguous", punctuation("Contiguous"), PUNCT),
    ("isolated", punctuation("Isolated"), PUNCT),
    ("short words", pipeline(bert(), max_input_chars_per_word=5, continuing_subword_prefix="", type=None), ["catsa", "catsaa", "##ing", "é é é", "unaff"]),
    ("added", pipeline(bert(), tokens=MORE, decoder=dict(WORDPIECE, cleanup=False)), [
        "the <l> cat", "a  <r>  b <lr> the", "x<w> <w>x <w>, <w>", "word WORD sWoRds", "ÉTÉ xété ete", "<<lrx<lr", "cat cats [MASK]the", "<lr>",
        "a <r>   <l> b", "ok go OK  GO"]),
    ("no decoder", pipeline(bert(), tokens=MORE), ["a"]),
]


def utf8_offsets(text, offsets):
    at = [0]
    for c in text:
        at.append(at[-1] + len(c.encode()))
    return [[at[b], at[e]] for b, e in offsets]


def main():
    assert tokenizers.__version__.startswith(PINNED), tokenizers.__version__
    lines = []
    for name, file, texts in PIPELINES + tok_components.PIPELINES:
        text = json.dumps(file, ensure_ascii=False, separators=(",", ":"))
        tok = Tokenizer.from_str(text)
        lines.append({"name": name, "tokenizer": text})
        unk = file["model"].get("unk_token", "<unk>")
        vocab = file["model"]["vocab"]
        known = vocab if isinstance(vocab, dict) else {piece for piece, _ in vocab}
        forged = {i for i, t in tok.get_added_tokens_decoder().items() if t.special and t.content in known and t.content != unk}
        for x in texts:
            for special in (True, False):
                for parse in (True, False):
                    if not parse and not any(c["content"] and c["content"].lower() in x.lower() for c in file["added_tokens"]):
                        continue
                    tok.encode_special_tokens = not parse
                    e = tok.encode(x, add_special_tokens=special)
                    if not parse and any(i in forged and not mask for i, mask in zip(e.ids, e.special_tokens_mask)):
                        continue  # the package lets the model spell special tokens; lath does not
                    lines.append({"text": x, "special": special, "parse": parse, "ids": e.ids, "types": e.type_ids, "offsets": utf8_offsets(x, e.offsets)})
        top = tok.get_vocab_size()
        decode = DECODE + [[i for i in range(len(VOCAB), top)]]
        if file["decoder"] and file["model"].get("vocab") is not VOCAB:
            decode = [ids for ids in tok_components.IDS + tok_components.BYTE_IDS if max(ids) < top]
        for ids in decode if file["decoder"] or file["model"].get("vocab") is VOCAB else []:
            for skip in (False, True):
                lines.append({"decode": ids, "skip": skip, "text": tok.decode(ids, skip_special_tokens=skip)})
    with open(sys.argv[1], "w", encoding="utf-8") as f:
        for line in lines:
            f.write(json.dumps(line, ensure_ascii=True, separators=(",", ":")) + "\n")
    print(len(lines), "lines")


if __name__ == "__main__":
    main()
