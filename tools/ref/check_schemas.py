#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Structured output of liblath, proved from outside:

    check_schemas.py --lib build/liblath.so --tokenizer DIR [--tokenizer DIR...] [--schemas N] [--seed N]

1. N random schemas of all keywords that are enforced, under each tokenizer: tokens are drawn from random logits under the mask until the text
   ends. The text has to be one JSON value that the package `jsonschema` finds valid, no step may be without a token, and the text, encoded anew by every
   tokenizer, has to be accepted token by token.
2. Random regular expressions as text grammars: each bit of the mask is compared with partial matches of the package `regex`.
"""

import argparse
import json
import random
import sys
import time
import unicodedata

import jsonschema
import lath_grammar
import lath_tok
import numpy as np
import regex

LONG = 400  # tokens after which what closes things is preferred


# --------------------------------------------------------------------------------------------------------------- schemas


class Schemas:
    """Random schemas; every one has a value."""

    def __init__(self, seed):
        self.r = random.Random(seed)

    def name(self):
        return self.r.choice(["a", "b", "name", "id", "x y", 'q"uote', "back\\slash", "naïve", "日本", "😀", "tab\t", "", "nam", "names", "A-1"])

    def scalar(self):
        r = self.r
        return r.choice([None, True, False, 0, -7, 12345678901234, 1.5, -0.25, 1e-7, "", "red", "a\"b\\c\n", "日本", "😀", "\u007f", "/"])

    def literal(self, depth=0):
        r = self.r
        if depth < 2 and r.random() < 0.2:
            return {self.name(): self.literal(depth + 1) for _ in range(r.randrange(3))}
        if depth < 2 and r.random() < 0.2:
            return [self.literal(depth + 1) for _ in range(r.randrange(3))]
        return self.scalar()

    def string(self):
        r, s = self.r, {"type": "string"}
        kind = r.randrange(6)
        if kind == 0:
            s["minLength"] = r.randrange(6)
            if r.random() < 0.7:
                s["maxLength"] = s["minLength"] + r.randrange(20)
        elif kind == 1:
            s["maxLength"] = r.choice([0, 1, 5, 200])
        elif kind == 2:
            s["pattern"] = r.choice([r"^[a-z]{2,5}$", r"^\d{3}-\d{4}$", r"^(red|green|blue)+$", r"[A-Z]", r"^\w+\s?\w*$", r"^[^aeiou]*$", r"^.{3,8}$", r'^"\\[\n\t]$',
                                     r"^a|^b$", r"^(?:\+|-)?\d+(\.\d+)?$", r"^[\u4e00-\u9fff]{1,4}$", r"^[^\d\s]{4}$", r"^\S{1,9}@[a-z]{1,9}\.[a-z]{2,3}$", r"^$", r"^x{0,3}y*z+?$"])
        elif kind == 3:
            s["format"] = r.choice(["date", "time", "date-time", "uuid", "hostname", "email", "ipv4", "ipv6", "uri"])
        return s

    def number(self):
        r = self.r
        s = {"type": r.choice(["integer", "integer", "number"])}
        kind = r.randrange(5)
        if kind == 0:
            s["minimum"] = r.choice([-1000, -5, 0, 1, 17, 99, 100, 123456, 10**17])
        elif kind == 1:
            s["maximum"] = r.choice([-1000, -5, 0, 1, 17, 99, 100, 123456])
        elif kind == 2:
            lo = r.randrange(-2000, 2000)
            s["minimum"], s["maximum"] = lo, lo + r.choice([0, 1, 9, 10, 73, 1000, 99999])
        elif kind == 3:
            lo = r.randrange(-200, 200)
            s["exclusiveMinimum"], s["exclusiveMaximum"] = lo, lo + r.choice([2, 3, 11, 4000])
        if s["type"] == "number" and kind == 2:
            s["minimum"] -= 0.5
            s["maximum"] += r.choice([0.25, 1.75, 2])
        return s

    def object(self, depth):
        r = self.r
        properties = {self.name(): self.schema(depth + 1) for _ in range(r.randrange(6))}
        s = {"type": "object", "properties": properties}
        s["required"] = [p for p in properties if r.random() < 0.5]
        if r.random() < 0.15:
            s["required"].append("extra")
        if r.random() < 0.3:
            s["additionalProperties"] = r.choice([True, {"type": "integer"}, self.schema(depth + 2)])
        elif "extra" not in s["required"] and r.random() < 0.4:
            s["additionalProperties"] = False
        if r.random() < 0.1 and properties:
            s["minProperties"] = 1
        if r.random() < 0.1:
            del s["properties"]
            s.pop("minProperties", None)
            if s.get("additionalProperties") is False:
                s["required"] = []
        return s

    def array(self, depth):
        r, s = self.r, {"type": "array"}
        if r.random() < 0.8:
            s["items"] = self.schema(depth + 1)
        if r.random() < 0.25:
            s["prefixItems"] = [self.schema(depth + 1) for _ in range(r.randrange(1, 4))]
            if r.random() < 0.5:
                s["items"] = False
        most = len(s["prefixItems"]) if s.get("items") is False else 9
        if r.random() < 0.4:
            s["minItems"] = r.randrange(most + 1) if most < 9 else r.randrange(5)
        if r.random() < 0.4:
            s["maxItems"] = s.get("minItems", 0) + r.randrange(6)
        return s

    def one_of(self, depth):
        """Branches that a constant tells apart."""
        kinds = self.r.sample(["cat", "dog", "fish", "naïve"], self.r.randrange(2, 4))
        return {"oneOf": [{"type": "object", "properties": {"kind": {"const": k}, self.name() + "_": self.schema(depth + 2)}, "required": ["kind"]}
                          for k in kinds]}

    def schema(self, depth=0):
        r = self.r
        kind = r.random()
        if depth > 3:
            kind *= 0.5
        if kind < 0.12:
            return self.string()
        if kind < 0.25:
            return self.number()
        if kind < 0.32:
            return {"type": r.choice(["boolean", "null"]), "description": "x"}
        if kind < 0.40:
            return {"enum": [self.literal() for _ in range(r.randrange(1, 6))]}
        if kind < 0.45:
            return {"const": self.literal()}
        if kind < 0.48:
            return r.choice([True, {}])
        if kind < 0.50:
            return {"$ref": "#/$defs/" + r.choice(["leaf", "odd~1na%25me"])}
        if kind < 0.56:
            return {"$ref": "#/$defs/" + r.choice(["tree", "list", "any_of_refs"])}
        if kind < 0.63:
            return {"anyOf": [self.schema(depth + 1) for _ in range(r.randrange(1, 4))]}
        if kind < 0.67:
            return self.one_of(depth)
        if kind < 0.70:
            return {"allOf": [self.schema(depth + 1)], "title": "t"}
        if kind < 0.74:
            return {"type": r.sample(["string", "integer", "null", "boolean", "array"], 2), "maxLength": 9, "minimum": 3, "maxItems": 2}
        return self.object(depth) if kind < 0.9 else self.array(depth)

    def root(self):
        s = self.object(0) if self.r.random() < 0.6 else self.schema()
        s = s if isinstance(s, dict) else {"anyOf": [s]}
        s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
        s["$defs"] = {
            "leaf": self.string(),
            "odd/na%me": self.number(),
            "tree": {"type": "object", "properties": {"value": self.number(), "left": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]},
                                                      "right": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]}}, "required": ["value", "left"]},
            "list": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/list"}, {"$ref": "#/$defs/leaf"}]}, "maxItems": 3},
            "any_of_refs": {"anyOf": [{"$ref": "#/$defs/leaf"}, {"$ref": "#/$defs/tree"}]},
        }
        return s


# ------------------------------------------------------------------------------------------------------------ generation


class Vocabulary:
    def __init__(self, runtime, folder):
        self.tokenizer, self.folder = lath_tok.Tokenizer(runtime, folder), folder
        self.n = self.tokenizer.size()
        with open(f"{folder}/tokenizer.json") as f:
            added = json.load(f)["added_tokens"]
        special = [t["id"] for t in added if t["special"]]
        self.end = special[-1:] if special else []
        # What brings a text to its end: closing signs before plain characters before opening ones.
        self.closing = np.zeros(self.n)
        weights = {'"': 90, "}": 60, "]": 60, "{": -30, "[": -30, ",": -60, "\\": -60, "-": -20, "A": 40, "n": 20, "0": 10, " ": -30}
        for i in range(self.n):
            token = runtime.lib.lath_tokenizer_token(self.tokenizer.tok, i)
            if token and len(token) == 1:
                self.closing[i] = weights.get(token.decode(errors="replace"), 0)
        for i in self.end:
            self.closing[i] = 200
        # Random logits under a temperature, from which texts take pieces (Gumbel noise: the largest sum is a draw of the softmax).
        rng = np.random.default_rng(1)
        self.noise = rng.standard_normal(2 * self.n) * 3 + rng.gumbel(size=2 * self.n)


def generate(matcher, vocabulary, rng, times):
    ids = []
    while not matcher.ended():
        begin = time.perf_counter()
        mask = matcher.mask()
        times.append(time.perf_counter() - begin)
        if not mask.any():
            assert matcher.complete() and not vocabulary.end, "stuck"
            break
        at = int(rng.integers(vocabulary.n))
        logits = vocabulary.noise[at : at + vocabulary.n]
        if len(ids) > LONG:
            logits = logits + vocabulary.closing
        token = int(np.where(mask, logits, -np.inf).argmax())
        matcher.accept(token)
        if token not in vocabulary.end:
            ids.append(token)
        assert len(ids) < 20 * LONG, "no end"
    assert matcher.complete()
    return ids


def reencode(runtime, grammar, vocabulary, text):
    """Every token of the text may come, in its turn, and then it may end. (Where the tokenizer normalises, tokens would be those of another text.)"""
    if unicodedata.normalize("NFC", text.decode()) != text.decode():
        return
    matcher = lath_grammar.Matcher(grammar, vocabulary.tokenizer, vocabulary.end, vocabulary.n)
    ids, _, _ = vocabulary.tokenizer.encode(text, add_special=False, parse_special=False)
    for i in ids:
        assert matcher.mask()[i], f"token {i} is masked"
        matcher.accept(i)
    assert matcher.complete()
    matcher.close()


def no_constants(x):
    raise ValueError(x)


def check_schemas(runtime, vocabularies, n, seed):
    times = []
    for i in range(n):
        schema = Schemas(seed * 100003 + i).root()
        text = json.dumps(schema, ensure_ascii=i % 2 == 0)
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
        try:
            grammar = lath_grammar.Grammar(runtime, lath_grammar.JSON_SCHEMA, text)
        except lath_tok.LathError as e:
            sys.exit(f"schema {i}: {e}\n{text}")
        for k, v in enumerate(vocabularies):
            out = None
            try:
                matcher = lath_grammar.Matcher(grammar, v.tokenizer, v.end, v.n)
                out = v.tokenizer.decode(generate(matcher, v, np.random.default_rng([seed, i, k]), times), 1)
                matcher.close()
                validator.validate(json.loads(out.decode(), parse_constant=no_constants))
                reencode(runtime, grammar, vocabularies[(k + 1) % len(vocabularies)], out)
            except (AssertionError, ValueError, jsonschema.ValidationError, lath_tok.LathError) as e:
                sys.exit(f"schema {i}, {v.folder}: {type(e).__name__}: {e}\n{text}\n{out}")
        grammar.close()
    times = np.sort(times) * 1e6
    print(f"{n} schemas, {len(vocabularies)} tokenizers: valid; {len(times)} masks, through ctypes: median {times[len(times) // 2]:.0f} us, "
          f"mean {times.mean():.0f} us, 99 % {times[int(len(times) * 0.99)]:.0f} us")


# ----------------------------------------------------------------------------------------------------------------- masks


def expression(r, depth=0):
    """The same language as a regular expression and as a text grammar."""
    kind = r.randrange(8) if depth < 4 else r.randrange(2)
    if kind == 0:
        text = "".join(r.choice("abc 01") for _ in range(r.randrange(1, 4)))
        return regex.escape(text), json.dumps(text)
    if kind == 1:
        return r.choice([("[a-c]", "[a-c]"), ("[^ab\\n]", "[^ab\\n]"), ("[01]", "[01]"), ("[é-ë]", "[é-ë]")])
    if kind in (2, 3):
        parts = [expression(r, depth + 1) for _ in range(r.randrange(1, 4))]
        return "".join(f"(?:{a})" for a, _ in parts), " ".join(f"({b})" for _, b in parts)
    if kind in (4, 5):
        parts = [expression(r, depth + 1) for _ in range(r.randrange(1, 4))]
        return "|".join(f"(?:{a})" for a, _ in parts), " | ".join(f"({b})" for _, b in parts)
    a, b = expression(r, depth + 1)
    times = r.choice(["*", "+", "?", "{2}", "{1,3}", "{2,}", "{0,2}", "{3,7}"])
    return f"(?:{a}){times}", f"({b}){times}"


def check_masks(runtime, vocabulary, n, seed):
    """Tokens whose bytes are text by themselves; the others have to agree with some text that goes on with them, which 1 shows."""
    texts = {}
    for i in range(0, vocabulary.n, vocabulary.n // 3000 + 1):
        try:
            t = vocabulary.tokenizer.decode([i], 1).decode()
            if t and "\ufffd" not in t and i not in vocabulary.end:
                texts[i] = t
        except (UnicodeDecodeError, lath_tok.LathError):
            pass
    bits = 0
    for i in range(n):
        r = random.Random(seed * 1009 + i)
        a, b = expression(r)
        pattern = regex.compile(a)
        grammar = lath_grammar.Grammar(runtime, lath_grammar.TEXT, "root ::= " + b)
        matcher = lath_grammar.Matcher(grammar, vocabulary.tokenizer, vocabulary.end, vocabulary.n)
        text = ""
        for _ in range(12):
            if matcher.ended():
                break
            mask = matcher.mask()
            want = {t for t, s in texts.items() if pattern.fullmatch(text + s, partial=True)}
            have = {t for t in texts if mask[t]}
            assert want == have, f"/{a}/ after {text!r}: {[texts[t] for t in want ^ have][:5]}"
            assert matcher.complete() == bool(pattern.fullmatch(text))
            assert all(mask[t] == matcher.complete() for t in vocabulary.end)
            bits += len(texts)
            if not have:
                break
            token = r.choice(sorted(have))
            matcher.accept(token)
            text += texts[token]
        matcher.close()
        grammar.close()
    print(f"{n} expressions: {bits} bits of masks as partial matches of regex {regex.__version__}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lib", required=True)
    parser.add_argument("--tokenizer", action="append", required=True)
    parser.add_argument("--schemas", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    runtime = lath_tok.Runtime(args.lib)
    lath_grammar.load(runtime.lib)
    vocabularies = [Vocabulary(runtime, t) for t in args.tokenizer]
    check_masks(runtime, min(vocabularies, key=lambda v: v.n), args.schemas, args.seed)
    check_schemas(runtime, vocabularies, args.schemas, args.seed)


if __name__ == "__main__":
    main()
