# SPDX-License-Identifier: Apache-2.0
"""Builds BERT tokenizers (WordPiece, BertNormalizer, BertPreTokenizer, TemplateProcessing) from a vocabulary list."""

from tokenizers import AddedToken, Tokenizer
from tokenizers.decoders import WordPiece as WordPieceDecoder
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def build(vocab: list[str], lowercase: bool, strip_accents: bool | None = None) -> Tokenizer:
    """A tokenizer whose ids are the positions in `vocab`, which must hold the five special tokens."""
    if len(set(vocab)) != len(vocab):
        raise ValueError("duplicate vocabulary entries: %r" % sorted(v for v in set(vocab) if vocab.count(v) > 1))
    ids = {token: i for i, token in enumerate(vocab)}
    tok = Tokenizer(WordPiece(ids, unk_token="[UNK]", continuing_subword_prefix="##", max_input_chars_per_word=100))
    tok.normalizer = BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=strip_accents, lowercase=lowercase
    )
    tok.pre_tokenizer = BertPreTokenizer()
    tok.post_processor = TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
    )
    tok.decoder = WordPieceDecoder(prefix="##", cleanup=True)
    tok.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in SPECIAL])
    return tok


def with_continuations(entries) -> list[str]:
    """Every entry, then every entry as a ## piece."""
    entries = list(entries)
    return entries + ["##" + e for e in entries]


def unique(entries) -> list[str]:
    """Entries in order of first appearance."""
    return list(dict.fromkeys(entries))
