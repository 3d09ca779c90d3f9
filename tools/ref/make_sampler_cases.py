#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/unit/engine/sampler.jsonl: which tokens a seed gives, by numpy in float64 with everything sorted, after the text at
lath_sample_options of include/lath/lath.h; and compares the rules with the logits processors of transformers where they are the same.

    make_sampler_cases.py FILE

Where transformers does otherwise: top-k keeps every token that is as large as the k-th (lath: the lower ids); a bias on logits comes
before the repetition penalty (lath: behind it); min-p comes behind top-p and looks at what is left of the probabilities (lath: before it);
there are no presence and frequency penalties.

Logits are made from integers, so that the test in C makes the same ones: u = (splitmix64 of seed and id) / 2^64 in 24 bits.
"""

import json
import math
import sys

import numpy as np
import torch
from transformers import MinPLogitsWarper, RepetitionPenaltyLogitsProcessor, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

MASK = 2**64 - 1
DEFAULTS = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repeat": 1.0, "presence": 0.0, "frequency": 0.0, "seed": 0}


def splitmix(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    z = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


class Xoshiro:
    """xoshiro256++ of Blackman and Vigna, seeded by splitmix64."""

    def __init__(self, seed):
        self.s = [splitmix((seed + i * 0x9E3779B97F4A7C15) & MASK) for i in range(4)]

    def next(self):
        s, rotl = self.s, lambda x, k: ((x << k) | (x >> (64 - k))) & MASK
        result = (rotl((s[0] + s[3]) & MASK, 23) + s[0]) & MASK
        t = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotl(s[3], 45)
        return result

    def uniform(self):
        return (self.next() >> 11) * 2.0**-53


def make_logits(kind, n, seed):
    u = np.array([splitmix((seed * 1000003 + i) & MASK) >> 40 for i in range(n)], dtype=np.float64) / 2**24
    v = {"flat": u * 24 - 12, "peaked": u * u * u * u * 30 - 10, "ties": np.floor(u * 12) / 2 - 3, "equal": u * 0}[kind]
    return v.astype(np.float32)


def kept(logits, o, counts, bias, allowed):
    """(ids, probabilities) of what may be chosen, the most probable first; the closest call of top-p."""
    v = logits.astype(np.float64)
    for i, c in counts.items():
        v[i] = v[i] / o["repeat"] if v[i] > 0 else v[i] * o["repeat"]
        v[i] = np.float64(np.float32(v[i])) - o["presence"] - o["frequency"] * c
        v[i] = np.float64(np.float32(v[i]))
    for i, b in bias:
        v[i] = np.float64(np.float32(v[i] + np.float64(np.float32(b))))
    if allowed is not None:
        v[[i for i in range(len(v)) if i not in allowed]] = -math.inf
    order = sorted(range(len(v)), key=lambda i: (-v[i], i))
    order = [i for i in order if v[i] > -math.inf]
    if o["temperature"] == 0:
        return order[:1], np.ones(1), 1.0
    if o["top_k"]:
        order = order[: o["top_k"]]
    x = v[order] / o["temperature"]
    p = np.exp(x - x[0])
    if o["min_p"]:
        order, p = [i for i, q in zip(order, p) if q >= o["min_p"]], p[p >= o["min_p"]]
    p = p / p.sum()
    close = 1.0
    if o["top_p"] < 1:
        c = np.cumsum(p)
        n = int(np.searchsorted(c, o["top_p"])) + 1
        close = float(np.abs(c - o["top_p"]).min())
        order, p = order[:n], p[:n]
    return order, p / p.sum(), close


def run(case):
    """The ids of case["steps"] steps and how close the closest call was."""
    o = {**DEFAULTS, **case["options"]}
    logits = make_logits(case["logits"], case["n"], case["logits_seed"])
    rng, counts, ids, close = Xoshiro(o["seed"]), {}, [], 1.0
    for i in case.get("prompt", []):
        counts[i] = counts.get(i, 0) + 1
    penalised = o["repeat"] != 1 or o["presence"] or o["frequency"]
    for _ in range(case["steps"]):
        order, p, gap = kept(logits, o, counts if penalised else {}, case.get("bias", []), case.get("allowed"))
        close = min(close, gap)
        at = 0
        if o["temperature"] > 0:
            r, c = rng.uniform(), np.cumsum(p)
            at = min(int(np.searchsorted(c, r, side="right")), len(c) - 1)
            close = min(close, float(np.abs(c - r).min()))
        ids.append(order[at])
        counts[order[at]] = counts.get(order[at], 0) + 1
    return ids, close


def compare_with_transformers():
    for seed in range(40):
        logits = make_logits("flat" if seed % 2 else "peaked", 300, seed)
        scores, ids = torch.tensor(logits)[None], torch.tensor([[3, 5, 5, 299]])
        for options, processors in (
            ({"top_k": 7}, [TopKLogitsWarper(7)]),
            ({"top_p": 0.8}, [TopPLogitsWarper(0.8)]),
            ({"min_p": 0.05}, [MinPLogitsWarper(0.05)]),
            ({"temperature": 0.6, "top_k": 40, "top_p": 0.9}, [TemperatureLogitsWarper(0.6), TopKLogitsWarper(40), TopPLogitsWarper(0.9)]),
            ({"repeat": 1.3, "temperature": 1.7}, [RepetitionPenaltyLogitsProcessor(1.3), TemperatureLogitsWarper(1.7)]),
        ):
            out = scores
            for p in processors:
                out = p(ids, out)
            order, p, close = kept(logits, {**DEFAULTS, **options}, {3: 1, 5: 2, 299: 1} if "repeat" in options else {}, [], None)
            q = torch.softmax(out.double(), -1)[0].numpy()
            if close > 1e-6:
                assert sorted(order) == sorted(np.nonzero(q)[0]), (seed, options)
                assert np.abs(q[order] - p).max() < 1e-6, (seed, options)


def cases():
    small = {"logits": "peaked", "n": 300}
    yield "greedy", small | {"options": {"temperature": 0}}
    yield "greedy, ties", {"logits": "ties", "n": 300, "options": {"temperature": 0}}
    yield "greedy, penalties", small | {"options": {"temperature": 0, "repeat": 1.5, "presence": 0.5, "frequency": 0.25}, "prompt": [1, 1, 7]}
    yield "plain", small | {"options": {}}
    yield "equal logits", {"logits": "equal", "n": 1000, "options": {}}
    yield "one token", {"logits": "equal", "n": 1, "options": {"top_p": 0.5}}
    yield "hot", small | {"options": {"temperature": 2.5}}
    yield "cold", small | {"options": {"temperature": 0.1}}
    yield "almost greedy", small | {"options": {"temperature": 1e-40}}
    yield "almost equal", small | {"options": {"temperature": 1e60}}
    yield "top-k", small | {"options": {"top_k": 5}}
    yield "top-k 1", small | {"options": {"top_k": 1, "temperature": 3}}
    yield "top-k, ties", {"logits": "ties", "n": 300, "options": {"top_k": 20}}
    yield "top-k over all", small | {"options": {"top_k": 5000, "temperature": 3}}
    yield "top-k of many", {"logits": "flat", "n": 20000, "options": {"top_k": 1000, "temperature": 4}}
    yield "top-p", small | {"options": {"top_p": 0.7}}
    yield "top-p, little", small | {"options": {"top_p": 1e-6}}
    yield "top-p, many", {"logits": "flat", "n": 20000, "options": {"top_p": 0.5}}
    yield "top-p, ties", {"logits": "ties", "n": 300, "options": {"top_p": 0.4}}
    yield "min-p", small | {"options": {"min_p": 0.1, "temperature": 1.5}}
    yield "min-p, many", {"logits": "flat", "n": 20000, "options": {"min_p": 0.02}}
    yield "all rules", small | {"options": {"temperature": 1.4, "top_k": 60, "top_p": 0.9, "min_p": 0.001, "repeat": 1.2, "presence": 0.1, "frequency": 0.3},
                                "prompt": [4, 9, 4, 250], "bias": [[17, 3.5], [250, 8.0], [99, -4.0]]}
    yield "bias", {"logits": "flat", "n": 100, "options": {}, "bias": [[0, 20.0], [63, 20.0], [64, 20.0], [99, 19.5]]}
    yield "mask", {"logits": "flat", "n": 200, "options": {"temperature": 5}, "allowed": [0, 31, 32, 63, 64, 65, 128, 199]}
    yield "mask, greedy", {"logits": "flat", "n": 200, "options": {"temperature": 0}, "allowed": [3, 77, 198]}
    yield "mask, top-p", {"logits": "ties", "n": 200, "options": {"top_p": 0.6}, "allowed": list(range(5, 200, 7))}
    yield "vocabulary of 50000", {"logits": "peaked", "n": 50000, "options": {"temperature": 0.9}}


def main():
    compare_with_transformers()
    with open(sys.argv[1], "w") as f:
        for name, case in cases():
            case["steps"] = 3 if "greedy" in name else 24
            # A call that float32 weights could decide otherwise is no case.
            for seed in range(1, 200):
                case["logits_seed"], case["options"]["seed"] = seed, (seed * 0x123456789ABCDEF) & (2**63 - 1)
                ids, close = run(case)
                if close > 1e-6:
                    break
            assert close > 1e-6, name
            f.write(json.dumps({"name": name, **case, "ids": ids}) + "\n")
            print(f"{name}: closest call {close:.1e}", file=sys.stderr)


if __name__ == "__main__":
    main()
