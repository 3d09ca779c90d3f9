#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_embrecords.py FILE: a small file of embedding records, byte by byte as docs/formats/embcache.md describes it.

Only struct and the system's libxxhash are used: nothing of lath. tests/unit/store/test_embrecords.c reads the file and writes the same bytes.
"""
import ctypes
import ctypes.util
import struct
import sys

MODEL = (0x0123456789ABCDEF, 0xFEDCBA9876543210)
SETTINGS = b"lath=0 pooling=2"
DIM = 3
RECORDS = [  # (ids, skip, vector)
    ([101, 2300, 102], 0, [0.5, -0.25, 1.0]),
    ([101, 102], 0, [1e-40, -0.0, 3.4028234e38]),
    ([101, 7, 7, 7, 250001, 102], 2, [0.1, 0.2, 0.3]),
]


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def load():
    lib = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0")
    lib.XXH3_64bits.restype = ctypes.c_uint64
    lib.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    lib.XXH3_128bits.restype = Hash128
    lib.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    return lib


def fnv1a(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return h


def main(path):
    lib = load()
    records = keys = b""
    for ids, skip, vector in RECORDS:
        raw = struct.pack(f"<{len(ids)}i", *ids)
        records += struct.pack("<QI", fnv1a(raw), DIM) + struct.pack(f"<{DIM}f", *vector)
        keys += struct.pack("<II", skip, len(ids)) + raw
    data = records + keys + SETTINGS
    digest = lib.XXH3_128bits(data, len(data))
    head = struct.pack("<8sIIIIQ2QQQQ2Q32x", b"LATHEMB1", 1, 128, DIM, len(SETTINGS), len(RECORDS), *MODEL, len(records), len(keys), 128 + len(data),
                       digest.low, digest.high)
    head += struct.pack("<Q", lib.XXH3_64bits(head, len(head)))
    assert len(head) == 128
    with open(path, "wb") as f:
        f.write(head + data)


if len(sys.argv) != 2:
    sys.exit(__doc__)
main(sys.argv[1])
