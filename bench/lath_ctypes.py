# SPDX-License-Identifier: Apache-2.0
"""liblath through ctypes: just what the benchmarks need, after include/lath/lath.h."""

import ctypes as c


class Error(c.Structure):
    _fields_ = [("status", c.c_int), ("os_errno", c.c_int), ("item", c.c_int64), ("msg", c.c_char * 256)]


class RuntimeOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("allocator", c.c_void_p), ("n_threads", c.c_int32), ("isa", c.c_int),
                ("log", c.c_void_p), ("log_ctx", c.c_void_p)]


class Text(c.Structure):
    _fields_ = [("data", c.c_char_p), ("len", c.c_size_t)]


class EmbedResult(c.Structure):
    _fields_ = [("n_tokens", c.c_int32), ("truncated", c.c_int32)]


class LathError(Exception):
    pass


class Texts:
    """UTF-8 texts in the form that lath_embed takes; made once, outside what is timed, as a C caller has it."""

    def __init__(self, texts):
        self.bytes = [t.encode() for t in texts]
        self.array = (Text * len(texts))(*[Text(b, len(b)) for b in self.bytes])
        self.n = len(texts)


class Lath:
    """One runtime, model and embedder."""

    def __init__(self, library, model, threads):
        self.lib = lib = c.CDLL(library)
        p, err = c.c_void_p, c.POINTER(Error)
        lib.lath_runtime_create.argtypes = [c.POINTER(RuntimeOptions), c.POINTER(p), err]
        lib.lath_runtime_isa.argtypes, lib.lath_runtime_isa.restype = [p], c.c_char_p
        lib.lath_runtime_destroy.argtypes, lib.lath_runtime_destroy.restype = [p], None
        lib.lath_model_open.argtypes = [p, c.c_char_p, p, c.POINTER(p), err]
        lib.lath_model_close.argtypes, lib.lath_model_close.restype = [p], None
        lib.lath_embedder_create.argtypes = [p, p, c.POINTER(p), err]
        lib.lath_embedder_destroy.argtypes, lib.lath_embedder_destroy.restype = [p], None
        lib.lath_embedder_dim.argtypes, lib.lath_embedder_dim.restype = [p], c.c_int64
        lib.lath_embed.argtypes = [p, c.POINTER(Text), c.c_size_t, p, c.POINTER(EmbedResult), err]
        lib.lath_version.restype = c.c_char_p
        self.err, self.rt, self.model, self.embedder = Error(), p(), p(), p()
        options = RuntimeOptions(c.sizeof(RuntimeOptions), None, threads, 0, None, None)
        self._check(lib.lath_runtime_create(options, c.byref(self.rt), self.err))
        self._check(lib.lath_model_open(self.rt, str(model).encode(), None, c.byref(self.model), self.err))
        self._check(lib.lath_embedder_create(self.model, None, c.byref(self.embedder), self.err))
        self.dim = lib.lath_embedder_dim(self.embedder)
        self.version, self.isa = lib.lath_version().decode(), lib.lath_runtime_isa(self.rt).decode()

    def _check(self, status):
        if status:
            raise LathError(self.err.msg.decode(errors="replace"))

    def embed(self, texts, out, results=None):
        """out: a C-contiguous float32 array [n, dim], filled in place."""
        status = self.lib.lath_embed(self.embedder, texts.array, texts.n, out.ctypes.data, results, self.err)
        self._check(status)

    def close(self):
        self.lib.lath_embedder_destroy(self.embedder)
        self.lib.lath_model_close(self.model)
        self.lib.lath_runtime_destroy(self.rt)
