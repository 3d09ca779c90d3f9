#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""globals.py BUILD: the objects of the library hold no writable data.

Reads `nm -f sysv` of the static libraries, which names the section of each symbol. Constant tables of pointers lie in .data.rel.ro, which is
read-only once loaded; .data, .bss, their thread-local kin and common symbols are refused.
"""
import os
import re
import subprocess
import sys

LIBRARIES = ("liblath_base.a", "liblath_internal.a")
WRITABLE = re.compile(r"^(\.t?bss|\.t?data|\*COM\*)(?!\.rel\.ro)")
OBJECT = re.compile(r"^Symbols from .*\[(.*)\]:$")


def main(build):
    bad = 0
    for library in LIBRARIES:
        path = os.path.join(build, library)
        out = subprocess.run(["nm", "-f", "sysv", path], capture_output=True, text=True, check=True).stdout
        member = library
        for line in out.splitlines():
            m = OBJECT.match(line)
            if m:
                member = m[1]
                continue
            fields = [f.strip() for f in line.split("|")]
            if len(fields) == 7 and WRITABLE.match(fields[6]):
                print(f"{member}:0: {fields[0]} is writable data ({fields[6]})")
                bad = 1
    sys.exit(bad)


if len(sys.argv) != 2:
    sys.exit(__doc__)
main(sys.argv[1])
