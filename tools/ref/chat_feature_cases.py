#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chat_feature_cases.py: small templates, each of one construct of the language. make_chat_goldens.py asks jinja2 what they come to."""

VARIABLES = {
    "t": "Grüße, 世界! \t\n", "e": "", "w": "  a b  c ", "n": None, "yes": True, "no": False, "i": 7, "m": -7, "f": 2.5, "big": 9007199254740993,
    "l": [3, 1, 2], "ls": ["b", "A", "c", "a"], "nested": [[1, [2, 3]], {"k": [None, True, 1.0, "x'y"]}], "mixed": [1, "a", None, 2.0, True, [1], {"a": 1}],
    "d": {"b": 1, "a": {"x": [10, 20]}, "items": "own", "c": None}, "users": [{"name": "Bo", "age": 30, "on": True}, {"name": "al", "age": 25, "on": False},
    {"name": "Cy", "age": 25}], "html": "<a href=\"x\">'&'</a>", "lines": "one\ntwo\n\nthree\n", "quote": "it's", "quotes": "it's \"x\"", "uni": "ΑΣ ΑΣΑ ǆ ß ﬁ İ ŉ",
    "ctl": "a\u0000b\u007f\u00a0\u200b\ud7ff\ue000\U0001f600\U000e0001", "num": "42", "real": " 3.5e2 ", "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}],
}

FEATURES = """
{{ t }}|{{ e }}|{{ n }}|{{ yes }}|{{ no }}|{{ i }}|{{ f }}|{{ big }}|{{ undefined_name }}|
{{ l }} {{ ls }} {{ nested }} {{ mixed }} {{ d }}
{{ (1,) }} {{ () }} {{ (1, 2) }} {{ [] }} {{ {} }} {{ {1: 'a', none: 2, (1, 2): 3} }}
{{ quote }} {{ [quote] }} {{ [quotes] }} {{ ['a\\nb\\t\\\\'] }} {{ [ctl] }}
{{ 1.0 }} {{ 0.1 }} {{ 1e16 }} {{ 1e15 }} {{ 123456789012345678.0 }} {{ 1e-4 }} {{ 1e-5 }} {{ 2.5e-10 }} {{ 1e22 }} {{ 1.5e300 }} {{ -0.0 }} {{ 5e-324 }} {{ 1.7976931348623157e308 }}
{{ 0x1F }} {{ 0b101 }} {{ 0o17 }} {{ 1_000 }} {{ 1_0.5_0 }} {{ 00 }} {{ 1e3 }} {{ 1E+2 }}
{{ 'a' 'b' "c" }} {{ 'x\\x41\\u00e9\\U0001F600\\101\\q' }} {{ "tab\\there" }}
{{ 1 + 2 * 3 }} {{ (1 + 2) * 3 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7 / 2 }} {{ 6 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 2 ** 3 ** 2 }} {{ -2 ** 2 }} {{ 2.5 // 1 }} {{ -2.5 % 2 }} {{ 7.5 % -2 }} {{ 1 - 2 - 3 }}
{{ +i }} {{ -i }} {{ - -i }} {{ -f }} {{ +yes }} {{ -yes }} {{ yes + yes }} {{ yes * 3 }}
{{ 'ab' * 3 }} {{ 2 * 'x' }} {{ [1] * 2 }} {{ [1] + [2] }} {{ (1,) + (2,) }} {{ 'a' + 'b' }} {{ 'x' * -1 }}
{{ 'a' ~ 1 ~ none ~ true ~ 1.0 ~ [1] ~ nothing }} {{ 1 ~ 2 + 3 }} {{ 1 + 2 ~ 3 }}
{{ 1 < 2 }} {{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 == true }} {{ 'a' < 'b' }} {{ 'a' == 1 }} {{ [1, 2] < [1, 3] }} {{ none == none }} {{ 2 >= 2 }} {{ 2 != 3 }} {{ 'Z' < 'a' < 'é' < '世' < '😀' }} {{ big == 9007199254740992.0 }} {{ 1 < 1.5 }}
{{ 1 in l }} {{ 9 not in l }} {{ 'b' in 'abc' }} {{ '' in 'abc' }} {{ 'a' in d }} {{ 1.0 in l }} {{ 'x' in nothing }} {{ none in [none] }} {{ 3 in range(5) }} {{ not 1 in l }} {{ 'a' in d.keys() }} {{ ('b', 1) in d.items() }}
{{ 1 and 2 }} {{ 0 or 'x' }} {{ '' or none }} {{ not e }} {{ not not i }} {{ 1 and 0 or 3 }} {{ n and n.x.y }} {{ nothing or 'dflt' }} {{ false or false }}
{{ 'a' if yes else 'b' }} {{ 'a' if no else 'b' }} {{ 'a' if no }} {{ 1 if no else 2 if no else 3 }} {{ ('x' if yes) is defined }} {{ ('x' if no) is defined }}
{{ t[0] }} {{ t[-3] }} {{ t[7] }} {{ l[0] }} {{ l[-1] }} {{ l[9] }} {{ d['b'] }} {{ d.b }} {{ d.a.x[1] }} {{ d['nope'] }} {{ d.nope }} {{ l.0 }} {{ l[true] }} {{ l['x'] }} {{ l[1.0] }} {{ n.x }} {{ n[0] }} {{ i.x }} {{ range(5)[2] }}
{{ d['items'] }} {{ d.items() | list }} {{ d.get('b') }} {{ d.get('zz', 'D') }} {{ d.get('zz') }} {{ d.keys() | list }} {{ d.values() | list }} {{ d.items is callable }} {{ d.keys() }} {{ d.values() }} {{ d.items() }}
{{ t[1:4] }}|{{ t[:2] }}|{{ t[-4:] }}|{{ t[::2] }}|{{ t[::-1] }}|{{ l[1:] }}|{{ l[::-1] }}|{{ l[-2:] }}|{{ l[5:] }}|{{ t[8:9] }}|{{ l[:-1] }}|{{ l[2:0:-1] }}|{{ t[100:] }}|{{ (1,2,3)[1:] }}|{{ l[none:none] }}
{{ ls[0:1][0] }} {{ 'abcdef'[4:1:-2] }} {{ 'abc'[-100:100] }} {{ 'abc'[::-100] }} {{ 'abc'[::9223372036854775807] }}
{{ w.strip() }}|{{ w.lstrip() }}|{{ w.rstrip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'abcba'.lstrip('ab') }}|{{ 'abcba'.rstrip('ab') }}|{{ 'éaé'.strip('é') }}|{{ t.strip() }}|{{ '\\u3000 x\\u2028'.strip() }}|{{ 'a'.strip('') }}
{{ 'a,b,,c'.split(',') }} {{ w.split() }} {{ 'a b c d'.split(none, 2) }} {{ 'a,b,c'.split(',', 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ 'a b c '.rsplit(none, 1) }} {{ ''.split() }} {{ ''.split(',') }} {{ 'a<x>b<x>'.split('<x>') }} {{ 'a,b'.split(sep=',', maxsplit=0) }} {{ '  a b '.split(maxsplit=1) }}
{{ lines.splitlines() }} {{ 'a\\r\\nb\\rc\\x0bd'.splitlines() }} {{ lines.splitlines(true) }} {{ 'a=b=c'.partition('=') }} {{ 'a=b=c'.rpartition('=') }} {{ 'abc'.partition('x') }} {{ 'abc'.rpartition('x') }}
{{ 'abc'.startswith('a') }} {{ 'abc'.startswith(('x', 'ab')) }} {{ 'abc'.endswith('c') }} {{ 'abc'.endswith(('x', 'y')) }} {{ 'abc'.startswith('b', 1) }} {{ 'abc'.startswith('') }} {{ 'abc'.endswith('b', 0, 2) }} {{ 'abc'.startswith(()) }}
{{ 'aXbX'.replace('X', '-') }} {{ 'aXbX'.replace('X', '-', 1) }} {{ 'abc'.replace('', '.') }} {{ 'abc'.replace('', '.', 2) }} {{ 'aaa'.replace('aa', 'b') }} {{ 'é'.replace('', 'x') }}
{{ 'hello wORLD'.upper() }} {{ 'HeLLo'.lower() }} {{ 'hello wORLD it\\'s'.title() }} {{ 'hELLO'.capitalize() }} {{ 'aB'.swapcase() }} {{ uni.upper() }} {{ uni.lower() }} {{ uni.title() }} {{ uni.capitalize() }} {{ uni.swapcase() }} {{ 'ǆabc'.capitalize() }}
{{ 'abcabc'.find('c') }} {{ 'abc'.find('z') }} {{ 'abcabc'.rfind('c') }} {{ 'äöü'.find('ü') }} {{ 'abcabc'.index('b') }} {{ 'abcabc'.count('bc') }} {{ 'aaaa'.count('aa') }} {{ 'abc'.count('') }} {{ 'abcabc'.find('a', 1) }} {{ 'abcabc'.find('c', 0, 2) }} {{ 'abc'.find('', 3) }} {{ 'abc'.find('', 4) }}
{{ 'a1'.isalnum() }} {{ 'ab'.isalpha() }} {{ '12'.isdigit() }} {{ '²'.isdigit() }} {{ '²'.isdecimal() }} {{ 'Ⅷ'.isnumeric() }} {{ ' '.isspace() }} {{ 'AB'.isupper() }} {{ 'ab'.islower() }} {{ ''.isalpha() }} {{ 'aB'.islower() }} {{ '1'.isupper() }} {{ 'abc'.isascii() }} {{ 'é'.isascii() }} {{ '一'.isalpha() }}
{{ ','.join(ls) }} {{ 'x'.join('abc') }} {{ ''.join([]) }} {{ 'ab'.center(5) }}| {{ 'abc'.center(6, '*') }} {{ 'ab'.ljust(4, '.') }} {{ 'ab'.rjust(4) }} {{ '-5'.zfill(4) }} {{ 'abc'.removeprefix('a') }} {{ 'abc'.removesuffix('c') }} {{ 'abc'.removeprefix('z') }}
{{ '{} {}'.format(1, 'a') }} {{ '{1} {0}'.format('a', 'b') }} {{ '{x}'.format(x=2) }} {{ '{0.name} {0[name]}'.format(users[0]) if false else 'skip' }} {{ '{:>5}|{:<5}|{:^5}'.format('a', 'b', 'c') }} {{ '{:.2f}'.format(3.14159) }} {{ '{:05d}'.format(42) }} {{ '{:,}'.format(1234567) }} {{ '{!r}'.format('a') }} {{ '{{}}'.format() }} {{ '{:x}'.format(255) }} {{ '{:.1%}'.format(0.256) }} {{ '{:+d}'.format(5) }} {{ '{:*^9}'.format('mid') }} {{ '{:.3}'.format('abcdef') }}
{{ '%s and %s' % ('a', 1) }} {{ '%d%%' % 5 }} {{ '%05.1f' % 3.14159 }} {{ '%r' % 'x' }} {{ '%s' % [1] }} {{ '%(a)s' % {'a': 1} }} {{ '%x %X %o' % (255, 255, 8) }} {{ '%-5s|%5s|' % ('a', 'b') }} {{ '%+d' % 3 }} {{ '%.2s' % 'abc' }} {{ '%e' % 12345.678 }} {{ '%g' % 0.0001 }} {{ '%i' % 3.9 }} {{ '%5d' % -3 }} {{ '%05d' % -3 }}
{{ l | length }} {{ t | length }} {{ d | count }} {{ nothing | length }} {{ e | length }} {{ range(3) | length }} {{ d.items() | length }}
{{ w | trim }}| {{ 'xax' | trim('x') }} {{ t | trim | length }} {{ n | trim }} {{ 5 | trim }} {{ nothing | trim }}|
{{ t | upper }} {{ 'ABC' | lower }} {{ 'hello world-wide (x) it\\'s' | title }} {{ 'hELLO wORLD' | capitalize }} {{ n | upper }} {{ 'a_b' | title }}
{{ 'aXb' | replace('X', '-') }} {{ 'aaa' | replace('a', 'b', 2) }} {{ 123 | replace(2, 'x') }} {{ 'abc' | replace(old='b', new='B') }}
{{ l | first }} {{ l | last }} {{ 'abc' | first }} {{ 'äbc' | last }} {{ [] | first }} {{ d | first }} {{ d | last }} {{ [] | last is defined }}
{{ l | join }} {{ l | join(', ') }} {{ ls | join('-') }} {{ mixed | join('|') }} {{ users | join(', ', attribute='name') }} {{ 'abc' | join('.') }} {{ [] | join(',') }} {{ d | join(',') }}
{{ nothing | default('x') }} {{ e | default('x') }}| {{ e | default('x', true) }} {{ n | default('x') }} {{ n | default('x', boolean=true) }} {{ nothing | d }}| {{ 0 | d(5, true) }} {{ d.nope | default([]) }} {{ nothing | default }}
{{ '42' | int }} {{ ' 42 ' | int }} {{ 'x' | int }} {{ 'x' | int(5) }} {{ '3.9' | int }} {{ 3.9 | int }} {{ -3.9 | int }} {{ 'ff' | int(base=16) }} {{ '0x1f' | int(0, 16) }} {{ true | int }} {{ n | int }} {{ '1_000' | int }} {{ '-7' | int }} {{ '+7' | int }} {{ '1e3' | int }} {{ [] | int(3) }} {{ 'inf' | int }} {{ 'nan' | int }} {{ '' | int }}
{{ '3.5' | float }} {{ real | float }} {{ 'x' | float }} {{ 'x' | float(1.5) }} {{ 3 | float }} {{ true | float }} {{ '1e5' | float }} {{ 'inf' | float }} {{ '-inf' | float }} {{ 'nan' | float }} {{ '.5' | float }} {{ '5.' | float }} {{ '1_0' | float }} {{ '007' | float }} {{ n | float }} {{ '' | float }} {{ 'e5' | float }}
{{ 2.5 | round }} {{ 3.5 | round }} {{ 2.675 | round(2) }} {{ 42.55 | round(1, 'floor') }} {{ 42.55 | round(1, 'ceil') }} {{ 42.5 | round(method='ceil') }} {{ 5 | round }} {{ -2.5 | round }} {{ 1.005 | round(2) }} {{ true | round }} {{ 7 | round(1, 'floor') }} {{ 1e300 | round(2) }}
{{ -5 | abs }} {{ -5.5 | abs }} {{ m | abs }} {{ true | abs }} {{ l | sum }} {{ users | sum(attribute='age') }} {{ [1.5, 2] | sum(start=10) }} {{ [] | sum }} {{ [[1], [2]] | sum(start=[]) }}
{{ l | sort }} {{ l | sort(reverse=true) }} {{ ls | sort }} {{ ls | sort(case_sensitive=true) }} {{ users | sort(attribute='age') | map(attribute='name') | list }} {{ users | sort(attribute='age,name') | map(attribute='name') | list }} {{ users | sort(attribute='age', reverse=true) | map(attribute='name') | list }} {{ 'bca' | sort }} {{ d | sort }} {{ [2, 1.5, true] | sort }}
{{ ls | min }} {{ ls | max }} {{ l | min }} {{ users | max(attribute='age') }} {{ [] | max is defined }} {{ ['b', 'B'] | min }} {{ ['b', 'B'] | max(case_sensitive=true) }}
{{ [1, 2, 1, 1.0, true] | unique | list }} {{ ['a', 'A', 'b'] | unique | list }} {{ ['a', 'A'] | unique(true) | list }} {{ users | unique(attribute='age') | map(attribute='name') | list }}
{{ d | dictsort }} {{ {'b': 1, 'A': 2} | dictsort }} {{ {'b': 1, 'A': 2} | dictsort(true) }} {{ {'b': 1, 'A': 2} | dictsort(by='value') }} {{ {'b': 1, 'A': 2} | dictsort(reverse=true) }}
{{ l | reverse | list }} {{ 'abc' | reverse }} {{ (1, 2) | reverse | list }} {{ d | reverse | list }} {{ range(3) | reverse | list }} {{ (l | map('string')) | reverse }} {{ d.items() | reverse | list }}
{{ 'abc' | list }} {{ d | list }} {{ (1, 2) | list }} {{ range(3) | list }} {{ nothing | list }} {{ d | items | list }} {{ nothing | items | list }}
{{ l | map('string') | list }} {{ ls | map('upper') | join }} {{ users | map(attribute='name') | join(',') }} {{ users | map(attribute='on', default='?') | list }} {{ ['a,b'] | map('split', ',') | list if false else '' }} {{ [1.26, 2.51] | map('round', 1) | list }} {{ ['x'] | map('default', 'y') | list }} {{ nested | map('first') | list }} {{ [] | map('upper') | list }} {{ [[1, 2], [3]] | map(attribute=0) | list }} {{ [{'a': {'b': 5}}] | map(attribute='a.b') | list }} {{ none | map('upper') | list }}
{{ mixed | select | list }} {{ mixed | reject | list }} {{ l | select('odd') | list }} {{ l | reject('odd') | list }} {{ l | select('gt', 1) | list }} {{ users | selectattr('on') | map(attribute='name') | list }} {{ users | rejectattr('on') | map(attribute='name') | list }} {{ users | selectattr('age', 'equalto', 25) | map(attribute='name') | list }} {{ users | selectattr('on', 'defined') | list | length }} {{ messages | rejectattr('role', 'equalto', 'user') | list }} {{ l | select('in', [1, 3]) | list }} {{ none | select | list }} {{ ls | select('==', 'a') | list }}
{{ l | batch(2) | list }} {{ l | batch(2, 0) | list }} {{ l | slice(2) | list }} {{ l | slice(2, 'x') | list }} {{ [] | batch(3) | list }}
{{ html | escape }} {{ html | e }} {{ html | safe }} {{ html | forceescape }} {{ (html | e) | e }} {{ 5 | escape }} {{ (html | safe) ~ '<' }} {{ ('a' | e) + 'b' }} {{ html | e | length }} {{ 'x' | safe | trim }} {{ 'x' is escaped }} {{ ('x' | e) is escaped }}
{{ lines | indent }}|{{ lines | indent(2, true) }}|{{ lines | indent(2, blank=true) }}|{{ lines | indent('> ') }}|{{ 'one' | indent }}|{{ '' | indent(first=true) }}|{{ 'a\\nb' | indent(width=1) }}
{{ 'a b  c' | wordcount }} {{ 'abc' | center(7) }}| {{ 'foo bar baz qux' | truncate(9) }} {{ 'foo bar baz qux' | truncate(9, true) }} {{ 'foo bar baz' | truncate(11) }} {{ 'foo bar baz qux' | truncate(9, true, '!', 0) }}
{{ '%s-%s' | format(1, 'b') }} {{ '%(x)s' | format(x=3) }} {{ 5 | string + '1' }} {{ true | string }} {{ l | string }} {{ users[0] | attr('keys') is callable }} {{ users[0] | attr('name') is defined }}
{{ d | tojson }} {{ nested | tojson }} {{ t | tojson }} {{ ctl | tojson }} {{ html | tojson }} {{ 1.0 | tojson }} {{ 1e16 | tojson }} {{ n | tojson }} {{ yes | tojson }} {{ (1, 2) | tojson }} {{ {1: 2, none: 3, true: 4, 1.5: 5} | tojson }} {{ [] | tojson }} {{ {} | tojson }} {{ 'inf' | float | tojson }} {{ 'nan' | float | tojson }}
{{ d | tojson(indent=2) }} {{ nested | tojson(indent=4) }} {{ [] | tojson(indent=2) }} {{ [[], {}] | tojson(indent=1) }} {{ d | tojson(separators=(',', ':')) }} {{ d | tojson(sort_keys=true) }} {{ t | tojson(ensure_ascii=true) }} {{ '😀\\x7f' | tojson(true) }} {{ l | tojson(indent=0) }} {{ l | tojson(indent='\\t') }} {{ d | tojson(indent=2, separators=(', ', '=')) }}
{{ i is odd }} {{ i is even }} {{ i is divisibleby 7 }} {{ i is divisibleby(2) }} {{ nothing is defined }} {{ i is defined }} {{ nothing is undefined }} {{ n is none }} {{ i is none }} {{ t is string }} {{ i is string }} {{ i is number }} {{ f is number }} {{ yes is number }} {{ i is integer }} {{ yes is integer }} {{ f is float }} {{ i is float }} {{ yes is boolean }} {{ i is boolean }} {{ yes is true }} {{ 1 is true }} {{ no is false }}
{{ d is mapping }} {{ l is mapping }} {{ l is sequence }} {{ t is sequence }} {{ d is sequence }} {{ i is sequence }} {{ n is sequence }} {{ nothing is sequence }} {{ l is iterable }} {{ t is iterable }} {{ i is iterable }} {{ nothing is iterable }} {{ d.items() is iterable }} {{ d.items() is sequence }} {{ range is callable }} {{ l is callable }} {{ 'abc' is lower }} {{ 'ABC' is upper }} {{ 'aB' is lower }}
{{ i is eq 7 }} {{ i is equalto 7 }} {{ i is ne(8) }} {{ i is gt 3 }} {{ i is ge 7 }} {{ i is lt 3 }} {{ i is le 7 }} {{ i is greaterthan 3 }} {{ i is lessthan 3 }} {{ 1 is in [1, 2] }} {{ 3 is not in [1, 2] }} {{ i is not none }} {{ 'upper' is filter }} {{ 'zzz' is filter }} {{ 'odd' is test }} {{ n is sameas none }} {{ 1 is sameas true }} {{ i is not odd and yes }} {{ i is odd or nope.x }} {{ (i if yes) is eq(7) }}
{% if yes %}a{% elif i %}b{% else %}c{% endif %}{% if no %}a{% elif i %}b{% else %}c{% endif %}{% if no %}a{% elif e %}b{% else %}c{% endif %}{% if nothing %}x{% endif %}{% if l and not e %}y{% endif %}{% if no %}{% else %}{% if i %}deep{% endif %}{% endif %}
{% for x in l %}{{ loop.index }}/{{ loop.index0 }}/{{ loop.revindex }}/{{ loop.revindex0 }}/{{ loop.first }}/{{ loop.last }}/{{ loop.length }}/{{ x }}/{{ loop.previtem }}/{{ loop.nextitem }}/{{ loop.depth }}/{{ loop.cycle('a', 'b') }}/{{ loop.changed(x > 1) }};{% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k in d %}{{ k }},{% endfor %}{% for c in 'äb' %}{{ c }}.{% endfor %}{% for x in nothing %}x{% else %}none{% endfor %}{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}{% for x in range(2, 8, 3) %}{{ x }}{% endfor %}{% for x in range(3, 0, -1) %}{{ x }}{% endfor %}
{% for x in l if x > 1 %}{{ loop.index }}:{{ x }}:{{ loop.last }}:{{ loop.length }} {% else %}empty{% endfor %}{% for x in l if x > 9 %}{{ x }}{% else %}empty{% endfor %}{% for x in [1,2,3,4] if x is odd %}{{ x }}{{ loop.nextitem }}{{ loop.previtem }}{{ loop.revindex }} {% endfor %}
{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% else %}E{% endfor %}{% for x in l %}{% break %}{% else %}E{% endfor %}{% for x in l %}{% continue %}{% else %}E{% endfor %}{% for x in [1] %}{{ x }}{% else %}E{% endfor %}
{% for x in l %}{% for y in ls %}{{ loop.index }}{{ y }}{% if loop.index == 2 %}{% break %}{% endif %}{% endfor %}{{ loop.index }};{% endfor %}{{ loop }}
{% for n in [{'v': 1, 'k': [{'v': 2, 'k': [{'v': 3}]}]}, {'v': 4}] recursive %}{{ loop.depth }}{{ n.v }}{% if n.k %}({{ loop(n.k) }}){% endif %}{% endfor %}
{% set x = 1 %}{% for y in l %}{{ x }}{% set x = x + 1 %}{{ x }};{% endfor %}{{ x }}{% if yes %}{% set x = 9 %}{% endif %}{{ x }}
{% set ns = namespace(a=1, b='x') %}{% for y in l %}{% set ns.a = ns.a + y %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns.c }}{% set ns.c = [1] %}{{ ns.c }}{{ ns }}{{ namespace({'q': 1}).q }}{{ ns is mapping }}{{ ns['a'] }}
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (p, q) = 'xy' %}{{ p }}{{ q }}{% set c = 1, 2 %}{{ c }}{% set ns = namespace() %}{% set ns.x, z = 5, 6 %}{{ ns.x }}{{ z }}
{% set x %}a{{ i }}b{% endset %}{{ x }}{% set y | upper | trim %} abc {{ x }}{% set inner = 1 %} {% endset %}[{{ y }}]{{ inner }}
{% macro m(a, b=2, c='x') %}{{ a }}{{ b }}{{ c }};{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(1, c='z') }}{{ m(a=5) }}{{ m() }}{{ m(b=1, a=0) }}{{ m.name }}
{% macro v(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ v(1, 2, 3, x=4) }}{{ v() }}{% macro d2(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ d2(1) }}{{ d2(1, 2) }}{{ m is callable }}
{% macro f(n) %}{{ n }}{% if n > 0 %},{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}{% set g = 1 %}{% macro h() %}{{ g }}{% set g = 7 %}{{ g }}{% endmacro %}{{ h() }}{{ g }}{% set g = 2 %}{{ h() }}{{ h() | length }}
{% macro box(t) %}[{{ t }}:{{ caller() }}]{% endmacro %}{% call box('x') %}in{{ i }}{% endcall %}{% macro each(l) %}{% for x in l %}{{ caller(x) }}{% endfor %}{% endmacro %}{% call(x) each(l) %}<{{ x }}>{% endcall %}{% macro opt() %}{{ caller is defined }}{% endmacro %}{{ opt() }}
{% with a = 1, b = i %}{{ a }}{{ b }}{% set a = 5 %}{{ a }}{% endwith %}{{ a }}{% with %}x{% endwith %}{% with a = 2 %}{% with b = a %}{{ b }}{% endwith %}{% endwith %}
{% filter upper %}abc {{ t }}{% endfilter %}{% filter replace('a', 'b') | upper %}aaa{% endfilter %}
{% generation %}gen {{ i }}{% set zz = 1 %}{% endgeneration %}{{ zz }}{% print 1, 'a' %}
{% raw %}{{ not }} {% this %} {# nor #}{% endraw %}|{%- raw -%}  x  {%- endraw -%}  y
a {# comment #} b {#- c -#} d{# multi\nline #}\nnext {#+ x +#}\nz
{%- if yes -%}  x  {%- endif -%}  y {{- i -}} z  {{ i }} \n  {%- set q = 1 %}  \n  w
line1\n  {% if yes %}\n    in\n  {% endif %}\nline2\n\n{% set a = 1 %}\n\nend\n
  {%+ if yes %}keep{% endif +%}\n next {{ i }}\n{{ i }}\n
{% if yes %}\n  {# c #}\n  x\n{%- endif %}\ny\r\nz\rw\n\n
{{ namespace(x=1).x }}{{ dict(a=1, b=2) }}{{ dict([('x', 1)]) }}{{ dict({'q': 2}, r=3) }}{{ range(3) }}{{ range(1, 9, 2) }}{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{% set j = joiner('+') %}{{ j() }}{{ j() }}{{ j() }}
{{ strftime_now('%Y-%m-%d %H:%M:%S %d %b %Y %B %A %a %j %y %I %p %% %e') }}
{{ foo(*l) if false else 'x' }}{% macro s(a, b, c) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ s(*l) }}{{ s(1, *[2, 3]) }}{{ s(**{'a': 1, 'b': 2}) }}
{{ [1, 2, 3,] }}{{ {'a': 1,} }}{{ 'a' if 'x' in d else 'b' }}{{ not yes }}{{ {'a': {'b': [1, {'c': 2}]}}['a'].b[1].c }}{{ -l[0] }}{{ l[0] | string ~ 'x' }}{{ -5 | string }}{{ i ** 2 | string if false else 1 }}
{{ 'a' in ['a'] and 'b' or 'c' }}{{ 1 if 1 in l else 2 }}{{ l[1:2] == [1] }}{{ 'é' == 'é' }}{{ [] == () }}{{ {'a': 1, 'b': 2} == {'b': 2, 'a': 1} }}{{ nothing == nope }}{{ nothing == none }}{{ range(3) == range(0, 3) }}{{ true == 1 }}
{{ messages[0]['content'] + '</s>' }}{{ messages[-1].role }}{{ messages[0].content.split('h')[-1] }}{{ messages[1:] }}{{ messages | selectattr('role', 'eq', 'user') | map(attribute='content') | first }}{{ (messages | last).content }}
{{ loop }}{{ loop is defined }}{{ self is defined }}{{ caller is defined }}
{{ '' if nothing is not defined else 'z' }}{{ nothing ~ 'x' }}{{ [nothing] }}{{ nothing | string }}{{ nothing | upper }}{{ not nothing }}{{ nothing is none }}{{ [nothing, 1] | tojson if false else '' }}{{ nothing == '' }}{{ nothing is mapping }}{{ nothing is string }}
{{ l.index(2) }}{{ l.count(1) }}{{ (1, 2).index(2) }}{{ [1, 1].count(true) }}{{ l.copy() }}{{ d.copy() == d }}{{ 'x'.join(d) }}{{ l is sameas(none) }}
{{ t is sequence and t is not mapping and t is iterable }}{{ users[0].on is true }}{{ users[2].on is true }}{{ users[2].on is defined }}
{% set x = {'a': 1} %}{% for k, v in x | items %}{{ k }}{{ v }}{% endfor %}{% for k, v in d | dictsort %}{{ k }}{% endfor %}{% for x in [3, 1] | sort %}{{ x }}{% endfor %}{{ x }}
{% set ns = namespace(stop=false) %}{% for x in [1, 2, 3, 4] if not ns.stop %}{{ x }}{% if x == 2 %}{% set ns.stop = true %}{% endif %}{% endfor %}{% set g = l | map('string') %}{{ g | join(',') }}{{ g | join(',') }}{% set g = [1, 2, 3] | select('odd') %}{{ g | first }}{{ g | list }}
{{ i is defined and i is not none and i > 3 }}{{ (d.b if d.b is defined else 0) + 1 }}{{ d.get('a', {}).get('x', []) | length }}{{ users | map(attribute='age') | sum / users | length }}
{{ nothing.x }}
{{ nothing['x'] }}
{{ nothing() }}
{{ d.nope.deeper }}
{{ n.x.y }}
{{ nothing + 1 }}
{{ 1 + 'a' }}
{{ 'a' + 1 }}
{{ 'a' + none }}
{{ 1 / 0 }}
{{ 1 // 0 }}
{{ 1.0 % 0 }}
{{ 0 ** -1 }}
{{ 1 < 'a' }}
{{ none < 1 }}
{{ nothing < 1 }}
{{ 1 in 'abc' }}
{{ 1 in 5 }}
{{ [1] in d }}
{{ {[1]: 2} }}
{{ l() }}
{{ i() }}
{{ 'a'.nope() }}
{{ l.append(1) }}
{{ d.update({}) }}
{{ d.pop('a') }}
{{ l.sort() }}
{{ l.append is defined }}
{{ none | length }}
{{ 5 | length }}
{{ 5 | first }}
{{ 5 | join }}
{{ none | list }}
{{ [1, 'a'] | sort }}
{{ [{'a': 1}, {'b': 1}] | sort(attribute='a') }}
{{ d | dictsort(by='zzz') }}
{{ [nothing] | tojson }}
{{ range | tojson }}
{{ 'x' | round }}
{{ nothing | int }}
{{ 'a' | abs }}
{{ ['a'] | sum }}
{{ 5 | replace }}
{{ 5 | trim(1, 2) }}
{{ 'a' | default(1, 2, 3) }}
{{ 'a' | upper(1) }}
{{ 5 is divisibleby }}
{{ 5 is divisibleby 0 }}
{{ 'a' is odd }}
{{ n[1:] }}
{{ d[1:] }}
{{ nothing[1:] }}
{{ l['a':] }}
{{ l[::0] }}
{{ raise_exception('stop: ' ~ t) }}
{{ raise_exception() }}
{% for x in 5 %}{% endfor %}
{% for x in none %}{% endfor %}
{% for a, b in [1] %}{% endfor %}
{% for a, b in [(1, 2, 3)] %}{% endfor %}
{% set a, b = 1 %}
{% set a, b = [1] %}
{% set d.x = 1 %}
{% set nope.x = 1 %}
{% set ns = namespace() %}{% set ns._x = 1 %}
{{ namespace(_a=1) }}
{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{% endmacro %}{{ m(b=1) }}
{% macro m(a) %}{% endmacro %}{{ m(1, a=1) }}
{% macro m() %}{% endmacro %}{% call m() %}x{% endcall %}
{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}
{% for x in [1] %}{{ loop([2]) }}{% endfor %}
{{ range(100001) }}
{{ range(1, 5, 0) }}
{{ range('a') }}
{{ '%s %s' % (1,) }}
{{ '%s' % (1, 2) }}
{{ '%d' % 'a' }}
{{ '%(a)s' % {'b': 1} }}
{{ '%' % 1 }}
{{ '{}'.format() }}
{{ '{x}'.format(y=1) }}
{{ '{'.format() }}
{{ '{} {0}'.format(1) }}
{{ 'a'.split('') }}
{{ 'a'.join([1]) }}
{{ 'abc'.index('z') }}
{{ l.index(99) }}
{{ 'a'.strip(1) }}
{{ 'a'.replace('a') }}
{{ 'a'.startswith(1) }}
{{ l | map | list }}
{{ l | map('nofilter') | list }}
{{ l | select('notest') | list }}
{{ users | selectattr | list }}
{{ l | batch | list }}
{{ 'hZ3x,a}b' | sort(reverse=true) }}{{ 'a' < 'c' }}{{ 'c' > 'a' }}{{ 'ac' >= 'aa' }}{{ ['c', 'a'] | max }}{{ 'ab' | sort(attribute='x') }}{{ [nothing, nothing] | sort }}
{{ 'a' % [1] }}{{ 'a' % d }}{{ 'a' % range(3) }}{{ 'a' % nothing }}{{ '%s' % d.b }}{{ [1, 2] | truncate(5) }}{{ d.keys() | truncate }}
{{ 'a' % 'b' }}
{{ [1] in d.keys() }}
{{ 'a' in d.keys() }}{{ ('b', 1) in d.items() }}{{ 1 in d.values() }}{{ none in d.keys() }}
{{ 'a' % 1 }}
{{ [1, 2, 3] | truncate(3, leeway=-1) }}
{{ -'a' }}
{{ [] < 1 }}
{{ strftime_now() }}
{{ dict(1) }}
{{ cycler() }}
{{ 'a' | indent('x', 1, 2, 3) }}
{{ 5 | indent }}
{{ (html | e) is upper }}
{{ x|nofilter }}
{{ x is notest }}
{{ x | nofilter if no else 'fine' }}
{% if no %}{{ x | nofilter }}{% endif %}fine
{% if no %}{% for x in l %}{{ x | nofilter }}{% endfor %}{% endif %}
{{ 'a' if yes else x | nofilter }}
{{ [x | nofilter if no else 1, 2] }}
{% if yes %}{{ x | nofilter }}{% endif %}
{{
{% if yes %}
{% endif %}
{% for x in l %}
{% for in l %}{% endfor %}
{% set %}
{% set 1 = 2 %}
{% set x = %}
{% nope %}
{% break %}
{% macro %}{% endmacro %}
{% macro m(a=1, b) %}{% endmacro %}
{% macro m(1) %}{% endmacro %}
{{ 1 + }}
{{ a b }}
{{ (1 }}
{{ [1 }}
{{ {1} }}
{{ {'a' 1} }}
{{ 'abc }}
{{ "abc\\" }}
{{ a..b }}
{{ a. }}
{{ f(a=1, 2) }}
{{ f(a=1, a=2) }}
{{ f(**a, *b) }}
{{ 1 is }}
{{ 1 | }}
{{ 1 is odd is even }}
{{ 5 }
{{ $x }}
{{ a ? b : c }}
{{ 012 }}
{{ 1abc }}
{# open
{% raw %} open
{% if yes %}x{% endfor %}
{% if yes %}x{% else %}y{% else %}z{% endif %}
{% set x %}open
{% else %}
{{ not }}
{{ 'a' not 'b' }}
{{ ) }}
{{ ] }}
{{ (] }}
{{ }}
{% %}
{{ a, b }}
{{ 1, }}
{% if a, b %}t{% endif %}
{% set loop = 1 %}{% for x in l %}{{ loop.index }}{% endfor %}
{% for loop in l %}{{ loop }}{% endfor %}
{{ yes.real if false else 1 }}{{ True }}{{ False }}{{ None }}{{ true }}{{ none }}
{{ 'multi\\\nline' }}{{ 'a
b' }}
{{ '\\N{DIGIT ONE}' if false }}
"""


def split(text):
    """A line is a case, its \\n and \\r are line ends; a case goes on while a string is open over a line end."""
    out, lines = [], text.strip("\n").split("\n")
    i = 0
    while i < len(lines):
        line = lines[i]
        if line.endswith("{{ 'a"):
            i += 1
            line += "\n" + lines[i]
        # \\n in a tag is the language's own escape; outside of tags it is a line end of the template
        out.append(outside(line))
        i += 1
    return out


def outside(line):
    out, depth, i = "", 0, 0
    while i < len(line):
        if line[i:i + 2] in ("{{", "{%"):
            depth = 1
        elif line[i:i + 2] in ("}}", "%}"):
            depth = 0
        if not depth and line[i] == "\\" and line[i + 1:i + 2] in ("n", "r"):
            out += "\n" if line[i + 1] == "n" else "\r"
            i += 2
            continue
        out += line[i]
        i += 1
    return out


FEATURES = [f for f in split(FEATURES) if "\\N{" not in f]

# What jinja2 can and lath cannot: (template, what the message has).
UNSUPPORTED = [
    ("a\n{% include 'x' %}", 'line 2: the tag "include"'), ("{% extends 'x' %}", '"extends"'), ("{% block x %}{% endblock %}", '"block"'),
    ("{% import 'x' as y %}", '"import"'), ("{% from 'x' import y %}", '"from"'), ("{% autoescape true %}{% endautoescape %}", '"autoescape"'),
    ("{{ x | xmlattr }}", 'the filter "xmlattr"'), ("{{ [1] | groupby('a') }}", '"groupby"'), ("{{ [1] | random }}", '"random"'),
    ("{{ x | pprint }}", '"pprint"'), ("{{ x | urlize }}", '"urlize"'), ("\n\n{{ 'a'.encode() }}", 'line 3: the method "encode"'),
    ("{{ 'a'.translate({}) }}", '"translate"'), ("{{ lipsum() }}", '"lipsum"'), ("{{ 2 ** 64 }}", "63 bits"), ("{{ 9223372036854775807 + 1 }}", "63 bits"),
    ("{{ 9223372036854775808 }}", "63 bits"), ("{{ [1] | map('string') }}", "generator"), ("{{ range }}", "function"),
    ("{{ '\\ud83d' }}", "surrogate"), ("{{ strftime_now('%Q') }}", "strftime"), ("{{ ('<' | e) + '<' }}", "escaped"), ("{{ (5).bit_length() }}", '"bit_length"'),
    ("{{ [1][1:2, 3] }}", "subscript"), ("{{ range(9)[1:3] }}", "range"), ("{{ range(9).count(1) }}", "count"),
    ("{{ {}.keys() - [] }}", "view"), ("{{ {}.keys() < {}.keys() }}", "view"),
]

LIMIT_VARIABLES = {"l": [3, 1, 2], "x": "x"}
# What would not end, or only after a long time.
LIMITS = [
    ("{% for a in range(100000) %}{% for b in range(100000) %}{% for c in range(100000) %}{% endfor %}{% endfor %}{% endfor %}", "work"),
    ("{% macro m() %}{{ m() }}{% endmacro %}\n{{ m() }}", "line 1"), ("{% macro m(x) %}{% if x %}{{ m(x) }}{{ m(x) }}{% endif %}{% endmacro %}{{ m(1) }}", "recursive"),
    ("{% for x in l recursive %}{{ loop(l) }}{% endfor %}", "recursive"),
    ("{% set ns = namespace(x='ab') %}{% for a in range(100) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}", "allowed"),
    ("{% set ns = namespace(x=[1]) %}{% for a in range(100) %}{% set ns.x = ns.x + ns.x %}{% endfor %}", "allowed"),
    ("{{ 'x' * 100000000000 }}", "GiB"), ("{{ 'x' * 2000000000 }}", "allowed"), ("{{ [1] * 1000000000 }}", "allowed"), ("{{ '%99999999999d' % 1 }}", "range"),
    ("{% set ns = namespace(x=[]) %}{% for a in range(1000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}", "deep"),
    ("{% set ns = namespace(x=[]) %}{% for a in range(1000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x == ns.x }}", "deep"),
    ("{% set ns = namespace(x=[]) %}{% for a in range(1000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x | tojson }}", "deep"),
    ("{{ " + "(" * 100 + "1" + ")" * 100 + " }}", "deep"), ("{{ " + "-" * 1000 + "1 }}", "deep"), ("{{ " + "not " * 1000 + "1 }}", "deep"),
    ("{{ 1" + " + 1" * 1000 + " }}", "long"), ("{{ x" + ".y" * 1000 + " }}", "long"), ("{{ x" + "|upper" * 1000 + " }}", "long"),
    ("{% if x %}" * 100 + "{% endif %}" * 100, "deep"), ("{{ [" * 1 + "[" * 99 + "]" * 100 + " }}", "deep"),
    ("{% for a in range(100000) %}{{ 'abcdefgh' * 1000 }}{% endfor %}", "allowed"), ("{% for a in range(3000) %}{{ range(100000) | sort | length }}{% endfor %}", "allowed"),
    ("{% for a in range(100000) %}{{ 99999 in range(100000) | list }}{% endfor %}", "allowed"), ("{{ '{:>99999999999}'.format('a') }}", "range"),
]
