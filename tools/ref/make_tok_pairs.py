#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/unit/tok/pairs.jsonl: pairs and truncation as the pinned `tokenizers` package does them.

A line is {"tokenizer": the file as text} or a case of the file before it: {"texts", "special", "parse", "max", "strategy",
"stride", "left", "whole" (tokens without a limit), "parts": [{"ids", "types", "mask", "offsets" (bytes, flat)}]}; a case
without "parts" is one that the package refuses.

usage: make_tok_pairs.py OUTPUT_FILE
"""
import json
import os
import random
import sys

import tokenizers
from tokenizers import Tokenizer

from make_tok_pipelines import BERT_SPLIT, TEMPLATE, TWICE, VOCAB, bert

PINNED = "0.23"
ODD_TYPES = dict(TEMPLATE,
                 single=[{"SpecialToken": {"id": "[CLS]", "type_id": 3}}, {"Sequence": {"id": "A", "type_id": 5}}],
                 pair=[{"SpecialToken": {"id": "[CLS]", "type_id": 1}}, {"Sequence": {"id": "B", "type_id": 2}}, {"SpecialToken": {"id": "[SEP]", "type_id": 3}},
                       {"Sequence": {"id": "A", "type_id": 6}}])
BERT = {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}
WORDS = ["the", "cat", "unaffable", "a", "é", "don't", "[MASK]", "hello", "world", "ing!", "中文", "zzz", "-"]


def file_of(post):
    special = [{"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
               for t, i in VOCAB.items() if t.startswith("[")]
    return json.dumps({"version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": bert(), "pre_tokenizer": BERT_SPLIT,
                       "post_processor": post, "decoder": None,
                       "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": VOCAB}},
                      ensure_ascii=False)


def part_of(e, texts):
    """Texts of a pair are ASCII here, because the package does not always say which of them a token of a part is of."""
    def at(i):
        return i if len(texts) == 2 else len(texts[0][:i].encode())

    return {"ids": e.ids, "types": e.type_ids, "mask": e.special_tokens_mask, "offsets": [at(i) for span in e.offsets for i in span]}


def case(t, rng, pair):
    words = WORDS if not pair else [w for w in WORDS if w.isascii()]
    texts = [" ".join(rng.choice(words) for _ in range(rng.choice([0, 1, 3, 6, 10]))) for _ in range(1 + pair)]
    special, parse = rng.random() < 0.8, rng.random() < 0.8
    most, stride = rng.choice([3, 5, 6, 8, 12, 30]), rng.choice([0, 0, 1, 2])
    strategy, left = rng.choice(["longest_first", "only_first", "only_second"]), rng.random() < 0.4
    t.encode_special_tokens = not parse
    out = {"texts": texts, "special": special, "parse": parse, "max": most, "strategy": strategy, "stride": stride, "left": left,
           "whole": len(t.encode(*texts, add_special_tokens=special).ids)}
    try:
        t.enable_truncation(most, stride=stride, strategy=strategy, direction="left" if left else "right")
        e = t.encode(*texts, add_special_tokens=special)
        out["parts"] = [part_of(x, texts) for x in (e, *e.overflowing)]
    except BaseException as error:  # panics are no Exception
        if isinstance(error, KeyboardInterrupt):
            raise
    finally:
        t.no_truncation()
    return out if len(out.get("parts", [])) <= 20 else case(t, rng, pair)


def main():
    if len(sys.argv) != 2 or not tokenizers.__version__.startswith(PINNED):
        sys.exit(f"usage: make_tok_pairs.py OUTPUT_FILE (tokenizers {PINNED}, here {tokenizers.__version__})")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # backtraces of its panics
    rng, lines = random.Random(4), []
    for post in (None, BERT, TEMPLATE, ODD_TYPES, TWICE):
        text = file_of(post)
        t = Tokenizer.from_str(text)
        lines.append({"tokenizer": text})
        lines += [case(t, rng, rng.random() < 0.6) for _ in range(80)]
    with open(sys.argv[1], "w", encoding="utf-8") as f:
        f.writelines(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)


if __name__ == "__main__":
    main()
