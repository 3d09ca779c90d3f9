# SPDX-License-Identifier: Apache-2.0
"""What the lint scripts share: the files of the tree, C text without comments and strings, and one way to complain.

A complaint is `file:line: message`; errors make the script fail, warnings do not. Standard library only.
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# Written by tools/ref from data of others: checked by their generator, exempt from length.
GENERATED = re.compile(r"src/base/unicode\w*_tables\.c$")


def files(*suffixes, under=()):
    """Paths relative to the root of tracked and not ignored files, sorted."""
    try:
        out = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "-z"], capture_output=True, check=True).stdout
        names = {n for n in out.decode().split("\0") if n}
    except (OSError, subprocess.CalledProcessError):  # an unpacked archive
        names = {os.path.relpath(os.path.join(d, f), ROOT) for d, _, fs in os.walk(ROOT) for f in fs}
        names = {n for n in names if not n.startswith(("build", ".git/"))}
    return sorted(n for n in names if (not suffixes or n.endswith(suffixes)) and (not under or n.startswith(tuple(u + "/" for u in under)))
                  and os.path.isfile(os.path.join(ROOT, n)))


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8", errors="surrogateescape") as f:
        return f.read()


TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def code(text, strings=False):
    """C text with comments blanked, and string and character contents too unless asked for; lines stay where they are."""
    def blank(m):
        t = m[0]
        if t[0] in "\"'":
            return t if strings else t[0] + " " * (len(t) - 2) + t[0]
        return re.sub(r"[^\n]", " ", t)
    return TOKEN.sub(blank, text)


class Report:
    def __init__(self):
        self.errors = 0

    def error(self, name, line, message):
        self.errors += 1
        print(f"{name}:{line}: {message}")

    def warning(self, name, line, message):
        print(f"{name}:{line}: warning: {message}")

    def finish(self):
        sys.exit(1 if self.errors else 0)
