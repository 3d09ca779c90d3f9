#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes src/base/unicode_regex_tables.h and .c: the character classes that patterns of tokenizers use, as the regular expression engine of the
pinned `tokenizers` package (Oniguruma) sees them. Every code point is asked of the package, class by class.

usage: make_regex_tables.py OUTPUT_DIR [--check]     (--check: compare with the files that are there, write nothing)
"""
import os
import sys

import tokenizers
from tokenizers import Regex
from tokenizers import pre_tokenizers as P

PINNED = "0.23"
LIMIT = 0x110000
TEXT = "".join(chr(c) for c in range(LIMIT) if not 0xD800 <= c <= 0xDFFF)

CATEGORIES = ("Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cn Co").split()
SPACE, WORD = 32, 64  # flags beside the number of the category

# Names as patterns write them; what the package does not know is left out.
SCRIPTS = """Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese Bamum Bassa_Vah Batak Bengali Bhaiksuki Bopomofo Brahmi
Braille Buginese Buhid Canadian_Aboriginal Carian Caucasian_Albanian Chakma Cham Cherokee Chorasmian Common Coptic Cuneiform Cypriot
Cypro_Minoan Cyrillic Deseret Devanagari Dives_Akuru Dogra Duployan Egyptian_Hieroglyphs Elbasan Elymaic Ethiopic Garay Georgian Glagolitic
Gothic Grantha Greek Gujarati Gunjala_Gondi Gurmukhi Gurung_Khema Han Hangul Hanifi_Rohingya Hanunoo Hatran Hebrew Hiragana Imperial_Aramaic
Inherited Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kannada Katakana Kawi Kayah_Li Kharoshthi Khitan_Small_Script Khmer
Khojki Khudawadi Kirat_Rai Lao Latin Lepcha Limbu Linear_A Linear_B Lisu Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean Marchen
Masaram_Gondi Medefaidrin Meetei_Mayek Mende_Kikakui Meroitic_Cursive Meroitic_Hieroglyphs Miao Modi Mongolian Mro Multani Myanmar Nabataean
Nag_Mundari Nandinagari New_Tai_Lue Newa Nko Nushu Nyiakeng_Puachue_Hmong Ogham Ol_Chiki Ol_Onal Old_Hungarian Old_Italic Old_North_Arabian
Old_Permic Old_Persian Old_Sogdian Old_South_Arabian Old_Turkic Old_Uyghur Oriya Osage Osmanya Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa
Phoenician Psalter_Pahlavi Rejang Runic Samaritan Saurashtra Sharada Shavian Siddham SignWriting Sinhala Sogdian Sora_Sompeng Soyombo
Sundanese Sunuwar Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan Tifinagh
Tirhuta Todhri Toto Tulu_Tigalari Ugaritic Vai Vithkuqi Wancho Warang_Citi Yezidi Yi Zanabazar_Square""".split()
PROPERTIES = """Alphabetic Uppercase Lowercase White_Space Ideographic Math Emoji Emoji_Presentation Emoji_Modifier Emoji_Modifier_Base
Emoji_Component Extended_Pictographic""".split()
POSIX = "alnum alpha ascii blank cntrl digit graph lower print punct space upper xdigit word".split()


def ranges(pattern, text=TEXT):
    """[(first, last)] of the code points of the text that the pattern matches; None when it is refused."""
    try:
        split = P.Split(Regex(pattern + "+"), "removed", invert=True)
    except Exception:
        return None
    out = []
    for piece, _ in split.pre_tokenize_str(text):
        for c in map(ord, piece):
            if out and out[-1][1] + 1 == c:
                out[-1][1] = c
            else:
                out.append([c, c])
    return out


def two_stage(values, shift):
    size, blocks, stage1, stage2 = 1 << shift, {}, [], []
    for at in range(0, LIMIT, size):
        b = tuple(values[at:at + size])
        if b not in blocks:
            blocks[b] = len(blocks)
            stage2.extend(b)
        stage1.append(blocks[b])
    return stage1, stage2


def best(values):
    found = None
    for shift in range(5, 10):
        s1, s2 = two_stage(values, shift)
        cost = len(s1) * (1 if max(s1) < 256 else 2) + len(s2)
        if found is None or cost < found[0]:
            found = (cost, shift, s1, s2)
    return found[1:]


def c_array(ctype, name, items):
    lines, line = [], ""
    for item in items:
        if len(line) + len(item) > 118:
            lines.append(line)
            line = ""
        line += item + ","
    lines.append(line)
    return f"const {ctype} {name}[{len(items)}] = {{\n" + "\n".join(lines) + "\n};\n"


def fold(name):
    return name.replace("_", "").lower()


def main():
    out, check = sys.argv[1], "--check" in sys.argv[2:]
    assert tokenizers.__version__.startswith(PINNED), tokenizers.__version__
    values, seen, text = [CATEGORIES.index("Cn")] * LIMIT, [False] * LIMIT, TEXT
    for name in sorted(CATEGORIES, key=lambda n: n not in ("Cn", "Co")):
        number = CATEGORIES.index(name)
        if name == "Lu":  # unassigned and private code points are most of all, and are done with
            text = "".join(c for c in TEXT if not seen[ord(c)])
        for first, last in ranges(rf"\p{{{name}}}", text):
            for c in range(first, last + 1):
                assert not seen[c], hex(c)
                seen[c] = True
                values[c] = number
    assert all(seen[c] for c in range(LIMIT) if not 0xD800 <= c <= 0xDFFF)
    for flag, pattern in ((SPACE, r"\s"), (WORD, r"\w")):
        for first, last in ranges(pattern):
            for c in range(first, last + 1):
                values[c] |= flag
    shift, s1, s2 = best(values)

    names, pool = [], []
    # No script has unassigned code points; the other classes may.
    for name, pattern in [(n, rf"\p{{{n}}}") for n in SCRIPTS + PROPERTIES] + [("[:" + n, rf"[[:{n}:]]") for n in POSIX]:
        found = ranges(pattern, text if name in SCRIPTS else TEXT)
        if found is None:
            print("not known to the package:", name)
            continue
        names.append((fold(name), len(pool), len(found)))
        pool += found
    names.sort()

    type1 = "uint8_t" if max(s1) < 256 else "uint16_t"
    head = ("/* SPDX-License-Identifier: Apache-2.0\n"
            " * {}: character classes as the regular expressions of `tokenizers` " + tokenizers.__version__ + " see them: every code\n"
            " * point was asked of the package. Made by tools/ref/make_regex_tables.py; not edited by hand.\n */\n")
    h = head.format("unicode_regex_tables.h")
    h += "#ifndef LATH_BASE_UNICODE_REGEX_TABLES_H\n#define LATH_BASE_UNICODE_REGEX_TABLES_H\n\n#include <stdint.h>\n\n/* clang-format off */\n"
    h += "/* General categories; uni_gc_names has their names, \"Lu\" and so on. */\nenum {\n"
    h += "".join("    " + " ".join(f"UNI_GC_{n.upper()}," for n in CATEGORIES[i:i + 8]) + "\n" for i in range(0, len(CATEGORIES), 8))
    h += "    UNI_GC_COUNT\n};\nextern const char uni_gc_names[UNI_GC_COUNT][3];\n"
    h += f"/* A value of the table: category | flags. \\s and \\w are the engine's own. */\nenum {{ UNI_GC_MASK = 31, UNI_RE_SPACE = {SPACE}, UNI_RE_WORD = {WORD}, UNI_GC_SHIFT = {shift} }};\n"
    h += f"extern const {type1} uni_gc_1[{len(s1)}];\nextern const uint8_t uni_gc_2[{len(s2)}];\n\n"
    h += "typedef struct uni_range {\n    uint32_t first, last;\n} uni_range;\n"
    h += "/* Scripts, properties (small letters, no '_') and POSIX classes (\"[:alpha\"), sorted by name. */\n"
    h += "typedef struct uni_named {\n    const char *name;\n    uint16_t at, count; /* of uni_class_ranges */\n} uni_named;\n"
    h += f"enum {{ UNI_N_CLASSES = {len(names)} }};\nextern const uni_named uni_classes[UNI_N_CLASSES];\nextern const uni_range uni_class_ranges[{len(pool)}];\n"
    h += "/* clang-format on */\n\n#endif\n"
    c = head.format("unicode_regex_tables.c") + '#include "base/unicode_regex_tables.h"\n\n/* clang-format off */\n'
    c += c_array(type1, "uni_gc_1", [str(v) for v in s1]) + "\n" + c_array("uint8_t", "uni_gc_2", [str(v) for v in s2]) + "\n"
    c += "const char uni_gc_names[UNI_GC_COUNT][3] = {" + ", ".join(f'"{n}"' for n in CATEGORIES) + "};\n\n"
    c += "const uni_named uni_classes[UNI_N_CLASSES] = {\n" + "".join(f'    {{"{n}", {at}, {count}}},\n' for n, at, count in names) + "};\n\n"
    c += c_array("uni_range", "uni_class_ranges", [f"{{0x{a:X},0x{b:X}}}" for a, b in pool]) + "/* clang-format on */\n"

    status = 0
    for name, text in (("unicode_regex_tables.h", h), ("unicode_regex_tables.c", c)):
        path = os.path.join(out, name)
        if check:
            if open(path).read() != text:
                print(f"{name} differs", file=sys.stderr)
                status = 1
        else:
            with open(path, "w") as f:
                f.write(text)
    print(f"shift {shift}, {len(s1)} + {len(s2)} bytes, {len(names)} classes, {len(pool)} ranges")
    return status


if __name__ == "__main__":
    sys.exit(main())
