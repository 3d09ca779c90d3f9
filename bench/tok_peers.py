#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast lath tokenizes beside the `tokenizers` package: ratios of one run, one thread.

    bench/tok_peers.py --lib build/liblath.so --models DIR [--only qwen3] [--rounds 12]

Texts are long, of four kinds, and every one is encoded once by each library (both keep words
from call to call): pieces of the Python standard library (its docstrings as English, its sources as code), Chinese made of
common words, and lines of many scripts. Libraries take turns and change who begins; CPU time counts, and the ratio is the
median over the rounds. Load is measured in processes of their own, the file in the page cache: from the call to ready, and
what the process grew by with a first text encoded. See README.md.
"""

import argparse
import ast
import ctypes
import json
import os
import random
import statistics
import subprocess
import sys
import sysconfig
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools" / "ref"))
# This file is called as the package is: the package must come from elsewhere.
sys.path = [p for p in sys.path if Path(p or ".").resolve() != HERE]
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import lath_tok  # noqa: E402
import torture_texts  # noqa: E402

MODELS = ["tokenizer-qwen3", "tokenizer-llama3_1", "tokenizer-gemma3", "multilingual-e5-small-q4w", "all-MiniLM-L6-v2"]
KINDS = ["english", "code", "chinese", "mixed"]
CHARS = 100_000  # of a text
CHINESE = """的 了 在 是 我们 他们 一个 这个 没有 可以 时候 知道 什么 自己 因为 所以 但是 如果 已经 中国 世界 国家 社会 经济 发展 问题 工作 生活 学生 老师 学校 大学 北京 上海 公司
市场 技术 科学 研究 历史 文化 政府 人民 城市 农村 环境 保护 能源 计算机 网络 信息 数据 语言 模型 系统 软件 手机 电话 时间 地方 今天 明天 昨天 早上 晚上 春天 冬天 天气 吃饭 睡觉 喝水 朋友 家庭 孩子
父母 医生 医院 健康 运动 音乐 电影 小说 新闻 报纸 记者 汽车 火车 飞机 道路 桥梁 河流 山脉 海洋 森林 动物 植物 非常 特别 比较 更加 逐渐 突然 终于 一直 正在 将要 开始 结束 继续 提高 降低 增加 减少
改变 影响 决定 选择 认为 表示 指出 强调 要求 希望 需要 应该 能够 必须 不仅 而且 虽然 然而 因此 于是 通过 根据 关于 对于 由于 为了 按照 随着 之间 以后 以前 其中 方面 情况 结果 原因 目的 方法 过程
第一 第二 三十 百分之 二〇二四年 亿元 公里 平方米 台湾 香港 龙 鹿 蝴蝶 琉璃 饕餮 魑魅 徘徊 踌躇 氤氲""".split()


# --------------------------------------------------------------------------------------------------------------- texts

def sources():
    return sorted(Path(sysconfig.get_paths()["stdlib"]).rglob("*.py"))


def docstrings(path):
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError):
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and (text := ast.get_docstring(node)):
            yield text


def pieces(parts, count):
    """`count` texts of CHARS characters out of an iterator of parts; parts are not used twice."""
    out, now, size = [], [], 0
    for part in parts:
        now.append(part)
        size += len(part) + 1
        if size >= CHARS:
            out.append("\n".join(now)[:CHARS])
            now, size = [], 0
            if len(out) == count:
                break
    return out


def chinese(rng):
    while True:
        sentence = "".join(CHINESE[min(int(rng.paretovariate(0.6)) - 1, len(CHINESE) - 1)] if rng.random() < 0.6 else rng.choice(CHINESE)
                           for _ in range(rng.randint(5, 20)))
        yield sentence + rng.choice("，。，。、；！？") + ("\n" if rng.random() < 0.1 else "")


def mixed(rng, english, code, han):
    other = torture_texts.prose(rng)
    while True:
        yield next(rng.choice([english, code, han, other, other]), "")


def make_texts(count):
    rng, files = random.Random(3), [p for p in sources() if "site-packages" not in p.parts and "test" not in p.parts]
    rng.shuffle(files)
    half = len(files) // 2
    lines = (line for p in files[half:] for line in p.read_text(encoding="utf-8", errors="replace").split("\n"))
    return {
        "english": pieces((d for p in files for d in docstrings(p)), count),
        "code": pieces((p.read_text(encoding="utf-8", errors="replace") for p in files[:half]), count),
        "chinese": ["".join(part) for part in zip(*[iter(pieces(chinese(rng), count))])],
        "mixed": pieces(mixed(rng, (d for p in files[half:] for d in docstrings(p)), lines, chinese(rng)), count),
    }


# ------------------------------------------------------------------------------------------------------------ measuring

def timed(function, *args):
    """CPU and wall seconds of this thread's call, and its result."""
    wall, cpu = time.perf_counter(), time.thread_time()
    result = function(*args)
    return time.thread_time() - cpu, time.perf_counter() - wall, result


def take_turns(rounds):
    """rounds: [(lath's call, the package's call)] -> medians of CPU seconds of both, and of the CPU and wall ratios."""
    ours, theirs, ratios, walls = [], [], [], []
    for i, calls in enumerate(rounds):
        took = {}
        for who in (0, 1) if i % 2 else (1, 0):
            took[who] = timed(calls[who])
        ours.append(took[0][0])
        theirs.append(took[1][0])
        ratios.append(took[1][0] / took[0][0])
        walls.append(took[1][1] / took[0][1])
    return {"lath_s": statistics.median(ours), "package_s": statistics.median(theirs), "ratio": statistics.median(ratios),
            "wall_ratio": statistics.median(walls)}


def bench_encode(lath, package, texts):
    rounds = [(lambda d=t.encode(): lath.encode_into(d), lambda t=t: package.encode(t)) for t in texts]
    return take_turns(rounds) | {"bytes": statistics.mean(len(t.encode()) for t in texts)}


def bench_decode(lath, package, texts):
    def decode(array, n):
        lath_tok.check(lath.lib.lath_decode(lath.tok, array, n, 0, ctypes.byref(lath.text), ctypes.byref(lath.len), lath.err), lath.err)
        lath.lib.lath_string_release(lath.tok, lath.text)

    rounds, sizes = [], []
    for t in texts:
        ids = package.encode(t, add_special_tokens=False).ids
        array = (ctypes.c_int32 * len(ids))(*ids)
        rounds.append((lambda a=array, n=len(ids): decode(a, n), lambda i=ids: package.decode(i, skip_special_tokens=False)))
        sizes.append(len(t.encode()))
    return take_turns(rounds) | {"bytes": statistics.mean(sizes)}


def bench_threads(runtime, folder, texts):
    """Wall time of one thread over that of two which share the work: many texts of 10,000 characters."""
    parts = [t[i : i + 10_000].encode() for t in texts for i in range(0, len(t), 10_000)]
    shared = lath_tok.Tokenizer(runtime, folder)

    def work(some):
        mine = lath_tok.Tokenizer.__new__(lath_tok.Tokenizer)  # results of its own, the tokenizer of all
        mine.lib, mine.tok, mine.err, mine.tokens = shared.lib, shared.tok, lath_tok.Error(), lath_tok.Tokens()
        mine.options = shared.options
        for data in some:
            mine.encode_into(data)
        mine.lib.lath_tokens_release(mine.tokens)

    def with_threads(n):
        threads = [threading.Thread(target=work, args=(parts[i::n],)) for i in range(n)]
        begin = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.perf_counter() - begin

    ratio = statistics.median(with_threads(1) / with_threads(2) for _ in range(5))
    shared.close()
    return ratio


# ---------------------------------------------------------------------------------------------------------------- load

LOAD = {
    "lath": "import lath_tok; rt = lath_tok.Runtime(sys.argv[1]); go = lambda: lath_tok.Tokenizer(rt, sys.argv[2])\n"
            "use = lambda t, text: t.encode(text.encode())",
    "package": "import tokenizers; go = lambda: tokenizers.Tokenizer.from_file(sys.argv[2] + '/tokenizer.json')\n"
               "use = lambda t, text: t.encode(text)",
}
LOAD_AROUND = """
import sys, time
sys.path.insert(0, sys.argv[3])
def resident():
    return int(open('/proc/self/statm').read().split()[1]) * 4096
{}
before, wall, cpu = resident(), time.perf_counter(), time.process_time()
kept = go()
cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
use(kept, "What is lazy is made by a first text: 123, äöü, 中文.")
print(cpu, wall, resident() - before)
"""


def load_once(who, lib, folder):
    out = subprocess.run([sys.executable, "-c", LOAD_AROUND.format(LOAD[who]), str(lib), str(folder), str(HERE.parent / "tools" / "ref")],
                         check=True, capture_output=True, text=True, cwd="/").stdout
    return [float(x) for x in out.split()]


def bench_load(lib, folder, rounds):
    took = {who: [] for who in LOAD}
    (folder / "tokenizer.json").read_bytes()  # into the page cache
    for i in range(rounds):
        for who in list(LOAD)[:: 1 if i % 2 else -1]:
            took[who].append(load_once(who, lib, folder))
    median = {who: [statistics.median(column) for column in zip(*rows)] for who, rows in took.items()}
    ours, theirs = median["lath"], median["package"]
    return {"lath_s": ours[0], "package_s": theirs[0], "ratio": theirs[0] / ours[0], "lath_wall_s": ours[1], "wall_ratio": theirs[1] / ours[1],
            "lath_mb": ours[2] / 1e6, "package_mb": theirs[2] / 1e6}


# -------------------------------------------------------------------------------------------------------------- report

def bench_model(runtime, folder, texts, args):
    import tokenizers
    lath, package = lath_tok.Tokenizer(runtime, folder), tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    package.no_truncation()
    package.no_padding()
    out = {"load": bench_load(args.lib, folder, args.load_rounds)}
    for kind in KINDS:
        lath.encode_into(texts[kind][-1].encode())  # warm up on a text that is not measured
        package.encode(texts[kind][-1])
        if package.encode(texts[kind][0]).ids != lath.encode(texts[kind][0].encode())[0]:
            sys.exit(f"{folder.name}: {kind}: ids differ")
        out[kind] = bench_encode(lath, package, texts[kind][1:-1])
    out["decode"] = bench_decode(lath, package, [t for kind in KINDS for t in texts[kind][1:4]])
    out["threads"] = bench_threads(runtime, folder, texts["mixed"])
    lath.close()
    return out


def row(name, r):
    def speed(kind):
        return f"{r[kind]['ratio']:.1f} ({r[kind]['bytes'] / r[kind]['lath_s'] / 1e6:.0f})"

    load = r["load"]
    return " | ".join([f"| {name}", f"{load['ratio']:.1f} ({load['lath_wall_s'] * 1e3:.0f} ms)", f"{load['lath_mb']:.0f} / {load['package_mb']:.0f}",
                       *(speed(k) for k in KINDS), speed("decode"), f"{r['threads']:.2f} |"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--lib", required=True, type=Path)
    parser.add_argument("--models", required=True, type=Path)
    parser.add_argument("--only", default="", help="models with this in the name")
    parser.add_argument("--rounds", type=int, default=12, help="texts of each kind")
    parser.add_argument("--load-rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="figures of everything to this file")
    args = parser.parse_args()
    args.lib = args.lib.resolve()
    import tokenizers
    texts = make_texts(args.rounds + 2)
    runtime, results = lath_tok.Runtime(args.lib), {}
    print(f"ratios to tokenizers {tokenizers.__version__}, CPU time, one thread; in brackets what lath does: ms to load (wall), MB/s\n")
    print("| tokenizer | load | resident MB, lath / package | " + " | ".join(KINDS) + " | decode | two threads to one |")
    print("|---" * (len(KINDS) + 5) + "|")
    for name in MODELS:
        folder = args.models / name
        if args.only in name and (folder / "tokenizer.json").exists():
            try:
                results[name] = bench_model(runtime, folder, texts, args)
            except lath_tok.LathError as e:
                print(f"| {name} | {e} |")
                continue
            print(row(name, results[name]), flush=True)
    runtime.close()
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n")
    if not results:
        sys.exit("nothing was measured")


if __name__ == "__main__":
    main()
