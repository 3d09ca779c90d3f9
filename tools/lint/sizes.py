#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sizes.py: how long files and functions are and how many paths a function has.

Functions: 60 lines and complexity 15 warn, 120 and 30 fail (src/kern: warn only). Files: 600 lines warn, 1200 fail (generated tables: exempt).
Complexity is McCabe's: 1 + if, for, while, case, &&, ||, ?:. Relies on the format: a body begins and ends with a brace in column 0.
"""
import re
import sys

import tree

LINES_SOFT, LINES_HARD = 60, 120
PATHS_SOFT, PATHS_HARD = 15, 30
FILE_SOFT, FILE_HARD = 600, 1200
BRANCH = re.compile(r"\b(?:if|for|while|case)\b|&&|\|\||\?")
HEAD = re.compile(r"([A-Za-z_]\w*)\s*\(")


def functions(text):
    """(name, first line, number of lines, complexity) of each function of formatted C."""
    lines = tree.code(text).split("\n")
    for i, line in enumerate(lines):
        if line == "{":
            end = next((j for j in range(i, len(lines)) if lines[j].startswith("}")), len(lines) - 1)
            start = i
            while start > 0 and lines[start - 1].strip() and not lines[start - 1].startswith(("}", "#")) and not lines[start - 1].endswith(";"):
                start -= 1
            m = HEAD.search(" ".join(lines[start:i]))
            if m:
                yield m[1], start + 1, end - start + 1, 1 + len(BRANCH.findall("\n".join(lines[i:end + 1])))


def check_function(report, name, function, line, length, paths):
    kernel = name.startswith("src/kern/")
    for value, soft, hard, what in ((length, LINES_SOFT, LINES_HARD, "lines"), (paths, PATHS_SOFT, PATHS_HARD, "paths")):
        if value > hard and not kernel:
            report.error(name, line, f"{function}: {value} {what}, at most {hard}")
        elif value > soft:
            report.warning(name, line, f"{function}: {value} {what}, better at most {soft}")


def main():
    report, lengths = tree.Report(), []
    for name in tree.files(".c", ".h", ".py", ".sh", ".def"):
        text = tree.read(name)
        n = text.count("\n")
        if not tree.GENERATED.search(name):
            if n > FILE_HARD:
                report.error(name, n, f"{n} lines, at most {FILE_HARD}")
            elif n > FILE_SOFT:
                report.warning(name, n, f"{n} lines, better at most {FILE_SOFT}")
        if name.endswith((".c", ".h")):
            for function, line, length, paths in functions(text):
                lengths.append(length)
                check_function(report, name, function, line, length, paths)
    lengths.sort()
    if lengths and "-v" in sys.argv:
        print(f"{len(lengths)} functions, median {lengths[len(lengths) // 2]} lines, nine in ten under {lengths[len(lengths) * 9 // 10]}", file=sys.stderr)
    report.finish()


main()
