/* SPDX-License-Identifier: Apache-2.0
 *
 * vindex.h: a vindex, a model's FFNs as a directory of features (docs/formats/vindex.md):
 *
 *     index.json    what there is: level, configuration, place and shape of everything, checksums; ends with its own
 *     gate.bin      rows of the gate matrices, layer by layer      \
 *     up.bin        rows of the up matrices                         | a row is a feature
 *     down.bin      columns of the down matrices, as rows          /
 *     out.bin       the down matrices as they are: at level all
 *     tokens.bin    what each feature writes: {id, product} of its likeliest tokens
 *     tensors.bin   the other tensors of the model, as its files have them
 *     and copies of the small files beside a model
 *
 * It is made under the name DIR.part and renamed when it is whole. Everything that index.json says is checked against the files when it is opened; their
 * bytes are checked by vindex_verify only. The reader is immutable.
 */
#ifndef LATH_STORE_VINDEX_H
#define LATH_STORE_VINDEX_H

#include "base/hash.h"
#include "base/json.h"
#include "store/gguf.h"
#include "tensor/tensor.h"

typedef enum vindex_file {
#define VINDEX_FILE(name, file, level) VINDEX_##name,
#include "store/vindex.def"
#undef VINDEX_FILE
    VINDEX_N_FILES
} vindex_file;

/* What an index can be used for; each has all that is in those before. */
typedef enum vindex_level {
    VINDEX_BROWSE,
    VINDEX_ATTENTION,
    VINDEX_INFERENCE,
    VINDEX_ALL,
    VINDEX_N_LEVELS
} vindex_level;

enum { VINDEX_VERSION = 1, VINDEX_TOP = 10, VINDEX_ALIGN = 64, VINDEX_MAX_LAYERS = 4096 };

/* Before the data of each .bin file; numbers are little-endian. */
typedef struct vindex_header {
    char magic[4]; /* "LVIX" */
    uint32_t version, kind, zero;
    uint64_t bytes;     /* of the file */
    uint64_t source[2]; /* the model's identity */
    uint8_t pad[24];
} vindex_header;
_Static_assert(sizeof(vindex_header) == VINDEX_ALIGN, "a header is 64 bytes");

/* One of a feature's tokens. */
typedef struct vindex_token {
    int32_t id;
    float product; /* row `id` of the output head times what the feature writes */
} vindex_token;
_Static_assert(sizeof(vindex_token) == 8, "8 bytes a token");

/* What is said of an index as a whole. */
typedef struct vindex_facts {
    vindex_level level;
    dtype rows;             /* element type of gate, up, down and out */
    const char *model_type; /* of config */
    const json_value *config;
    uint32_t stored;    /* bits of arch_stored */
    bool gguf_names;    /* tensors are called as in GGUF files, and gguf.keys has the keys of one */
    const char *source; /* the last name of the model's path */
    uint64_t identity[2];
    int32_t ffn_tensors; /* of the model, that the rows were made of; */
    uint64_t ffn_bytes;  /* their bytes there */
    int32_t n_layers, vocab_size;
    int64_t d_model;
} vindex_facts;

typedef struct vindex vindex;

/* DIR has an index.json: of what kind vindex_open says. */
bool vindex_is_dir(const char *dir);
/* LATH_ERR_NOT_FOUND: no index, or one that was not finished (named); _FORMAT: damaged, cut, put together from several; _UNSUPPORTED: of another version. */
lath_status vindex_open(const lath_allocator *alloc, const char *dir, file_mode mode, vindex **out, lath_error *err);
void vindex_close(vindex *x); /* NULL is allowed */
const vindex_facts *vindex_get_facts(const vindex *x);
const char *vindex_dir(const vindex *x);
const char *vindex_name(const vindex *x); /* the path of index.json */
const char *vindex_level_name(vindex_level level);
/* false: there is no level of the name. */
bool vindex_level_parse(const char *name, vindex_level *out);
/* LATH_ERR_UNSUPPORTED, with what it lacks for `what`, where the index is of a lower level. */
lath_status vindex_need(const vindex *x, vindex_level level, const char *what, lath_error *err);

/* Rows of a layer: [features, d_model], of VINDEX_OUT [d_model, features]; NULL: the index has none. */
const tensor *vindex_rows(const vindex *x, vindex_file file, int32_t layer);
int64_t vindex_features(const vindex *x, int32_t layer);
/* Of a layer of experts how many: their features come one expert behind the other. 0: it is one FFN. */
int32_t vindex_experts(const vindex *x, int32_t layer);
/* The tokens of a feature: [VINDEX_TOP], best first, id -1 behind the last. */
const vindex_token *vindex_tokens(const vindex *x, int32_t layer, int64_t feature);
/* The tensors beside, [*n]. */
const tensor *vindex_tensors(const vindex *x, int32_t *n);
/* NULL: the index does not have the file. */
const file_map *vindex_map(const vindex *x, vindex_file file);
/* The keys of the GGUF file that it was made of; NULL: it was made of a directory. */
gguf *vindex_meta(const vindex *x);
uint64_t vindex_bytes(const vindex *x); /* of all files that it lists */
size_t vindex_private_bytes(const vindex *x);
/* The hash of index.json, which has those of all others. */
hash128 vindex_hash(const vindex *x);
/* The layer's rows will be wanted soon. */
void vindex_ahead(const vindex *x, int32_t layer);

/* Says of each listed file whether its bytes are those that were written. */
typedef void (*vindex_verify_fn)(void *ctx, const char *file, uint64_t bytes, int ok);
/* Reads everything. LATH_ERR_FORMAT names the first file that is at fault. */
lath_status vindex_verify(const vindex *x, vindex_verify_fn fn, void *ctx, lath_error *err);

#endif
