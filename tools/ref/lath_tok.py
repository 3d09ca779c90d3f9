# SPDX-License-Identifier: Apache-2.0
"""The tokenizer of liblath through ctypes, after include/lath/lath.h: what check_tokenizers.py and bench/tok_peers.py need."""

import ctypes as c

TRUNCATION = {"longest_first": 0, "only_first": 1, "only_second": 2}
UNSUPPORTED, WINDOW, USAGE = 4, 6, 1  # of lath_status


class Error(c.Structure):
    _fields_ = [("status", c.c_int), ("os_errno", c.c_int), ("item", c.c_int64), ("msg", c.c_char * 256)]


class RuntimeOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("allocator", c.c_void_p), ("n_threads", c.c_int32), ("isa", c.c_int),
                ("log", c.c_void_p), ("log_ctx", c.c_void_p)]


class Text(c.Structure):
    _fields_ = [("data", c.c_char_p), ("len", c.c_size_t)]


class Tokens(c.Structure):
    _fields_ = [("ids", c.POINTER(c.c_int32)), ("type_ids", c.POINTER(c.c_int32)), ("offsets", c.POINTER(c.c_uint32)),
                ("n", c.c_size_t), ("n_untruncated", c.c_size_t), ("capacity", c.c_size_t), ("owner", c.c_void_p)]


class EncodeOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("add_special", c.c_int32), ("parse_special", c.c_int32),
                ("max_tokens", c.c_int64)]


class PartsOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("add_special", c.c_int32), ("parse_special", c.c_int32),
                ("max_tokens", c.c_int64), ("truncation", c.c_int), ("cut_left", c.c_int32), ("stride", c.c_int64)]


class Parts(c.Structure):
    _fields_ = [("ids", c.POINTER(c.c_int32)), ("type_ids", c.POINTER(c.c_int32)), ("offsets", c.POINTER(c.c_uint32)),
                ("special_mask", c.POINTER(c.c_uint8)), ("source", c.POINTER(c.c_int8)), ("n", c.c_size_t),
                ("begin", c.POINTER(c.c_size_t)), ("n_parts", c.c_size_t), ("n_untruncated", c.c_size_t),
                ("memory", c.c_void_p), ("owner", c.c_void_p)]


class LathError(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


def load(library):
    """The shared library with the argument types of the functions that are used here."""
    lib = c.CDLL(str(library))
    p, err, size = c.c_void_p, c.POINTER(Error), c.POINTER(c.c_size_t)
    lib.lath_runtime_create.argtypes = [c.POINTER(RuntimeOptions), c.POINTER(p), err]
    lib.lath_runtime_destroy.argtypes, lib.lath_runtime_destroy.restype = [p], None
    lib.lath_tokenizer_open.argtypes = [p, c.c_char_p, c.POINTER(p), err]
    lib.lath_tokenizer_close.argtypes, lib.lath_tokenizer_close.restype = [p], None
    lib.lath_tokenizer_size.argtypes = [p]
    lib.lath_encode.argtypes = [p, Text, c.POINTER(EncodeOptions), c.POINTER(Tokens), err]
    lib.lath_tokens_release.argtypes, lib.lath_tokens_release.restype = [c.POINTER(Tokens)], None
    lib.lath_encode_parts.argtypes = [p, c.POINTER(Text), c.c_size_t, c.POINTER(PartsOptions), c.POINTER(Parts), err]
    lib.lath_parts_release.argtypes, lib.lath_parts_release.restype = [c.POINTER(Parts)], None
    lib.lath_decode.argtypes = [p, p, c.c_size_t, c.c_int32, c.POINTER(p), size, err]
    lib.lath_string_release.argtypes, lib.lath_string_release.restype = [p, p], None
    lib.lath_decoder_create.argtypes = [p, c.c_int32, c.POINTER(p), err]
    lib.lath_decoder_destroy.argtypes, lib.lath_decoder_destroy.restype = [p], None
    lib.lath_decoder_push.argtypes = [p, p, c.c_size_t, c.POINTER(p), size, err]
    lib.lath_decoder_finish.argtypes = [p, c.POINTER(p), size, err]
    return lib


class Runtime:
    def __init__(self, library, threads=1):
        self.lib, self.err, self.rt = load(library), Error(), c.c_void_p()
        options = RuntimeOptions(c.sizeof(RuntimeOptions), None, threads, 0, None, None)
        check(self.lib.lath_runtime_create(options, c.byref(self.rt), self.err), self.err)

    def close(self):
        self.lib.lath_runtime_destroy(self.rt)


def check(status, err):
    if status:
        raise LathError(status, err.msg.decode(errors="replace"))


class Tokenizer:
    """One tokenizer and its reused results; one thread at a time."""

    def __init__(self, runtime, folder):
        self.lib, self.err, self.tok = runtime.lib, Error(), c.c_void_p()
        check(self.lib.lath_tokenizer_open(runtime.rt, str(folder).encode(), c.byref(self.tok), self.err), self.err)
        self.tokens, self.parts = Tokens(), Parts()
        self.options = EncodeOptions(c.sizeof(EncodeOptions), 1, 1, 0)
        self.text, self.len = c.c_void_p(), c.c_size_t()

    def close(self):
        self.lib.lath_tokens_release(self.tokens)
        self.lib.lath_parts_release(self.parts)
        self.lib.lath_tokenizer_close(self.tok)

    def size(self):
        return self.lib.lath_tokenizer_size(self.tok)

    def encode_into(self, data):
        """Encodes bytes into self.tokens with self.options: what is timed."""
        status = self.lib.lath_encode(self.tok, Text(data, len(data)), self.options, self.tokens, self.err)
        if status:
            check(status, self.err)

    def encode(self, data, add_special=True, parse_special=True):
        """ids, flat byte offsets, type ids."""
        self.options.add_special, self.options.parse_special = add_special, parse_special
        self.encode_into(data)
        t = self.tokens
        return t.ids[: t.n], t.offsets[: 2 * t.n], t.type_ids[: t.n]

    def encode_parts(self, texts, add_special=True, parse_special=True, max_tokens=0, strategy="longest_first", left=False,
                     stride=0):
        """A list of parts: ids, flat offsets, type ids, special mask."""
        options = PartsOptions(c.sizeof(PartsOptions), add_special, parse_special, max_tokens, TRUNCATION[strategy], left,
                               stride)
        array = (Text * len(texts))(*[Text(t, len(t)) for t in texts])
        p = self.parts
        check(self.lib.lath_encode_parts(self.tok, array, len(texts), options, p, self.err), self.err)
        spans = [(p.begin[i], p.begin[i + 1]) for i in range(p.n_parts)]
        return [(p.ids[b:e], p.offsets[2 * b : 2 * e], p.type_ids[b:e], p.special_mask[b:e]) for b, e in spans]

    def decode(self, ids, skip_special):
        array = (c.c_int32 * len(ids))(*ids)
        check(self.lib.lath_decode(self.tok, array, len(ids), skip_special, c.byref(self.text), c.byref(self.len), self.err),
              self.err)
        data = c.string_at(self.text, self.len.value)
        self.lib.lath_string_release(self.tok, self.text)
        return data

    def stream(self, ids, skip_special, steps):
        """Decodes ids in pushes of the given sizes (used in turn): the list of texts, the last one from finish."""
        d, out, at = c.c_void_p(), [], 0
        check(self.lib.lath_decoder_create(self.tok, skip_special, c.byref(d), self.err), self.err)
        try:
            while at < len(ids):
                part = ids[at : at + steps[len(out) % len(steps)]]
                at += len(part)
                array = (c.c_int32 * len(part))(*part)
                check(self.lib.lath_decoder_push(d, array, len(part), c.byref(self.text), c.byref(self.len), self.err),
                      self.err)
                out.append(c.string_at(self.text, self.len.value))
            check(self.lib.lath_decoder_finish(d, c.byref(self.text), c.byref(self.len), self.err), self.err)
            out.append(c.string_at(self.text, self.len.value))
        finally:
            self.lib.lath_decoder_destroy(d)
        return out
