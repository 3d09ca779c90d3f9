# SPDX-License-Identifier: Apache-2.0
"""Shared by the scripts that make golden data: where it goes, package versions, exact printing of float32."""

import json
import os
from importlib import metadata
from pathlib import Path

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden"


def offline() -> None:
    """Keeps the reference packages from looking for anything on a hub. Call before importing them."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["TRANSFORMERS_OFFLINE"] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


def versions(*packages: str) -> dict[str, str]:
    """{package: version} of the installed packages, without local suffixes such as +cpu."""
    return {name: metadata.version(name).split("+")[0] for name in packages}


def f32_text(value) -> str:
    """The shortest decimal that reads back as the same float32, also by way of a double."""
    import numpy as np  # here, so that what compares tokenizers needs the package tokenizers only

    value = np.float32(value)
    text = np.format_float_scientific(value, trim="-") if 0 < abs(value) < 1e-4 else str(value)
    if np.float32(float(text)) != value:
        raise ValueError(f"{text} does not read back as {value!r}")
    return text


def f32_list(values) -> str:
    return "[" + ", ".join(map(f32_text, values)) + "]"


def dumps(value) -> str:
    """JSON on one line, UTF-8 text kept as it is except control characters."""
    return json.dumps(value, ensure_ascii=False)


def write_json(path: Path, value) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def utf8_offsets(text: str, spans) -> list[list[int]]:
    """Character spans of `text` as byte spans of its UTF-8 form."""
    at = [0]
    for char in text:
        at.append(at[-1] + len(char.encode("utf-8")))
    return [[at[begin], at[end]] for begin, end in spans]
