#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes src/chat/chat_text_tables.h by asking Python's str about every code point: what is a letter, a digit, printable, upper, lower, and what the
case mappings are. Python 3.11 (Unicode 14), as the goldens of templates are made with.

usage: make_chat_tables.py OUTPUT_DIR [--check]     (--check: compare with the file that is there, write nothing)
"""
import os
import sys
import unicodedata

PINNED = "14.0.0"
SCALARS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def ranges(members, step_of=None):
    """Sorted members as (first, last, step); runs of one step."""
    out, v, i = [], sorted(members), 0
    while i < len(v):
        best = (v[i], v[i], 1, 1)
        for step in (1, 2):
            j = i
            while j + 1 < len(v) and v[j + 1] - v[j] == step:
                j += 1
            if j - i + 1 > best[3]:
                best = (v[i], v[j], step, j - i + 1)
        out.append(best[:3])
        i += best[3]
    return out


def mapping(fn):
    """(ranges with delta, those that become several)."""
    by_delta, special = {}, []
    for c in SCALARS:
        to = fn(chr(c))
        if to == chr(c):
            continue
        if len(to) > 1:
            special.append((c, [ord(x) for x in to]))
        else:
            by_delta.setdefault(ord(to) - c, []).append(c)
    rows = [(*r, d) for d, members in by_delta.items() for r in ranges(members)]
    rows.sort(key=lambda r: r[0])
    flat = []
    for first, last, step, d in rows:  # rows of step 2 may interleave: those that do are taken apart
        if flat and first <= flat[-1][1]:
            members = [(c, x[3]) for x in (flat.pop(), (first, last, step, d)) for c in range(x[0], x[1] + 1, x[2])]
            flat += [(c, c, 1, x) for c, x in sorted(members)]
        else:
            flat.append((first, last, step, d))
    assert all(a[1] < b[0] for a, b in zip(flat, flat[1:]))
    return flat, special


SETS = {
    "unprintable": lambda c: not chr(c).isprintable(),
    "alpha": lambda c: chr(c).isalpha(),
    "decimal": lambda c: chr(c).isdecimal(),
    "digit": lambda c: chr(c).isdigit(),
    "numeric": lambda c: chr(c).isnumeric(),
    "upper": lambda c: chr(c).isupper(),
    "lower": lambda c: chr(c).islower(),
    "title": lambda c: chr(c).istitle() and not chr(c).isupper(),
    # the rule of the final sigma tells both: behind a letter with case it is final; one that is ignored lets the letter before be seen
    "cased": lambda c: (chr(c) + "\u03a3").lower()[-1] == "\u03c2",
    "ignorable": lambda c: ("A" + chr(c) + "\u03a3").lower()[-1] == "\u03c2" and (chr(c) + "\u03a3").lower()[-1] != "\u03c2",
}


def wrap(items, width=150):
    lines, line = [], "   "
    for i in items:
        if len(line) + len(i) + 2 > width:
            lines.append(line)
            line = "   "
        line += " " + i + ","
    return "\n".join(lines + [line])


def make():
    out = ["/* SPDX-License-Identifier: Apache-2.0",
           f" * chat_text_tables.h: characters as Python 3.11's str sees them (Unicode {PINNED}). Made by tools/ref/make_chat_tables.py; not edited by hand.",
           " * Included by chat_text.c only. Rows are sorted; `first`, `first + step`, ... `last`. */",
           "#ifndef LATH_CHAT_TEXT_TABLES_H", "#define LATH_CHAT_TEXT_TABLES_H", "", "#include <stdint.h>", "",
           "typedef struct chat_text_range {", "    uint32_t first, last, step;", "} chat_text_range;",
           "typedef struct chat_case_range {", "    uint32_t first, last, step;", "    int32_t delta;", "} chat_case_range;",
           "typedef struct chat_case_special {", "    uint32_t from, to[3];", "} chat_case_special;", "", "/* clang-format off */"]
    for name, fn in SETS.items():
        rows = ranges([c for c in SCALARS if fn(c)])
        assert all(a[1] < b[0] for a, b in zip(rows, rows[1:])), name
        out.append(f"static const chat_text_range chat_text_{name}[] = {{")
        out.append(wrap([f"{{{a:#x}, {b:#x}, {s}}}" for a, b, s in rows] + ["{UINT32_MAX, UINT32_MAX, 1}"]))
        out.append("};")
    for name, fn in (("upper", str.upper), ("title", str.title), ("lower", str.lower)):
        rows, special = mapping(fn)
        out.append(f"static const chat_case_range chat_to_{name}[] = {{")
        out.append(wrap([f"{{{a:#x}, {b:#x}, {s}, {d}}}" for a, b, s, d in rows]))
        out.append("};")
        out.append(f"static const chat_case_special chat_special_{name}[] = {{")
        out.append(wrap(["{%#x, {%s}}" % (c, ", ".join(f"{x:#x}" for x in to)) for c, to in special]))
        out.append("};")
    out += ["/* clang-format on */", "", "#endif", ""]
    return "\n".join(out)


def main():
    assert unicodedata.unidata_version == PINNED, unicodedata.unidata_version
    path, text = os.path.join(sys.argv[1], "chat_text_tables.h"), make()
    if "--check" in sys.argv:
        sys.exit(open(path, encoding="utf-8").read() != text)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


main()
