# SPDX-License-Identifier: Apache-2.0
"""Texts that tell tokenizers apart: many scripts, every code point in context, and the known traps, by category.

Every function yields texts from a seeded generator; the same seed gives the same texts on every Python version
(nothing here asks `unicodedata`).
"""

import random
from collections.abc import Iterator

PROSE = """
The quick brown fox jumps over the lazy dog; it's 3.14 o'clock, isn't it?
Don't re-read U.S.A.'s state-of-the-art (semi-official) reports... unless you're paid $1,234.56!
def f(x): return {"a": [x**2 for _ in range(10)], 'b': x != None}  # comment
https://example.com/path?query=1&other=%20two#frag user.name+tag@example.org C:\\dir\\file_name.txt
Le garçon naïf a mangé une crème brûlée à l'hôtel, où l'été s'achève.
Größe, Straße, Fußgängerübergänge und ein Übermaß an Äpfeln.
El niño pequeño comió piñas; ¿cuándo volverá? ¡Mañana!
O coração não vê através da maçã, são pães e avós.
Příliš žluťoučký kůň úpěl ďábelské ódy.
Zażółć gęślą jaźń w łódce pełnej źdźbeł.
Árvíztűrő tükörfúrógép, hosszú ő és ű.
Pijamalı hasta yağız şoföre çabucak güvendi. İstanbul'da ILIK ışık.
Tiếng Việt có nhiều dấu: ữ, ộ, ặ, ẫ, đường phố Hà Nội.
Þórður æfði sig á ðkerfi; hvað er klukkan?
Broşură și țară, înțelegere în România.
Съешь ещё этих мягких французских булок, да выпей чаю.
Їжак і ґедзь пішли до лісу. Қазақ тілі, ұлы дала.
Τάχιστη αλώπηξ βαφής ψημένη γη, δρασκελίζει υπέρ νωθρού κυνός. ΟΔΥΣΣΕΥΣ ὀδυσσεύς
דג סקרן שט בים מאוכזב ולפתע מצא חברה. שָׁלוֹם עוֹלָם
نص حكيم له سر قاطع وذو شأن عظيم. اَلسَّلَامُ عَلَيْكُمْ ١٢٣
یک متن فارسی با نیم‌فاصله: می‌خواهم ۴۵۶
यह हिन्दी में एक वाक्य है। क्षत्रिय ज़रूर पढ़ें
বাংলা ভাষা সুন্দর। ড়, ঢ়, য়
தமிழ் மொழி மிகவும் பழமையானது. கொ கௌ
తెలుగు ಕನ್ನಡ മലയാളം සිංහල
ภาษาไทยไม่มีการเว้นวรรคระหว่างคำ น้ำ กำลัง
ພາສາລາວ မြန်မာဘာသာ ភាសាខ្មែរ
བོད་སྐད་ ᠮᠣᠩᠭᠣᠯ ᏣᎳᎩ ꮳꮃꭹ
ქართული ენა Ქართული, Հայերեն լեզու և
አማርኛ ቋንቋ። ⲁⲃⲅ ⴰⴱ ꙮ
我能吞下玻璃而不伤身体。「繁體中文」,你好！
私はガラスを食べられます。それは私を傷つけません。ﾊﾝｶｸ ｶﾞｷﾞｸﾞ ﾊﾟ
나는 유리를 먹을 수 있어요. 그래도 아프지 않아요
ㄱㄴㄷ ㅏㅑ 각 갂 훈민정음 ㈀ ㉠ ﾡ
𠀀𠀁 𪜀 𫝀 𫠠 𬺰 𰀀 豈 更 丽 㐀 䶵
𝐇𝐞𝐥𝐥𝐨 ｗｏｒｌｄ ①②③ ½ ² ﬁ ﬀ ﬅ ™ ℃ Å K
👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇫🇷 👍🏽 1️⃣ ☃️ ❤️‍🔥 🫠
𞤀𞤣𞤤𞤢𞤥 𐐀𐐨 𐓂𐓷 𖹀𖹠 𑢠𑣀
""".strip().split("\n")

WORDS = """
the and river Houses unbelievable running café CAFÉ cafe\u0301 naïve Straße STRASSE ẞ Ünïcödé ﬁnd ŉ ǆ ǅ Ǆ İstanbul ıspanak Σίσυφος
ΟΔΟΣ ὈΔΥΣΣΕΎΣ ς σ москва МОСКВА ё Ё й и\u0306 東京 中国 ガ カ\u3099 が か\u3099 ﾊﾟ 한국어 한국어 ไทย हिन्दी שלום مرحبا 👍 12 3.5 0x1F _ - ' "
## ##s ##ing [ ] [UNK [CLS] [SEP] [MASK] [PAD] [UNK] [cls] < > ¿ ¡ « » “ ” ‘ ’ … – — · • § ¶ ° € £ ¥ ¢ ¤ + = ^ ` | ~ $ © ® ± × ÷
"""
WORDS = WORDS.split()

SPACES = " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u1680\u180e" + "".join(map(chr, range(0x2000, 0x2010)))
SPACES += "\u2028\u2029\u202f\u205f\u2060\u3000\ufeff"
CONTROLS = [chr(c) for c in (*range(0x20), *range(0x7F, 0xA0))] + list(
    "\xad\u0600\u061c\u06dd\u070f\u08e2\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2061"
    "\u2064\u2066\u2069\u206f\ufeff\ufff9\ufffb\ufffc\ufffd\U000110bd\U00013430\U0001bca0\U0001d173\U000e0001\U000e0061"
)
ODD = [chr(c) for c in (
    0xD7FF, 0xE000, 0xE001, 0xF8FF, 0xF0000, 0xFFFFD, 0x100000, 0x10FFFD, 0xFDD0, 0xFDEF, 0xFFFE, 0xFFFF, 0x1FFFE,
    0x10FFFF, 0x0378, 0x0530, 0x05FF, 0x2FE0, 0x9FFF, 0xA4CF, 0xD7FC, 0xFAFF, 0x1FFFD, 0x2A6E0, 0x2FFFD, 0x40000,
    0x50000, 0xDFFFF, 0xE0FFF, 0xEFFFF)]
MARKS = [chr(c) for r in ((0x300, 0x370), (0x483, 0x488), (0x591, 0x5C8), (0x610, 0x61B), (0x64B, 0x660), (0x93C, 0x93D),
                          (0x94D, 0x94E), (0xE31, 0xE32), (0x1AB0, 0x1AC0), (0x1DC0, 0x1E00), (0x20D0, 0x20F1),
                          (0x3099, 0x309B), (0xFE00, 0xFE10), (0xFE20, 0xFE30), (0x1D165, 0x1D16A), (0xE0100, 0xE0104))
         for c in range(*r)]
# First and last of each range that BERT treats as a Chinese character, and their neighbours.
CJK_RANGES = [(0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
              (0x2B820, 0x2CEAF), (0x2CEB0, 0x2EBEF), (0x30000, 0x3134F), (0x31350, 0x323AF), (0xF900, 0xFAFF),
              (0x2F800, 0x2FA1F), (0x2E80, 0x2EFF), (0x2F00, 0x2FDF), (0x3000, 0x303F), (0x31C0, 0x31EF)]
PUNCTUATION = [chr(c) for r in ((0x21, 0x30), (0x3A, 0x41), (0x5B, 0x61), (0x7B, 0x7F), (0xA1, 0xC0), (0x2010, 0x2028),
                                (0x2030, 0x205F), (0x207A, 0x207F), (0x20A0, 0x20C1), (0x2190, 0x2194), (0x2200, 0x2208),
                                (0x2308, 0x230C), (0x2768, 0x2776), (0x2983, 0x2999), (0x2E00, 0x2E5E), (0x3001, 0x3021),
                                (0xFE10, 0xFE20), (0xFE30, 0xFE6C), (0xFF01, 0xFF10), (0xFF1A, 0xFF21), (0xFF5B, 0xFF66))
               for c in range(*r)] + list("՚։־׀׃׆؉؊،؛؞؟٪٫٬۔।॥๏๚๛༄༺༻၊။჻፠፡᐀᙮᚛᚜។៕᠀᠁᥄᯼᰻᱾᳀⁅⁆⳹⵰꓾꘍꡴꣎꤮꧁꩜꫞꯫𐄀𐎟𐏐𐡗𐤟𑁇𑂻𑅀𑱁𒑰𖩮𛲟𝪇𞥞")
CASES = list("İıIiŞßẞŉǰΐΰևẖẗẘẙẚᾀᾼΣςσΆάϓϴΩKÅſﬀﬁﬂﬃﬄﬅﬆﬓǄǅǆǇǈǉǱǲǳᲐაᏣꭰᎠ𐐀𐐨𞤀𞤢ⅠⅰⓐⒶꙊꙋᲀ𝐀ªºʰᵃₐÀÉÎÕÜÝŸàéîõüýÿ") + ["i\u0307", "J\u030c", "\u0345"]


def every_point() -> list[int]:
    """Every code point of the planes that hold characters, and one in 64 of the others; no surrogates."""
    return [c for c in range(0x110000) if not 0xD800 <= c < 0xE000 and (c >> 16 in (0, 1, 2, 3, 14) or c % 64 == 63)]


def telling_points() -> list[int]:
    """Code points of the scripts, marks and symbols that tokenizers treat differently: a sample is drawn from them."""
    ranges = [(0, 0x3400), (0xA640, 0xA800), (0xAB30, 0xABC0), (0xF900, 0xFB50), (0xFE00, 0x10000), (0x10400, 0x104B0),
              (0x1D400, 0x1D4C0), (0x1D7C0, 0x1D800), (0x1E900, 0x1E960), (0x1F1E0, 0x1F200), (0x1F3F0, 0x1F480)]
    return [c for first, end in ranges for c in range(first, end)]


def code_points(points: list[int], per_line: int = 8) -> Iterator[str]:
    """Each of the code points between neighbours that show whether it is dropped, split off or part of a word."""
    contexts = ["a{}b", " {} ", "{}", "x{}\u0301", "e\u0301{}y", "{}1", "中{}", "-{}.", "か{}\u3099", "{0}{0}", "A{} B"]
    at = 0
    for begin in range(0, len(points), per_line):
        parts = []
        for c in points[begin : begin + per_line]:
            parts.append(contexts[at % len(contexts)].format(chr(c)))
            at += 1
        yield " ".join(parts)


def prose(rng: random.Random) -> Iterator[str]:
    yield from PROSE
    while True:
        kind = rng.randrange(4)
        line = rng.choice(PROSE)
        if kind == 0:
            words = [w for _ in range(3) for w in rng.choice(PROSE).split()]
            yield " ".join(rng.sample(words, rng.randint(1, min(8, len(words)))))
        elif kind == 1:
            yield line.upper() if rng.random() < 0.5 else line.title()
        elif kind == 2:
            begin = rng.randrange(len(line))
            yield line[begin : begin + rng.randint(1, 40)]
        else:
            yield "".join(rng.choice(line.split()) for _ in range(rng.randint(2, 4)))


def words(rng: random.Random) -> Iterator[str]:
    """Words of all kinds run together or kept apart."""
    while True:
        yield "".join(rng.choice(WORDS) + rng.choice(["", " ", " ", "-", "\u00a0"]) for _ in range(rng.randint(1, 9)))


def accents(rng: random.Random) -> Iterator[str]:
    """Letters under stacks of combining marks, in canonical order or not."""
    bases = list("aeioucnsyzAEIOUNSQæøłßıİकมあカש") + ["한", "ᄒ", "中", "1", "-", " ", "é", "ữ", "Ǖ", "ΐ", "й"]
    while True:
        yield "".join(
            rng.choice(bases) + "".join(rng.choices(MARKS, k=rng.choice([0, 1, 1, 2, 3, 12]))) + rng.choice(["", "", " "])
            for _ in range(rng.randint(1, 6)))


def cjk(rng: random.Random) -> Iterator[str]:
    edges = [chr(c) for lo, hi in CJK_RANGES for c in (lo - 1, lo, hi, hi + 1)]
    while True:
        lo, hi = rng.choice(CJK_RANGES)
        some = [chr(rng.randint(lo, hi)) for _ in range(rng.randint(1, 5))] + rng.choices(edges, k=3)
        rng.shuffle(some)
        yield rng.choice(["", "a", "の"]).join(some) + rng.choice(["", "x", "。", " 中"])


def kana(rng: random.Random) -> Iterator[str]:
    full = [chr(c) for c in (*range(0x3041, 0x3100), *range(0x31F0, 0x3200))]
    half = [chr(c) for c in range(0xFF61, 0xFFA0)]
    while True:
        pool = full if rng.random() < 0.6 else half
        yield "".join(rng.choice(pool) + rng.choice(["", "", "\u3099", "\u309a", "\u309b", "\uff9e", "\uff9f", " "])
                      for _ in range(rng.randint(1, 8)))


def hangul(rng: random.Random) -> Iterator[str]:
    def one() -> str:
        kind = rng.randrange(5)
        if kind < 2:
            return chr(rng.randint(0xAC00, 0xD7A3))
        if kind == 2:
            tail = rng.randint(0x11A7, 0x11C2)
            return chr(rng.randint(0x1100, 0x1112)) + chr(rng.randint(0x1161, 0x1175)) + (chr(tail) if tail > 0x11A7 else "")
        return chr(rng.randint(0x3131, 0x318E) if kind == 3 else rng.choice([0x115F, 0x1160, 0xA960, 0xD7B0, 0xFFA1, 0x11FF]))

    while True:
        yield "".join(one() + rng.choice(["", "", " "]) for _ in range(rng.randint(1, 7)))


def emoji(rng: random.Random) -> Iterator[str]:
    pool = list("😀👩👨👧🏳🌈❤🔥👍☃⚕✈🫠🇩🇪🇫🇷1#*©™‼㊗") + ["\u200d", "\ufe0f", "\ufe0e", "\u20e3", "🏽", "🏿", "\U000e0067", "\U000e007f", "👩\u200d💻"]
    while True:
        yield "".join(rng.choice(pool) + rng.choice(["", "", "", " ", "a"]) for _ in range(rng.randint(1, 9)))


def controls(rng: random.Random) -> Iterator[str]:
    yield from ("\0", "a\0b", "\0\0 \0", "\ufffd", "\ufeffstart", "end\ufeff")
    while True:
        yield "".join(rng.choice(["a", "the ", "river", "é", "中", ".", " "]) + rng.choice(CONTROLS)
                      for _ in range(rng.randint(1, 7)))


def odd(rng: random.Random) -> Iterator[str]:
    """Private use, unassigned, noncharacters, the neighbours of the surrogates."""
    while True:
        yield "".join(rng.choice(["", "a", "the ", "##", " ", "é"]) + rng.choice(ODD) for _ in range(rng.randint(1, 6)))


def long_words(rng: random.Random) -> Iterator[str]:
    """Around the limit of 100 characters a word, counted after normalising, and far beyond it."""
    units = ["a", "ab", "é", "e\u0301", "ß", "İ", "か", "가", "x\u200d", "😀", "the", "a\0", "aͤ", "Σ", "中", "1", "a.", "\ue000"]
    for unit in units:
        for n in (99, 100, 101):
            yield unit * n
            yield (unit * n)[:n]
            yield "x " + (unit * n)[:n] + "," + (unit * n)[:n] + " y"
    for unit in ("a", "é", "the", "か\u3099", "a ", ".", "\u0301", "中"):
        yield unit * 10000
    while True:
        yield "".join(rng.choice(units) for _ in range(rng.randint(60, 130)))


def specials(rng: random.Random) -> Iterator[str]:
    names = ["[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]"]
    yield from names
    pool = names * 3 + ["[cls]", "[ CLS ]", "[MASK", "MASK]", "[[MASK]]", "the", "river", "中", "é", "a", ".", "##", "\0"]
    while True:
        yield "".join(rng.choice(pool) + rng.choice(["", "", " ", "  ", "\t", "\u3000"]) for _ in range(rng.randint(1, 7)))


def spaces(rng: random.Random) -> Iterator[str]:
    yield from ("", " ", "\n", "   ", "\u3000")
    while True:
        yield "".join(rng.choice(["a", "river", "", "中", "é", "."]) + "".join(rng.choices(SPACES, k=rng.randint(1, 3)))
                      for _ in range(rng.randint(1, 6)))


def rtl(rng: random.Random) -> Iterator[str]:
    letters = [chr(c) for r in ((0x5D0, 0x5EB), (0x620, 0x64B), (0x671, 0x6D4), (0x710, 0x730), (0x7CA, 0x7EB),
                                (0xFB1D, 0xFB50), (0xFB50, 0xFDFF), (0xFE70, 0xFEFD)) for c in range(*r)]
    marks = [chr(c) for r in ((0x591, 0x5C8), (0x610, 0x61B), (0x64B, 0x660), (0x670, 0x671), (0x6D6, 0x6EE)) for c in range(*r)]
    extra = list("\u200e\u200f\u202b\u202c\u0640،؛؟٪٠۱") + ["a", "1", " ", " ", "-"]
    while True:
        yield "".join(rng.choice(letters) + rng.choice(["", "", rng.choice(marks), rng.choice(extra)])
                      for _ in range(rng.randint(1, 10)))


def cases(rng: random.Random) -> Iterator[str]:
    while True:
        yield "".join(rng.choice(CASES) + rng.choice(["", "", " ", "\u0307", "a", "Σ"]) for _ in range(rng.randint(1, 8)))


def punctuation(rng: random.Random) -> Iterator[str]:
    while True:
        yield "".join(rng.choice(PUNCTUATION) + rng.choice(["", "", " ", "a", "the", "1", "中", "é"])
                      for _ in range(rng.randint(1, 9)))


def digits(rng: random.Random) -> Iterator[str]:
    zeros = [0x30, 0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xE50, 0xF20, 0x1040, 0x17E0, 0xFF10, 0x104A0, 0x1D7CE, 0x1E950]
    marks = list(".,'- /:%\u00a0\u2009") + ["", "", "e", "x", "²", "½", "Ⅳ", "①", "㊿"]
    while True:
        zero = rng.choice(zeros)
        yield "".join(chr(zero + rng.randrange(10)) * rng.randint(1, 2) + rng.choice(marks) for _ in range(rng.randint(1, 9)))


def mash(rng: random.Random) -> Iterator[str]:
    """Anything beside anything."""
    pools = [list(SPACES), CONTROLS, ODD, MARKS, PUNCTUATION, CASES, WORDS, list("abcdefghijklmnopqrstuvwxyz"), list("0123456789")]
    while True:
        yield "".join(rng.choice(rng.choice(pools)) for _ in range(rng.randint(1, 14)))


CATEGORIES = [prose, words, accents, cjk, kana, hangul, emoji, controls, odd, long_words, specials, spaces, rtl, cases,
              punctuation, digits, mash]


def texts(seed: int, per_category: int, sample: bool = False) -> dict[str, list[str]]:
    """{category: texts}. Every code point (a telling part of them for a sample), of the rest `per_category` texts."""
    points = telling_points() if sample else every_point()
    if sample:
        random.Random(seed).shuffle(points)
    made = {"code_points": list(code_points(points, 6 if sample else 8))}
    for number, category in enumerate(CATEGORIES):
        source = category(random.Random(seed * 1000 + number))
        made[category.__name__] = [next(source) for _ in range(per_category)]
    return made
