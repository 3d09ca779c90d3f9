#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/unit/tensor/f8_values.h: what PyTorch makes of all 256 codes of its two 8-bit float types, as the bits of float32.

    make_f8_values.py FILE
"""

import sys
from pathlib import Path

import numpy as np
import torch

import refcommon


def table(name: str, dtype: torch.dtype) -> str:
    values = torch.arange(256, dtype=torch.uint8).view(dtype).float().numpy()
    bits = values.view(np.uint32).tolist()
    # A NaN has many bit patterns; which one, the types do not say.
    texts = ["F8_NAN" if np.isnan(v) else f"0x{b:08x}" for v, b in zip(values, bits)]
    rows = ["    " + ", ".join(texts[i:i + 8]) + "," for i in range(0, 256, 8)]
    return f"static const uint32_t {name}[256] = {{\n" + "\n".join(rows) + "\n};\n"


def main() -> None:
    version = refcommon.versions("torch")["torch"]
    text = "/* SPDX-License-Identifier: Apache-2.0\n"
    text += f" * f8_values.h: the 256 codes of both 8-bit floats as the bits of float32. Made by tools/ref/make_f8_values.py (torch {version}). */\n"
    text += "#ifndef LATH_TESTS_F8_VALUES_H\n#define LATH_TESTS_F8_VALUES_H\n\n#include <stdint.h>\n\n"
    text += "#define F8_NAN 0x7fc00000\n\n/* clang-format off */\n"
    text += table("f8_e4m3_values", torch.float8_e4m3fn) + "\n" + table("f8_e5m2_values", torch.float8_e5m2)
    text += "/* clang-format on */\n\n#endif\n"
    Path(sys.argv[1]).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
