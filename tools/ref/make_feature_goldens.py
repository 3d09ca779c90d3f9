#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes features.safetensors beside some models of tests/golden/decoder: which tokens each feature of an FFN writes.

    layer.L.ids        [features, 10] the rows of the output head whose products with the feature's column of the down matrix are largest
    layer.L.products   the products, largest first

    make_feature_goldens.py
"""

from pathlib import Path

import refcommon

refcommon.offline()

import torch  # noqa: E402
from safetensors.torch import save_file  # noqa: E402
from transformers import AutoModelForCausalLM  # noqa: E402

CASES = ("qwen3_bias_untied", "gemma3_pattern_linear", "phi4_partial_tied", "granite_factors")
TOP = 10


def main():
    golden = Path(__file__).resolve().parents[2] / "tests" / "golden" / "decoder"
    for case in CASES:
        model = AutoModelForCausalLM.from_pretrained(golden / case, dtype=torch.float32)
        head = model.get_output_embeddings().weight.detach()
        out = {}
        for i, layer in enumerate(model.model.layers):
            products = head @ layer.mlp.down_proj.weight.detach()  # [vocab, features]
            best = products.T.topk(TOP)
            out[f"layer.{i}.ids"] = best.indices.to(torch.int32).contiguous()
            out[f"layer.{i}.products"] = best.values.contiguous()
        save_file(out, golden / case / "features.safetensors")
        print(case, len(out))


if __name__ == "__main__":
    main()
