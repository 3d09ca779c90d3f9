/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_config.c: any bytes as the configuration files of a model. The first byte says which:
 *
 *     'a'  config.json: parsed, the family found, its configuration read (no weights are there)
 *     'm'  modules.json                      of a directory whose other files are good
 *     'p'  1_Pooling/config.json
 *     's'  config_sentence_transformers.json
 *     'd'  2_Dense/config.json
 *     't'  sentence_bert_config.json
 *     'w'  tokenizer_config.json             (model_max_length)
 *     'i'  inference_config.json
 *
 * What is read must be inside the bounds that the engine goes on with; what is refused must say which file.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/engine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "broken promise: %s\n", what);
    abort();
}

/* ---------------------------------------------------------------------------------------------------- the directory */

enum { N_FILES = 7, PATH_ROOM = 512 };
static const struct {
    char letter;
    const char *name, *good;
} files[N_FILES] = {
    {'m', "modules.json",
     "[{\"path\": \"\", \"type\": \"sentence_transformers.models.Transformer\"},"
     " {\"path\": \"1_Pooling\", \"type\": \"sentence_transformers.models.Pooling\"},"
     " {\"path\": \"2_Dense\", \"type\": \"sentence_transformers.models.Dense\"},"
     " {\"path\": \"3_Normalize\", \"type\": \"sentence_transformers.models.Normalize\"}]"},
    {'p', "1_Pooling/config.json", "{\"pooling_mode\": \"mean\", \"word_embedding_dimension\": 30}"},
    {'s', "config_sentence_transformers.json",
     "{\"prompts\": {\"query\": \"query: \"}, \"default_prompt_name\": \"query\"}"},
    {'d', "2_Dense/config.json", "{\"in_features\": 30, \"out_features\": 19, \"bias\": true}"},
    {'t', "sentence_bert_config.json", "{\"max_seq_length\": 128, \"do_lower_case\": false}"},
    {'w', "tokenizer_config.json", "{\"model_max_length\": 512}"},
    {'i', "inference_config.json", "{\"eos_token_id\": 3, \"rope_table_max_seq_len\": 8192}"},
};

static char dir[256];

static void path_of(char path[PATH_ROOM], const char *name) { snprintf(path, PATH_ROOM, "%s/%s", dir, name); }

static void write_file(int i, const void *p, size_t n)
{
    char path[PATH_ROOM];
    path_of(path, files[i].name);
    FILE *f = fopen(path, "wb");
    require(f != NULL, "a file that can be written");
    require(fwrite(p, 1, n, f) == n, "room for the file");
    fclose(f);
}

static void remove_dir(void)
{
    char path[PATH_ROOM];
    for (int i = 0; i < N_FILES; i++) {
        path_of(path, files[i].name);
        unlink(path);
    }
    path_of(path, "1_Pooling");
    rmdir(path);
    path_of(path, "2_Dense");
    rmdir(path);
    rmdir(dir);
}

static void make_dir(void)
{
    char path[PATH_ROOM];
    const char *tmp = getenv("TMPDIR");
    if (*dir) return;
    snprintf(dir, sizeof(dir), "%s/lath-fuzz-XXXXXX", tmp && *tmp ? tmp : P_tmpdir);
    require(mkdtemp(dir) != NULL, "a temporary directory");
    atexit(remove_dir);
    path_of(path, "1_Pooling");
    require(mkdir(path, 0700) == 0, "a folder");
    path_of(path, "2_Dense");
    require(mkdir(path, 0700) == 0, "a folder");
    for (int i = 0; i < N_FILES; i++) write_file(i, files[i].good, strlen(files[i].good));
}

/* --------------------------------------------------------------------------------------------------------- promises */

static void check_st_config(const st_config *c)
{
    require(c->n_modes >= 1 && c->n_modes <= ST_MAX_MODES && c->n_steps >= 0 && c->n_steps <= ST_MAX_STEPS,
            "numbers of modes and steps");
    for (int32_t i = 0; i < c->n_modes; i++)
        require((int)c->modes[i] >= 0 && c->modes[i] < KERN_POOL_COUNT, "a pooling mode");
    require(c->encoder_dir && strncmp(c->encoder_dir, dir, strlen(dir)) == 0 &&
                !strstr(c->encoder_dir + strlen(dir), ".."),
            "the encoder inside the model");
    for (int32_t i = 0; i < c->n_steps; i++) {
        const st_step *s = &c->steps[i];
        if (s->kind != ST_DENSE) continue;
        require(s->d_in >= 1 && s->d_in <= 1 << 20 && s->d_out >= 1 && s->d_out <= 1 << 20, "sizes of a dense module");
        require((int)s->fn >= 0 && s->fn < KERN_FN_COUNT, "an activation");
        require(s->dir && strncmp(s->dir, dir, strlen(dir)) == 0 && !strstr(s->dir + strlen(dir), ".."),
                "a module inside the model");
    }
    require(c->max_seq_length >= 0 && c->max_seq_length <= INT32_MAX && c->truncate_dim >= 0 &&
                c->truncate_dim <= 1 << 20 && c->pooling_d >= 0,
            "limits");
    int found = c->default_prompt == NULL;
    for (int32_t i = 0; i < c->n_prompts; i++) {
        require(c->prompts[i].name && c->prompts[i].text && c->prompts[i].text[c->prompts[i].len] == 0,
                "a terminated prompt");
        found |= c->default_prompt && strcmp(c->prompts[i].name, c->default_prompt) == 0;
    }
    require(found, "the default prompt among the prompts");
}

static void check_error(const lath_error *err, lath_status st, const char *what)
{
    require(err->status == st && st != LATH_OK && strstr(err->msg, what) != NULL, "an error that names the file");
    require(st != LATH_ERR_NOMEM && st != LATH_ERR_IO, "a status that fits");
}

static void fuzz_inference(arena *a)
{
    char path[PATH_ROOM];
    lath_error err = {0};
    inference_config c;
    path_of(path, "inference_config.json");
    const lath_status st = inference_config_load(a, path, &c, &err);
    if (st == LATH_OK)
        require(c.eos_token_id >= -1 && c.rope_table_max_seq_len >= 0 && c.gpu_max_seq_len >= 1, "limits of inference");
    else
        check_error(&err, st, "inference_config.json");
}

static void fuzz_st_config(int i, const uint8_t *data, size_t size)
{
    arena a;
    lath_error err = {0};
    st_config c;
    int64_t window = -1;
    make_dir();
    write_file(i, data, size);
    arena_init(&a, alloc_default());
    lath_status st = st_config_load(&a, dir, &c, &err);
    if (st == LATH_OK)
        check_st_config(&c);
    else
        check_error(&err, st, files[i].letter == 'm' ? dir : files[i].name); /* modules.json may name any file */
    st = st_tokenizer_window(&a, dir, &window, &err);
    if (st == LATH_OK)
        require(window >= 0 && window < INT32_MAX, "a window");
    else
        check_error(&err, st, "tokenizer_config.json");
    fuzz_inference(&a);
    arena_deinit(&a);
    write_file(i, files[i].good, strlen(files[i].good));
}

static void check_delta(const arch_dims *x)
{
    if (x->n_k_heads == 0) return;
    require(x->n_k_heads >= 1 && x->n_v_heads >= 1 && x->n_v_heads % x->n_k_heads == 0, "heads of delta nets");
    require(x->d_k >= 1 && x->d_k <= 1 << 12 && x->d_v >= 1 && x->d_v <= 1 << 12, "widths of delta nets");
    require(x->conv_width >= 2 && x->conv_width <= KERN_CONV_WIDTH, "a width of the convolution");
}

static void check_model(const arch_model *m)
{
    const arch_dims *x = &m->dims;
    require(x->n_layers >= 1 && x->n_heads >= 1 && x->vocab_size >= 1 && x->max_positions >= 1 && x->n_types >= 0,
            "whole positive sizes");
    require(x->d_model >= 1 && x->d_model <= 1 << 16 && x->d_ff >= 1 && x->d_ff <= 1 << 18 && x->head_dim >= 1 &&
                x->head_dim <= 1 << 16 && x->n_kv_heads >= 1 && x->n_heads % x->n_kv_heads == 0,
            "widths");
    require(x->n_experts == 0 || (x->n_experts <= 1 << 12 && x->d_expert >= 1 && x->d_expert <= 1 << 18), "experts");
    check_delta(x);
    require(isfinite(m->lm_head.scale) && m->lm_head.scale >= 0 && isfinite(m->lm_head.softcap) &&
                m->lm_head.softcap >= 0,
            "an output head");
    require(x->activation != NULL, "an activation");
}

static void fuzz_config(const uint8_t *data, size_t size)
{
    arena a;
    json_value *config = NULL;
    const char *type = NULL;
    lath_error err = {0};
    arena_init(&a, alloc_default());
    lath_status st = json_parse(&a, "config.json", (const char *)data, size, NULL, &config, &err);
    if (st == LATH_OK) st = json_get_str(config, "model_type", "config.json", &type, &err);
    const arch_desc *d = st == LATH_OK ? arch_find(type ? type : "bert") : NULL;
    if (d) {
        arch_model m = {.desc = d, .mem = &a, .weights = arena_zero(&a, d->model_size)};
        st = d->parse(&m, config, "config.json", &err);
        if (st == LATH_OK) check_model(&m);
    }
    if (st != LATH_OK) check_error(&err, st, "config.json");
    arena_deinit(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    if (data[0] == 'a') fuzz_config(data + 1, size - 1);
    for (int i = 0; i < N_FILES; i++) {
        if (data[0] == (uint8_t)files[i].letter) fuzz_st_config(i, data + 1, size - 1);
    }
    return 0;
}
