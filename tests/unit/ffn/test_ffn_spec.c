/* SPDX-License-Identifier: Apache-2.0
 *
 * test_ffn_spec.c: texts that say what stands in for FFNs: what each layer gets, what is refused and how it is named, and every failing allocation.
 */
#include "ffn/ffn_backends.h"
#include "ffn/ffn_spec.h"
#include "support/test.h"
#include "support/walk_rows.h"

enum { N_LAYERS = 6, D = 8, FEATURES = 20, SPARSE_LAYER = 4 /* has experts */ };

/* An FFN of four layers of features, one of experts, one of features; nobody runs it. */
typedef struct fake {
    ffn base;
    weight w;
    tensor t;
    float numbers[FEATURES * D];
    nn_linear_w up, down;
    ffn_env env;
    int opened, remote, held, left; /* indices and allocations that are open; allocations until one fails */
    int64_t d_index;
} fake;

static size_t fake_memory(const ffn *self, const backend_ops *ops, int64_t n_tok)
{
    (void)self, (void)ops, (void)n_tok;
    return 0;
}
static lath_status fake_forward(ffn *self, const fwd *f, int32_t layer, view x, float *memory, view out)
{
    (void)self, (void)f, (void)layer, (void)x, (void)memory, (void)out;
    return LATH_OK;
}
static bool fake_parts(ffn *self, int32_t layer, ffn_parts *out)
{
    fake *m = (fake *)self;
    *out = (ffn_parts){.up = &m->up, .down = &m->down, .fn = KERN_FN_RELU, .d_ff = FEATURES};
    return layer != SPARSE_LAYER;
}
static const ffn_ops fake_ops = {
    .name = "dense", .memory_floats = fake_memory, .forward = fake_forward, .parts = fake_parts};

typedef struct index_open {
    fake *m;
    ffn_walk_source rows;
} index_open;
static void close_index(void *ctx)
{
    index_open *o = ctx;
    o->m->opened--;
    o->rows.close(o->rows.ctx);
    free(o);
}
static lath_status open_index(void *ctx, const char *dir, ffn_walk_source *out, lath_error *err)
{
    fake *m = ctx;
    if (strcmp(dir, "a,b\\c") != 0 && strcmp(dir, "DIR") != 0)
        return err_set(err, LATH_ERR_NOT_FOUND, "%s: no such directory", dir);
    index_open *o = calloc(1, sizeof(*o));
    assert_non_null(o);
    *o = (index_open){m, test_walk_source(&m->base, N_LAYERS, D, KERN_FN_RELU, false)};
    m->opened++;
    *out = o->rows;
    out->d_model = m->d_index;
    out->close = close_index;
    out->ctx = o;
    return LATH_OK;
}
static lath_status open_remote(void *ctx, const char *url, ffn_wire wire, const ffn_remote_of *of, ffn **out,
                               lath_error *err)
{
    fake *m = ctx;
    assert_string_equal(url, "http://127.0.0.1:9");
    assert_true(of->n_layers == N_LAYERS && of->d_model == D);
    m->remote += of->last - of->first + 1 + 100 * (int)wire;
    return ffn_highway_open(false, m->env.alloc, out, err);
}

static void *count_alloc(void *ctx, size_t size, size_t align)
{
    fake *m = ctx;
    if (m->left-- == 0) return NULL;
    m->held++;
    return alloc_default()->alloc(alloc_default()->ctx, size, align);
}
static void count_release(void *ctx, void *p, size_t size)
{
    ((fake *)ctx)->held--;
    alloc_default()->release(alloc_default()->ctx, p, size);
}

static void open_fake(fake *m, lath_allocator *alloc)
{
    memset(m, 0, sizeof(*m));
    *alloc = (lath_allocator){.alloc = count_alloc, .release = count_release, .ctx = m};
    m->left = -1;
    m->d_index = D;
    m->base.ops = &fake_ops;
    m->t = (tensor){.name = "t", .type = DTYPE_F32, .rank = 2, .data = m->numbers};
    weight_init(&m->up.w, &m->t, "f", 0, FEATURES, D);
    weight_init(&m->down.w, &m->t, "f", 0, D, FEATURES);
    m->env = (ffn_env){.model = &m->base,
                       .n_layers = N_LAYERS,
                       .d_model = D,
                       .alloc = alloc,
                       .cache_bytes = 4096,
                       .open_index = open_index,
                       .index_ctx = m,
                       .open_remote = open_remote,
                       .remote_ctx = m};
}

typedef struct good {
    const char *text, *layers; /* descriptions, "; " between layers of different ones */
} good;
static const good goods[] = {
    {"dense", "dense"},
    {"highway", "highway"},
    {"attention-only", "attention-only"},
    {"cached", "cached dense"},
    {"cached:highway", "cached highway"},
    {"gain:0.5", "gain 0.5"},
    {"gain:-2e0", "gain -2"},
    {"remote:http://127.0.0.1:9", "highway"},
    {"remote:http://127.0.0.1:9,wire=json", "highway"},
    {"0-3=sparse:7,4-=dense", "sparse, k=7; dense"},
    {"5=sparse:20,0-4=gain:3", "gain 3; sparse, k=20"},
    {"0=walk:DIR,k=5,1-3=walk:DIR,4-=dense", "walk of rows, k=5 of 20 features; walk of rows, all features; dense"},
    {"0-3=walk:a\\,b\\c,4=highway,5=cached:walk:DIR,k=20",
     "walk of rows, all features; highway; cached walk of rows, k=20 of 20 features"},
    {"0-3=dense,4-5=attention-only", "dense; attention-only"},
};

static void layers_text(const ffn_choice *c, const fake *m, buf *out)
{
    char last[200] = "";
    for (int32_t i = 0; i < N_LAYERS; i++) {
        buf one;
        buf_init(&one, alloc_default(), 1000);
        ffn_choice_describe(c, &m->env, i, &one);
        if (strcmp(last, buf_cstr(&one)) != 0) buf_printf(out, "%s%s", i ? "; " : "", buf_cstr(&one));
        snprintf(last, sizeof(last), "%s", buf_cstr(&one));
        buf_deinit(&one);
    }
}

static void test_good(void **state)
{
    static fake m;
    lath_allocator alloc;
    (void)state;
    for (size_t i = 0; i < sizeof(goods) / sizeof(goods[0]); i++) {
        ffn_choice c;
        lath_error err;
        buf text;
        open_fake(&m, &alloc);
        buf_init(&text, alloc_default(), 1000);
        assert_ok(ffn_spec_open(&m.env, goods[i].text, &c, &err), err);
        layers_text(&c, &m, &text);
        assert_string_equal(buf_cstr(&text), goods[i].layers);
        assert_true((strcmp(goods[i].text, "dense") == 0) == (!c.ffn && !c.gains));
        if (strstr(goods[i].text, "remote"))
            assert_int_equal(m.remote, N_LAYERS + (strstr(goods[i].text, "json") ? 200 : 0));
        ffn_choice_close(&c);
        ffn_choice_close(&c); /* zero by now */
        assert_int_equal(m.held, 0);
        assert_int_equal(m.opened, 0);
        buf_deinit(&text);
    }
}

typedef struct bad {
    const char *text;
    lath_status status;
    const char *says; /* a part of the message */
} bad;
static const bad bads[] = {
    {"", LATH_ERR_USAGE, "ffn: \"\" is not known"},
    {"spares:4", LATH_ERR_USAGE, "ffn: \"spares:4\" is not known: dense, sparse:K, walk:DIR[,k=K], cached"},
    {"dense:1", LATH_ERR_USAGE, "\"dense:1\" is not known"},
    {"sparse", LATH_ERR_USAGE, "\"sparse\" alone: want sparse:K"},
    {"0-=walk", LATH_ERR_USAGE, "\"walk\" alone: want sparse:K, walk:DIR"},
    {"sparse:", LATH_ERR_USAGE, "ffn: \"sparse:\": \"\" is no number of features"},
    {"sparse:1x", LATH_ERR_USAGE, "\"1x\" is no number of features"},
    {"sparse:-1", LATH_ERR_USAGE, "\"-1\" is no number of features"},
    {"sparse:99999999999999999999", LATH_ERR_USAGE, "is no number of features"},
    {"0-3=sparse:0,4-=dense", LATH_ERR_USAGE, "ffn: \"sparse:0\": k of 0: at least one feature"},
    {"0-3=sparse:21,4-=dense", LATH_ERR_USAGE, "sparse: k of 21: layer 0 has 20 features"},
    {"sparse:5", LATH_ERR_UNSUPPORTED, "sparse: layer 4 has experts"},
    {"walk:DIR", LATH_ERR_UNSUPPORTED, "rows: layer 4 has no rows of features to walk over"},
    {"0-3=walk:DIR,k=21,4-=dense", LATH_ERR_USAGE, "rows: k of 21: layer 0 has 20 features"},
    {"0-3=walk:DIR,k=0,4-=dense", LATH_ERR_USAGE, "ffn: \"walk:DIR\": k of 0"},
    {"0-3=walk:DIR,n=3,4-=dense", LATH_ERR_USAGE, "ffn: \"walk:DIR\": option \"n=3\" is not known, only k=K"},
    {"0-3=walk:DIR,k=3,k=4,4-=dense", LATH_ERR_USAGE, "ffn: \"k=4\": no item has a second option"},
    {"0-3=walk:GONE,4-=dense", LATH_ERR_NOT_FOUND, "GONE: no such directory"},
    {"walk:", LATH_ERR_USAGE, "want the directory of an index"},
    {"dense,k=3", LATH_ERR_USAGE, "ffn: \"dense\" has no option \"k=3\""},
    {"dense,", LATH_ERR_USAGE, "ffn: \"dense\" has no option \"\""},
    {"gain:0", LATH_ERR_USAGE, "ffn: \"gain:0\": want a number other than 0"},
    {"gain:x", LATH_ERR_USAGE, "ffn: \"gain:x\": want a number"},
    {"gain:1e99", LATH_ERR_USAGE, "ffn: \"gain:1e99\": want a number"},
    {"gain:nan", LATH_ERR_USAGE, "want a number"},
    {"cached:gain:2", LATH_ERR_USAGE, "a gain is no FFN that can be cached"},
    {"cached:cached", LATH_ERR_USAGE, "a cache of a cache"},
    {"0=cached:cached:sparse:2,1-=dense", LATH_ERR_USAGE, "a cache of a cache"},
    {"cached:", LATH_ERR_USAGE, "ffn: \"\" is not known"},
    {"remote:http://x,wire=f8", LATH_ERR_USAGE, "option \"wire=f8\" is not known, only wire=f32, f16 or json"},
    {"0-2=dense", LATH_ERR_USAGE, "ffn: layer 3 has no route"},
    {"1-=dense", LATH_ERR_USAGE, "ffn: layer 0 has no route"},
    {"0-2=dense,2-=highway", LATH_ERR_USAGE, "ffn: layer 2 has two routes"},
    {"0-6=dense", LATH_ERR_USAGE, "ffn: \"0-6=dense\": the model has layers 0 to 5"},
    {"6=dense", LATH_ERR_USAGE, "the model has layers 0 to 5"},
    {"9-=dense", LATH_ERR_USAGE, "the model has layers 0 to 5"},
    {"3-1=dense", LATH_ERR_USAGE, "ffn: \"3-1=dense\": the first layer is behind the last"},
    {"0-x=dense", LATH_ERR_USAGE, "ffn: \"0-x=dense\": want LAYER=, FIRST-LAST= or FIRST-="},
    {"0..3=dense", LATH_ERR_USAGE, "want LAYER="},
    {"0", LATH_ERR_USAGE, "want LAYER="},
    {"0-=", LATH_ERR_USAGE, "\"\" is not known"},
    {"dense,0-=highway", LATH_ERR_USAGE, "ffn: a route behind an item that is for all layers"},
};

static void test_bad(void **state)
{
    static fake m;
    lath_allocator alloc;
    (void)state;
    for (size_t i = 0; i < sizeof(bads) / sizeof(bads[0]); i++) {
        ffn_choice c;
        lath_error err = {0};
        open_fake(&m, &alloc);
        const lath_status st = ffn_spec_open(&m.env, bads[i].text, &c, &err);
        if (st != bads[i].status || !strstr(err.msg, bads[i].says))
            fail_msg("\"%s\": status %d, \"%s\"; want \"%s\"", bads[i].text, (int)st, err.msg, bads[i].says);
        assert_true(!c.ffn && !c.gains);
        assert_int_equal(m.held, 0);
        assert_int_equal(m.opened, 0);
    }
}

static void test_other_model(void **state)
{
    static fake m;
    lath_allocator alloc;
    ffn_choice c;
    lath_error err;
    (void)state;
    open_fake(&m, &alloc);
    m.d_index = D + 1;
    assert_int_equal(ffn_spec_open(&m.env, "0-3=walk:DIR,4-=dense", &c, &err), LATH_ERR_FORMAT);
    assert_string_equal(err.msg, "DIR: an index of 6 layers of 9 numbers, the model has 6 of 8");
    m.env.open_index = NULL;
    assert_int_equal(ffn_spec_open(&m.env, "walk:DIR", &c, &err), LATH_ERR_UNSUPPORTED);
    m.env.open_remote = NULL; /* asks itself */
    assert_int_equal(ffn_spec_open(&m.env, "remote:", &c, &err), LATH_ERR_USAGE);
    assert_string_equal(err.msg, "\"\": want http://HOST:PORT or https://HOST:PORT");
    assert_int_equal(ffn_spec_open(&m.env, "remote:ftp://x", &c, &err), LATH_ERR_USAGE);
    assert_int_equal(m.held, 0);
    assert_int_equal(m.opened, 0);
}

static void test_no_memory(void **state)
{
    static fake m;
    lath_allocator alloc;
    (void)state;
    for (size_t i = 0; i < sizeof(goods) / sizeof(goods[0]); i++) {
        lath_status st;
        for (int fail = 0;; fail++) {
            ffn_choice c;
            lath_error err;
            open_fake(&m, &alloc);
            m.left = fail;
            st = ffn_spec_open(&m.env, goods[i].text, &c, &err);
            if (st == LATH_OK) ffn_choice_close(&c);
            assert_true(st == LATH_OK || st == LATH_ERR_NOMEM);
            assert_int_equal(m.held, 0);
            assert_int_equal(m.opened, 0);
            if (st == LATH_OK) break;
            assert_true(fail < 40);
        }
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_other_model),
        cmocka_unit_test(test_no_memory),
    };
    return TEST_RUN(tests);
}
