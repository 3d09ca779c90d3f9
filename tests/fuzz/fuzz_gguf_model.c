/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_gguf_model.c: any bytes as the GGUF file of a whole model: metadata to a configuration, the table of weights, tokenizer, turns. What opens
 * says sizes that its tensors have, and a text goes through it, and a session's tokens; what is refused names the file.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SESSION_CTX = 16 };

static char path[256];
static lath_runtime *rt;

static void require(int holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "broken promise: %s\n", what);
    abort();
}

static void end(void)
{
    lath_runtime_destroy(rt);
    unlink(path);
}

static void begin(void)
{
    const char *tmp = getenv("TMPDIR");
    lath_runtime_options o = LATH_RUNTIME_OPTIONS_INIT;
    if (rt) return;
    snprintf(path, sizeof(path), "%s/lath-fuzz-%d.gguf", tmp && *tmp ? tmp : P_tmpdir, (int)getpid());
    o.n_threads = 1;
    require(lath_runtime_create(&o, &rt, NULL) == LATH_OK, "a runtime");
    atexit(end);
}

static void check_model(const lath_model *m)
{
    const arch_dims *d = &m->arch.dims;
    lath_model_info info = {.struct_size = sizeof(info)};
    lath_error err = {0};
    int32_t n;
    require(lath_model_get_info(m, &info, &err) == LATH_OK, "facts");
    require(info.n_layers >= 1 && info.n_layers <= info.n_tensors && info.n_unused < info.n_tensors,
            "layers of tensors");
    require(d->n_heads >= 1 && d->n_kv_heads >= 1 && d->n_heads % d->n_kv_heads == 0 && d->head_dim >= 1, "heads");
    require((uint64_t)d->vocab_size * (uint64_t)d->d_model <= info.file_bytes * 256, "embeddings inside the file");
    for (int32_t i = 0; i < info.n_tensors; i++) {
        lath_tensor_info t;
        require(lath_model_get_tensor(m, i, &t, &err) == LATH_OK && t.bytes <= info.file_bytes, "a tensor of the file");
    }
    const int32_t *ends = model_end_ids(m, &n);
    for (int32_t i = 0; i < n; i++) require(ends[i] >= 0, "the id of a token");
    require(!model_chat_template(m) || strlen(model_chat_template(m)) <= info.file_bytes, "a template of the file");
}

static void run_text(const lath_model *m)
{
    lath_embedder *e = NULL;
    lath_error err = {0};
    lath_status st = lath_embedder_create(m, NULL, &e, &err);
    if (st == LATH_OK) {
        const lath_text text = {"a b", 3};
        float *v = calloc((size_t)lath_embedder_dim(e), sizeof(float));
        require(v != NULL, "memory");
        st = lath_embed(e, &text, 1, v, NULL, &err);
        for (int64_t i = 0; st == LATH_OK && i < lath_embedder_dim(e); i++) require(isfinite(v[i]), "finite numbers");
        free(v);
    }
    require(st == LATH_OK || (err.status == st && strlen(err.msg) > 0), "an error with a message");
    lath_embedder_destroy(e);
}

/* Tokens through a session: some at once, one, some again from an earlier place. */
static lath_status play(lath_session *s, lath_error *err)
{
    static const int32_t ids[4] = {0};
    const float *logits;
    TRY(lath_session_append(s, ids, 4, err));
    TRY(lath_session_append(s, ids, 1, err));
    require(lath_session_size(s) == 5, "five tokens");
    require(lath_session_rewind(s, 3) <= 3, "three tokens, or fewer");
    TRY(lath_session_append(s, ids, 2, err));
    TRY(lath_session_logits(s, &logits, err));
    for (int32_t i = 0; i < s->model->arch.dims.vocab_size; i++) require(isfinite(logits[i]), "finite logits");
    return LATH_OK;
}

static void run_session(const lath_model *m)
{
    lath_session_options o = LATH_SESSION_OPTIONS_INIT;
    lath_session *s = NULL;
    lath_error err = {0};
    if (m->arch.dims.max_positions < SESSION_CTX) return;
    o.ctx = SESSION_CTX;
    lath_status st = lath_session_create(m, &o, &s, &err);
    require(st == LATH_OK || st == LATH_ERR_UNSUPPORTED || st == LATH_ERR_FORMAT, "a session, or a reason why not");
    if (st == LATH_OK) st = play(s, &err);
    require(st == LATH_OK || (err.status == st && strlen(err.msg) > 0), "an error with a message");
    lath_session_destroy(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lath_model *m = NULL;
    lath_error err = {0};
    begin();
    FILE *f = fopen(path, "wb");
    require(f && fwrite(data, 1, size, f) == size && fclose(f) == 0, "a file");
    const lath_status st = lath_model_open(rt, path, NULL, &m, &err);
    if (st == LATH_OK) {
        check_model(m);
        run_text(m);
        run_session(m);
    } else {
        require(m == NULL && err.status == st && strstr(err.msg, ".gguf") != NULL, "an error that names the file");
        require(st != LATH_ERR_IO, "a status that fits");
    }
    lath_model_close(m);
    return 0;
}
