#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_template_fragments.py: random templates out of the language's parts, against jinja2 under transformers' environment: the same text, an error
where jinja2 has one. What lath refuses as not supported is counted, and is no difference.

usage: check_template_fragments.py --runner build/tests/test_chat_golden [--seed S] [--n N] [--out FILE]
"""
import argparse
import copy
import json
import random
import subprocess
import sys
import tempfile

from chat_feature_cases import VARIABLES
from chat_reference import DATE, compile_template, render

ATOMS = ["t", "e", "w", "n", "yes", "no", "i", "m", "f", "l", "ls", "nested", "mixed", "d", "users", "html", "lines", "quote", "uni", "num", "messages",
         "nothing", "'a'", "'b,c'", "' x '", "''", "0", "1", "-1", "2.5", "1e3", "none", "true", "false", "[]", "[1, 2]", "['a', 'B']", "{}", "{'a': 1}",
         "(1, 'z')", "range(3)", "d.a", "users[0]", "users[1].name", "nested[0]", "d.items()", "d.keys()", "messages[0].content"]
NAMES = ["t", "w", "l", "ls", "nested", "mixed", "d", "users", "lines", "uni", "messages", "nothing", "i", "n"]
FILTERS = ["trim", "upper", "lower", "title", "capitalize", "length", "first", "last", "join", "join('-')", "list", "string", "int", "float", "round", "abs",
           "default('x')", "default('x', true)", "tojson", "tojson(indent=2)", "sort", "sort(reverse=true)", "unique | list", "reverse | list", "reverse", "sum",
           "min", "max", "items | list", "dictsort", "map('upper') | list", "map(attribute='name') | list", "select | list", "reject('none') | list",
           "select('string') | list", "selectattr('age') | list", "rejectattr('on') | list", "replace('a', 'b')", "indent", "batch(2) | list", "slice(2) | list",
           "e", "safe", "wordcount", "truncate(5)", "center(9)", "map('length') | list", "sort(attribute='age') | list", "select('odd') | list", "count"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "sequence", "iterable", "odd", "even", "true", "false",
         "callable", "in([1, 'a', none])", "eq(1)", "gt(1)", "lower", "upper", "divisibleby(2)", "sameas(none)", "ne('a')"]
METHODS = ["strip()", "lstrip()", "rstrip()", "strip('a ')", "split()", "split(',')", "split(none, 1)", "rsplit(',', 1)", "upper()", "lower()", "title()",
           "capitalize()", "startswith('a')", "endswith(('!', 'x'))", "replace('a', '')", "find('a')", "count('a')", "splitlines()", "join(['x', 'y'])",
           "isdigit()", "isalpha()", "partition(',')", "center(7, '*')", "zfill(5)", "items() | list", "keys() | list", "values() | list", "get('a')",
           "get('zz', 'q')", "index('a')", "append(1)", "format(1, 'b')", "swapcase()", "removeprefix('a')", "isspace()", "islower()", "rfind(' ')"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]
SUBSCRIPTS = ["[0]", "[-1]", "[1]", "[7]", "['a']", "['name']", "[1:]", "[:-1]", "[::-1]", "[::2]", "[-2:]", "[2:1]", ".a", ".name", ".x.y", ".items", "[none]", "[1.0]", "[true]"]


def expression(r, depth):
    if depth <= 0 or r.random() < 0.15:
        return r.choice(ATOMS)
    x = expression(r, depth - 1)
    k = r.random()
    if k < 0.28:
        return f"({x} | {r.choice(FILTERS)})"
    if k < 0.40:
        return f"({x} is {r.choice(['', 'not '])}{r.choice(TESTS)})"
    if k < 0.55:
        return f"({x}).{r.choice(METHODS)}"
    if k < 0.75:
        return f"({x} {r.choice(OPERATORS)} {expression(r, depth - 1)})"
    if k < 0.90:
        sub = r.choice(SUBSCRIPTS)
        if ":" in sub and x not in NAMES:  # of constants jinja2 slices at compile time, by other rules
            x = r.choice(NAMES)
        return f"({x}){sub}"
    if k < 0.94:
        return f"({x} if {expression(r, depth - 1)} else {expression(r, depth - 1)})"
    if k < 0.97:
        return f"(not {x})"
    return f"[{x}, {expression(r, depth - 1)}]"


def statement(r, depth):
    k, sign = r.random(), lambda: r.choice(["", "", "", "-", "+"])
    end = lambda: r.choice(["", "", "", "-"])
    text = lambda: r.choice(["", " ", "\n", "  \n", "a", " b ", "\n  c\n", "\t", "{ }", "#"])
    tag = lambda s: "{%" + sign() + " " + s + " " + end() + "%}"
    body = lambda: "".join(statement(r, depth - 1) for _ in range(r.randint(1, 3))) if depth > 0 else text()
    if k < 0.30 or depth <= 0:
        return text() + "{{" + r.choice(["", "-"]) + " " + expression(r, 2) + " " + end() + "}}" + text()
    if k < 0.45:
        return tag(f"if {expression(r, 2)}") + body() + (tag(f"elif {expression(r, 1)}") + body() if r.random() < 0.3 else "") + \
            (tag("else") + body() if r.random() < 0.5 else "") + tag("endif") + text()
    if k < 0.62:
        jump = tag(f"if {expression(r, 1)}") + tag(r.choice(["break", "continue"])) + tag("endif") if r.random() < 0.3 else ""
        return tag(f"for x in {r.choice(['l', 'ls', 'users', 'd', 't', 'range(3)', expression(r, 1)])}{r.choice(['', '', ' if x', ' if loop is undefined'])}") + text() + \
            "{{ loop." + r.choice(["index", "index0", "first", "last", "length", "revindex", "previtem", "nextitem", "cycle('a', 'b')", "changed(x)"]) + " }}{{ x }}" + \
            jump + body() + (tag("else") + body() if r.random() < 0.3 else "") + tag("endfor")
    if k < 0.72:
        return tag(f"set {r.choice(['v', 'l', 'w'])} = {expression(r, 2)}") + body()
    if k < 0.78:
        return tag("set v") + body() + tag("endset") + "{{ v }}"
    if k < 0.86:
        return tag("macro m(a, b='q')") + "{{ a }}|{{ b }}" + body() + tag("endmacro") + "{{ m(" + expression(r, 1) + r.choice(["", ", 1", ", b=2"]) + ") }}"
    if k < 0.91:
        return tag("with v = " + expression(r, 1)) + body() + "{{ v }}" + tag("endwith")
    if k < 0.95:
        return tag("filter " + r.choice(["upper", "trim", "replace('a', 'b')"])) + body() + tag("endfilter")
    return "{#" + sign() + " c " + end() + "#}" + text() + "{{ ns.x }}" + tag("set ns = namespace(x=1)") + tag("set ns.x = " + expression(r, 1)) + "{{ ns.x }}"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--runner", required=True)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--n", type=int, default=5000)
    p.add_argument("--out")
    args = p.parse_args()
    r = random.Random(args.seed)
    path = args.out or tempfile.mkstemp(suffix=".jsonl")[1]
    errors = 0
    with open(path, "w", encoding="utf-8") as f:
        f.write(json.dumps({"define": "all", "vars": VARIABLES}) + "\n")
        for i in range(args.n):
            text = "".join(statement(r, 2) for _ in range(r.randint(1, 2))) if i % 2 else "{{ " + expression(r, 3) + " }}"
            got, error = render(text, copy.deepcopy(VARIABLES))
            if got is not None and (" object at 0x" in got or "<built-in" in got or "<generator" in got or "<bound" in got):
                continue  # an address
            errors += error is not None
            f.write(json.dumps({"name": text, "template": text, "given": "all", "date": DATE, "or": "unsupported", **({"error": error} if error else {"want": got})}) + "\n")
    compile_template.cache_clear()
    print(f"{path}: {errors} of {args.n} are errors", file=sys.stderr)
    sys.exit(subprocess.run([args.runner, path]).returncode)


if __name__ == "__main__":
    main()
