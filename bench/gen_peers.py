#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generation of lath beside llama.cpp (llama-cpp-python): the same GGUF file, threads and tokens, in alternating slices.

    gen_peers.py FILE.gguf... [--threads 2] [--rounds 7] [--steps 24] [--prefill 512] [--precision auto|exact] [--isa auto|avx2|ref] [--lib build/liblath.so]
    gen_peers.py FILE.gguf... --positions 100,1000,8000,32000 [--steps 24] ...

Needs numpy and llama_cpp. For each file: prefill of --prefill tokens and --steps single steps behind 16 tokens, tokens/s as medians over the
rounds, and their ratio; the steps also in GB/s of the file. With --positions: milliseconds of a step behind so many tokens, and VmRSS then. Each engine has a process of its own, which is stopped while the other one works: threads that
wait by spinning (OpenMP's do) would take the processors from whoever is measured. On a machine that others use run it with real-time priority (chrt -f 20).
"""

import argparse
import ctypes as c
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time

import numpy as np

from lath_ctypes import Error, LathError, RuntimeOptions


class ModelOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("load", c.c_int), ("precision", c.c_int)]


class SessionOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("ctx", c.c_int32), ("kv", c.c_int), ("progress", c.c_void_p), ("progress_ctx", c.c_void_p),
                ("snapshot_bytes", c.c_uint64)]


class LathSession:
    def __init__(self, library, path, threads, ctx, precision, isa):
        self.lib, self.err = c.CDLL(library), Error()
        self.rt, self.model, self.session = c.c_void_p(), c.c_void_p(), c.c_void_p()
        self.lib.lath_session_rewind.argtypes = [c.c_void_p, c.c_size_t]
        self.lib.lath_session_append.argtypes = [c.c_void_p, c.c_void_p, c.c_size_t, c.c_void_p]
        options = RuntimeOptions(c.sizeof(RuntimeOptions), None, threads, isa, None, None)
        self.check(self.lib.lath_runtime_create(c.byref(options), c.byref(self.rt), c.byref(self.err)))
        model = ModelOptions(c.sizeof(ModelOptions), 0, precision)
        self.check(self.lib.lath_model_open(self.rt, str(path).encode(), c.byref(model), c.byref(self.model), c.byref(self.err)))
        session = SessionOptions(c.sizeof(SessionOptions), ctx, 0, None, None, 0)
        self.check(self.lib.lath_session_create(self.model, c.byref(session), c.byref(self.session), c.byref(self.err)))

    def check(self, status):
        if status:
            raise LathError(self.err.msg.decode(errors="replace"))

    def rewind(self):
        self.lib.lath_session_rewind(self.session, 0)

    def append(self, ids):
        a = np.asarray(ids, np.int32)
        self.check(self.lib.lath_session_append(self.session, a.ctypes.data, len(a), c.byref(self.err)))

    def close(self):
        for name, what in (("lath_session_destroy", self.session), ("lath_model_close", self.model), ("lath_runtime_destroy", self.rt)):
            f = getattr(self.lib, name)
            f.argtypes, f.restype = [c.c_void_p], None
            f(what)


class LlamaCpp:
    """Only the last token's logits are asked for, as in generation."""

    def __init__(self, path, threads, ctx):
        import llama_cpp
        self.llama = llama_cpp.Llama(str(path), n_threads=threads, n_threads_batch=threads, n_ctx=ctx, n_batch=512, n_ubatch=512, verbose=False)
        self.n = 0

    def rewind(self):
        self.llama._ctx.kv_cache_clear()
        self.n = 0

    def append(self, ids):
        batch = self.llama._batch
        batch.set_batch(batch=list(ids), n_past=self.n, logits_all=False)
        self.llama._ctx.decode(batch)
        self.n += len(ids)

    def close(self):
        self.llama.close()


def timed(f):
    begin = time.perf_counter()
    f()
    return time.perf_counter() - begin


def resident_mb():
    status = pathlib.Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split("VmRSS:")[1].split()[0]) / 1000


def worker(a, path):
    """Answers every line of standard input: an empty one with the seconds of a prompt and of the steps; a number with the seconds of the
    steps behind so many tokens (more than the last time), and megabytes."""
    longest = max(a.positions or [0]) + (a.rounds + 1) * a.steps
    ids = [(i * 7919 + 11) % 5000 for i in range(max(a.prefill, 16 + a.steps, longest))]
    ctx = len(ids) + a.steps + 32
    at = 0
    if a.worker == "lath":
        e = LathSession(a.lib, path, a.threads, ctx, {"auto": 0, "exact": 1}[a.precision], {"auto": 0, "ref": 1, "avx2": 2}[a.isa])
    else:
        e = LlamaCpp(path, a.threads, ctx)
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip():
            while at < int(line):
                n = min(512, int(line) - at)
                e.append(ids[at:at + n])
                at += n
            s = timed(lambda: [e.append([i]) for i in ids[at:at + a.steps]])
            at += a.steps
            print(s, resident_mb(), flush=True)
            continue
        e.rewind()
        p = timed(lambda: e.append(ids[:a.prefill]))
        e.rewind()
        e.append(ids[:16])
        s = timed(lambda: [e.append([i]) for i in ids[16:16 + a.steps]])
        print(p, s, flush=True)
    e.close()


class Engine:
    """A worker, stopped except while it is asked."""

    def __init__(self, name, a, path):
        argv = [sys.executable, __file__, str(path), "--worker", name]
        for option in ("threads", "rounds", "steps", "prefill", "precision", "isa", "lib"):
            argv += ["--" + option, str(getattr(a, option))]
        if a.positions:
            argv += ["--positions", ",".join(map(str, a.positions))]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if self.process.stdout.readline() != "ready\n":
            raise SystemExit(f"{path}: {name} does not open it")
        os.kill(self.process.pid, signal.SIGSTOP)

    def ask(self, what=""):
        os.kill(self.process.pid, signal.SIGCONT)
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        os.kill(self.process.pid, signal.SIGSTOP)
        return [float(x) for x in line.split()]

    def close(self):
        os.kill(self.process.pid, signal.SIGCONT)
        self.process.stdin.close()
        self.process.wait()


def measure(path, a):
    engines = {name: Engine(name, a, path) for name in ("lath", "llama.cpp")}
    prefill, step = {n: [] for n in engines}, {n: [] for n in engines}
    for round_ in range(a.rounds + 1):
        for name, e in engines.items():
            p, s = e.ask()
            if round_:  # the first warms up
                prefill[name].append(a.prefill / p)
                step[name].append(a.steps / s)
    for e in engines.values():
        e.close()
    for what, of in (("prefill %d" % a.prefill, prefill), ("decode", step)):
        m = {n: statistics.median(v) for n, v in of.items()}
        ratio = statistics.median(x / y for x, y in zip(of["lath"], of["llama.cpp"]))
        line = f"{path.name:36} {what:12} lath {m['lath']:7.1f}  llama.cpp {m['llama.cpp']:7.1f} tokens/s  ratio {ratio:.2f}"
        if what == "decode":
            line += f"  lath {m['lath'] * path.stat().st_size / 1e9:.1f} GB/s"
        print(line, flush=True)


def measure_positions(path, a):
    engines = {name: Engine(name, a, path) for name in ("lath", "llama.cpp")}
    for position in a.positions:
        ms, mb = {n: [] for n in engines}, {}
        for round_ in range(a.rounds + 1):
            for name, e in engines.items():
                s, mb[name] = e.ask(position)
                if round_:  # the first gets there
                    ms[name].append(1e3 * s / a.steps)
        m = {n: statistics.median(v) for n, v in ms.items()}
        print(f"{path.name:36} at {position:<6} lath {m['lath']:6.2f} ms, {mb['lath']:6.0f} MB  llama.cpp {m['llama.cpp']:6.2f} ms, "
              f"{mb['llama.cpp']:6.0f} MB", flush=True)
    for e in engines.values():
        e.close()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("files", nargs="+", type=pathlib.Path)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--steps", type=int, default=24)
    p.add_argument("--prefill", type=int, default=512)
    p.add_argument("--precision", choices=["auto", "exact"], default="auto")
    p.add_argument("--isa", choices=["auto", "avx2", "ref"], default="auto", help="of lath; which llama.cpp takes is how it was built")
    p.add_argument("--positions", type=lambda v: [int(i) for i in v.split(",")], help="in rising order, further apart than (rounds + 1) * steps")
    p.add_argument("--lib", default="build/liblath.so")
    p.add_argument("--worker", choices=["lath", "llama.cpp"], help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.worker:
        worker(a, a.files[0])
        return
    for f in a.files:
        (measure_positions if a.positions else measure)(f, a)


if __name__ == "__main__":
    main()
