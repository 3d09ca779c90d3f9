#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Perplexity of a text by llama.cpp (package llama-cpp-python), cut as `lath perplexity` cuts it: what tests/cli/test_lm.sh
compares the real model with. The package has no program for it; what it scores is tools/perplexity of llama.cpp:
chunks of CTX tokens behind each other, BOS in the place of each one's first token, the second half scored.

    llamacpp_perplexity.py MODEL.gguf TEXT CTX [STRIDE]      tokens, scored, mean of -ln p, perplexity

A quantised file gives llama.cpp's own rounding of activations, too: `llama-quantize --allow-requantize M.gguf F.gguf F32`
makes the file whose perplexity is that of the weights.
"""

import math
import sys

import llama_cpp
import numpy as np

from perplexity_windows import windows


def main() -> None:
    path, text, ctx = sys.argv[1], sys.argv[2], int(sys.argv[3])
    stride = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    model = llama_cpp.Llama(path, n_ctx=ctx, n_batch=ctx, logits_all=True, verbose=False)
    with open(text, "rb") as f:
        ids = model.tokenize(f.read(), add_bos=True, special=False)
    total, scored = 0.0, 0
    for begin, end, first in windows(len(ids), ctx, stride):
        window = [ids[0], *ids[begin + 1:end]]
        model.reset()
        model.eval(window)
        logits = np.array(model.scores[:len(window)], dtype=np.float64)
        largest = logits.max(-1, keepdims=True)
        log_total = largest[:, 0] + np.log(np.exp(logits - largest).sum(-1))
        for t in range(first, len(window)):
            total += log_total[t - 1] - logits[t - 1, ids[begin + t]]
            scored += 1
    print(len(ids), scored, total / scored, math.exp(total / scored))


if __name__ == "__main__":
    main()
