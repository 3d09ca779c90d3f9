#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""layers.py: every #include obeys src/LAYERS.

A file of src/<module>/ includes its own module and modules of lower layers; never sideways, never up. Programs include public headers, base
and their own files. Examples include public headers only. A header of a third party is included by exactly one file (OWNERS); instruction
headers only by kernels. Headers of C and POSIX are free.
"""
import posixpath
import re

import tree

# Third-party header -> the one file that may include it.
OWNERS = {
    "yajl/": "src/base/json.c",
    "xxhash.h": "src/base/hash.c",
    "pcre2.h": "src/tok/tok_regex.c",
    "sqlite3.h": "src/engine/embcache_disk.c",
    "histedit.h": "cli/repl.c",
    "curl/": "src/net/http_client.c",
    "microhttpd.h": "server/http.c",
}
# Instruction headers are for src/kern; the one exception scans bytes with SSE2, which every x86-64 has.
INSTRUCTION_EXCEPTIONS = {"src/tok/tok_patterns.c"}
INSTRUCTION_HEADERS = {"immintrin.h", "x86intrin.h", "xmmintrin.h", "emmintrin.h", "cpuid.h", "arm_neon.h", "arm_acle.h"}
STANDARD = set("""assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic stdbool
stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype
dirent fcntl getopt glob langinfo libgen linux/futex netdb poll pthread pwd sched semaphore spawn strings sys/auxv sys/file sys/ioctl sys/mman
sys/resource sys/select sys/socket sys/stat sys/statvfs sys/syscall sys/sysctl sys/time sys/types sys/uio sys/wait syslog termios unistd
utime xlocale malloc""".split())
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)


def read_layers():
    layers = {}
    for line in tree.read("src/LAYERS").splitlines():
        words = line.split("#")[0].split()
        if words:
            layers[words[1]] = int(words[0])
    return layers


LAYERS = read_layers()
PUBLIC = {posixpath.basename(n) for n in tree.files(".h", under=["include"])}


def check_quoted(report, name, line, target):
    top = name.split("/")[0]
    head = target.split("/")[0]
    if top in ("tests", "bench", "tools"):
        return
    if head == "lath":
        if posixpath.basename(target) not in PUBLIC:
            report.error(name, line, f'"{target}" is no public header')
        elif target != "lath/lath_core.h" and top == "src" and module_of(name) not in (None, "engine"):
            report.error(name, line, f'"{target}" belongs to the engine and to programs; a lower module includes "lath/lath_core.h"')
        return
    if top == "include":
        report.error(name, line, f'a public header includes "{target}", want public headers only')
    elif top == "examples":
        report.error(name, line, f'an example includes "{target}", want public headers only')
    elif top == "src":
        check_module(report, name, line, target, head)
    elif head == "base":
        return
    elif "/" in target and head in LAYERS:
        report.error(name, line, f'a program includes "{target}", want public headers and base only')


def module_of(name):
    parts = name.split("/")
    return parts[1] if len(parts) > 2 else None


def check_module(report, name, line, target, head):
    own = module_of(name)
    if own is None:
        return  # src/lath_shared.c sees everything
    if own not in LAYERS:
        report.error(name, line, f"module {own} is not in src/LAYERS")
    elif head not in LAYERS:
        report.error(name, line, f'"{target}": begin with a module of src/LAYERS')
    elif head != own and LAYERS[head] >= LAYERS[own]:
        way = "sideways" if LAYERS[head] == LAYERS[own] else "up"
        report.error(name, line, f'{own} (layer {LAYERS[own]}) includes {way}: "{target}" (layer {LAYERS[head]})')


def check_system(report, name, line, target, users):
    if target[:-2] in STANDARD and target.endswith(".h"):
        return
    top = name.split("/")[0]
    if target in INSTRUCTION_HEADERS:
        if top in ("src", "cli") and not name.startswith("src/kern/") and name not in INSTRUCTION_EXCEPTIONS:
            report.error(name, line, f"<{target}> belongs to src/kern")
        return
    if top not in ("src", "cli", "include"):
        return
    key = next((k for k in OWNERS if target == k or (k.endswith("/") and target.startswith(k))), None)
    if key is None:
        report.error(name, line, f"<{target}> is a third-party header without an owner (tools/lint/layers.py)")
    elif OWNERS[key] != name:
        report.error(name, line, f"<{target}> is owned by {OWNERS[key]}")
    users.setdefault(key, name)


def main():
    report, users = tree.Report(), {}
    for name in tree.files(".c", ".h", ".def", under=["src", "include", "cli", "examples", "tests", "bench"]):
        text = tree.code(tree.read(name), strings=True)
        for m in INCLUDE.finditer(text):
            line = text.count("\n", 0, m.start()) + 1
            if m[1] == '"':
                check_quoted(report, name, line, m[2])
            else:
                check_system(report, name, line, m[2], users)
    report.finish()


main()
