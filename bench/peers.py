#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast lath embeds beside its peers: ratios of one run, never bare times.

lath (through ctypes), onnxruntime and sentence-transformers sit in one process with the same number of threads and take turns
on the same texts in slices of about half a second: lath, peer, lath, peer... A round's ratio is the mean of lath's slices
before and after the peer's, divided by the peer's: drifts of a shared host fall out. Every engine tokenises what it embeds and
gives vectors of length 1; before anything is timed their vectors are compared. Each thread count is a process of its own
(thread pools are sized once). See README.md.
"""

import argparse
import ctypes
import json
import math
import os
import pathlib
import platform
import random
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
CASES = ("1x128", "32x128", "mixed")
BATCH = 32  # texts of a padded batch of the peers
MIXED_TEXTS = 1000

WORDS = """the a of and to in is was for on with as by at from that it be are this which or an not his her their they were has
have had but all one two three first new more some time people years world city house water river mountain light night day
music history science language machine model number question answer government election market economy price company doctor
school children student teacher animal forest ocean weather storm winter summer energy computer network engine road train
station letter story film painter violin football bread coffee garden window green small large quickly slowly between under
through because although however therefore believe walk carry build measure observe discover photosynthesis tokenisation
mitochondria renormalisation Zürich café naïve 1987 2,400 3.14 U.S. don't state-of-the-art""".split()


# --------------------------------------------------------------------------------------------------------------------- texts

def text_of_tokens(rng, count, n):
    """A text that `count` says has exactly n tokens, a full stop after every dozen words."""
    def word():
        if failed < 5:
            words.append(rng.choice(WORDS) + ("." if len(words) % 12 == 11 else ""))
        else:  # a single token
            words.append(rng.choice(WORDS[:30]))

    words, failed = [], 0
    for _ in range((n - 2) // 3):  # a good part of it unseen, few words have more than two tokens
        word()
    while (have := count(" ".join(words))) != n:
        if have > n:
            words.pop()
            failed += 1
        else:
            word()
    return " ".join(words)


def make_sets(case, tokenizer):
    """The texts of a case as a list of slices' work: each a list of texts. `mixed` is 1,000 texts of log-normal length (median
    40 tokens, sigma 0.6, 4 to 200), sorted by length over all of them and cut in batches of 32; a set is one batch of short and
    one of long texts, so that peers get the padding of the whole sorted corpus though slices are short."""
    def count(text):
        return len(tokenizer.encode(text).ids)

    rng = random.Random(20)
    if case != "mixed":
        return [[text_of_tokens(rng, count, 128) for _ in range(1 if case == "1x128" else 32)]]
    lengths = [min(200, max(4, round(math.exp(rng.gauss(math.log(40), 0.6))))) for _ in range(MIXED_TEXTS)]
    texts = sorted((text_of_tokens(rng, count, n) for n in lengths), key=count)
    batches = [texts[i:i + BATCH] for i in range(0, len(texts), BATCH)]
    return [batches[i] + batches[-1 - i] for i in range(len(batches) // 2)]


# ------------------------------------------------------------------------------------------------------------------- engines

class LathEngine:
    name = "lath"

    def __init__(self, args):
        sys.path.insert(0, str(HERE))
        import lath_ctypes
        self.c, self.lath = lath_ctypes, lath_ctypes.Lath(args.library, args.model, args.threads)
        self.version = f"{self.lath.version} {self.lath.isa}"

    def prepare(self, texts):
        import numpy as np
        return self.c.Texts(texts), np.zeros((len(texts), self.lath.dim), np.float32)

    def run(self, prepared):
        self.lath.embed(*prepared)
        return prepared[1]


class OnnxEngine:
    """onnxruntime with the model's fp32 graph, tokenizers, and pooling in numpy; batches sorted by length, padded to their longest."""
    name = "onnxruntime"

    def __init__(self, args):
        import numpy as np
        import onnxruntime as ort
        import tokenizers
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = args.threads, 1
        self.np, self.pooling = np, args.pooling
        self.session = ort.InferenceSession(args.onnx, options, providers=["CPUExecutionProvider"])
        self.inputs = [i.name for i in self.session.get_inputs()]
        self.tok = open_tokenizer(args)
        self.version = f"{ort.__version__} (tokenizers {tokenizers.__version__})"

    def prepare(self, texts):
        return texts

    def encode(self, texts):
        """Batches of (indices, inputs)."""
        np = self.np
        ids = [e.ids for e in self.tok.encode_batch_fast(texts)]
        order = sorted(range(len(texts)), key=lambda i: len(ids[i]))
        batches = []
        for first in range(0, len(order), BATCH):
            rows = order[first:first + BATCH]
            feed = {"input_ids": np.zeros((len(rows), len(ids[rows[-1]])), np.int64)}
            feed["attention_mask"] = np.zeros_like(feed["input_ids"])
            feed["token_type_ids"] = np.zeros_like(feed["input_ids"])
            for r, i in enumerate(rows):
                feed["input_ids"][r, :len(ids[i])] = ids[i]
                feed["attention_mask"][r, :len(ids[i])] = 1
            batches.append((rows, {k: feed[k] for k in self.inputs}))
        return batches

    def forward(self, batches):
        np, out = self.np, None
        for rows, feed in batches:
            hidden = self.session.run(None, feed)[0]
            mask = feed["attention_mask"].astype(np.float32)
            v = hidden[:, 0] if self.pooling == "cls" else np.einsum("btd,bt->bd", hidden, mask) / mask.sum(1)[:, None]
            v /= np.linalg.norm(v, axis=1, keepdims=True)
            if out is None:
                out = np.empty((sum(len(r) for r, _ in batches), v.shape[1]), np.float32)
            out[rows] = v
        return out

    def run(self, texts):
        return self.forward(self.encode(texts))


class OnnxModelEngine(OnnxEngine):
    """onnxruntime without its tokenising: the batches are made before. lath still tokenises, so this ratio favours the peer."""
    name = "onnxruntime, model only"

    def prepare(self, texts):
        return self.encode(texts)

    def run(self, batches):
        return self.forward(batches)


class SentenceTransformersEngine:
    name = "sentence-transformers"

    def __init__(self, args):
        import sentence_transformers
        import torch
        torch.set_num_threads(args.threads)
        self.model = sentence_transformers.SentenceTransformer(args.model, device="cpu", model_kwargs={"dtype": "float32"})
        self.version = f"{sentence_transformers.__version__} (torch {torch.__version__})"

    def prepare(self, texts):
        return texts

    def run(self, texts):
        return self.model.encode(texts, batch_size=BATCH, show_progress_bar=False)


ENGINES = {"ort": OnnxEngine, "ort-model": OnnxModelEngine, "st": SentenceTransformersEngine}


def open_tokenizer(args):
    import tokenizers
    tok = tokenizers.Tokenizer.from_file(str(pathlib.Path(args.model) / "tokenizer.json"))
    tok.no_padding()
    tok.enable_truncation(512)
    return tok


# ----------------------------------------------------------------------------------------------------------------- measuring

def compare(np, engines, sets):
    """The smallest cosine of each peer's vectors with lath's, over all texts."""
    worst = {e.name: 1.0 for e in engines[1:]}
    for texts in sets:
        vectors = [np.array(e.run(e.prepare(texts)), np.float64) for e in engines]
        vectors = [v / np.linalg.norm(v, axis=1, keepdims=True) for v in vectors]
        for e, v in zip(engines[1:], vectors[1:]):
            worst[e.name] = min(worst[e.name], float((v * vectors[0]).sum(1).min()))
    return worst


def time_slice(engine, prepared, seconds, clock):
    """Passes a second."""
    time.sleep(0.02)  # threads of the engine before, spinning for more work, go to sleep
    n, t0 = 0, clock()
    while True:
        engine.run(prepared)
        n += 1
        t = clock() - t0
        if t >= seconds:
            return n / t


def measure(engines, sets, tokens, args):
    """Tokens a second of every engine in every round: {name: [rate]}, lath with one round more than its peers."""
    clock = time.process_time if args.cpu else time.perf_counter
    prepared = [[e.prepare(texts) for texts in sets] for e in engines]
    rates = {e.name: [] for e in engines}
    ratios = {e.name: [] for e in engines[1:]}
    for e, p in zip(engines, prepared):
        time_slice(e, p[0], args.seconds / 2, clock)
    for r in range(args.rounds):
        s = r % len(sets)
        before = time_slice(engines[0], prepared[0][s], args.seconds, clock)
        rates["lath"].append(before * tokens[s])
        for e, p in zip(engines[1:], prepared[1:]):
            peer = time_slice(e, p[s], args.seconds, clock)
            after = time_slice(engines[0], prepared[0][s], args.seconds, clock)
            ratios[e.name].append((before + after) / 2 / peer)
            rates[e.name].append(peer * tokens[s])
            rates["lath"].append(after * tokens[s])
            before = after
    return rates, ratios


def worker(args):
    import numpy as np
    tokenizer = open_tokenizer(args)
    engines = [LathEngine(args)] + [ENGINES[p](args) for p in args.peers]
    results = []
    for case in args.cases:
        sets = make_sets(case, tokenizer)
        tokens = [sum(len(e.ids) for e in tokenizer.encode_batch(t)) for t in sets]
        cosines = compare(np, engines, sets)
        for name, cosine in cosines.items():
            if not cosine > args.min_cosine:
                raise SystemExit(f"peers.py: {case}: vectors of lath and {name} differ: cosine {cosine}")
        rates, ratios = measure(engines, sets, tokens, args)
        for e in engines[1:]:
            ratio = sorted(ratios[e.name])
            results.append({
                "model": pathlib.Path(args.model).name, "case": case, "threads": args.threads, "peer": e.name,
                "peer_version": e.version, "lath_version": engines[0].version, "rounds": args.rounds,
                "lath_median": statistics.median(rates["lath"]), "lath_best": max(rates["lath"]),
                "peer_median": statistics.median(rates[e.name]), "peer_best": max(rates[e.name]),
                "ratio_of_medians": statistics.median(rates["lath"]) / statistics.median(rates[e.name]),
                "median_ratio": statistics.median(ratio), "ratio_low": ratio[len(ratio) // 10],
                "ratio_high": ratio[-1 - len(ratio) // 10], "min_cosine": cosines[e.name]})
            print(row(results[-1]), flush=True)
            if args.json:
                with open(args.json, "a", encoding="utf-8") as f:
                    f.write(json.dumps(results[-1]) + "\n")


# ------------------------------------------------------------------------------------------------------------------- command

def row(r):
    return (f"| {r['model']} | {r['case']} | {r['threads']} | {r['peer']} | {r['lath_median']:.0f} / {r['lath_best']:.0f} | "
            f"{r['peer_median']:.0f} / {r['peer_best']:.0f} | **{r['median_ratio']:.2f}** ({r['ratio_low']:.2f}–{r['ratio_high']:.2f}) | "
            f"{r['ratio_of_medians']:.2f} | {1 - r['min_cosine']:.0e} |")


HEADER = ("| model | case | threads | peer | lath tokens/s, median / best | peer, median / best | median of ratios (10–90 %) | ratio of "
          "medians | 1 - cosine |\n|---|---|---|---|---|---|---|---|---|")


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model", help="model directory")
    p.add_argument("--library", default=str(HERE.parent / "build" / "liblath.so"), help="liblath.so")
    p.add_argument("--onnx", help="fp32 graph; default MODEL/onnx/model.onnx or MODEL-onnx/model.onnx")
    p.add_argument("--pooling", choices=("mean", "cls"), help="for onnxruntime; default: the model's")
    p.add_argument("--threads", default="1,2", help="comma-separated")
    p.add_argument("--cases", default=",".join(CASES))
    p.add_argument("--peers", default="ort,ort-model,st", help=f"of {','.join(ENGINES)}")
    p.add_argument("--rounds", type=int, default=15)
    p.add_argument("--seconds", type=float, default=0.5, help="of a slice")
    p.add_argument("--cpu", action="store_true", help="one thread, CPU time instead of the wall's: for machines that others keep busy")
    p.add_argument("--min-cosine", type=float, default=0.99999)
    p.add_argument("--json", help="append one JSON line a row to this file")
    p.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.cpu:
        args.threads = "1"
    args.cases, args.peers = args.cases.split(","), [x for x in args.peers.split(",") if x]
    if set(args.cases) - set(CASES) or set(args.peers) - set(ENGINES):
        p.error("unknown case or peer")
    model = pathlib.Path(args.model)
    if not args.onnx:
        choices = [model / "onnx" / "model.onnx", model.parent / (model.name + "-onnx") / "model.onnx"]
        args.onnx = str(next((c for c in choices if c.exists()), ""))
    if not args.onnx:
        args.peers = [x for x in args.peers if not x.startswith("ort")]
    if not args.pooling:
        pooling = json.loads((model / "1_Pooling" / "config.json").read_text(encoding="utf-8"))
        args.pooling = "cls" if pooling.get("pooling_mode_cls_token") or pooling.get("pooling_mode") == "cls" else "mean"
    return args


def machine():
    try:
        cpu = next(x for x in open("/proc/cpuinfo", encoding="utf-8") if x.startswith("model name")).split(":")[1].strip()
    except (OSError, StopIteration):
        cpu = platform.machine()
    return f"{cpu}, {len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}"


def main():
    args = parse()
    if args.worker:
        args.threads = int(args.threads)
        worker(args)
        return
    print(f"{machine()}; {args.rounds} rounds, slices of {args.seconds} s, lath and each peer alternating in one process{', CPU time' if args.cpu else ''}\n\n{HEADER}", flush=True)
    for n in args.threads.split(","):
        env = dict(os.environ, RAYON_NUM_THREADS=n, OMP_NUM_THREADS=n, TOKENIZERS_PARALLELISM="true" if n != "1" else "false",
                   HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error",
                   TQDM_DISABLE="1")
        command = [sys.executable, __file__, args.model, "--worker", "--library", args.library, "--onnx", args.onnx, "--pooling", args.pooling,
                   "--threads", n, "--cases", ",".join(args.cases), "--peers", ",".join(args.peers), "--rounds", str(args.rounds),
                   "--seconds", str(args.seconds), "--min-cosine", str(args.min_cosine)]
        command += (["--json", args.json] if args.json else []) + (["--cpu"] if args.cpu else [])
        subprocess.run(command, env=env, check=True)


if __name__ == "__main__":
    main()
