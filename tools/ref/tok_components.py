# SPDX-License-Identifier: Apache-2.0
"""Pipelines for make_tok_pipelines.py: the normalizers, pre-tokenizers, models and decoders of SentencePiece-like files, one for each component and
option. A byte-wise Unigram model behind FixedLength(1) shows every character of normalized text with its origin."""
import base64
import struct

BYTES = [["<unk>", 0.0]] + [[f"<0x{b:02X}>", 0.0] for b in range(256)]
PIECES = ["<unk>", "▁", "a", "b", "▁a", "▁ab", "ab", "aab", "1", "12", "▁1", "é", "▁▁", "▁▁a", "-", "b▁", "Я", "中", "カ", "a▁b", "<s>", "</s>"]
SCORES = [0, -2.5, -3, -3.25, -2, -4, -5.5, -9.0625, -6, -7, -4.75, -3.125, -4, -5, -8, -1.5, -6.5, -6.75, -7.25, -3.0001, 0, 0]


def kind(name, **fields):
    return {"type": name, **fields}


def charsmap(entries):
    """The character map for a few replacements: a trie with a block of 256 units a node, the values behind them."""
    nodes, text, places = [{}], b"", {}
    ends = {}
    for key, to in entries.items():
        at = 0
        for b in key.encode():
            if b not in nodes[at]:
                nodes.append({})
                nodes[at][b] = len(nodes) - 1
            at = nodes[at][b]
        if to not in places:
            places[to] = len(text)
            text += to.encode() + b"\0"
        ends[at] = places[to]
    units = [0] * (256 * (len(nodes) + 1))
    where = {0: 0}
    units[0] = 256 << 10
    todo = [0]
    while todo:
        n = todo.pop()
        base = 256 * (n + 1)
        if n in ends:
            units[base] = 1 << 31 | ends[n]
        for b, child in nodes[n].items():
            at = base ^ b
            offset = at ^ 256 * (child + 1)
            assert offset < 1 << 21
            units[at] = b | (child in ends) << 8 | offset << 10
            where[child] = at
            todo.append(child)
    return base64.b64encode(struct.pack("<I", 4 * len(units)) + struct.pack(f"<{len(units)}I", *units) + text).decode()


MAP = charsmap({"\t": " ", "\r": " ", "\u200d": " ", "\x10": "", "ﬁ": "fi", "™": "TM", "a\u0301": "á", "u\u031b": "ư", "…": "...", "Ａ": "A",
                "\u1100": "ㄱ", "x\u0301\u0302": "X", "\u00a0": " ", "😀": "s"})
PRE = kind("Precompiled", precompiled_charsmap=MAP)
META = kind("Metaspace", replacement="▁", prepend_scheme="always", split=True)
FIRST, NEVER = dict(META, prepend_scheme="first"), dict(META, prepend_scheme="never")
ONE = kind("FixedLength", length=1)
RUN = kind("Replace", pattern={"Regex": " {2,}"}, content=" ")


def replace(what, to):
    return kind("Replace", pattern={"String": what}, content=to)


def norms(*items):
    return kind("Sequence", normalizers=list(items))


def splits(*items):
    return kind("Sequence", pretokenizers=list(items))


def unigram(fallback=False, unk=0, without=(), factor=1):
    vocab = [[p, s * factor] for p, s in zip(PIECES, SCORES) if p not in without]
    return kind("Unigram", unk_id=unk, vocab=vocab + (BYTES[1:] if fallback else []), byte_fallback=fallback)


def token(content, **flags):
    return {"id": 0, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False, **flags}


TOKENS = [token("<s>", special=True), token("<m>", special=True, lstrip=True), token("Wx", normalized=True)]


def file(normalizer=None, pre=ONE, model=None, decoder=None, tokens=()):
    model = model or kind("Unigram", unk_id=0, vocab=BYTES, byte_fallback=True)
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": list(tokens), "normalizer": normalizer, "pre_tokenizer": pre,
            "post_processor": None, "decoder": decoder, "model": model}


FORMS = ["", "é e\u0301", "\u1e69\u0323x", "e\u0323\u0302", "각\u1100\u1161\u11a8 \uac00\u11a8", "ﬁ①\u1e9b\u0323", "\u0344\u0323a", "\u0958\u093c\u0915\u093c", "\u212bÅ\u3000\u2126",
         "\ufdfa", "a" + "\u0301\u0323\u0334" * 20 + "b", "\u0301a", "\U0001d15e\U0001d165\u0323", "plain ascii, plain ascii, plain", "\u0b95\u0bc6\u0bbe", "\u09c7\u09be\u0fb2\u0f71\u0f80"]
MAPPED = ["", "a\tb\r\nc\x10", "\x10a\x10\x10b", "™\x10g", "ﬁﬁ…a\u0301", "u\u031b\u0301 u\u031b", "a\u0301\u0302b", "x\u0301\u0302\u0300", "👩\u200d👩", "\u1100\u1161\u11a8", "\u1100\u1161", "©\u200d©", "Ａ\ufe0f", "क\u094dक\u0301",
          "😀\u0301", "plain ascii text of more than eight characters ™ plain ascii text again\t", "\u0600a\u00a0\u0600\u00a0", "\r", "\r\r\n\n", "ab\x10"]
SPACED = ["", " ", "a b", "  a  b ", "▁a b", "a▁ b▁", "<s>a b<s> a", "x <m>a  <m>", "Wx a Wx", "aab ab a12 é-é", "中カ Я a▁b", "a b a b", "zz a", "\u2028a", "ab " * 30]
PIPELINES = [
    ("nfc", file(kind("NFC")), FORMS), ("nfkc", file(kind("NFKC")), FORMS), ("nfkd", file(kind("NFKD")), FORMS), ("nfd by character", file(kind("NFD")), FORMS),
    ("forms in a row", file(norms(kind("NFD"), kind("NFC"), kind("NFKD"), kind("NFKC"))), FORMS), ("precompiled", file(PRE), MAPPED),
    ("precompiled and more", file(norms(PRE, RUN, kind("NFC"), kind("Lowercase"), PRE)), MAPPED + SPACED),
    ("nmt", file(kind("Nmt")), ["\x01a\x02\tb\x7f", "\u200b▁\ufeff\ufffd\u1680", "\u008f\u009f", "a\rb\n\x0b\x0c"]),
    ("strip", file(kind("Strip", strip_left=True, strip_right=True)), [" a ", "\u3000é\n", "  ", ""]),
    ("strip left", file(kind("Strip", strip_left=True, strip_right=False)), [" a ", "  "]), ("strip right", file(kind("Strip", strip_left=False, strip_right=True)), [" a "]),
    ("prepend", file(kind("Prepend", prepend="▁xé")), ["", "a", "éa", " "]), ("replace", file(replace(" ", "▁")), SPACED), ("replace by nothing", file(replace("ab", "")), SPACED),
    ("replace by more", file(replace("a", "é-é")), SPACED), ("replace one by one", file(replace("é", "e")), ["éaé", "e"]), ("replace nothing", file(replace("", "-")), ["", "a", "éb"]),
    ("replace runs", file(RUN), SPACED + ["a    ", "   "]), ("llama like", file(norms(kind("Prepend", prepend="▁"), replace(" ", "▁")), pre=None, model=unigram(True)), SPACED),
    ("fixed", file(None, pre=kind("FixedLength")), SPACED + FORMS), ("digits", file(None, pre=kind("Digits", individual_digits=False)), ["a12b٣½x", "12", "Ⅷ一1"]),
    ("digits one by one", file(None, pre=kind("Digits", individual_digits=True)), ["a12b٣½x", "12", "Ⅷ一1"]), ("delimiter", file(None, pre=kind("CharDelimiterSplit", delimiter="é")), ["éaééb", "é", "abc"]),
    ("scripts", file(None, pre=kind("UnicodeScripts")), ["どこ カー中 abcЯя 12.", "  a", " ", "a\u0301я\u0301", "ーあ"]),
    ("metaspace written", file(None, pre=splits(META, ONE)), SPACED), ("metaspace first", file(None, pre=splits(FIRST, kind("FixedLength", length=2)), tokens=TOKENS), SPACED),
    ("metaspace ascii", file(None, pre=splits(kind("Metaspace", replacement="_", add_prefix_space=True), ONE)), ["a_b c", " a"]),
]
for option, meta in (("always", META), ("first", FIRST), ("never", NEVER), ("whole", dict(META, split=False)), ("whole first", dict(FIRST, split=False))):
    for name, m in (("unigram", unigram()), ("bytes", unigram(True)), ("no crossing", unigram(without=("b▁", "a▁b", "▁▁", "▁▁a"))), ("no mark", unigram(without=("▁",), factor=-1))):
        PIPELINES.append((f"{name} {option}", file(kind("NFKC"), pre=meta, model=m, decoder=META, tokens=TOKENS), SPACED + MAPPED[:6]))
PIPELINES += [
    ("unigram of many words", file(norms(PRE, RUN), pre=splits(kind("WhitespaceSplit"), META), model=unigram(True), decoder=dict(META, prepend_scheme="never")), SPACED),
    ("unigram alone", file(None, pre=None, model=unigram()), SPACED),
    ("word level", file(None, pre=META, model=kind("WordLevel", unk_token="<unk>", vocab={p: i for i, p in enumerate(PIECES)}), decoder=META), SPACED),
    ("inferred", file(None, pre=META, model={k: v for k, v in unigram().items() if k != "type"}), SPACED[:4]),
    ("decoders", file(None, pre=None, model=unigram(True), decoder=kind("Sequence", decoders=[
        replace("▁", " "), kind("ByteFallback"), kind("Fuse"), kind("Strip", content=" ", start=1, stop=0)])), SPACED[:2]),
    ("byte fallback", file(None, pre=None, model=unigram(True), decoder=kind("ByteFallback")), ["é"]),
    ("strip decoder", file(None, pre=None, model=unigram(), decoder=kind("Strip", content="▁", start=2, stop=0)), ["a"]),
    ("strip decoder, end", file(None, pre=None, model=unigram(), decoder=kind("Strip", content="a", start=0, stop=1)), ["a"]),
    ("ctc", file(None, pre=None, model=unigram(), decoder=kind("CTC", pad_token="b", word_delimiter_token="▁", cleanup=True)), ["a"]),
    ("ctc plain", file(None, pre=None, model=unigram(), decoder=kind("CTC", pad_token="<s>", word_delimiter_token="▁", cleanup=False)), ["a"]),
    ("replace decoder", file(None, pre=None, model=unigram(), decoder=replace("a", "")), ["a"]),
]
IDS = [[1, 2, 3, 1, 1, 5], [4, 4, 2, 2, 3, 3, 1, 3], [13, 12, 15, 19, 0, 20], [21, 10, 9, 9]]
# <0xE4> <0xB8> <0xAD> and broken ones, where the file has the bytes
BYTE_IDS = [[22 + b for b in (0xE4, 0xB8, 0xAD)] + [2], [22 + 0xE4, 22 + 0xB8, 4], [1, 22 + 0x20, 22 + 0xFF, 22 + 0x41, 1]]
