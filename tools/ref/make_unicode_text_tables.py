#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes src/base/unicode_text_tables.h and unicode_text_tables.c by asking the pinned `tokenizers` package about every code point: compatibility
decomposition (NFKD), composition (NFC), grapheme cluster breaking (Precompiled), numbers (Digits) and scripts (UnicodeScripts).

Grapheme clusters are asked through Precompiled: with a character map that turns whatever begins with any lead byte into "1", a cluster of under
6 bytes becomes one "1", and a longer one a "1" a character. Two breaks that cannot be told apart in this way make no difference to Precompiled.

usage: make_unicode_text_tables.py OUTPUT_DIR [--check]     (--check: compare with the files that are there, write nothing)
"""
import base64
import json
import os
import struct
import sys

import tokenizers
from tokenizers import normalizers as N
from tokenizers import pre_tokenizers as P

from make_unicode_tables import LIMIT, PINNED, SCALARS, best, c_array, is_hangul, probe_ccc

CLASSES = [  # grapheme cluster classes, UAX 29 as the package tells them apart; CR and LF are handled by code point
    ("UNI_GB_ANY", ""), ("UNI_GB_CONTROL", "a break before and after"), ("UNI_GB_EXTEND", ""), ("UNI_GB_EXTEND_INCB", "may stand inside a conjunct"),
    ("UNI_GB_LINKER", "joins consonants"), ("UNI_GB_ZWJ", ""), ("UNI_GB_SPACING", ""), ("UNI_GB_PREPEND", ""), ("UNI_GB_L", ""), ("UNI_GB_V", ""),
    ("UNI_GB_T", ""), ("UNI_GB_LV", ""), ("UNI_GB_LVT", ""), ("UNI_GB_CONSONANT", ""), ("UNI_GB_PICT", ""),
]
ANY, CONTROL, EXTEND, EXTEND_INCB, LINKER, ZWJ, SPACING, PREPEND, L, V, T, LV, LVT, CONSONANT, PICT = range(len(CLASSES))


def asking_map():
    units = [0] * 1024
    units[0] = 256 << 10
    for b in [x for x in range(1, 256) if x not in (10,) and not 0x80 <= x < 0xC0]:
        units[256 ^ b] = b | 1 << 8 | 512 << 10
        units[768 ^ b] = 1 << 31
    blob = struct.pack("<I", 4 * len(units)) + struct.pack(f"<{len(units)}I", *units) + b"1\0"
    return N.Precompiled(blob)


def ask(norm, make, chars=None):
    """How many "1" the package makes of make(c), for every c; asked in lines, as LF is never mapped and always a break."""
    out, part = {}, 4096
    chars = chars or [c for c in SCALARS if c not in (10, 13)]
    for at in range(0, len(chars), part):
        batch = chars[at:at + part]
        lines = norm.normalize_str("\n".join(make(chr(c)) for c in batch)).split("\n")
        assert len(lines) == len(batch)
        for c, line in zip(batch, lines):
            out[c] = line.count("1") + line.count("\0")
    return out


def probe_graphemes():
    norm = asking_map()
    acute, zwj, ka, virama, copy = "\u0301", "\u200d", "\u0915", "\u094d", "\u00a9"
    control = ask(norm, lambda c: c + acute + acute)
    joins = ask(norm, lambda c: "a" + c)
    prepends = ask(norm, lambda c: c + "a")
    after_l, after_v, after_t = (ask(norm, lambda c, x=x: x + c + acute) for x in "\u1100\u1161\u11a8")
    before_v, before_t = (ask(norm, lambda c, x=x: c + x + acute) for x in "\u1161\u11a8")
    pict = ask(norm, lambda c: copy + zwj + c)
    extend = ask(norm, lambda c: copy + c + zwj + copy + acute)
    consonant = ask(norm, lambda c: c + virama + ka + acute)
    linker = ask(norm, lambda c: ka + c + ka + acute)
    incb = ask(norm, lambda c: ka + c + virama + ka + acute)
    out = [ANY] * LIMIT
    out[10] = out[13] = CONTROL
    for c in control:
        n = len(chr(c).encode())
        if control[c] == 2 or c == 0:
            k = CONTROL
        elif joins[c] == 1:
            k = ZWJ if c == 0x200D else LINKER if linker[c] == 4 else SPACING if extend[c] == 4 else EXTEND_INCB if incb[c] == 5 else EXTEND
            assert not (k == SPACING and incb[c] == 5), hex(c)
        elif prepends[c] == 1:
            k = PREPEND
        elif n == 3 and (after_l[c] == 3 or after_v[c] == 3 or after_t[c] == 3):
            assert after_l[c] == 3 or after_v[c] == 3
            bv, bt = before_v[c] == 3, before_t[c] == 3
            if after_l[c] == 3 and after_v[c] == 3:
                k = V
            elif after_v[c] == 3:
                k = T
            else:
                k = LV if bv and bt else LVT if bt else L
        elif n >= 3 and consonant[c] == 4:
            k = CONSONANT
        elif pict[c] == 3:
            k = PICT
        else:
            k = ANY
        out[c] = k
    return out


def probe_numbers():
    digits, out = P.Digits(individual_digits=True), [0] * LIMIT
    for c in SCALARS:
        out[c] = int(len(digits.pre_tokenize_str("a" + chr(c))) == 2)
    return out


def probe_scripts():
    """Numbers for scripts, 0 for the one that goes with all."""
    split = P.UnicodeScripts()

    def same(a, b):
        return len(split.pre_tokenize_str(chr(a) + chr(b))) == 1

    def goes_with_all(c):
        return same(0x61, c) and same(0x430, c)

    out, reps, last, last_script = [0] * LIMIT, [], None, None
    for c in SCALARS:
        if last is not None and last_script and same(last, c) and not goes_with_all(c):
            out[c] = last_script
        elif last is not None and last_script == 0 and goes_with_all(c):
            out[c] = 0
        elif goes_with_all(c):
            out[c] = 0
        else:
            k = next((i for i, r in enumerate(reps) if same(r, c)), None)
            if k is None:
                reps.append(c)
                k = len(reps) - 1
            out[c] = k + 1
        last, last_script = c, out[c]
    assert len(reps) < 255
    return out


def probe_forms():
    """NFKD where it differs from NFD; the pairs that NFC composes."""
    nfd, nfc, nfkd, nfkc = N.NFD().normalize_str, N.NFC().normalize_str, N.NFKD().normalize_str, N.NFKC().normalize_str
    compat, pairs = {}, {}
    for c in SCALARS:
        ch = chr(c)
        d = nfd(ch)
        if nfkd(ch) != d:
            compat[c] = [ord(x) for x in nfkd(ch)]
        if d != ch and nfc(ch) == ch and not is_hangul(c):
            head = nfc(d[:-1])
            assert len(head) == 1 and nfc(head + d[-1]) == ch, hex(c)
            pairs[ord(head), ord(d[-1])] = c
    assert max(map(len, compat.values())) <= 18
    ccc, seconds, moves = probe_ccc(), {b for _, b in pairs}, [0] * LIMIT
    for c in SCALARS:  # characters that may change, or change what is before them: vowels and trailing consonants of Hangul are seconds too
        always = ccc[c] != 0 or c in seconds or 0x1161 <= c < 0x1176 or 0x11A8 <= c < 0x11C3
        moves[c] = (always or nfc(chr(c)) != chr(c)) << 4 | (always or nfkc(chr(c)) != chr(c)) << 5
    return compat, pairs, moves


def pooled(maps):
    """(index by code point of each mapping + 1 as offset << 5 | length, pool)"""
    values, pool, where = [0] * LIMIT, [], {}
    for c, d in sorted(maps.items()):
        key = tuple(d)
        if key not in where:
            where[key] = len(pool)
            pool.extend(d)
        values[c] = where[key] << 5 | len(d)
    return values, pool


HEADER = """/* SPDX-License-Identifier: Apache-2.0
 * unicode_text_tables.%s: %s
 * Made by tools/ref/make_unicode_text_tables.py; not edited by hand. A table of two stages is read as
 *     stage2[stage1[c >> SHIFT] << SHIFT | (c & (1 << SHIFT) - 1)].
 */
"""


def main():
    out = sys.argv[1]
    check = "--check" in sys.argv[2:]
    assert tokenizers.__version__.startswith(PINNED), tokenizers.__version__
    compat, pairs, moves = probe_forms()
    print(len(compat), "compatibility mappings,", len(pairs), "pairs", flush=True)
    graphemes = probe_graphemes()
    print("graphemes", [graphemes.count(k) for k in range(len(CLASSES))], flush=True)
    numbers, scripts = probe_numbers(), probe_scripts()
    print(sum(numbers), "numbers,", max(scripts), "scripts", flush=True)
    values, pool = pooled(compat)
    tables, shifts = [], []
    for name, v, width, ctype in (("nfkd", values, 4, "uint32_t"), ("gb", [g | m | n << 7 for g, m, n in zip(graphemes, moves, numbers)], 1, "uint8_t"),
                                  ("script", scripts, 1, "uint8_t")):
        shift, s1, s2 = best(v, width)
        shifts.append((name, shift))
        tables.append(("uint8_t" if max(s1) < 256 else "uint16_t", f"uni_{name}_1", s1))
        tables.append((ctype, f"uni_{name}_2", s2))
    tables.append(("uint32_t", "uni_nfkd_pool", pool))
    keys = sorted(pairs)
    tables.append(("uint64_t", "uni_pairs", [a << 42 | b << 21 | pairs[a, b] for a, b in keys]))
    h = HEADER % ("h", "compatibility decomposition, composition, grapheme classes, numbers and scripts as `tokenizers` 0.23.3 has them.")
    h += "#ifndef LATH_BASE_UNICODE_TEXT_TABLES_H\n#define LATH_BASE_UNICODE_TEXT_TABLES_H\n\n#include <stdint.h>\n\n/* clang-format off */\n"
    h += "enum { " + ", ".join(f"UNI_{n.upper()}_SHIFT = {s}" for n, s in shifts) + f", UNI_N_PAIRS = {len(keys)} }};\n"
    h += "/* Low bits of uni_gb: the class for grapheme clusters. */\nenum {\n"
    h += "".join(f"    {n} = {i},{' /* ' + t + ' */' if t else ''}\n" for i, (n, t) in enumerate(CLASSES)) + "};\n"
    h += "/* Its other bits: NFC or NFKC may change the character or one before it; it is a number. */\n"
    h += "enum { UNI_GB_MASK = 0x0F, UNI_MOVES_NFC = 0x10, UNI_MOVES_NFKC = 0x20, UNI_NUMERIC = 0x80 };\n\n"
    h += "".join(f"extern const {t} {n}[{len(v)}];\n" for t, n, v in tables) + "/* clang-format on */\n\n#endif\n"
    c = HEADER % ("c", "the tables of unicode_text_tables.h.") + '#include "base/unicode_text_tables.h"\n\n/* clang-format off */\n'
    c += "\n".join(c_array(t, n, v) for t, n, v in tables)
    bad = 0
    for name, text in (("unicode_text_tables.h", h), ("unicode_text_tables.c", c)):
        path = os.path.join(out, name)
        if check:
            same = os.path.exists(path) and open(path, encoding="utf-8").read() == text
            print(name, "is up to date" if same else "DIFFERS")
            bad += not same
        else:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
