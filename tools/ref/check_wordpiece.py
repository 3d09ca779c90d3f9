#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `lath tokenize` with the `tokenizers` package, id for id and offset for offset, on difficult text.

    check_wordpiece.py MODEL --lath BINARY              compare; exit 1 on any difference
    check_wordpiece.py MODEL --write-sample FILE N      write N texts with ids and byte offsets (JSONL) instead

MODEL is a directory with a tokenizer.json, or `chars:uncased` / `chars:cased`: a vocabulary made on the spot that has
every character, alone and as a ## piece, so that the ids show what the normalizer made of each. Truncation and padding
of tokenizer.json are switched off.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import refcommon

refcommon.offline()

from tokenizers import Tokenizer  # noqa: E402

import torture_texts  # noqa: E402
import wordpiece  # noqa: E402

SAMPLE_LINE_MAX = 420  # bytes of a sample's line
SHOWN = 20  # differences that are printed

# Characters that a text file should not hold as they are: unprintable, invisible, or joined to their neighbours.
ESCAPED = [(0x7F, 0xA0), (0xAD, 0xAD), (0x300, 0x36F), (0x483, 0x489), (0x591, 0x5C7), (0x600, 0x605), (0x610, 0x61C),
           (0x64B, 0x65F), (0x6D6, 0x6ED), (0x70F, 0x70F), (0x180B, 0x180E), (0x1AB0, 0x1AFF), (0x1DC0, 0x1DFF),
           (0x2000, 0x200F), (0x2028, 0x202F), (0x205F, 0x206F), (0x20D0, 0x20FF), (0x3000, 0x3000), (0x3099, 0x309A),
           (0xD800, 0xF8FF), (0xFDD0, 0xFDEF), (0xFE00, 0xFE0F), (0xFE20, 0xFE2F), (0xFEFF, 0xFEFF), (0xFF9E, 0xFFA0),
           (0xFFF0, 0xFFFF), (0x1FFFE, 0x1FFFF), (0x40000, 0x10FFFF)]


def json_text(text: str) -> str:
    """A JSON string; what ESCAPED lists is written as \\u escapes."""
    return "".join(
        json.dumps(c)[1:-1] if ord(c) < 0x80 or any(lo <= ord(c) <= hi for lo, hi in ESCAPED) else c for c in text
    ).join('""')


def every_char(lowercase: bool) -> Tokenizer:
    """A tokenizer that knows every character which a normalised text can hold."""
    norm = wordpiece.build(wordpiece.SPECIAL, lowercase).normalizer
    points = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000 and c >> 16 in (0, 1, 2, 3, 14)]
    chars = sorted({out for c in points for out in norm.normalize_str(chr(c)) if not out.isspace()})
    return wordpiece.build(wordpiece.SPECIAL + wordpiece.with_continuations(chars), lowercase)


def open_model(name: str, scratch: Path) -> tuple[Tokenizer, Path]:
    """The tokenizer, without truncation and padding, and a directory that lath can open."""
    if name in ("chars:uncased", "chars:cased"):
        folder = scratch
        every_char(name == "chars:uncased").save(str(folder / "tokenizer.json"))
    elif (Path(name) / "config.json").exists():
        folder = Path(name)
    else:
        folder = scratch
        shutil.copy(Path(name) / "tokenizer.json", folder)
    if folder is scratch:
        refcommon.write_json(folder / "config.json", {
            "architectures": ["BertModel"], "model_type": "bert", "hidden_size": 8, "num_attention_heads": 1,
            "num_hidden_layers": 1, "intermediate_size": 8, "hidden_act": "gelu", "layer_norm_eps": 1e-12,
            "max_position_embeddings": 512, "type_vocab_size": 2,
            "vocab_size": Tokenizer.from_file(str(folder / "tokenizer.json")).get_vocab_size()})
    tok = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tok.no_truncation()
    tok.no_padding()
    return tok, folder


def reference(tok: Tokenizer, texts: list[str]) -> list[dict]:
    return [{"ids": e.ids, "offsets": refcommon.utf8_offsets(t, e.offsets)} for t, e in zip(texts, tok.encode_batch(texts))]


def sample_line(tok: Tokenizer, text: str) -> str:
    """{"text":...,"ids":[...],"offsets":[[begin,end],...]}"""
    got = reference(tok, [text])[0]
    rest = json.dumps(got, separators=(",", ":"))
    line = f'{{"text":{json_text(text)},{rest[1:]}'
    if json.loads(line)["text"] != text:
        raise ValueError(f"{text!r} is not kept by its JSON form")
    return line


def write_lines(path: Path, lines: list[str]) -> None:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    print(f"{path.name}: {len(lines)} lines")


def telling(tok: Tokenizer, text: str, rng: random.Random) -> bool:
    """Whether a sample should have the text: short, and seldom one whose ids are mostly [UNK]."""
    if len(text) > SAMPLE_LINE_MAX:
        return False
    ids = tok.encode(text, add_special_tokens=False).ids
    return 2 * ids.count(tok.token_to_id("[UNK]")) < len(ids) or rng.random() < 0.2


def write_sample(tok: Tokenizer, groups: dict[str, list[str]], path: Path, count: int, seed: int) -> None:
    """`count` texts: as many of each category, four times as many code point lines."""
    rng = random.Random(seed)
    queues = []
    for name, group in groups.items():
        lines = [sample_line(tok, text) for text in dict.fromkeys(group) if telling(tok, text, rng)]
        lines = [line for line in lines if len(line.encode()) <= SAMPLE_LINE_MAX]
        rng.shuffle(lines)
        queues += [lines] * (4 if name == "code_points" else 1)
    chosen = {sample_line(tok, text): None for text in ("", " ", "\0", "a" * 100, "a" * 101)}
    while len(chosen) < count and any(queues):
        chosen |= {queue.pop(): None for queue in queues if queue}
    write_lines(path, list(chosen)[:count])


def compare(tok: Tokenizer, folder: Path, lath: str, texts: list[str], scratch: Path) -> int:
    """Number of texts on which lath and the package differ."""
    source = scratch / "texts.jsonl"
    with source.open("w", encoding="utf-8") as out:
        for i, text in enumerate(texts):  # half of the lines as UTF-8, half as \u escapes
            out.write(json.dumps({"text": text}, ensure_ascii=i % 2 == 0) + "\n")
    command = [lath, "tokenize", "-m", str(folder), "--jsonl", "--field", "text", "-f", str(source)]
    run = subprocess.run(command, capture_output=True)
    if run.returncode:
        sys.exit(f"lath exit {run.returncode}: {run.stderr.decode(errors='replace').strip()}")
    rows = run.stdout.decode("utf-8").split("\n")[:-1]
    if len(rows) != len(texts):
        sys.exit(f"lath printed {len(rows)} lines for {len(texts)} texts")
    wrong = 0
    for i, (text, want, row) in enumerate(zip(texts, reference(tok, texts), rows)):
        got = json.loads(row)
        if got["index"] == i and got["ids"] == want["ids"] and got["offsets"] == want["offsets"]:
            continue
        wrong += 1
        if wrong <= SHOWN:
            print(f"text {i}: {json.dumps(text)[:300]}")
            for key in ("ids", "offsets"):
                if got[key] != want[key]:
                    print(f"  {key} want {str(want[key])[:400]}\n  {key} got  {str(got[key])[:400]}")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="directory with tokenizer.json, or chars:uncased / chars:cased")
    parser.add_argument("--lath", metavar="BINARY", help="the program to check")
    parser.add_argument("--write-sample", nargs=2, metavar=("FILE", "N"))
    parser.add_argument("--per-category", type=int, default=1000, help="texts of each category (default 1000)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if bool(args.lath) == bool(args.write_sample):
        parser.error("give either --lath or --write-sample")
    groups = torture_texts.texts(args.seed, args.per_category, sample=bool(args.write_sample))
    with tempfile.TemporaryDirectory() as scratch_name:
        scratch = Path(scratch_name)
        tok, folder = open_model(args.model, scratch)
        if args.write_sample:
            write_sample(tok, groups, Path(args.write_sample[0]), int(args.write_sample[1]), args.seed)
            return
        texts = [text for group in groups.values() for text in group]
        wrong = compare(tok, folder, args.lath, texts, scratch)
    print(f"{args.model}: {len(texts)} texts, {wrong} different")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
