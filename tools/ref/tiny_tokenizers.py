# SPDX-License-Identifier: Apache-2.0
"""Tiny tokenizers of the kinds that published embedding models and rerankers have: a few hundred entries, the
components and templates of the real files.

Each function gives the tokenizer and what tokenizer_config.json says of it.
"""

from collections import Counter

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import BPE, Unigram, WordPiece

import wordpiece
from synthetic_tokenizers import QWEN2

WORDS = (
    "the of and to in is was for on by an this that from not one old day night man woman house water fire river green "
    "small long last text query read mile mountain light dark north run walk away cold young letter line code white he "
    "she they we you two new time year stone good first document passage search write cafe naive uber south here blue "
    "red black city road tree bird sun moon star snow rain wind word model token data school friend hand door table "
    "open close ago big bad end free hard high home just keep kind know land left life make more most move much name "
    "next only over part place play right same say seem self show side still such take tell than their thing think"
).split()
ENDINGS = "s ed ing er est ly ness ment tion able ful less y es en ize ation th al ic un re be li ev ab".split()
LETTERS = "abcdefghijklmnopqrstuvwxyz"
PUNCTUATION = ". , ? ! - ; : ' \" ( ) [ ] { } / & @ # $ < > ~ ` _".split()
UPPER_WORDS = "The One Small Caf\u00e9 \u00dc B E R St na\u00efve \u041c A".split()


def vocabulary(size: int, cased: bool) -> list[str]:
    """The first `size` of: specials, letters, digits, marks, characters of other scripts, endings, words."""
    other = list("中国人東京日本水ßøæαθмоскваикかが")
    marks = list("éïüÜ") if cased else list("カ")
    entries = wordpiece.SPECIAL + list(LETTERS) + ["##" + c for c in LETTERS] + list("0123456789")
    entries += ["##" + c for c in "0123456789"] + PUNCTUATION + other + ["##" + c for c in "ßαθοсваη"] + marks
    entries += ["##" + e for e in ENDINGS] + (UPPER_WORDS if cased else []) + WORDS
    entries = wordpiece.unique(entries)
    if len(entries) < size:
        raise ValueError(f"only {len(entries)} entries for a vocabulary of {size}")
    return entries[:size]



QWEN_ADDED = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]


def named(pad: str, unk: str | None, bos: str | None, eos: str | None, cls: str | None = None, sep: str | None = None,
          mask: str | None = None) -> dict:
    """The special tokens as tokenizer_config.json names them; those that there are none of are left out."""
    names = {"pad": pad, "unk": unk, "bos": bos, "eos": eos, "cls": cls, "sep": sep, "mask": mask}
    return {f"{k}_token": v for k, v in names.items() if v is not None}


def special(tok: Tokenizer, tokens, mask: str | None = None) -> None:
    """Adds special tokens; `mask` takes the space before it, as mask tokens do."""
    tok.add_special_tokens([AddedToken(t, lstrip=t == mask, special=True, normalized=False) for t in tokens])


def template(tok: Tokenizer, single: str, pair: str) -> processors.TemplateProcessing:
    names = sorted({part.split(":")[0] for part in (single + " " + pair).split() if not part.startswith("$")})
    return processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=[(n, tok.token_to_id(n)) for n in names])


def byte_alphabet() -> list[str]:
    """One character for each byte, in byte order, as byte-level BPE writes them."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = iter(range(256, 512))
    return [chr(b) if b in plain else chr(next(rest)) for b in range(256)]


def merges_of(words, n: int, more: list[str] = ()) -> list[tuple[str, str]]:
    """The n most useful merges over `words`, most frequent first, ties in alphabetical order; then what makes `more`."""
    split = [list(w) for w in words]
    merges = []

    def join(parts: list[str], pair: tuple[str, str]) -> list[str]:
        out = []
        for p in parts:
            if out and (out[-1], p) == pair:
                out[-1] += p
            else:
                out.append(p)
        return out

    def add(pair: tuple[str, str]) -> None:
        merges.append(pair)
        split[:] = [join(parts, pair) for parts in split]

    for _ in range(n):
        counts = Counter(pair for parts in split for pair in zip(parts, parts[1:]))
        add(min(counts, key=lambda pair: (-counts[pair], pair)))
    for word in more:
        parts = list(word)
        for pair in merges:
            parts = join(parts, pair)
        while len(parts) > 1:
            add((parts[0], parts[1]))
            parts = join(parts, merges[-1])
    return merges


def bpe(before: list[str], alphabet: list[str], merges: list[tuple[str, str]], after: list[str] = (), **options) -> BPE:
    entries = wordpiece.unique([*before, *alphabet, *("".join(pair) for pair in merges), *after])
    return BPE({e: i for i, e in enumerate(entries)}, merges, **options)


def space_words(space: str, n: int = 90) -> list[str]:
    return [space + w for w in WORDS[:n]] + WORDS[:12]


def bert(size: int = 150, lowercase: bool = True) -> tuple[Tokenizer, dict]:
    tok = wordpiece.build(vocabulary(size, cased=not lowercase), lowercase=lowercase)
    return tok, {"tokenizer_class": "BertTokenizer", "do_lower_case": lowercase} | named(
        "[PAD]", "[UNK]", None, None, "[CLS]", "[SEP]", "[MASK]")


def distilbert(size: int = 150) -> tuple[Tokenizer, dict]:
    tok, config = bert(size)
    return tok, config | {"tokenizer_class": "DistilBertTokenizer"}


def mpnet(size: int = 150) -> tuple[Tokenizer, dict]:
    """WordPiece with <s>, </s> and two of the latter between the texts of a pair."""
    rest = [v for v in vocabulary(size, cased=False) if v not in wordpiece.SPECIAL]
    entries = ["<s>", "<pad>", "</s>", "<unk>", "[UNK]", *rest, "<mask>"]
    tok = Tokenizer(WordPiece({e: i for i, e in enumerate(entries)}, unk_token="[UNK]"))
    tok.normalizer = normalizers.BertNormalizer(lowercase=True)
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tok.decoder = decoders.WordPiece(prefix="##")
    special(tok, ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"], mask="<mask>")
    tok.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False)
    return tok, {"tokenizer_class": "MPNetTokenizer", "do_lower_case": True} | named(
        "<pad>", "[UNK]", "<s>", "</s>", "<s>", "</s>", "<mask>")


def roberta(n_merges: int = 40) -> tuple[Tokenizer, dict]:
    merges = merges_of(space_words("\u0120"), n_merges)
    tok = Tokenizer(bpe(["<s>", "<pad>", "</s>", "<unk>"], byte_alphabet(), merges, ["<mask>"]))
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=True)
    tok.decoder = decoders.ByteLevel()
    special(tok, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"], mask="<mask>")
    tok.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False)
    return tok, {"tokenizer_class": "RobertaTokenizer", "add_prefix_space": False} | named(
        "<pad>", "<unk>", "<s>", "</s>", "<s>", "</s>", "<mask>")


def xlm_roberta(n_words: int = 60, own_class: str = "XLMRobertaTokenizer") -> tuple[Tokenizer, dict]:
    """Unigram over letters, scripts, endings and words; <s> $A </s>."""
    other = list("中国人東京日本水ßøæαθмоскваикかがéïüÜ한국어")
    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    plain = ["\u2581"] + list(LETTERS) + list("0123456789") + list(".,?!-;:'\"()[]/&") + other + list("TSOAC")
    plain += ENDINGS + ["\u2581" + w for w in WORDS[:n_words]]
    # Longer pieces are likelier; no two scores are equal, so that every segmentation has one best
    pieces += [(p, -6.5 - 0.013 * i + 1.9 * len(p)) for i, p in enumerate(wordpiece.unique(plain))] + [("<mask>", 0.0)]
    pieces = [(p, score if p.startswith("<") else min(score, -0.011 * (i + 1))) for i, (p, score) in enumerate(pieces)]
    tok = Tokenizer(Unigram(pieces, unk_id=3, byte_fallback=False))
    tok.normalizer = normalizers.Sequence([normalizers.NFKC()])
    tok.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="always")])
    tok.decoder = decoders.Metaspace(replacement="\u2581", prepend_scheme="always")
    special(tok, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"], mask="<mask>")
    tok.post_processor = template(tok, "<s> $A </s>", "<s> $A </s> </s> $B </s>")
    return tok, {"tokenizer_class": own_class} | named("<pad>", "<unk>", "<s>", "</s>", "<s>", "</s>", "<mask>")


def modernbert(n_merges: int = 40) -> tuple[Tokenizer, dict]:
    merges = merges_of(space_words("\u0120"), n_merges)
    names = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
    tok = Tokenizer(bpe([], byte_alphabet(), merges, names))
    tok.normalizer = normalizers.NFC()
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=True)
    tok.decoder = decoders.ByteLevel()
    special(tok, names, mask="[MASK]")
    tok.post_processor = template(tok, "[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:0 [SEP]:0")
    return tok, {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": ["input_ids", "attention_mask"],
                 } | named("[PAD]", "[UNK]", None, None, "[CLS]", "[SEP]", "[MASK]")


def qwen(n_merges: int = 40, appended: str | None = "<|endoftext|>") -> tuple[Tokenizer, dict]:
    """Qwen2's byte-level BPE; the template of Qwen3-Embedding appends <|endoftext|>, others add nothing."""
    merges = merges_of(space_words("\u0120"), n_merges, more=["yes", "no"])
    tok = Tokenizer(bpe([], byte_alphabet(), merges))
    tok.normalizer = normalizers.NFC()
    tok.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(QWEN2), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)])
    tok.decoder = decoders.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    special(tok, QWEN_ADDED[:3])
    tok.add_tokens([AddedToken(t, special=False, normalized=False) for t in QWEN_ADDED[3:]])
    level = processors.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    tok.post_processor = level if appended is None else processors.Sequence(
        [level, template(tok, f"$A:0 {appended}:0", f"$A:0 {appended}:0 $B:1 {appended}:1")])
    return tok, {"tokenizer_class": "Qwen2Tokenizer", "add_bos_token": False, "padding_side": "left"} | named(
        "<|endoftext|>", None, None, "<|im_end|>")


def llama3(n_merges: int = 40, ends: bool = True) -> tuple[Tokenizer, dict]:
    """Byte-level BPE with ignore_merges; <|begin_of_text|> before, with `ends` <|end_of_text|> after the text."""
    merges = merges_of(space_words("\u0120"), n_merges)
    tok = Tokenizer(bpe([], byte_alphabet(), merges, ignore_merges=True))
    pattern = QWEN2.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
    tok.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=False)])
    tok.decoder = decoders.ByteLevel()
    begin, end = "<|begin_of_text|>", "<|end_of_text|>"
    special(tok, [begin, end])
    last = (f" {end}:0", f" {end}:1") if ends else ("", "")
    tok.post_processor = processors.Sequence([
        processors.ByteLevel(add_prefix_space=True, trim_offsets=False, use_regex=True),
        template(tok, f"{begin}:0 $A:0{last[0]}", f"{begin}:0 $A:0{last[0]} {begin}:1 $B:1{last[1]}")])
    return tok, {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": ["input_ids", "attention_mask"],
                 } | named(end, None, begin, end)


FALLBACK = [f"<0x{b:02X}>" for b in (9, 10, *range(0x80, 0xF5))]


def spm_bpe(before: list[str], n_merges: int) -> BPE:
    """BPE as SentencePiece's: spaces are U+2581; bytes for what has no piece."""
    merges = merges_of(space_words("\u2581"), n_merges)
    letters = ["\u2581"] + list(LETTERS) + list("0123456789.,?!-:()\"'") + list("TSOAMc") + list("中国é한")
    return bpe(before + FALLBACK, letters, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)


def llama2(n_merges: int = 40) -> tuple[Tokenizer, dict]:
    """The tokenizer of Llama 2 and Mistral 7B, with </s> after the text as embedders have it."""
    tok = Tokenizer(spm_bpe(["<unk>", "<s>", "</s>"], n_merges))
    tok.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tok.decoder = decoders.Sequence([
        decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    special(tok, ["<unk>", "<s>", "</s>"])
    tok.post_processor = template(tok, "<s>:0 $A:0 </s>:0", "<s>:0 $A:0 </s>:0 <s>:1 $B:1 </s>:1")
    return tok, {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": ["input_ids", "attention_mask"],
                 } | named("</s>", "<unk>", "<s>", "</s>")


def gemma(n_merges: int = 40) -> tuple[Tokenizer, dict]:
    """Gemma's, with <eos> after the text as EmbeddingGemma has it."""
    tok = Tokenizer(spm_bpe(["<pad>", "<eos>", "<bos>", "<unk>"], n_merges))
    tok.normalizer = normalizers.Replace(" ", "\u2581")
    tok.pre_tokenizer = pre_tokenizers.Split(" ", behavior="merged_with_previous", invert=False)
    tok.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    special(tok, ["<pad>", "<eos>", "<bos>", "<unk>"])
    tok.post_processor = template(tok, "<bos>:0 $A:0 <eos>:0", "<bos>:0 $A:0 <eos>:0 <bos>:1 $B:1 <eos>:1")
    return tok, {"tokenizer_class": "GemmaTokenizer", "add_bos_token": True, "add_eos_token": True} | named(
        "<pad>", "<unk>", "<bos>", "<eos>")




def letters() -> tuple[Tokenizer, dict]:
    """The smallest that opens a language model: <s> and one entry a character."""
    entries = ["<unk>", "<s>", "</s>", "\u2581", *LETTERS, *".,?!-:()'"]
    tok = Tokenizer(BPE({e: i for i, e in enumerate(entries)}, [], unk_token="<unk>"))
    tok.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tok.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    special(tok, ["<unk>", "<s>", "</s>"])
    tok.post_processor = template(tok, "<s>:0 $A:0", "<s>:0 $A:0 <s>:1 $B:1")
    return tok, {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": ["input_ids", "attention_mask"],
                 } | named("</s>", "<unk>", "<s>", "</s>")
