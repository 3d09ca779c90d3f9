#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""names.py: file names are unique and say something; every source file says its licence and its job on top; nothing ends in disorder.

A name that is there twice makes an include, a log line or a search answer ambiguous.
"""
import posixpath
import re

import tree

EMPTY_NAMES = re.compile(r"^(utils?|misc|common|helpers?|stuff)\.(c|h|py|sh)$")
SOURCES = (".c", ".h", ".def", ".py", ".sh")
LICENCE = "SPDX-License-Identifier: Apache-2.0"
DATA = ("tests/golden/", "tests/fuzz/corpus/")


def check_top(report, name, text):
    """Licence in the first two lines and, in C, a comment that goes on behind it."""
    if LICENCE not in "\n".join(text.split("\n", 2)[:2]):
        report.error(name, 1, f"no '{LICENCE}' on top")
    elif name.endswith((".c", ".h")):
        comment = text.split("*/", 1)[0].split(LICENCE, 1)[1]
        if len(re.sub(r"[\s*/]", "", comment)) < 20:
            report.error(name, 1, "the comment on top does not say what the file is for")


def check_guard(report, name, text):
    if name.endswith("_list.h"):
        return  # a table of macro lines, included once for each use
    if name.startswith(("src/", "include/", "cli/")) and not re.search(r"^#ifndef (\w+)\n#define \1$", text, re.M):
        report.error(name, 1, "no include guard")


def check_space(report, name, text):
    if text and not text.endswith("\n"):
        report.error(name, text.count("\n") + 1, "no newline at the end")
    for i, line in enumerate(text.split("\n"), 1):
        if line != line.rstrip():
            report.error(name, i, "space at the end of the line")
        if "\t" in line and not name.endswith((".mk", "Makefile")):
            report.error(name, i, "a tab")


def main():
    report, seen = tree.Report(), {}
    for name in tree.files(*SOURCES):
        if name.startswith(DATA):
            continue
        base, text = posixpath.basename(name), tree.read(name)
        if base in seen and not name.startswith("examples/"):  # examples are called what they show
            report.error(name, 1, f"the same file name as {seen[base]}")
        if not name.startswith("examples/"):
            seen[base] = name
        if EMPTY_NAMES.match(base):
            report.error(name, 1, "a name that says nothing")
        if not name.endswith(".def"):
            check_top(report, name, text)
        if name.endswith(".h"):
            check_guard(report, name, text)
        check_space(report, name, text)
    report.finish()


main()
