/* SPDX-License-Identifier: Apache-2.0
 *
 * test_rerank.c [CASE]: every directory of tests/golden/rerank (tiny random cross-encoders, made by tools/ref from the reference implementation): the
 * ids and types of pairs, logits, scores and order; then the invariants that hold without a reference: the logit of a pair has the same bits alone,
 * in any batch, at 1, 2 and 3 threads; negative controls show that the comparison can fail.
 */
#include <math.h>

#include "engine/engine.h"
#include "engine/judge.h"
#include "support/golden.h"
#include "support/test.h"

static const char *only; /* the program's argument: NULL for all cases */
static const double MAX_LOGIT = 1e-3, AIM_LOGIT = 2e-5, MAX_SCORE = 2e-4, GAP = 1e-3;
enum { MOST_PAIRS = 64, MOST_LABELS = 16 };

typedef struct pair {
    lath_text query, document;
    const char *prompt_name, *prompt;
    const json_value *ids, *types; /* types NULL: the model gets none */
    int64_t n_tokens, n_untruncated;
    float logits[MOST_LABELS], scores[MOST_LABELS];
} pair;

typedef struct rerank_case {
    char path[1024];
    const char *name;
    arena mem;
    int64_t n_labels, max_tokens;
    pair pairs[MOST_PAIRS];
    size_t n;
    lath_runtime *rt;
    lath_model *model;
} rerank_case;

/* ---------------------------------------------------------------------------------------------------------- loading */

static lath_text text_of(const json_value *row, const char *key)
{
    const json_value *v = json_get(row, key);
    assert_non_null(v);
    return (lath_text){v->u.string.data, v->u.string.len};
}

static void numbers(const json_value *row, const char *key, int64_t n, float *out)
{
    const json_value *a = json_get(row, key);
    assert_non_null(a);
    assert_int_equal(a->u.items.count, n);
    for (const json_value *v = a->u.items.first; v; v = v->next)
        *out++ = v->kind == JSON_INT ? (float)v->u.integer : (float)v->u.real;
}

static void load_pair(rerank_case *c, const json_value *row)
{
    lath_error err;
    pair *p = &c->pairs[c->n++];
    p->query = text_of(row, "query");
    p->document = text_of(row, "document");
    p->ids = json_get(row, "ids");
    p->types = json_get(row, "types");
    assert_ok(json_get_str(row, "prompt_name", c->name, &p->prompt_name, &err), err);
    assert_ok(json_get_str(row, "prompt", c->name, &p->prompt, &err), err);
    assert_ok(json_get_int(row, "n_tokens", c->name, 1, 1 << 30, &p->n_tokens, &err), err);
    assert_ok(json_get_int(row, "n_tokens_untruncated", c->name, 1, 1 << 30, &p->n_untruncated, &err), err);
    numbers(row, "logits", c->n_labels, p->logits);
    numbers(row, "scores", c->n_labels, p->scores);
}

static void open_model(rerank_case *c, int32_t threads, lath_isa isa, lath_load load)
{
    lath_error err;
    lath_runtime_options ro = LATH_RUNTIME_OPTIONS_INIT;
    lath_model_options mo = LATH_MODEL_OPTIONS_INIT;
    ro.n_threads = threads;
    ro.isa = isa;
    mo.load = load;
    assert_ok(lath_runtime_create(&ro, &c->rt, &err), err);
    assert_ok(lath_model_open(c->rt, c->path, &mo, &c->model, &err), err);
}

static void close_model(rerank_case *c)
{
    lath_model_close(c->model);
    lath_runtime_destroy(c->rt);
    c->model = NULL;
    c->rt = NULL;
}

static void load_case(rerank_case *c, const char *dir, const char *name)
{
    char file[1100];
    lath_error err;
    json_value *j;
    memset(c, 0, sizeof(*c));
    c->name = name;
    snprintf(c->path, sizeof(c->path), "%s/%s", dir, name);
    snprintf(file, sizeof(file), "%s/expected.json", c->path);
    arena_init(&c->mem, alloc_default());
    assert_ok(json_load(&c->mem, file, NULL, &j, &err), err);
    assert_ok(json_get_int(j, "num_labels", file, 1, MOST_LABELS, &c->n_labels, &err), err);
    assert_ok(json_get_int(j, "max_tokens", file, 1, 1 << 30, &c->max_tokens, &err), err);
    const json_value *pairs = json_get(j, "pairs");
    assert_non_null(pairs);
    assert_in_range(pairs->u.items.count, 4, MOST_PAIRS);
    for (const json_value *v = pairs->u.items.first; v; v = v->next) {
        const lath_text query = text_of(v, "query");
        if (query.len > 0) load_pair(c, v); /* an empty query, which the reference scores, is refused: test_refusals */
    }
}

/* Calls `check` with every case. */
static void each_case(void (*check)(rerank_case *c))
{
    arena mem;
    char dir[1000];
    size_t n, checked = 0;
    static rerank_case c;
    arena_init(&mem, alloc_default());
    test_path(dir, sizeof(dir), "golden", "rerank");
    const char **names = test_list_dirs(&mem, dir, &n);
    for (size_t i = 0; i < n; i++) {
        if (only && strcmp(only, names[i]) != 0) continue;
        load_case(&c, dir, names[i]);
        check(&c);
        arena_deinit(&c.mem);
        checked++;
    }
    if (checked == 0) fail_msg("%s has no %s", dir, only ? only : "case");
    arena_deinit(&mem);
}

/* ---------------------------------------------------------------------------------------------------------- scoring */

/* A reranker for the label, as the pair's prompt says. */
static lath_reranker *open_reranker(const rerank_case *c, const pair *p, int64_t label, int32_t batch_tokens)
{
    char number[24];
    lath_error err;
    lath_reranker *r;
    lath_rerank_options o = LATH_RERANK_OPTIONS_INIT;
    snprintf(number, sizeof(number), "%lld", (long long)label);
    o.label = c->n_labels > 1 ? number : NULL;
    o.prompt_name = p->prompt_name;
    o.prompt_text = p->prompt;
    o.batch_tokens = batch_tokens;
    assert_ok(lath_reranker_create(c->model, &o, &r, &err), err);
    return r;
}

static lath_rerank_result score_one(const rerank_case *c, const pair *p, int64_t label)
{
    lath_error err;
    lath_rerank_result res;
    lath_reranker *r = open_reranker(c, p, label, 0);
    assert_ok(lath_rerank(r, p->query, &p->document, 1, &res, &err), err);
    lath_reranker_destroy(r);
    return res;
}

static bool same_string(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

/* Pairs from `first` on that have its query and prompt. */
static size_t same_query(const rerank_case *c, size_t first)
{
    const pair *a = &c->pairs[first];
    size_t n = 1;
    for (; first + n < c->n; n++) {
        const pair *b = &c->pairs[first + n];
        if (a->query.len != b->query.len || memcmp(a->query.data, b->query.data, a->query.len) != 0) break;
        if (!same_string(a->prompt, b->prompt) || !same_string(a->prompt_name, b->prompt_name)) break;
    }
    return n;
}

/* n pairs of one query in one call. */
static void score_many(const rerank_case *c, size_t first, size_t n, int32_t batch_tokens, lath_rerank_result *out)
{
    lath_error err;
    lath_text documents[MOST_PAIRS];
    lath_reranker *r = open_reranker(c, &c->pairs[first], 0, batch_tokens);
    for (size_t i = 0; i < n; i++) documents[i] = c->pairs[first + i].document;
    assert_ok(lath_rerank(r, c->pairs[first].query, documents, n, out, &err), err);
    lath_reranker_destroy(r);
}

/* --------------------------------------------------------------------------------------------------- the reference */

static double check_pair(const rerank_case *c, const pair *p)
{
    double worst = 0;
    for (int64_t label = 0; label < c->n_labels; label++) {
        const lath_rerank_result res = score_one(c, p, label);
        const double d = fabs((double)res.logit - (double)p->logits[label]),
                     scale = fmax(1, fabs((double)p->logits[label])),
                     s = fabs((double)res.score - (double)p->scores[label]) / scale;
        if (!(d <= MAX_LOGIT * scale) || !(d <= AIM_LOGIT * scale) || !(s <= MAX_SCORE))
            fail_msg("%s: pair %zu \"%.40s\": logit %.7g, want %.7g; score %.7g, want %.7g", c->name,
                     (size_t)(p - c->pairs), p->document.data, (double)res.logit, (double)p->logits[label],
                     (double)res.score, (double)p->scores[label]);
        assert_int_equal(res.n_tokens, p->n_tokens);
        assert_int_equal(res.truncated, p->n_untruncated > p->n_tokens);
        worst = fmax(worst, d / scale);
    }
    return worst;
}

static double check_pairs(rerank_case *c, lath_isa isa, lath_load load)
{
    double worst = 0;
    open_model(c, 1, isa, load);
    assert_int_equal(c->model->labels.n ? c->model->labels.n : 1, c->n_labels);
    assert_int_equal(c->model->max_tokens, c->max_tokens);
    for (size_t i = 0; i < c->n; i++) worst = fmax(worst, check_pair(c, &c->pairs[i]));
    close_model(c);
    return worst;
}

static void logits_of(rerank_case *c)
{
    const double best = check_pairs(c, LATH_ISA_AUTO, LATH_LOAD_MAP),
                 ref = check_pairs(c, LATH_ISA_REF, LATH_LOAD_COPY);
    printf("    %-22s logits off by %.1e (best kernels), %.1e (reference kernels)\n", c->name, best, ref);
}

static void test_logits(void **state)
{
    (void)state;
    each_case(logits_of);
}

static void check_judged(const rerank_case *c, const pair *p)
{
    lath_error err;
    arena scratch;
    judge j;
    const char *prompt;
    size_t len, i = 0;
    arena_init(&scratch, alloc_default());
    assert_ok(judge_init(&j, c->model, &scratch, &err), err);
    assert_ok(st_choose_prompt(&c->model->st, p->prompt_name, p->prompt, &prompt, &len, &err), err);
    assert_ok(judge_set_query(&j, prompt, len, p->query.data, p->query.len, &err), err);
    assert_ok(judge_encode(&j, &scratch, p->document.data, p->document.len, c->max_tokens, &err), err);
    assert_int_equal(j.n, p->ids->u.items.count);
    assert_int_equal(j.n_untruncated, p->n_untruncated);
    for (const json_value *v = p->ids->u.items.first; v; v = v->next, i++)
        if (j.ids[i] != v->u.integer) fail_msg("%s: pair %zu: id %zu", c->name, (size_t)(p - c->pairs), i);
    judge_deinit(&j);
    arena_deinit(&scratch);
}

static void check_encoding(const rerank_case *c, const pair *p)
{
    static const tok_pair_options plain = {.add_special = true, .parse_special = true, .first_only = true};
    lath_error err;
    arena scratch;
    tok_parts parts = {0};
    buf query;
    const char *prompt;
    size_t len, i = 0;
    tok_pair_options o = plain;
    o.max_tokens = c->max_tokens;
    arena_init(&scratch, alloc_default());
    buf_init(&query, alloc_default(), 1 << 20);
    assert_ok(st_choose_prompt(&c->model->st, p->prompt_name, p->prompt, &prompt, &len, &err), err);
    buf_append(&query, prompt, len);
    buf_append(&query, p->query.data, p->query.len);
    const char *texts[] = {buf_cstr(&query), p->document.data};
    const size_t lens[] = {query.len, p->document.len};
    assert_ok(tok_encode_parts(c->model->tokenizer.tok, &scratch, texts, lens, 2, &o, &parts, &err), err);
    assert_int_equal(parts.e.n, p->ids->u.items.count);
    assert_int_equal(parts.e.n_untruncated, p->n_untruncated);
    for (const json_value *v = p->ids->u.items.first; v; v = v->next, i++)
        if (parts.e.ids[i] != v->u.integer) fail_msg("%s: pair %zu: id %zu", c->name, (size_t)(p - c->pairs), i);
    assert_int_equal(c->model->sends_types, p->types != NULL);
    if (p->types) {
        i = 0;
        for (const json_value *v = p->types->u.items.first; v; v = v->next, i++)
            if (parts.e.type_ids[i] != v->u.integer) fail_msg("%s: type %zu", c->name, i);
    }
    tok_parts_release(c->model->tokenizer.tok, &parts);
    buf_deinit(&query);
    arena_deinit(&scratch);
}

static void encodings_of(rerank_case *c)
{
    open_model(c, 1, LATH_ISA_AUTO, LATH_LOAD_MAP);
    for (size_t i = 0; i < c->n; i++) {
        if (c->model->judges)
            check_judged(c, &c->pairs[i]);
        else
            check_encoding(c, &c->pairs[i]);
    }
    close_model(c);
}

static void test_encodings(void **state)
{
    (void)state;
    each_case(encodings_of);
}

/* The order of a query's documents, where the reference's logits are clearly apart. */
static void order_of(rerank_case *c)
{
    lath_rerank_result res[MOST_PAIRS];
    size_t order[MOST_PAIRS], compared = 0;
    open_model(c, 2, LATH_ISA_AUTO, LATH_LOAD_MAP);
    for (size_t first = 0, n; first < c->n; first += n) {
        n = same_query(c, first);
        score_many(c, first, n, 0, res);
        lath_rerank_order(res, n, order);
        for (size_t i = 0; i + 1 < n; i++, compared++) {
            const float a = c->pairs[first + order[i]].logits[0], b = c->pairs[first + order[i + 1]].logits[0];
            if (a < b - (float)GAP)
                fail_msg("%s: pair %zu before %zu", c->name, first + order[i], first + order[i + 1]);
            assert_true(res[order[i]].score >= res[order[i + 1]].score);
        }
    }
    assert_true(compared > 0);
    close_model(c);
}

static void test_order(void **state)
{
    (void)state;
    each_case(order_of);
}

/* ---------------------------------------------------------------------------------------------------- same bits always */

static void bits_of(rerank_case *c)
{
    static const int32_t budgets[] = {0, 1, 40, 10000};
    lath_rerank_result alone[MOST_PAIRS], many[MOST_PAIRS];
    open_model(c, 1, LATH_ISA_AUTO, LATH_LOAD_MAP);
    for (size_t i = 0; i < c->n; i++) alone[i] = score_one(c, &c->pairs[i], 0);
    close_model(c);
    for (int32_t threads = 1; threads <= 3; threads++) {
        open_model(c, threads, LATH_ISA_AUTO, LATH_LOAD_MAP);
        for (size_t b = 0; b < sizeof(budgets) / sizeof(budgets[0]); b++) {
            for (size_t first = 0, n; first < c->n; first += n) {
                n = same_query(c, first);
                score_many(c, first, n, budgets[b], many);
                if (memcmp(many, alone + first, n * sizeof(many[0])) != 0)
                    fail_msg("%s: %d threads, batches of %d tokens: other bits than alone", c->name, threads,
                             budgets[b]);
            }
        }
        close_model(c);
    }
}

static void test_bits(void **state)
{
    (void)state;
    each_case(bits_of);
}

/* ---------------------------------------------------------------------------------------------------- negative controls */

static void controls_of(rerank_case *c)
{
    double swapped = 0, untyped = 0;
    bool two_types = false;
    open_model(c, 1, LATH_ISA_AUTO, LATH_LOAD_MAP);
    for (size_t i = 0; i < c->n; i++) {
        pair p = c->pairs[i];
        if (p.document.len == 0 || p.query.len == p.document.len) continue;
        p.query = c->pairs[i].document;
        p.document = c->pairs[i].query;
        swapped = fmax(swapped, fabs((double)score_one(c, &p, 0).logit - (double)p.logits[0]));
        for (const json_value *v = p.types ? p.types->u.items.first : NULL; v; v = v->next)
            two_types |= v->u.integer == 1;
    }
    if (!(swapped > 10 * MAX_LOGIT))
        fail_msg("%s: query and document swapped: logits the same to %g", c->name, swapped);
    if (two_types) {
        c->model->sends_types = false;
        for (size_t i = 0; i < c->n; i++)
            untyped = fmax(untyped, fabs((double)score_one(c, &c->pairs[i], 0).logit - (double)c->pairs[i].logits[0]));
        if (!(untyped > 10 * MAX_LOGIT)) fail_msg("%s: without token types: logits the same to %g", c->name, untyped);
    }
    close_model(c);
}

static void test_controls(void **state)
{
    (void)state;
    each_case(controls_of);
}

/* What the reference scores and lath does not: an empty query. Several labels and none asked for. */
static void refusals_of(rerank_case *c)
{
    lath_error err;
    lath_rerank_result res;
    lath_reranker *r;
    static const lath_text blanks[] = {{"", 0}, {NULL, 0}, {" \n\t", 3}};
    open_model(c, 1, LATH_ISA_AUTO, LATH_LOAD_MAP);
    r = open_reranker(c, &c->pairs[0], 0, 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(lath_rerank(r, blanks[i], &c->pairs[0].document, 1, &res, &err), LATH_ERR_INPUT);
        assert_int_equal(err.item, -1);
    }
    assert_ok(lath_rerank(r, c->pairs[0].query, &c->pairs[0].document, 1, &res, &err), err);
    lath_reranker_destroy(r);
    if (c->n_labels > 1) assert_int_equal(lath_reranker_create(c->model, NULL, &r, &err), LATH_ERR_USAGE);
    close_model(c);
}

static void test_refusals(void **state)
{
    (void)state;
    each_case(refusals_of);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_encodings), cmocka_unit_test(test_logits),   cmocka_unit_test(test_order),
        cmocka_unit_test(test_bits),      cmocka_unit_test(test_controls), cmocka_unit_test(test_refusals),
    };
    only = argc > 1 ? argv[1] : NULL;
    return TEST_RUN(tests);
}
