#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stream.py FILE.trac TOKEN LAYER OUT.npy [OTHER.trac]   a residual stream out of a trace file (lath trace --save), for --patch and --steer

TOKEN counts from 0, -1 is the last; LAYER -1 is the embeddings. With OTHER.trac the same place of it is subtracted: a direction from what the other text has to what this one has.
The layout is in docs/formats/trace.md.
"""
import struct
import sys


def stream(path, token, layer):
    with open(path, "rb") as f:
        magic, version, d, n_layers, n_tokens, parts = struct.unpack("<4s5I", f.read(24))
        if magic != b"TRAC" or version not in (1, 2):
            sys.exit(f"{path}: is no trace file")
        parts = 3 if version == 1 else parts
        token += n_tokens if token < 0 else 0
        if not (0 <= token < n_tokens and -1 <= layer < n_layers):
            sys.exit(f"{path}: has tokens 0 to {n_tokens - 1}, layers -1 to {n_layers - 1}")
        f.seek(64 + ((token * (n_layers + 1) + layer + 1) * parts) * d * 4)
        return struct.unpack(f"<{d}f", f.read(4 * d))


def main(path, token, layer, out, other=None):
    token, layer = int(token), int(layer)
    vector = stream(path, token, layer)
    if other:
        vector = [a - b for a, b in zip(vector, stream(other, token, layer))]
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(vector)},), }}".ljust(117) + "\n"
    with open(out, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack(f"<{len(vector)}f", *vector))


if len(sys.argv) not in (5, 6):
    sys.exit(__doc__)
main(*sys.argv[1:])
