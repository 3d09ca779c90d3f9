#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/unit/engine/schemas.jsonl: random schemas of check_schemas.py and, for each, texts that liblath makes under its masks, each found valid
by the package `jsonschema`. tests/unit/engine/test_schema.c makes the same texts again, so that they are proved valid without Python.

    make_schema_cases.py --lib build/liblath.so FILE

Tokens are chosen in a way that C can follow: the number k of allowed tokens is counted and token (next of xoshiro256++) mod k taken, in the order of ids;
from the 60th token on two of three are the allowed token of the best weight, of equal ones the first: what closes before what is plain before
what opens.
"""

import argparse
import json
from pathlib import Path

import check_schemas
import jsonschema
import lath_grammar
import lath_tok
import numpy as np
from make_sampler_cases import Xoshiro

TOKENIZER = Path(__file__).resolve().parents[2] / "tests/golden/qwen3/embedding_old"
CLOSING = b'"]}n0'  # the first is the best
OPENING = b" \n\t-.eE\\[{,"
LONG, MOST, SCHEMAS, TEXTS = 60, 300, 60, 2  # a schema whose texts take more than MOST tokens is left out


def weights(vocabulary, lib):
    w = np.zeros(vocabulary.n, dtype=int)
    for i in range(vocabulary.n):
        token = lib.lath_tokenizer_token(vocabulary.tokenizer.tok, i) or b""
        if len(token) == 1 and token in CLOSING:
            w[i] = 10 - CLOSING.index(token)
        elif len(token) == 1 and token in OPENING:
            w[i] = -1 - OPENING.index(token)
    for i in vocabulary.end:
        w[i] = 20
    return w


def generate(matcher, w, end, seed):
    rng, ids = Xoshiro(seed), []
    while not matcher.ended():
        allowed = np.flatnonzero(matcher.mask())
        if len(ids) < LONG or len(ids) % 3 == 0:
            token = int(allowed[rng.next() % len(allowed)])
        else:
            token = int(allowed[np.argmax(w[allowed])])
        matcher.accept(token)
        if token not in end:
            ids.append(token)
        if len(ids) > MOST:
            return None
    return ids


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lib", required=True)
    parser.add_argument("file")
    args = parser.parse_args()
    runtime = lath_tok.Runtime(args.lib)
    lath_grammar.load(runtime.lib)
    vocabulary = check_schemas.Vocabulary(runtime, TOKENIZER)
    w = weights(vocabulary, runtime.lib)
    lines, i = [], 0
    while len(lines) < SCHEMAS:
        schema, texts, i = check_schemas.Schemas(7000 + i).root(), [], i + 1
        validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
        grammar = lath_grammar.Grammar(runtime, lath_grammar.JSON_SCHEMA, json.dumps(schema))
        for k in range(TEXTS):
            matcher = lath_grammar.Matcher(grammar, vocabulary.tokenizer, vocabulary.end, vocabulary.n)
            ids = generate(matcher, w, vocabulary.end, 100 * len(lines) + k)
            matcher.close()
            if ids is not None:
                texts.append(vocabulary.tokenizer.decode(ids, 1).decode())
                validator.validate(json.loads(texts[-1]))
        grammar.close()
        if len(texts) == TEXTS:
            lines.append(json.dumps({"schema": json.dumps(schema), "texts": texts}) + "\n")
    Path(args.file).write_text("".join(lines))


main()
