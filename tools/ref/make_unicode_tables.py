#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes src/base/unicode_tables.h, unicode_tables.c and unicode_nfd_tables.c by asking the pinned `tokenizers` package about every code point.

The reference mixes several Unicode versions (its crates for categories, normalisation, regular expressions and the Rust standard library are
of different age), so no Unicode data file gives its answers: each table here holds what one function of the package really does.

usage: make_unicode_tables.py OUTPUT_DIR [--check]     (--check: compare with the files that are there, write nothing)
"""
import os
import sys
import unicodedata

import tokenizers
from tokenizers import normalizers as N
from tokenizers import pre_tokenizers as P

PINNED = "0.23"
LIMIT = 0x110000
SCALARS = [c for c in range(LIMIT) if not 0xD800 <= c <= 0xDFFF]

FLAGS = [  # name, what the package does with the character
    ("UNI_SPACE", "white space: splits in BertPreTokenizer and WhitespaceSplit; \\\\s of the added-token rules"),
    ("UNI_CONTROL", "removed by BertNormalizer's clean_text"),
    ("UNI_PUNCT", "isolated by BertPreTokenizer and Punctuation"),
    ("UNI_CJK", "gets spaces around it from BertNormalizer's handle_chinese_chars"),
    ("UNI_MN", "removed by BertNormalizer's strip_accents after NFD (nonspacing mark)"),
    ("UNI_MARK", "removed by StripAccents (combining mark)"),
    ("UNI_WORD", "\\\\w of the added-token rules and of the Whitespace pre-tokenizer"),
    ("UNI_NFD", "NFD replaces it"),
    ("UNI_LOWER", "Lowercase replaces it"),
    ("UNI_CCC", "canonical combining class is not 0"),
]


def is_hangul(c):
    return 0xAC00 <= c < 0xAC00 + 11172


def hangul_nfd(c):
    s = c - 0xAC00
    out = [0x1100 + s // 588, 0x1161 + s % 588 // 28]
    return out + [0x11A7 + s % 28] if s % 28 else out


def probe_flags():
    clean = N.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    cjk = N.BertNormalizer(clean_text=False, handle_chinese_chars=True, strip_accents=False, lowercase=False)
    strip = N.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
    accents, nfd, lower = N.StripAccents(), N.NFD(), N.Lowercase()
    bert, split, punct, word = P.BertPreTokenizer(), P.WhitespaceSplit(), P.Punctuation(), P.Whitespace()
    flags, maps_nfd, maps_lower = [0] * LIMIT, {}, {}
    for c in SCALARS:
        ch = chr(c)
        around = "a" + ch + "a"
        f = 0
        n_bert = len(bert.pre_tokenize_str(around))
        n_word = len(word.pre_tokenize_str(around))
        space = len(split.pre_tokenize_str(around)) == 2
        assert space == (n_bert == 2) == (n_word == 2), hex(c)
        assert (n_bert == 3) == (len(punct.pre_tokenize_str(around)) == 3), hex(c)
        cleaned = clean.normalize_str(ch)
        assert cleaned == "" or cleaned == (" " if space else ch), hex(c)
        f |= space << 0 | (cleaned == "") << 1 | (n_bert == 3) << 2 | (cjk.normalize_str(ch) == f" {ch} ") << 3
        d = [ord(x) for x in nfd.normalize_str(ch)]
        if d == [c]:
            s = strip.normalize_str(ch)
            assert s in ("", ch), hex(c)
            f |= (s == "") << 4
        elif is_hangul(c):
            assert d == hangul_nfd(c), hex(c)
            f |= 1 << 7
        else:
            maps_nfd[c] = d
            f |= 1 << 7
        f |= (accents.normalize_str(ch) == "") << 5 | (n_word == 1) << 6
        low = [ord(x) for x in lower.normalize_str(ch)]
        if low != [c]:
            maps_lower[c] = low
            f |= 1 << 8
        flags[c] = f
    return flags, maps_nfd, maps_lower


def probe_ccc():
    """Classes by comparison: NFD of 'a' X R moves R before X exactly when 0 < ccc(R) < ccc(X)."""
    nfd = N.NFD()

    def moved(x, r):
        return nfd.normalize_str("a" + chr(x) + chr(r)) != "a" + chr(x) + chr(r)

    plain = [c for c in SCALARS if nfd.normalize_str(chr(c)) == chr(c)]
    low, high = 0x334, 0x345  # classes 1 and 240
    non_starters = [c for c in plain if c in (low, high) or moved(c, low) or moved(high, c)]
    reps = {}
    for c in non_starters:
        k = unicodedata.combining(chr(c))
        if k and k not in reps:
            reps[k] = c
    order = sorted(reps)
    for a, b in zip(order, order[1:]):
        assert moved(reps[b], reps[a]) and not moved(reps[a], reps[b]), (a, b)
    ccc = [0] * LIMIT
    for c in non_starters:
        below = sum(moved(c, reps[k]) for k in order)  # classes strictly below
        assert below < len(order) and not moved(reps[order[below]], c), hex(c)
        ccc[c] = order[below]
    return ccc


def two_stage(values, shift):
    size, blocks, index, stage1, stage2 = 1 << shift, {}, 0, [], []
    for at in range(0, LIMIT, size):
        b = tuple(values[at:at + size])
        if b not in blocks:
            blocks[b] = index
            index += 1
            stage2.extend(b)
        stage1.append(blocks[b])
    return stage1, stage2


def best(values, width2):
    """(shift, stage1, stage2) of the fewest bytes."""
    found = None
    for shift in range(4, 10):
        s1, s2 = two_stage(values, shift)
        width1 = 1 if max(s1) < 256 else 2
        cost = len(s1) * width1 + len(s2) * width2
        if found is None or cost < found[0]:
            found = (cost, shift, s1, s2)
    return found[1:]


def c_array(ctype, name, values):
    lines, line = [], ""
    for v in values:
        item = f"{v},"
        if len(line) + len(item) > 120:
            lines.append(line)
            line = ""
        line += item
    lines.append(line)
    return f"const {ctype} {name}[{len(values)}] = {{\n" + "\n".join(lines) + "\n};\n"


def main():
    out = sys.argv[1]
    check = "--check" in sys.argv[2:]
    assert tokenizers.__version__.startswith(PINNED), tokenizers.__version__
    flags, maps_nfd, maps_lower = probe_flags()
    ccc = probe_ccc()
    for c in range(LIMIT):
        flags[c] |= (ccc[c] != 0) << 9

    combos = sorted(set(flags), key=lambda f: (-flags.count(f), f))
    assert len(combos) <= 256
    number = {f: i for i, f in enumerate(combos)}
    f_shift, f1, f2 = best([number[f] for f in flags], 1)

    deltas, lower_index, lower_pool = [0], [0] * LIMIT, []
    for c, low in sorted(maps_lower.items()):
        if len(low) == 1:
            d = low[0] - c
            if d not in deltas:
                deltas.append(d)
            lower_index[c] = deltas.index(d)
        else:
            lower_pool.append((c, low))
    assert len(deltas) < 255 and len(lower_pool) == 1 and len(lower_pool[0][1]) == 2, (len(deltas), lower_pool)
    lower_index[lower_pool[0][0]] = 255
    l_shift, l1, l2 = best(lower_index, 1)

    pool, where, nfd_index = [], {}, [0] * LIMIT
    for c, d in sorted(maps_nfd.items()):
        assert 1 <= len(d) <= 4
        if tuple(d) not in where:
            where[tuple(d)] = len(pool)
            pool.extend(d)
        v = (where[tuple(d)] << 2 | (len(d) - 1)) + 1
        assert v < 65536
        nfd_index[c] = v
    n_shift, n1, n2 = best(nfd_index, 2)
    c_shift, c1, c2 = best(ccc, 1)

    head = ("/* SPDX-License-Identifier: Apache-2.0\n"
            f" * {{name}}: Unicode as `tokenizers` {tokenizers.__version__} sees it: every code point was asked of the package.\n"
            " * Made by tools/ref/make_unicode_tables.py; not edited by hand. A table of two stages is read as\n"
            " *     stage2[stage1[c >> SHIFT] << SHIFT | (c & (1 << SHIFT) - 1)].\n */\n")

    def stage_type(s1):
        return "uint8_t" if max(s1) < 256 else "uint16_t"

    arrays = [
        ("uint16_t", "uni_flag_sets", combos), (stage_type(f1), "uni_flags_1", f1), ("uint8_t", "uni_flags_2", f2),
        ("int32_t", "uni_lower_deltas", deltas), (stage_type(l1), "uni_lower_1", l1), ("uint8_t", "uni_lower_2", l2),
        ("uint32_t", "uni_nfd_pool", pool), (stage_type(n1), "uni_nfd_1", n1), ("uint16_t", "uni_nfd_2", n2),
        (stage_type(c1), "uni_ccc_1", c1), ("uint8_t", "uni_ccc_2", c2),
    ]
    h = head.format(name="unicode_tables.h") + "#ifndef LATH_BASE_UNICODE_TABLES_H\n#define LATH_BASE_UNICODE_TABLES_H\n\n#include <stdint.h>\n\n/* clang-format off */\n"
    h += "enum {\n" + "".join(f"    {n} = 1 << {i}, /* {t.replace(chr(92) * 2, chr(92))} */\n" for i, (n, t) in enumerate(FLAGS)) + "};\n"
    h += f"enum {{ UNI_FLAGS_SHIFT = {f_shift}, UNI_LOWER_SHIFT = {l_shift}, UNI_NFD_SHIFT = {n_shift}, UNI_CCC_SHIFT = {c_shift} }};\n"
    h += f"/* The one character whose lower case is two: U+{lower_pool[0][0]:04X}; its index in uni_lower_2 is 255. */\n"
    h += f"enum {{ UNI_LOWER_TWO_1 = 0x{lower_pool[0][1][0]:X}, UNI_LOWER_TWO_2 = 0x{lower_pool[0][1][1]:X} }};\n\n"
    for ctype, name, values in arrays:
        h += f"extern const {ctype} {name}[{len(values)}];\n"
    h += "/* clang-format on */\n\n#endif\n"
    def source(name, part):
        return (head.format(name=name) + '#include "base/unicode_tables.h"\n\n/* clang-format off */\n' +
                "\n".join(c_array(*a) for a in part) + "/* clang-format on */\n")

    nfd_part = [a for a in arrays if a[1].startswith(("uni_nfd", "uni_ccc"))]
    files = {"unicode_tables.h": h, "unicode_tables.c": source("unicode_tables.c", [a for a in arrays if a not in nfd_part]),
             "unicode_nfd_tables.c": source("unicode_nfd_tables.c", nfd_part)}
    status = 0
    for name, text in files.items():
        path = os.path.join(out, name)
        if check:
            if open(path).read() != text:
                print(f"{name} differs", file=sys.stderr)
                status = 1
        else:
            with open(path, "w") as f:
                f.write(text)
    print(f"{len(maps_nfd)} NFD mappings, {len(maps_lower)} lower case, {sum(v != 0 for v in ccc)} combining, {len(combos)} flag sets")
    return status


if __name__ == "__main__":
    sys.exit(main())
