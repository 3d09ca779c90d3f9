#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""banned.py: calls that the library or the programs never make, words that mark unfinished work, paths of one machine, registry hosts.

The library reads no environment, prints nothing, never exits, takes memory from its allocator only and does not depend on the locale.
"""
import re

import tree

NEVER = {  # in src, include, cli, examples
    "gets": "has no bound", "strcpy": "has no bound", "strcat": "has no bound", "sprintf": "has no bound, use snprintf",
    "vsprintf": "has no bound, use vsnprintf", "strtok": "has hidden state", "atoi": "cannot fail, use strtol", "atol": "cannot fail, use strtol",
    "atof": "cannot fail", "tmpnam": "is a race", "mktemp": "is a race", "alloca": "has no bound",
}
LIBRARY = {  # in src/
    **{f: "the library reads no environment" for f in ("getenv", "secure_getenv", "setenv", "putenv", "unsetenv")},
    **{f: "the library prints nothing" for f in ("printf", "vprintf", "fprintf", "vfprintf", "dprintf", "puts", "fputs", "putchar", "perror")},
    **{f: "the library never exits" for f in ("exit", "_exit", "quick_exit", "abort", "raise", "kill")},
    **{f: "the library starts no program" for f in ("system", "popen", "fork", "execv", "execvp", "posix_spawn")},
    **{f: "the locale decides its result" for f in ("setlocale", "strtod", "strtof", "strtold", "toupper", "tolower")},
    **{f: "memory comes from base/alloc.h" for f in ("malloc", "calloc", "realloc", "free", "strdup", "strndup", "posix_memalign", "aligned_alloc")},
    **{f: "has hidden state" for f in ("rand", "srand", "random", "strerror", "localtime", "gmtime", "ctime")},
}
ALLOWED = {  # (file, call): the owner of a rule
    ("src/base/alloc.c", f) for f in ("malloc", "realloc", "free", "posix_memalign", "aligned_alloc")
} | {("src/base/json.c", "strtod"), ("src/base/json_put.c", "strtof"), ("src/base/json_put.c", "strtod")}

WORDS = re.compile(r"\b(TODO|FIXME|XXX|HACK|for now|not implemented|stub)\b")
# A path below a folder that only one machine has.
MACHINE_PATH = re.compile(r"(?<![\w.$}/-])/(?:work|farm|home|root|opt|Users|tmp)/[\w.]")
HOST = re.compile(r"\b(?:[a-z0-9-]+\.)*(?:npmjs\.(?:org|com)|pypi\.org|pythonhosted\.org|crates\.io|maven\.org|deb\.debian\.org|golang\.org)\b")
CALL = re.compile(r"(?<![\w.>])([A-Za-z_]\w*)\s*\(")


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def check_calls(report, name):
    text = tree.code(tree.read(name))
    for m in CALL.finditer(text):
        call = m[1]
        why = NEVER.get(call) or (LIBRARY.get(call) if name.startswith("src/") else None)
        if why and (name, call) not in ALLOWED:
            report.error(name, line_of(text, m.start()), f"{call}(): {why}")


def check_words(report, name, pattern, message):
    text = tree.read(name)
    for m in pattern.finditer(text):
        report.error(name, line_of(text, m.start()), message.format(m[0]))


def main():
    report = tree.Report()
    for name in tree.files(".c", ".h", under=["src", "include", "cli", "examples"]):
        check_calls(report, name)
    for name in tree.files(under=["src", "include", "cli"]):
        check_words(report, name, WORDS, "unfinished: {!r}")
    for name in tree.files():
        if name.startswith(("tests/golden/", "tests/fuzz/corpus/", "examples/data/")) or name.endswith((".gz", ".safetensors", ".bin", ".npy", "lint/banned.py")):
            continue
        check_words(report, name, MACHINE_PATH, "path of one machine: {!r}")
        check_words(report, name, HOST, "host of a registry: {!r}")
    report.finish()


main()
