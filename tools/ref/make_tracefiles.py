#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_tracefiles.py DIR: one small file of each kind of docs/formats/trace.md, byte by byte as that page describes them.

Only struct is used: nothing of lath. tests/unit/store/test_tracefile.c reads the files and writes the same bytes. Number k of vector v of record i of all of
them is i + v / 8 + k / 64, exact in f32.
"""
import struct
import sys
from pathlib import Path

D = 3


def vectors(record, n):
    numbers = [record + v / 8 + k / 64 for v in range(n) for k in range(D)]
    return struct.pack(f"<{len(numbers)}f", *numbers)


def trac(version, n_layers, n_tokens):
    parts = 3 if version == 1 else 5
    head = struct.pack("<4sIIIII40x", b"TRAC", version, D, n_layers, n_tokens, 0 if version == 1 else parts)
    assert len(head) == 64
    return head + b"".join(vectors(t, (n_layers + 1) * parts) for t in range(n_tokens))


WINDOWS = [(0, 4), (4, 4), (9, 2)]  # token, tokens; token 8 is in no window


def bndx(most):
    head = struct.pack("<4sIIIII40x", b"BNDX", 1, D, 4, len(WINDOWS), 11)
    data = len(head) + 16 * most
    index = b"".join(struct.pack("<IIII", *w, data + i * D * 4, 0) for i, w in enumerate(WINDOWS))
    assert len(head) == 64
    return head + index.ljust(16 * most, b"\0") + b"".join(vectors(i, 1) for i in range(len(WINDOWS)))


def ctxt(tier, critical, most):
    n = 1 + (tier - 1) * len(critical)
    head = struct.pack("<4sIIIIBBH8sII88x", b"CTXT", 1, D, 6, 4, tier, len(critical), 0, bytes(critical).ljust(8, b"\0"), len(WINDOWS), 11)
    data = len(head) + 24 * most
    index = b"".join(struct.pack("<IIQQ", *w, data + i * n * D * 4, 0) for i, w in enumerate(WINDOWS))
    assert len(head) == 128
    return head + index.ljust(24 * most, b"\0") + b"".join(vectors(i, n) for i in range(len(WINDOWS)))


def main(at):
    at = Path(at)
    (at / "pre.trac").write_bytes(trac(1, 2, 3))
    (at / "post.trac").write_bytes(trac(2, 1, 2))
    (at / "small.bndx").write_bytes(bndx(5))
    (at / "small.ctxt").write_bytes(ctxt(3, [2, 5], 4))


if len(sys.argv) != 2:
    sys.exit(__doc__)
main(sys.argv[1])
