# SPDX-License-Identifier: Apache-2.0
"""Grammars and matchers of liblath through ctypes, after include/lath/lath.h: what check_schemas.py needs."""

import ctypes as c

import lath_tok
import numpy as np

TEXT, JSON_SCHEMA = 0, 1


def load(lib):
    p, err = c.c_void_p, c.POINTER(lath_tok.Error)
    lib.lath_grammar_open.argtypes = [p, c.c_int, c.c_char_p, lath_tok.Text, c.POINTER(p), err]
    lib.lath_grammar_close.argtypes, lib.lath_grammar_close.restype = [p], None
    lib.lath_matcher_create.argtypes = [p, p, c.POINTER(c.c_int32), c.c_size_t, c.c_int32, c.POINTER(p), err]
    lib.lath_matcher_destroy.argtypes, lib.lath_matcher_destroy.restype = [p], None
    lib.lath_matcher_mask.argtypes = [p, c.POINTER(c.POINTER(c.c_uint32)), err]
    lib.lath_matcher_accept.argtypes = [p, c.c_int32, err]
    lib.lath_matcher_complete.argtypes = lib.lath_matcher_ended.argtypes = [p]
    lib.lath_matcher_reset.argtypes = [p, err]
    lib.lath_tokenizer_token.argtypes, lib.lath_tokenizer_token.restype = [p, c.c_int32], c.c_char_p


class Grammar:
    def __init__(self, runtime, kind, text):
        self.runtime, self.g, data = runtime, c.c_void_p(), text.encode()
        lath_tok.check(runtime.lib.lath_grammar_open(runtime.rt, kind, b"grammar", lath_tok.Text(data, len(data)), c.byref(self.g), runtime.err),
                       runtime.err)

    def close(self):
        self.runtime.lib.lath_grammar_close(self.g)


class Matcher:
    """tokenizer: lath_tok.Tokenizer; end: ids that end a text."""

    def __init__(self, grammar, tokenizer, end, n_logits):
        self.lib, self.err, self.m, self.n = grammar.runtime.lib, lath_tok.Error(), c.c_void_p(), n_logits
        ids = (c.c_int32 * max(len(end), 1))(*end)
        lath_tok.check(self.lib.lath_matcher_create(grammar.g, tokenizer.tok, ids, len(end), n_logits, c.byref(self.m), self.err), self.err)

    def mask(self):
        """[n_logits] of bool."""
        words = c.POINTER(c.c_uint32)()
        lath_tok.check(self.lib.lath_matcher_mask(self.m, c.byref(words), self.err), self.err)
        n_words = (self.n + 31) // 32
        raw = np.ctypeslib.as_array(c.cast(words, c.POINTER(c.c_uint8)), (n_words * 4,))
        return np.unpackbits(raw, bitorder="little")[: self.n].astype(bool)

    def accept(self, token):
        lath_tok.check(self.lib.lath_matcher_accept(self.m, int(token), self.err), self.err)

    def complete(self):
        return bool(self.lib.lath_matcher_complete(self.m))

    def ended(self):
        return bool(self.lib.lath_matcher_ended(self.m))

    def close(self):
        self.lib.lath_matcher_destroy(self.m)
