# SPDX-License-Identifier: Apache-2.0
"""Small tokenizer.json files out of all components and options, from a seed: what real files use, and what they could.

make(seed, lines, charsmap) draws normalizer, pre-tokenizer, model, post-processor, decoder and added tokens, trains the
model on `lines` with them, and gives (name, file text). Names list the components.
"""

import json
import random

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace("{1,3}", "")
QWEN35 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
GPT4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SPLIT_PATTERNS = [GPT2, LLAMA3, QWEN2, QWEN35, GPT4O, r"\s+", r"\p{L}+|\p{N}+", r"[aeiou]", r"\w+|[^\w\s]+", r"\p{N}{1,3}",
                  r"[一-龥぀-ゟ゠-ヿ]+", r"\d", r" ?[^(\s|.,!?…。，、।۔،)]+", r"(?<=\p{Ll})(?=\p{Lu})|\s", r"[\p{P}\p{S}]",
                  r"\p{Han}+", r"[^\S\r\n]+", r"(?:\r?\n)+", r"\p{Z}+|\p{C}+", r"", r"[[:punct:]]+", r".{3}"]
REPLACE_PATTERNS = [(r" {2,}", " "), (r"\s+", "▁"), (r"[0-9]", "0"), (r"(?i)the", "da"), (r"\p{M}+", ""), (r"[“”]", '"'),
                    (r"e", "éé"), (r"^\s+", ""), (r"\s+$", ""), (r"\p{Lu}", "U"), (r"\n", "⏎")]
REPLACE_STRINGS = [(" ", "▁"), ("``", '"'), ("''", '"'), ("a", "ab"), ("ab", ""), ("é", "e"), ("\n", " "), ("the", "THE"),
                   ("中", "中国"), (".", ". ")]
BEHAVIORS = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]
CONTENTS = ["<s>", "</s>", "<mask>", "[X]", "ab", "abc", "bc", " x", "x ", "the", "The", "THE", "中", "中国", "é", "e\u0301", "É",
            "İ", "<|im_start|>", "<|im_end|>", "<|im", "\n\n", "   ", "123", "▁▁", "ing", "<0x41>", "👍", "ﬁ", "##s", "Ġthe", "a b"]


def string_or_regex(text, regex):
    return {"Regex": text} if regex else {"String": text}


# -------------------------------------------------------------------------------------------------------- normalizers

def normalizer_one(rng, charsmap):
    kind = rng.choice(["bert", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Strip", "Replace", "Replace",
                       "Prepend", "Precompiled", "Nmt", "ByteLevel"])
    if kind == "bert":
        return {"type": "BertNormalizer", "clean_text": rng.random() < 0.7, "handle_chinese_chars": rng.random() < 0.6,
                "strip_accents": rng.choice([None, True, False]), "lowercase": rng.random() < 0.5}
    if kind == "Strip":
        return {"type": kind, "strip_left": rng.random() < 0.6, "strip_right": rng.random() < 0.6}
    if kind == "Replace":
        regex = rng.random() < 0.5
        pattern, content = rng.choice(REPLACE_PATTERNS if regex else REPLACE_STRINGS)
        return {"type": kind, "pattern": string_or_regex(pattern, regex), "content": content}
    if kind == "Prepend":
        return {"type": kind, "prepend": rng.choice(["▁", " ", "ab", "é"])}
    if kind == "Precompiled":
        return {"type": kind, "precompiled_charsmap": charsmap} if charsmap else {"type": "NFKC"}
    return {"type": kind}


def normalizer(rng, charsmap):
    n = rng.choice([0, 0, 1, 1, 1, 2, 3])
    if n == 0:
        return None
    items = [normalizer_one(rng, charsmap) for _ in range(n)]
    if n == 1 and rng.random() < 0.8:
        return items[0]
    return {"type": "Sequence", "normalizers": items}


# ----------------------------------------------------------------------------------------------------- pre-tokenizers

def splitter_one(rng):
    kind = rng.choice(["BertPreTokenizer", "ByteLevel", "ByteLevel", "Split", "Split", "Split", "Metaspace", "Metaspace",
                       "Whitespace", "WhitespaceSplit", "Punctuation", "Digits", "CharDelimiterSplit", "UnicodeScripts",
                       "FixedLength"])
    if kind == "ByteLevel":
        return {"type": kind, "add_prefix_space": rng.random() < 0.5, "trim_offsets": rng.random() < 0.5,
                "use_regex": rng.random() < 0.6}
    if kind == "Split":
        regex = rng.random() < 0.7
        pattern = rng.choice(SPLIT_PATTERNS) if regex else rng.choice([" ", "▁", "the", "ab", "中", ".", "  "])
        behavior = rng.choice(["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"])
        return {"type": kind, "pattern": string_or_regex(pattern, regex), "behavior": behavior, "invert": rng.random() < 0.25}
    if kind == "Metaspace":
        return {"type": kind, "replacement": rng.choice("▁▁▁_"), "prepend_scheme": rng.choice(["always", "first", "never"]),
                "split": rng.random() < 0.7}
    if kind == "Punctuation":
        return {"type": kind, "behavior": rng.choice(["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"])}
    if kind == "Digits":
        return {"type": kind, "individual_digits": rng.random() < 0.5}
    if kind == "CharDelimiterSplit":
        return {"type": kind, "delimiter": rng.choice([" ", "e", "中", "-"])}
    if kind == "FixedLength":
        return {"type": kind, "length": rng.choice([1, 2, 3, 5, 10])}
    return {"type": kind}


def splitter(rng):
    n = rng.choice([0, 1, 1, 1, 1, 2, 2, 3])
    if n == 0:
        return None
    items = [splitter_one(rng) for _ in range(n)]
    if n == 1 and rng.random() < 0.8:
        return items[0]
    return {"type": "Sequence", "pretokenizers": items}


# -------------------------------------------------------------------------------------------------------------- models

def skeleton(model, norm, split, added):
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": norm,
            "pre_tokenizer": split, "post_processor": None, "decoder": None, "model": model}


BYTE_PIECES = [f"<0x{b:02X}>" for b in range(256)]


def train(rng, kind, norm, split, lines):
    """The model part of the file, trained with the package's own trainers."""
    unk, vocab_size = "<unk>", rng.choice([60, 200, 500, 900])
    prefix = rng.choice(["", "", "", "##"]) if kind == "BPE" else "##"
    suffix = rng.choice(["", "", "", "</w>"]) if kind == "BPE" else ""
    # With prefix or suffix the package counts their bytes, too, and leaves the text.
    byte_fallback = rng.random() < 0.4 and not (kind == "BPE" and prefix + suffix)
    special = ([unk] if rng.random() < 0.9 or kind != "BPE" else []) + (BYTE_PIECES if byte_fallback else [])
    byte_level = json.dumps([norm, split]).count('"ByteLevel"') > 0
    affixes = {k: v for k, v in (("continuing_subword_prefix", prefix), ("end_of_word_suffix", suffix)) if v}
    model = {"BPE": lambda: models.BPE(**affixes),
             "WordPiece": lambda: models.WordPiece(unk_token=unk), "WordLevel": lambda: models.WordLevel(unk_token=unk),
             "Unigram": models.Unigram}[kind]()
    t = Tokenizer(model)
    base = Tokenizer.from_str(json.dumps(skeleton({"type": "WordLevel", "vocab": {unk: 0}, "unk_token": unk}, norm, split, [])))
    if base.normalizer:
        t.normalizer = base.normalizer
    if base.pre_tokenizer:
        t.pre_tokenizer = base.pre_tokenizer
    alphabet = pre_tokenizers.ByteLevel.alphabet() if byte_level else []
    size = vocab_size + len(special) + len(alphabet)
    if kind == "BPE":
        trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=special, show_progress=False, initial_alphabet=alphabet,
                                      limit_alphabet=rng.choice([40, 1000]), **affixes)
    elif kind == "WordPiece":
        trainer = trainers.WordPieceTrainer(vocab_size=size, special_tokens=special, show_progress=False,
                                            initial_alphabet=alphabet)
    elif kind == "WordLevel":
        trainer = trainers.WordLevelTrainer(vocab_size=size, special_tokens=special, show_progress=False)
    else:
        lines = lines[:: rng.choice([2, 5])]  # all characters must fit in
        trainer = trainers.UnigramTrainer(vocab_size=size + rng.choice([2000, 4000]), special_tokens=special, show_progress=False, unk_token=unk,
                                          initial_alphabet=alphabet)
    t.train_from_iterator(lines, trainer)
    file = json.loads(t.to_str())["model"]
    return vary_model(rng, kind, file, unk if special and special[0] == unk else None, byte_fallback)


def shuffled_ids(rng, vocab):
    """Ranks and ids need not agree."""
    ids = list(vocab.values())
    rng.shuffle(ids)
    return dict(zip(vocab, ids))


def vary_model(rng, kind, file, unk, byte_fallback):
    if kind == "BPE":
        file["unk_token"] = unk
        file["fuse_unk"] = rng.random() < 0.5
        file["byte_fallback"] = byte_fallback
        file["ignore_merges"] = rng.random() < 0.3
        if rng.random() < 0.4:
            file["vocab"] = shuffled_ids(rng, file["vocab"])
        if rng.random() < 0.4 and all(" " not in part for pair in file["merges"] for part in pair):
            file["merges"] = [" ".join(pair) for pair in file["merges"]]
        if rng.random() < 0.2:
            del file["type"]
    elif kind == "WordPiece":
        file["unk_token"] = unk
        file["max_input_chars_per_word"] = rng.choice([100, 100, 5, 20])
        if rng.random() < 0.3:
            file["vocab"] = shuffled_ids(rng, file["vocab"])
    elif kind == "WordLevel":
        file["unk_token"] = unk
    else:
        file["byte_fallback"] = byte_fallback
        if rng.random() < 0.2:
            file["vocab"] = [[piece, round(score, 1)] for piece, score in file["vocab"]]  # ties
    return file


# --------------------------------------------------------------------------------------------------- the other parts

def tokens_of(model):
    vocab = model["vocab"]
    return {piece: i for i, (piece, _) in enumerate(vocab)} if isinstance(vocab, list) else vocab


def template(rng, specials):
    def special():
        return {"SpecialToken": {"id": rng.choice(list(specials)), "type_id": rng.randrange(3)}}

    def text(name, type_id):
        return {"Sequence": {"id": name, "type_id": type_id}}

    def around(items):
        return [special() for _ in range(rng.choice([0, 1, 1, 2]))] + items

    single = around([text("A", rng.choice([0, 0, 2]))]) + around([])
    if rng.random() < 0.05:
        single += around([text("A", 1)])
    pair = around([text("A", 0)]) + around([text("B", rng.choice([0, 1, 1, 3]))]) + around([])
    if rng.random() < 0.1:
        pair = around([text("B", 1)]) + around([text("A", 0)])
    table = {s: {"id": s, "ids": [i], "tokens": [s]} for s, i in specials.items()}
    if rng.random() < 0.2:
        first = next(iter(table))
        table[first]["ids"] = table[first]["ids"] * 2
        table[first]["tokens"] = table[first]["tokens"] * 2
    return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": table}


def bert_processing(rng, specials):
    a, b = rng.choice(list(specials)), rng.choice(list(specials))
    return {"type": "BertProcessing", "sep": [a, specials[a]], "cls": [b, specials[b]]}


def post_processor_one(rng, specials):
    kind = rng.choice(["template", "template", "bert", "roberta", "bytes"])
    names = list(specials)
    a, b = rng.choice(names), rng.choice(names)
    if kind == "template":
        return template(rng, specials)
    if kind == "bert":
        return bert_processing(rng, specials)
    if kind == "roberta":
        return {"type": "RobertaProcessing", "sep": [a, specials[a]], "cls": [b, specials[b]],
                "trim_offsets": rng.random() < 0.6, "add_prefix_space": rng.random() < 0.5}
    return {"type": "ByteLevel", "add_prefix_space": rng.random() < 0.5, "trim_offsets": rng.random() < 0.6,
            "use_regex": rng.random() < 0.5}


def post_processor(rng, specials):
    p = rng.random()
    if p < 0.2:
        return None
    if p < 0.85:
        return post_processor_one(rng, specials)
    return {"type": "Sequence", "processors": [
        {"type": "ByteLevel", "add_prefix_space": rng.random() < 0.5, "trim_offsets": rng.random() < 0.6, "use_regex": True},
        rng.choice([template(rng, specials), bert_processing(rng, specials)])]}


def decoder_one(rng):
    kind = rng.choice(["ByteLevel", "WordPiece", "Metaspace", "ByteFallback", "Fuse", "Strip", "Replace", "CTC", "BPEDecoder"])
    if kind == "ByteLevel":
        return {"type": kind, "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    if kind == "WordPiece":
        return {"type": kind, "prefix": rng.choice(["##", "##", "▁"]), "cleanup": rng.random() < 0.6}
    if kind == "Metaspace":
        return {"type": kind, "replacement": rng.choice("▁▁_"), "prepend_scheme": rng.choice(["always", "first", "never"]),
                "split": True}
    if kind == "Strip":
        return {"type": kind, "content": rng.choice([" ", " ", "e", "▁"]), "start": rng.choice([0, 1, 2]), "stop": rng.choice([0, 0, 1, 2])}
    if kind == "Replace":
        if rng.random() < 0.3:
            pattern, content = rng.choice(REPLACE_PATTERNS + [(r"$", " end")])  # as a normalizer it breaks the package's alignment
            return {"type": kind, "pattern": {"Regex": pattern}, "content": content}
        pattern, content = rng.choice([("▁", " "), ("▁", " "), ("Ġ", " "), ("e", ""), (" ", "  ")])
        return {"type": kind, "pattern": {"String": pattern}, "content": content}
    if kind == "CTC":
        return {"type": kind, "pad_token": rng.choice(["<pad>", "a", "e"]), "word_delimiter_token": rng.choice(["|", "▁", "t"]),
                "cleanup": rng.random() < 0.6}
    if kind == "BPEDecoder":
        return {"type": kind, "suffix": rng.choice(["</w>", "</w>", "e"])}
    return {"type": kind}


def decoder(rng):
    p = rng.random()
    if p < 0.1:
        return None
    if p < 0.3:
        return {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": rng.choice([0, 1]), "stop": rng.choice([0, 0, 2])}]}
    if p < 0.7:
        return decoder_one(rng)
    return {"type": "Sequence", "decoders": [decoder_one(rng) for _ in range(rng.choice([2, 2, 3]))]}


def added_tokens(rng, vocab):
    """Contents that overlap each other, words and normalized forms; ids as the package gives them to new tokens."""
    out, next_id = [], len(vocab)
    contents = rng.sample(CONTENTS, rng.choice([0, 1, 3, 6, 10]))
    for content in ["<cls>", "<sep>"] + contents:
        known = vocab.get(content)
        out.append({"id": next_id if known is None else known, "content": content, "single_word": rng.random() < 0.2,
                    "lstrip": rng.random() < 0.25, "rstrip": rng.random() < 0.25, "normalized": rng.random() < 0.5,
                    "special": content in ("<cls>", "<sep>") or rng.random() < 0.5})
        next_id += known is None
    return sorted(out, key=lambda token: token["id"])


def without_twins(added, norm):
    """Leaves out tokens of which nothing is left in normalized text (the package finds them everywhere, and panics), and
    those that look like another one there (which of them is found differs from run to run)."""
    base = Tokenizer.from_str(json.dumps(skeleton({"type": "WordLevel", "vocab": {"u": 0}, "unk_token": "u"}, norm, None, [])))
    seen, kept = set(), []
    for token in added:
        form = token["content"]
        if norm is not None and token["normalized"]:
            form = base.normalizer.normalize_str(form)
        if form and form not in seen:
            kept.append(token)
        seen.add(form)
    return kept


def renumber(added, vocab):
    """Ids of new tokens go on behind the vocabulary without gaps."""
    next_id = len(vocab)
    for token in added:
        if token["content"] not in vocab:
            token["id"] = next_id
            next_id += 1


def type_names(part):
    if part is None:
        return "-"
    for key in ("normalizers", "pretokenizers", "processors", "decoders"):
        if key in part:
            return "(" + " ".join(type_names(p) for p in part[key]) + ")"
    return part.get("type", "")


def make(seed, lines, charsmap=None):
    """(name, text of tokenizer.json), or None where the package cannot train such a model."""
    rng = random.Random(seed)
    norm, split = normalizer(rng, charsmap), splitter(rng)
    kind = rng.choice(["BPE", "BPE", "Unigram", "Unigram", "WordPiece", "WordLevel"])
    try:
        model = train(rng, kind, norm, split, lines)
    except BaseException as e:  # the package panics on some vocabularies
        if isinstance(e, KeyboardInterrupt):
            raise
        return None
    vocab = tokens_of(model)
    added = without_twins(added_tokens(rng, vocab), norm)
    renumber(added, vocab)
    file = skeleton(model, norm, split, added)
    file["post_processor"] = post_processor(rng, {t["content"]: t["id"] for t in added if t["special"]})
    file["decoder"] = decoder(rng)
    name = " ".join([f"#{seed}", kind, *(type_names(file[k]) for k in ("normalizer", "pre_tokenizer", "post_processor", "decoder"))])
    text = json.dumps(file, ensure_ascii=rng.random() < 0.3)
    try:
        Tokenizer.from_str(text)
    except Exception:  # a score that is not finite
        return None
    return name, text
