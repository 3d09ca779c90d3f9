#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/unit/tok/spm: small SentencePiece models, trained here, and spm.jsonl: a line {"model", "text", "ids"} with what SentencePiece itself
makes of difficult texts. Texts on which transformers' own conversion of the file differs from SentencePiece are left out (f32 sums, characters of
several code points).

usage: make_spm_goldens.py OUTPUT_DIR
"""
import json
import os
import random
import sys

import sentencepiece as spm
from transformers.convert_slow_tokenizer import SpmConverter, import_protobuf

WORDS = "the cat sat on a mat and the dog ran over it while every bird sang loudly in green trees of an old garden near my house".split()
OPTIONS = {
    "unigram": dict(model_type="unigram", vocab_size=120, normalization_rule_name="identity"),
    "unigram_bytes": dict(model_type="unigram", vocab_size=360, byte_fallback=True, normalization_rule_tsv="rules.tsv"),
    "unigram_plain": dict(model_type="unigram", vocab_size=120, normalization_rule_name="identity", remove_extra_whitespaces=False, add_dummy_prefix=False),
    "unigram_user": dict(model_type="unigram", vocab_size=120, normalization_rule_name="identity", user_defined_symbols=["<sep>", "cat+"]),
    "bpe": dict(model_type="bpe", vocab_size=120, normalization_rule_name="identity"),
    "bpe_bytes": dict(model_type="bpe", vocab_size=360, byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False),
    "bpe_user": dict(model_type="bpe", vocab_size=120, normalization_rule_name="identity", user_defined_symbols=["<sep>", "cat+"]),
}
PARTS = WORDS + ["  ", " ", "\u2581", "<sep>", "cat+", "\u00e9", "\u4e2d", "\U0001f600", "\u2026", "CAT", ".", "-", "trees", "garden's", "xyzzy"]


def main():
    out, rng = sys.argv[1], random.Random(7)
    os.makedirs(out, exist_ok=True)
    os.chdir(out)  # the files name their parts: by relative paths
    lines = [" ".join(rng.choice(WORDS) for _ in range(rng.randrange(3, 12))) + "." for _ in range(2000)]
    with open("rules.tsv", "w") as f:
        f.write("2026\t2E 2E 2E\nA0\t20\n43\t63\n")
    texts = [""] + ["".join(rng.choice(PARTS) for _ in range(rng.randrange(1, 12))) for _ in range(160)] + lines[:20]
    proto, n = import_protobuf(), 0
    with open("spm.jsonl", "w") as f:
        for name, options in OPTIONS.items():
            path = name
            spm.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_prefix=path, minloglevel=2, num_threads=1, hard_vocab_limit=False, **options)
            os.remove(path + ".vocab")
            model = proto.ModelProto()
            model.ParseFromString(open(path + ".model", "rb").read())
            vocab = [(p.piece, p.score) for p in model.pieces]
            hf = SpmConverter.build_tokenizer_from_spm_proto(model, vocab if model.trainer_spec.model_type == 1 else {p[0]: i for i, p in enumerate(vocab)})
            sp = spm.SentencePieceProcessor(model_file=path + ".model")
            for text in texts:
                ids = sp.encode(text)
                if ids == hf.encode(text).ids:
                    f.write(json.dumps({"model": name, "text": text, "ids": ids}, separators=(",", ":")) + "\n")
                    n += 1
    os.remove("rules.tsv")
    print(n, "lines")


if __name__ == "__main__":
    main()
