#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/unit/tok/bpe.jsonl and regex.jsonl: small BPE tokenizers and what the pinned `tokenizers` package makes of difficult texts with them;
split patterns and the pieces that the package cuts texts into.

bpe.jsonl: a line is {"name", "tokenizer": the file as text} or a case of the file before it: {"text", "special", "ids", "offsets" (bytes)} or
{"decode": ids, "skip", "text"}. regex.jsonl: {"pattern", "behavior", "invert", "text", "pieces": [[begin, end] in bytes]}.

usage: make_bpe_cases.py OUTPUT_DIR
"""
import json
import os
import random
import sys

import tokenizers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

import torture_texts
from synthetic_tokenizers import GPT2, GPT4O, LLAMA3, QWEN2, QWEN35

PINNED = "0.23"
TEKKEN = GPT4O.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace("{1,3}", "")
BYTES = [f"<0x{b:02X}>" for b in range(256)]
TEXTS = [
    "", " ", "Hello world", " Hello  world ", "The cat's it'S we'LL don't I'M o'clock 'tis '", "HTTPServerError camelCase XMLHttp ABCdef",
    "1 12 123 1234 12345 3.14 x1y2", "\t\t\"os\"\n", "a\r\nb\r\n\r\n  c\n \n\td", "   \n\n   x", "x   ", "!!! ...\n\n/// a/b\n/c", "中文测试，没有空格的文字。日本語のテスト",
    "한국어 텍스트 각", "e\u0301 n\u0303 कि खा ก็ \u0301a", "Привет, мир! Ђурђевдан", "مرحبا بالعالم", "👩\u200d💻 🇩🇪 👍🏽 ☃️", "naïve café Ünïcödé ſ'ſ 'ſa",
    "▁ ▁▁ a▁b", "\u00a0x\u2003y\u3000z\u0085w", "def f(x):\n    return x*2  # ok\n", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "abababababababababababababababababababababababab" * 3, "\0a\0", "<s>the</s> <mask>", "\U00020000\U00020001 ﬁ Ⅷ ½ ²", "x" * 15 + " " + "y" * 16 + " " + "z" * 40,
    "ǅungla ʰa aʰ ªº", "the the the river river", "\ufeff\u200b\u00ad", "a\u0300\u0301\u0302 A\u030a",
]


def corpus():
    rng = random.Random(11)
    lines = list(torture_texts.PROSE) * 3
    for source in (torture_texts.words, torture_texts.cjk, torture_texts.digits, torture_texts.emoji):
        made = source(rng)
        lines += [next(made) for _ in range(60)]
    return lines + TEXTS


def sequence(kind, key, items):
    return {"type": kind, key: items}


def split(regex, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": behavior, "invert": invert}


def byte_level(prefix=False, trim=False, regex=False):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": trim, "use_regex": regex}


def added(id_, content, **flags):
    d = {"id": id_, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    d.update(flags)
    return d


def trained(pre, norm=None, size=520, special=(), pairs=True, alphabet=(), **model):
    """The model part of a file, trained with these components."""
    tok = Tokenizer(models.BPE())
    shell = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": norm, "pre_tokenizer": pre, "post_processor": None,
             "decoder": None, "model": json.loads(tok.to_str())["model"]}
    tok = Tokenizer.from_str(json.dumps(shell))
    tok.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=size, special_tokens=list(special), initial_alphabet=list(alphabet), show_progress=False))
    made = json.loads(tok.to_str())["model"]
    if not pairs:
        made["merges"] = [" ".join(m) for m in made["merges"]]
    made.update(model)
    return made


def file(model, pre, norm=None, post=None, decoder=None, tokens=()):
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": list(tokens), "normalizer": norm, "pre_tokenizer": pre,
            "post_processor": post, "decoder": decoder, "model": model}


def bytes_file(pattern, special=("<s>", "</s>", "<mask>"), norm=None, post=None, pairs=True, prefix=False, **model):
    pre = byte_level(prefix, True, True) if pattern is None else sequence("Sequence", "pretokenizers", [split(pattern), byte_level(prefix)])
    made = trained(pre, norm, special=special, pairs=pairs, alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), **model)
    tokens = [added(made["vocab"][s], s, lstrip=s == "<mask>") for s in special]
    return file(made, pre, norm, post, byte_level(), tokens)


def unreachable(f):
    """With words in the vocabulary that merges do not reach."""
    for word in ("Ġriver", "Hello", "ĠHello", "æĸĩ", "1234"):
        f["model"]["vocab"].setdefault(word, len(f["model"]["vocab"]))
    return f


def split_merges(f):
    """Every way to make a token is a merge, as in converted tiktoken files: several merges of one product."""
    model = f["model"]
    vocab, out = model["vocab"], []
    for a, b in model["merges"]:
        whole = a + b
        ways = [(whole[:i], whole[i:]) for i in range(1, len(whole)) if whole[:i] in vocab and whole[i:] in vocab]
        out += [list(w) for w in ways if list(w) not in out]
    model["merges"] = out
    return f


def mark_file(size, prepend=False, complete=True, pre=None, **model):
    """As SentencePiece models come: a mark for spaces, byte tokens."""
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    norm = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, replace]} if prepend else replace
    special = ["<pad>", "</s>", "<s>", "<unk>"] + (BYTES if complete else BYTES[:128])
    made = trained(pre, norm, size=size + len(special), special=special, pairs=not prepend, **model)
    decoder = {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]
               + ([{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if prepend else [])}
    template = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                "special_tokens": {"<s>": {"id": "<s>", "ids": [2], "tokens": ["<s>"]}}}
    return file(made, pre, norm, template, decoder, [added(i, s) for i, s in enumerate(special[:4])] + [added(0, "\n\n", special=False), added(0, "▁▁", special=False)])


def words_model(affixes, tokens, merges):
    """Vocabulary and merges of words between spaces. The package's trainer numbers tokens with a prefix in no fixed order: done here."""
    prefix, suffix = (a or "" for a in affixes)
    words = [[(prefix if i else "") + c + (suffix if i == len(w) - 1 else "") for i, c in enumerate(w)] for line in corpus() for w in line.split()]
    hidden = {"й", "ل", "☃", "中"}  # characters that the vocabulary shall not have
    vocab = list(tokens) + sorted({x for w in words for x in w if not any(c in x for c in hidden)})
    made = []
    for _ in range(merges):
        counts = {}
        for w in words:
            for pair in zip(w, w[1:]):
                if all(not any(c in x for c in hidden) for x in pair):
                    counts[pair] = counts.get(pair, 0) + 1
        a, b = max(counts, key=lambda p: (counts[p], p))
        whole = a + b[len(prefix):]
        made.append([a, b])
        vocab += [whole] if whole not in vocab else []
        for w in words:
            i = 0
            while i + 1 < len(w):
                if w[i] == a and w[i + 1] == b:
                    w[i : i + 2] = [whole]
                i += 1
    return {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": affixes[0], "end_of_word_suffix": affixes[1], "fuse_unk": False,
            "byte_fallback": False, "ignore_merges": False, "vocab": {t: i for i, t in enumerate(vocab)}, "merges": made}


def words_file(affixes, tokens=("<unk>",), **model):
    made = dict(words_model(affixes, tokens, 150), **model)
    return file(made, {"type": "WhitespaceSplit"}, None, None, {"type": "BPEDecoder", "suffix": affixes[1]} if affixes[1] else None, [added(0, t) for t in tokens])


ROBERTA = {"type": "RobertaProcessing", "sep": ["</s>", 1], "cls": ["<s>", 0], "trim_offsets": True, "add_prefix_space": True}
BOS = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
       "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
       "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}}}
FILES = [
    ("gpt2", lambda: bytes_file(None, pairs=False, post=byte_level(True, True))),
    ("roberta prefix", lambda: bytes_file(None, post=ROBERTA, prefix=True, pairs=False)),
    ("llama3", lambda: split_merges(unreachable(bytes_file(LLAMA3, ignore_merges=True, post=sequence("Sequence", "processors", [byte_level(True), BOS]))))),
    ("qwen2", lambda: unreachable(bytes_file(QWEN2, norm={"type": "NFC"}, post=byte_level()))),
    ("qwen3.5", lambda: bytes_file(QWEN35, norm={"type": "NFC"}, post=byte_level(False, True))),
    ("gpt-4o", lambda: split_merges(bytes_file(GPT4O))),
    ("tekken", lambda: bytes_file(TEKKEN, ignore_merges=True)),
    ("other pattern", lambda: bytes_file(r"\p{L}{1,4}|\p{N}{1,2}|\s+(?!\S)|[^\p{L}\p{N}]+?(?=\S)|(?m:.)", prefix=True)),
    ("bytes normalised", lambda: file(trained(None, {"type": "ByteLevel"}, alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())), None, {"type": "ByteLevel"}, None, byte_level())),
    ("gemma", lambda: mark_file(420, pre={"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False},
                                unk_token="<unk>", fuse_unk=True, byte_fallback=True)),
    ("mistral", lambda: mark_file(420, True, unk_token="<unk>", fuse_unk=True, byte_fallback=True)),
    ("half of the bytes", lambda: mark_file(200, complete=False, unk_token="<unk>", fuse_unk=False, byte_fallback=True)),
    ("affixes", lambda: words_file(("##", "</w>"), unk_token="<unk>", fuse_unk=True)),
    ("suffix", lambda: words_file((None, "</w>"), unk_token="<unk>", fuse_unk=False)),
    ("no unknown token", lambda: words_file((None, None))),
]
# The package's own readings, one by one.
PATTERNS = [
    r"\p{L}+", r"\P{L}+", r"\p{^N}+", r"[\p{L}\p{M}]+|\p{Nd}", r"\w+|[^\w\s]+", r"\s+", r"\S+", r"\d{1,3}(?=(?:\d{3})*\b)", r"\b", r"(?i:THE|x)", r"\h+",
    r"[a-f&&[^c]]+", r"[^\s\p{P}]+", r"(?<=\p{Ll})(?=\p{Lu})", r"(?<!\S)\S+", r"[一-龥぀-ヿ]+", r"\p{Han}+|\p{Hiragana}|\p{Katakana}+", r"[[:alpha:]]+|[[:^alnum:]]",
    r"a{2,3}+", r"a{,2}b", r"(ab)+?", r"(?>a+)b?", r"(?m:.)b", r"^.", r".$", r"x*", r"a||b", r"\x{4e2d}|\u6587|\x41", r"\R", r"\p{Cyrillic}++", r"(?<n>a)\k<n>", r"[\]\-a]+",
    r"\p{Lu}\p{Ll}*|\p{Sc}|\p{So}", r"[\w&&[^_\d]]+", r"\A\s+|\s+\z", r"(?:a|b)*c", r"\p{Uppercase_Letter}", r"\p{Alphabetic}+", r"(?x) a b # c", r"\G\s", r"[^\n]+\n?", r"\v|\f",
]
# Of published models (Kimi, DeepSeek, EXAONE, cl100k as tiktoken has it, SuperBPE).
PATTERNS += [
    r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    r"\p{N}{1,3}(?=(?:\p{N}{3})*(?:\P{N}|$))| ?[^\s\p{L}\p{N}]{2,}[\r\n/]*| +(?!\S)",
]
# Outside brackets \w and \p{Word} have six characters more; \p{Punct} is the category, [[:punct:]] has symbols, too.
PATTERNS += [r"\p{Word}+", r"\P{Word}", r"\p{^Word}+", r"[\p{Word}]+", r"[^\p{word}]+", r"[[:word:]]+", r"\p{Punct}", r"[[:punct:]]+", r"[^\p{Punct}]+"]
BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
REGEX_TEXTS = ["The cat's 1234567 ok", "aaaab abab\u0301 AbcDef", "中文のテスト Привет_мир", " \t\n x\r\n\u2028\u0085 end ", "ab-]c.$5€ ☃a\x0bb\x0c", "ſK ßss éÉ", "", "x", "x²³ ¹¼_½¾ $+\U00010137-٣"]


def utf8_offsets(text, offsets):
    at = [0]
    for c in text:
        at.append(at[-1] + len(c.encode()))
    return [[at[b], at[e]] for b, e in offsets]


def bpe_lines():
    rng = random.Random(5)
    for name, build in FILES:
        text = json.dumps(build(), ensure_ascii=False, separators=(",", ":"))
        tok = Tokenizer.from_str(text)
        yield {"name": name, "tokenizer": text}
        seen = []
        for i, x in enumerate(TEXTS):
            e = tok.encode(x, add_special_tokens=i % 3 != 0)
            yield {"text": x, "special": i % 3 != 0, "ids": e.ids, "offsets": utf8_offsets(x, e.offsets)}
            seen.append(e.ids)
        top = tok.get_vocab_size()
        for i, ids in enumerate(seen[::3] + [[rng.randrange(top) for _ in range(20)] for _ in range(6)]):
            yield {"decode": ids, "skip": i % 2 == 0, "text": tok.decode(ids, skip_special_tokens=i % 2 == 0)}


def regex_lines():
    for i, pattern in enumerate(PATTERNS + [GPT2, LLAMA3, QWEN2, QWEN35, GPT4O, TEKKEN]):
        for k, text in enumerate(REGEX_TEXTS):
            behavior, invert = BEHAVIORS[(i + k) % 5], (i + k) % 7 == 3
            name = {"Removed": "removed", "Isolated": "isolated", "MergedWithPrevious": "merged_with_previous", "MergedWithNext": "merged_with_next",
                    "Contiguous": "contiguous"}[behavior]
            pieces = pre_tokenizers.Split(tokenizers.Regex(pattern), name, invert).pre_tokenize_str(text)
            yield {"pattern": pattern, "behavior": behavior, "invert": invert, "text": text, "pieces": utf8_offsets(text, [o for _, o in pieces])}


def main():
    assert tokenizers.__version__.startswith(PINNED), tokenizers.__version__
    for name, lines in (("bpe.jsonl", bpe_lines()), ("regex.jsonl", regex_lines())):
        with open(os.path.join(sys.argv[1], name), "w", encoding="utf-8") as f:
            n = 0
            for line in lines:
                f.write(json.dumps(line, ensure_ascii=True, separators=(",", ":")) + "\n")
                n += 1
        print(name, n, "lines")


if __name__ == "__main__":
    main()
