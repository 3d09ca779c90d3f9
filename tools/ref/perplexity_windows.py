# SPDX-License-Identifier: Apache-2.0
"""Shared: how a text is cut for its perplexity."""


def windows(n: int, ctx: int, stride: int):
    """begin, end, first token that is scored."""
    if n <= ctx:
        yield 0, n, 1
    elif stride == 0:  # llama.cpp, tools/perplexity
        for at in range(0, n - ctx + 1, ctx):
            yield at, at + ctx, ctx // 2 + 1
    else:  # transformers, "Perplexity of fixed-length models"
        end = 0
        for at in range(0, n, stride):
            first, end = max(end - at, 1), min(at + ctx, n)
            yield at, end, first
            if end == n:
                break
