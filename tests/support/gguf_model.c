/* SPDX-License-Identifier: Apache-2.0
 * gguf_model.c: see gguf_model.h. */
#include "support/gguf_model.h"

#include "support/test.h"

enum { D = 8, FF = 12, HEADS = 4, KV = 2, F32 = 0 };

typedef struct key {
    const char *name;
    gguf_kind kind;
    int64_t number;
    const char *text;
} key;

static const key keys[] = {
    {"general.architecture", GGUF_STRING, 0, "llama"},
    {"general.type", GGUF_STRING, 0, "model"},
    {"llama.context_length", GGUF_U32, 64, NULL},
    {"llama.embedding_length", GGUF_U32, D, NULL},
    {"llama.block_count", GGUF_U32, GGUF_MODEL_LAYERS, NULL},
    {"llama.feed_forward_length", GGUF_U32, FF, NULL},
    {"llama.attention.head_count", GGUF_U32, HEADS, NULL},
    {"llama.attention.head_count_kv", GGUF_U32, KV, NULL},
    {"llama.attention.layer_norm_rms_epsilon", GGUF_F32, 0, NULL},
    {"llama.rope.freq_base", GGUF_F32, 10000, NULL},
    {"tokenizer.ggml.model", GGUF_STRING, 0, "llama"},
    {"tokenizer.ggml.bos_token_id", GGUF_U32, 1, NULL},
    {"tokenizer.ggml.eos_token_id", GGUF_U32, 2, NULL},
    {"tokenizer.ggml.unknown_token_id", GGUF_U32, 0, NULL},
};

static void put_key(gguf_file_maker *f, const key *k)
{
    if (k->kind == GGUF_STRING)
        gguf_make_text(f, k->name, k->text);
    else if (k->kind == GGUF_F32)
        gguf_make_f32(f, k->name, k->number ? (float)k->number : 1e-5f);
    else
        gguf_make_int(f, k->name, k->kind, k->number);
}

static void put_change(gguf_file_maker *f, const gguf_change *c)
{
    if (c->kind == GGUF_ARRAY)
        gguf_make_ints(f, c->key, GGUF_U32, c->list, c->n_list);
    else if (c->kind != GGUF_KIND_COUNT)
        put_key(f, &(key){c->key, c->kind, c->number, c->text});
}

static void put_keys(gguf_file_maker *f, const gguf_change *c)
{
    static const char *const tokens[GGUF_MODEL_TOKENS] = {"<unk>", "<s>", "</s>", "\xe2\x96\x81", "a", "b", "c", "d"};
    static const int64_t types[GGUF_MODEL_TOKENS] = {2, 3, 3, 1, 1, 1, 1, 1};
    static const float scores[GGUF_MODEL_TOKENS] = {0};
    bool changed = c->key == NULL;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const bool this_one = c->key && strcmp(c->key, keys[i].name) == 0;
        if (this_one)
            put_change(f, c);
        else
            put_key(f, &keys[i]);
        changed |= this_one;
    }
    if (!changed) put_change(f, c);
    if (c->key && strcmp(c->key, "tokenizer.ggml.tokens") == 0) return;
    gguf_make_texts(f, "tokenizer.ggml.tokens", tokens, GGUF_MODEL_TOKENS);
    gguf_make_f32s(f, "tokenizer.ggml.scores", scores, GGUF_MODEL_TOKENS);
    gguf_make_ints(f, "tokenizer.ggml.token_type", GGUF_I32, types, GGUF_MODEL_TOKENS);
}

static void put_tensor(gguf_file_maker *f, const gguf_change *c, const char *name, uint64_t rows, uint64_t cols,
                       bool *changed)
{
    if (!c->tensor || strcmp(c->tensor, name) != 0) {
        gguf_make_tensor(f, name, F32, rows, cols, NULL);
        return;
    }
    *changed = true;
    if (c->type >= 0) gguf_make_tensor(f, name, (uint32_t)c->type, c->rows, c->cols, c->data);
}

static void put_layer(gguf_file_maker *f, const gguf_change *c, int layer, bool *changed)
{
    static const struct {
        const char *name;
        uint64_t rows, cols;
    } tensors[] = {{"attn_norm", 0, D},  {"ffn_norm", 0, D},   {"attn_q", D, D},
                   {"attn_k", D / 2, D}, {"attn_v", D / 2, D}, {"attn_output", D, D},
                   {"ffn_gate", FF, D},  {"ffn_up", FF, D},    {"ffn_down", D, FF}};
    for (size_t i = 0; i < sizeof(tensors) / sizeof(tensors[0]); i++) {
        char name[64];
        snprintf(name, sizeof(name), "blk.%d.%s.weight", layer, tensors[i].name);
        put_tensor(f, c, name, tensors[i].rows, tensors[i].cols, changed);
    }
}

void gguf_model_make(gguf_file_maker *f, const gguf_change *c)
{
    static const gguf_change none = {0};
    if (!c) c = &none;
    bool changed = c->tensor == NULL;
    put_keys(f, c);
    put_tensor(f, c, "token_embd.weight", GGUF_MODEL_TOKENS, D, &changed);
    put_tensor(f, c, "output.weight", GGUF_MODEL_TOKENS, D, &changed);
    put_tensor(f, c, "output_norm.weight", 0, D, &changed);
    for (int i = 0; i < GGUF_MODEL_LAYERS; i++) put_layer(f, c, i, &changed);
    if (!changed) gguf_make_tensor(f, c->tensor, (uint32_t)c->type, c->rows, c->cols, c->data);
}
