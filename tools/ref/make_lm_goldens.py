#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/lm/cases.txt: what transformers gives for a few prompts and a text, on tiny language models that
other scripts have made: the next tokens, logits, the perplexity under every way to cut a text. One case a line, fields
separated by tabs (README.md has them).

    make_lm_goldens.py
"""

import json

import refcommon

refcommon.offline()

import torch  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402

from perplexity_windows import windows  # noqa: E402

MODELS = ("rerank/qwen3_reranker_card", "decoder/llama2")  # without and with a beginning token
PROMPTS = ("green river", "the boat", "a")
TOP = 5
WINDOWS = ((512, 0), (32, 0), (33, 0), (8, 0), (2, 1), (3, 0), (32, 16), (32, 31), (32, 32), (40, 1), (512, 64))
TEXT = refcommon.GOLDEN / "lm" / "text.txt"


def token_text(tokenizer, token: int) -> str | None:
    """As it stands inside a text: the second of two, because decoders cut the blank of a text's first."""
    if tokenizer.convert_ids_to_tokens(token) is None:
        return None
    one, two = tokenizer.decode([token]), tokenizer.decode([token, token])
    return two[len(one):] if two.startswith(one) and len(two) > len(one) else one


def logits_of(model, ids: list[int]) -> torch.Tensor:
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].double()


def begins_with(tokenizer) -> int | None:
    none, some = tokenizer("").input_ids, tokenizer("a").input_ids
    return none[0] if none and len(some) > 1 and none[0] == some[0] else None


def perplexity(model, ids: list[int], bos: int | None, ctx: int, stride: int) -> tuple[int, int, float]:
    """tokens scored, windows, mean of -ln p"""
    scored = count = 0
    total = 0.0
    for begin, end, first in windows(len(ids), ctx, stride):
        window = ids[begin:end]
        seen = [bos, *window[1:]] if bos is not None else window
        log_p = torch.log_softmax(logits_of(model, seen), -1)
        for t in range(first, len(window)):
            total -= float(log_p[t - 1, window[t]])
            scored += 1
        count += 1
    return scored, count, total / scored


def main() -> None:
    lines = []
    text = TEXT.read_text(encoding="utf-8")
    for name in MODELS:
        at = refcommon.GOLDEN / name
        model = AutoModelForCausalLM.from_pretrained(at, dtype=torch.float32, attn_implementation="eager").eval()
        tokenizer = AutoTokenizer.from_pretrained(at)
        for prompt in PROMPTS:
            ids = tokenizer(prompt).input_ids
            logits = logits_of(model, ids)
            for position in range(len(ids)):
                best = torch.log_softmax(logits[position], -1).topk(TOP)
                if position == len(ids) - 1:
                    for rank, (log_p, token) in enumerate(zip(best.values.tolist(), best.indices.tolist())):
                        lines.append(["predict", name, prompt, rank, token, f"{log_p:.7f}",
                                      json.dumps(token_text(tokenizer, token), ensure_ascii=False)])
                for token in (0, int(best.indices[0]), logits.shape[1] - 1):
                    lines.append(["logit", name, prompt, position, len(ids), token, f"{float(logits[position, token]):.6f}"])
        ids = tokenizer(text).input_ids
        for ctx, stride in WINDOWS:
            scored, count, nll = perplexity(model, ids, begins_with(tokenizer), ctx, stride)
            lines.append(["perplexity", name, ctx, stride, scored, count, f"{nll:.7f}"])
    out = "".join("\t".join(map(str, fields)) + "\n" for fields in lines)
    (TEXT.parent / "cases.txt").write_text(out, encoding="utf-8")


if __name__ == "__main__":
    main()
