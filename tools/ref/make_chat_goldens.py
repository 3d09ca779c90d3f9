#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/chat: features.jsonl (small templates, each of one construct, rendered by jinja2 under transformers' environment) and
models.jsonl (the templates in tests/golden/chat/templates over the conversations of chat_reference.py).

usage: make_chat_goldens.py TESTS_DIR
"""
import hashlib
import json
import os
import sys

from chat_feature_cases import FEATURES, LIMIT_VARIABLES, LIMITS, UNSUPPORTED, VARIABLES
from chat_reference import DATE, as_json, render, variables

# Of each template every conversation would be 120 cases; what is committed is a part of them, by hash. check_templates.py runs all.
KEPT = 20
WHOLE = ("qwen3_5.jinja",)  # of these all


def line_of(v):
    return json.dumps(v, ensure_ascii=False) + "\n"


def case(name, got, error, **more):
    return line_of({"name": name, **more, "date": DATE, **({"error": error} if error else {"want": got})})


def features():
    yield line_of({"define": "all", "vars": VARIABLES})
    yield line_of({"define": "limits", "vars": LIMIT_VARIABLES})
    for i, text in enumerate(FEATURES):
        got, error = render(text, VARIABLES)
        yield case(f"feature {i}", got, error, template=text, given="all")
    for error, cases in (("unsupported", UNSUPPORTED), ("limit", LIMITS)):
        for text, says in cases:
            yield case(error, None, error, template=text, given="limits", says=says)


def models(folder):
    names = [n for n in sorted(os.listdir(folder)) if n.endswith(".jinja")]
    kept = {n: sorted(hashlib.sha256(f"{n}/{c}".encode()).hexdigest() for c, _ in variables())[:None if n in WHOLE else KEPT] for n in names}
    for c, v in variables():
        yield line_of({"define": c, "vars": as_json(v)})
        for name in names:
            if hashlib.sha256(f"{name}/{c}".encode()).hexdigest() in kept[name]:
                with open(os.path.join(folder, name), encoding="utf-8", newline="") as f:
                    got, error = render(f.read(), v)
                yield case(f"{name}: {c}", got, error, file="templates/" + name, given=c)


def main():
    out = os.path.join(sys.argv[1], "golden", "chat")
    for name, lines in (("features.jsonl", features()), ("models.jsonl", models(os.path.join(out, "templates")))):
        with open(os.path.join(out, name), "w", encoding="utf-8", newline="\n") as f:
            f.writelines(lines)


main()
