#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the tokenizer.json files of tests/golden/tok/ (uncased, cased, added) and the texts for added tokens.

The texts of the first two are samples written by `check_wordpiece.py --write-sample`.
"""

import random
from pathlib import Path

import refcommon

refcommon.offline()

from tokenizers import AddedToken, Tokenizer  # noqa: E402

import check_wordpiece  # noqa: E402
import wordpiece  # noqa: E402

OUT = refcommon.GOLDEN / "tok"

ASCII_LETTERS = "abcdefghijklmnopqrstuvwxyz"
ASCII_MARKS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
MARKS = "¡¢£¥§©«®°±¶·»¿×÷–—‘’“”…•€™→∈、。「」！？《》〜؟،।・～￥"
HAN = "中国人日本語東京大学水火山川我能吞下玻璃而不伤身体繁體文你好私食傷一二三十上小天地年月木金土車馬龍豈更㐀䶵" + "𠀀𠀁𪜀𫝀𬺰𰀀"
EMOJI = "😀👩👨👧🏳🌈❤🔥👍☃🫠🇩🇪🇫🇷🏽"
SCRIPTS = [  # (first, last) of letters that both tokenizers know, alone and as ## pieces
    (0x3B1, 0x3C9), (0x430, 0x44F), (0x5D0, 0x5EA), (0x627, 0x63A), (0x641, 0x64A), (0x915, 0x930), (0xE01, 0xE1F),
    (0x10D0, 0x10E8), (0x561, 0x575), (0x3041, 0x304B), (0x306F, 0x3072), (0x30A2, 0x30AB), (0x30CF, 0x30D2),
    (0xFF66, 0xFF70), (0x250, 0x26F), (0x1D400, 0x1D405), (0x904, 0x914), (0xB95, 0xBB9), (0xC15, 0xC24), (0x1200, 0x120F),
    (0x6A9, 0x6AF), (0x450, 0x45F), (0x2C81, 0x2C85), (0x1E922, 0x1E928), (0x10428, 0x1042C), (0xAB70, 0xAB74),
]
LATIN = "ßæøđħıłŋœŧþðəſﬁªº²½①ŉǆ"
SIGNS = [0x902, 0x93E, 0x93F, 0x940, 0xE32, 0xE33, 0xBBE, 0x9BE]  # spacing signs, which no normalizer drops
JAMO = [(0x1100, 0x1112), (0x1161, 0x1169), (0x11A8, 0x11AF)]
CASED_SCRIPTS = [(0x391, 0x3A1), (0x3A3, 0x3A9), (0x410, 0x42F), (0xC0, 0xD6), (0xD8, 0xF6), (0xF8, 0xFF), (0x300, 0x304),
                 (0x307, 0x309), (0x323, 0x328), (0x304C, 0x3052), (0x3099, 0x309A), (0xAC00, 0xAC03), (0xD55C, 0xD55C),
                 (0xAD6D, 0xAD6D), (0xC5B4, 0xC5B4), (0x64B, 0x652), (0x5B0, 0x5B8), (0xFE0F, 0xFE0F), (0x20E3, 0x20E3),
                 (0x3AC, 0x3AF), (0x1EA0, 0x1EA7)]
WORDS = """
the quick brown fox jumps over lazy dog it is not one two new old river house houses read state art official report un
believ able run running return range example path query other user name tag org com http https file dir text garcon naif
creme brulee hotel ete grosse strasse nino comio pina cafe naive moscow москва μα αλ σι שלום ار ال यह 東 カ がか of and to in was
for on by an this that from he she they we you time year day night man woman water fire stone
""".split()
ENDINGS = """
s ed ing er est ly ness ment tion al ic able ful less y es en ize ation th re un in ri ve on an at it is or ou ar al le st ch
ps umps own ox og azy uick ше ть ого ων ος ים ات ही して です 가 다
""".split()
CASED_WORDS = "The Don It U.S Le El Größe Straße Übermaß niño piñas garçon crème brûlée été Москва СССР Τά ΟΔΟΣ İstanbul CAFÉ Café".split()


def span(ranges) -> list[str]:
    return [chr(c) for first, last in ranges for c in range(first, last + 1)]


def rich_vocabulary(cased: bool) -> list[str]:
    """About 1500 entries: ASCII, single characters of many scripts with their ## pieces, words and endings."""
    letters = list(ASCII_LETTERS + "0123456789" + LATIN) + span(SCRIPTS) + [chr(c) for c in SIGNS] + list(EMOJI)
    letters += list(ASCII_LETTERS.upper()) + span(CASED_SCRIPTS) if cased else span(JAMO)
    singles = list(ASCII_MARKS + MARKS + HAN)
    entries = wordpiece.SPECIAL + wordpiece.with_continuations(wordpiece.unique(letters)) + singles
    entries += WORDS + (CASED_WORDS if cased else []) + ["##" + e for e in ENDINGS]
    return wordpiece.unique(entries)


def added_tokenizer() -> Tokenizer:
    """A small uncased tokenizer with added tokens of every kind."""
    letters = list(ASCII_LETTERS + "0123456789")
    vocab = wordpiece.SPECIAL + wordpiece.with_continuations(letters) + list(".,-_<>[]!#|中国東京é") + [
        "new", "york", "house", "##s", "word", "cafe", "the"]
    tok = wordpiece.build(wordpiece.unique(vocab), lowercase=True)
    tok.add_tokens([
        AddedToken("<left>", lstrip=True, normalized=False, special=True),
        AddedToken("<right>", rstrip=True, normalized=False, special=True),
        AddedToken("<both>", lstrip=True, rstrip=True, normalized=False, special=True),
        AddedToken("<alone>", single_word=True, normalized=False, special=True),
        AddedToken("Exact", normalized=False, special=False),
        AddedToken("Loose", normalized=True, special=False),
        AddedToken("SpecialLoose", normalized=True, special=True),
        AddedToken("whole", single_word=True, normalized=True, special=False),
        AddedToken("Café", normalized=True, special=False),
        AddedToken("New York", normalized=True, special=False),
        AddedToken("New York City", normalized=True, special=False),
        AddedToken("house", single_word=True, normalized=True, special=False),  # also an entry of the model
        AddedToken("ab", normalized=False, special=False),
        AddedToken("abcd", normalized=False, special=False),
        AddedToken("bc", normalized=False, special=False),
        AddedToken("cdef", normalized=False, special=False),
        AddedToken("xy", normalized=True, special=False),
        AddedToken("xyz", normalized=True, special=False),
        AddedToken("yzw", normalized=True, special=False),
        AddedToken("東京", normalized=False, special=False),
        AddedToken("中国", normalized=True, special=False),
        AddedToken("|strip|", lstrip=True, rstrip=True, normalized=True, special=False),
        AddedToken("|one|", lstrip=True, single_word=True, normalized=True, special=False),
        AddedToken("##ing", normalized=False, special=False),
        AddedToken("<|end|>", normalized=False, special=True),
        AddedToken("<|end|><|end|>", normalized=False, special=True),
    ])
    return tok


def added_texts(tok: Tokenizer, count: int) -> list[str]:
    tokens = [t.content for _, t in sorted(tok.get_added_tokens_decoder().items())]
    texts = list(tokens)
    for token in tokens:
        texts += [f"a {token} b", f"a{token}b", f"  {token}  ", f"{token}{token}", token.upper(), f"{token}.", f"_{token}", f"1{token}",
                  f"é{token}\u0301", f"\u00a0{token}\u3000a", f"\t{token}\n", f"中{token}国"]
    texts += ["abcdef", "abcde", "aabcdeff", "xyzw", "xxyzwz", "Xyz XYZW", "new york", "NEW  YORK", "New York Cit", "new york city's",
              "CAFÉ café cafe cafe\u0301", "wholesome whole", "the whole.", "houses house", "exact Exact EXACT", "中 国 中国 中国人"]
    rng = random.Random(7)
    glue = ["", "", " ", "  ", "\t", "\u00a0", ".", "a", "_", "1", "é", "中", "-", "\u200d", "\u0301", "the", "#"]
    while len(texts) < count:
        texts.append("".join(rng.choice(tokens) + rng.choice(glue) for _ in range(rng.randint(2, 4))))
    return texts


def write_added(folder: Path) -> None:
    tok = added_tokenizer()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(tok.to_str() + "\n", encoding="utf-8")
    tok = Tokenizer.from_file(str(folder / "tokenizer.json"))
    texts = added_texts(tok, 700)
    check_wordpiece.write_lines(folder / "added.jsonl", [check_wordpiece.sample_line(tok, text) for text in texts])


def main() -> None:
    for name in ("uncased", "cased"):
        folder = OUT / name
        folder.mkdir(parents=True, exist_ok=True)
        tok = wordpiece.build(rich_vocabulary(name == "cased"), lowercase=name == "uncased")
        (folder / "tokenizer.json").write_text(tok.to_str() + "\n", encoding="utf-8")
        print(f"{name}: {tok.get_vocab_size()} entries")
    write_added(OUT / "added")


if __name__ == "__main__":
    main()
