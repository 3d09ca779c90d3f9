/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_bench.c: `lath bench`: what a model does a second here, beside what the machine gives in the same seconds. Slices of the
 * model and of the roof alternate, and each slice of the model is divided by the mean of its two neighbours; what is printed
 * is medians. Work on many tokens is compared with the multiply-adds that the vector units do; single tokens with the bytes
 * that can be read, because every step reads all weights once.
 *     flops of a token   2 a weight of the layers, 4 a feature of attention and token that it sees; a prompt's last token
 *                        2 a weight of the output head
 *     bytes of a step    weights of the layers and of the head, keys and values of the tokens before
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "lm.h"
#include "output.h"
#include "roofline.h"
#include "signals.h"

enum {
    DEFAULT_PREFILL = 512,
    DEFAULT_DECODE = 128,
    DEFAULT_ROUNDS = 5,
    MAX_ROUNDS = 1000,
    EMBED_TEXTS = 16,
    EMBED_TOKENS = 128
};
static const double ROOF_SECONDS = 0.05;

/* One line of the result. */
typedef struct bench_row {
    const char *name;
    double tokens; /* of a slice */
    double rate;   /* tokens a second */
    double work;   /* flops of a slice, or bytes */
    double roof;   /* flops or bytes a second that the machine gives */
    double share;  /* of the roof */
    bool reads;    /* bytes, not flops */
} bench_row;

typedef struct bench_job {
    lm_job lm;
    int32_t threads;
    roofline_fma_fn fma;
    void *buffer; /* larger than the caches */
    size_t buffer_bytes, l3_bytes;
    int32_t *ids; /* [n_ids] */
    size_t n_ids;
    lath_embedder *embedder;
    lath_text texts[EMBED_TEXTS];
    float *vectors;
    size_t vectors_bytes;
    lath_embed_result results[EMBED_TEXTS];
    int64_t prefill, decode;
    int rounds;
    progress p;
    bench_row rows[2];
    size_t n_rows;
} bench_job;

/* One slice: seconds that it took. */
typedef lath_status (*bench_slice)(bench_job *j, double *seconds, lath_error *err);

/* ----------------------------------------------------------------------------------------------------------- the roof */

/* Of one group of cores, as Linux tells it; what is not told is taken as 64 MB. */
static size_t l3_size(void)
{
    size_t kb = 0;
    FILE *f = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "re");
    if (f && fscanf(f, "%zuK", &kb) != 1) kb = 0;
    if (f) fclose(f);
    return kb > 0 && kb < (size_t)1 << 30 ? kb << 10 : (size_t)64 << 20;
}

static lath_status make_buffer(bench_job *j, double bytes_of_step, lath_error *err)
{
    const size_t least = (size_t)256 << 20, most = (size_t)2 << 30;
    j->l3_bytes = l3_size();
    size_t n = 2 * j->l3_bytes;
    if (bytes_of_step > (double)n) n = bytes_of_step < (double)most ? (size_t)bytes_of_step : most;
    j->buffer_bytes = n < least ? least : n > most ? most : n;
    void *p = mmap(NULL, j->buffer_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return err_nomem(err, j->buffer_bytes);
    (void)madvise(p, j->buffer_bytes, MADV_HUGEPAGE);
    memset(p, 1, j->buffer_bytes); /* pages that nobody has written are all the same one */
    j->buffer = p;
    return LATH_OK;
}

static double roof_now(const bench_job *j, bool reads)
{
    return reads ? roofline_read(j->threads, j->buffer, j->buffer_bytes)
                 : roofline_fma(j->threads, j->fma, ROOF_SECONDS);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof(*v), by_value);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* Rounds of roof, slice, roof. The first slice warms up and does not count. */
static lath_status measure(bench_job *j, bench_slice slice, bench_row *row, lath_error *err)
{
    double seconds[MAX_ROUNDS], share[MAX_ROUNDS], roofs[MAX_ROUNDS];
    TRY(slice(j, &seconds[0], err));
    double before = roof_now(j, row->reads);
    for (int i = 0; i < j->rounds; i++) {
        if (progress_tick(&j->p, (size_t)i, (size_t)j->rounds)) return signals_check(err);
        TRY(slice(j, &seconds[i], err));
        roofs[i] = roof_now(j, row->reads);
        if (roofs[i] <= 0 || before <= 0) return err_set(err, LATH_ERR_NOMEM, "bench: cannot start threads");
        share[i] = row->work / seconds[i] / ((before + roofs[i]) / 2);
        before = roofs[i];
    }
    progress_add(&j->p, (size_t)j->rounds);
    row->rate = row->tokens / median(seconds, j->rounds);
    row->share = median(share, j->rounds);
    row->roof = median(roofs, j->rounds);
    j->rows[j->n_rows++] = *row;
    return LATH_OK;
}

/* ------------------------------------------------------------------------------------------------------ language models */

/* Any tokens: what they say does not change how long they take. */
static lath_status make_ids(bench_job *j, lath_error *err)
{
    uint64_t s = 1;
    j->n_ids = (size_t)(j->prefill > j->decode + 1 ? j->prefill : j->decode + 1);
    j->ids = alloc_array(alloc_default(), j->n_ids, sizeof(*j->ids));
    if (!j->ids) return err_nomem(err, j->n_ids * sizeof(*j->ids));
    for (size_t i = 0; i < j->n_ids; i++) {
        s = s * 6364136223846793005u + 1442695040888963407u;
        j->ids[i] = (int32_t)((s >> 33) % (uint64_t)j->lm.info.vocab_size);
    }
    return LATH_OK;
}

static lath_status prefill_slice(bench_job *j, double *seconds, lath_error *err)
{
    TRY(signals_check(err));
    (void)lath_session_rewind(j->lm.session, 0);
    const double begin = clock_now();
    TRY(lath_session_append(j->lm.session, j->ids, (size_t)j->prefill, err));
    *seconds = clock_now() - begin;
    return LATH_OK;
}

static lath_status decode_slice(bench_job *j, double *seconds, lath_error *err)
{
    (void)lath_session_rewind(j->lm.session, 0);
    TRY(lath_session_append(j->lm.session, j->ids, 1, err));
    const double begin = clock_now();
    for (int64_t i = 1; i <= j->decode; i++) {
        TRY(signals_check(err));
        TRY(lath_session_append(j->lm.session, j->ids + i, 1, err));
    }
    *seconds = clock_now() - begin;
    return LATH_OK;
}

/* Tokens that those of a sequence of n see, all together; a layer with a window sees no further. */
static double seen_by_all(const lath_session_plan *p, int32_t n_layers, double n)
{
    const double all = n * (n + 1) / 2, w = p->window;
    const double near = n <= w ? all : w * (w + 1) / 2 + (n - w) * w;
    return (n_layers - p->n_windows) * all + p->n_windows * near;
}

static lath_status bench_generation(bench_job *j, lath_error *err)
{
    const lath_model_info *m = &j->lm.info;
    const lath_session_plan *plan = &j->lm.plan;
    const double n = (double)j->prefill, steps = (double)j->decode;
    const double layer_kv = (double)plan->token_bytes / m->n_layers; /* of a token in one layer */
    bench_row prefill = {.name = "prefill", .tokens = n}, decode = {.name = "decode", .tokens = steps, .reads = true};
    if (j->prefill > plan->most || j->decode >= plan->most)
        return err_set(err, LATH_ERR_USAGE, "--%s: %lld, the model's window is %d",
                       j->prefill > plan->most ? "prefill" : "decode",
                       (long long)(j->prefill > plan->most ? j->prefill : j->decode), (int)plan->most);
    prefill.work = 2 * n * (double)m->layer_weights + 2 * (double)m->head_weights +
                   4.0 * m->n_heads * plan->head_dim * seen_by_all(plan, m->n_layers, n);
    decode.work = steps * (double)(m->layer_bytes + m->head_bytes) +
                  layer_kv * (seen_by_all(plan, m->n_layers, steps + 1) - m->n_layers);
    TRY(make_ids(j, err));
    TRY(lm_session(&j->lm, (int64_t)j->n_ids, err));
    if (j->prefill) TRY(measure(j, prefill_slice, &prefill, err));
    if (!j->decode) return LATH_OK;
    TRY(make_buffer(j, decode.work / steps, err));
    return measure(j, decode_slice, &decode, err);
}

/* ------------------------------------------------------------------------------------------------------------ embedders */

static lath_status embed_slice(bench_job *j, double *seconds, lath_error *err)
{
    TRY(signals_check(err));
    const double begin = clock_now();
    TRY(lath_embed(j->embedder, j->texts, EMBED_TEXTS, j->vectors, j->results, err));
    *seconds = clock_now() - begin;
    return LATH_OK;
}

/* Texts that are cut at 128 tokens; time is what a caller waits, tokenising included. */
static lath_status bench_embedding(bench_job *j, lath_error *err)
{
    static const char words[] = "the water of the river goes down to the sea and people of the city look at the "
                                "light of a house near the mountain while a machine in the music hall of the old "
                                "town plays the history of science to everyone who has a question about language "
                                "and time or the world that was here long before any of them came to ask what it "
                                "is made of and how it began as one of them said in the end there is no book that "
                                "knows all of it but many good ones know a part and those who read them go on to "
                                "write others for whoever comes after them and so the water of the river and the "
                                "light of the city are in books too where they stay as they were on the day when "
                                "someone saw them and took the time to write them down";
    const lath_model_info *m = &j->lm.info;
    lath_embed_options eo = LATH_EMBED_OPTIONS_INIT;
    bench_row row = {.name = "embed"};
    double seconds;
    eo.max_tokens = m->max_tokens < EMBED_TOKENS ? m->max_tokens : EMBED_TOKENS;
    TRY(lath_embedder_create(j->lm.s.model, &eo, &j->embedder, err));
    j->vectors_bytes = (size_t)lath_embedder_dim(j->embedder) * EMBED_TEXTS * sizeof(float);
    j->vectors = alloc_bytes(alloc_default(), j->vectors_bytes, 64);
    if (!j->vectors) return err_nomem(err, j->vectors_bytes);
    for (int i = 0; i < EMBED_TEXTS; i++) j->texts[i] = (lath_text){words, sizeof(words) - 1};
    TRY(embed_slice(j, &seconds, err));
    for (int i = 0; i < EMBED_TEXTS; i++) {
        const double n = j->results[i].n_tokens;
        row.tokens += n;
        row.work += 2 * n * (double)m->layer_weights + 4 * n * n * (double)m->d_model * m->n_layers;
    }
    return measure(j, embed_slice, &row, err);
}

/* -------------------------------------------------------------------------------------------------------------- results */

static void put_json(const bench_job *j, buf *b)
{
    buf_str(b, "{\"results\":[");
    for (size_t i = 0; i < j->n_rows; i++) {
        const bench_row *r = &j->rows[i];
        buf_printf(b, "%s{\"name\":\"%s\",\"tokens\":%.0f,\"tokens_per_second\":", i ? ",\n" : "", r->name, r->tokens);
        json_put_f64(b, r->rate);
        if (r->reads) buf_printf(b, ",\"bytes_per_token\":%.0f", r->work / r->tokens);
        buf_str(b, r->reads ? ",\"gb_per_second\":" : ",\"gflops\":");
        json_put_f64(b, r->rate * r->work / r->tokens / 1e9);
        buf_str(b, r->reads ? ",\"read_gb_per_second\":" : ",\"peak_gflops\":");
        json_put_f64(b, r->roof / 1e9);
        buf_str(b, ",\"share\":");
        json_put_f64(b, r->share);
        buf_printf(b, ",\"rounds\":%d}", j->rounds);
    }
    buf_printf(b, "],\"isa\":\"%s\",\"threads\":%d}\n", lath_runtime_isa(j->lm.s.rt), (int)j->threads);
}

static void put_table(const bench_job *j, buf *b)
{
    for (size_t i = 0; i < j->n_rows; i++) {
        const bench_row *r = &j->rows[i];
        const double done = r->rate * r->work / r->tokens / 1e9;
        buf_printf(b, "%-8s %4.0f tokens  %8.1f tokens/s  ", r->name, r->tokens, r->rate);
        if (r->reads)
            buf_printf(b, "%5.1f GB/s (%.1f MB a token), %.0f %% of %.1f GB/s read bandwidth\n", done,
                       r->work / r->tokens / 1e6, 100 * r->share, r->roof / 1e9);
        else
            buf_printf(b, "%5.0f Gflop/s, %.0f %% of %.0f Gflop/s peak\n", done, 100 * r->share, r->roof / 1e9);
    }
}

static void prepare(bench_job *j, const options *o)
{
    j->lm.o = o;
    j->lm.info.struct_size = sizeof(j->lm.info);
    j->lm.plan.struct_size = sizeof(j->lm.plan);
    j->prefill = o->prefill.given ? o->prefill.whole : DEFAULT_PREFILL;
    j->decode = o->decode_steps.given ? o->decode_steps.whole : DEFAULT_DECODE;
    j->rounds = o->rounds ? (int)o->rounds : DEFAULT_ROUNDS;
    progress_init(&j->p, "bench", o->quiet);
    j->p.unit = "slices";
    progress_chunk(&j->p, 0, -1);
}

static lath_status bench_model(bench_job *j, lath_error *err)
{
    const options *o = j->lm.o;
    const bool asked = o->prefill.given || o->decode_steps.given;
    TRY(setup_model(&j->lm.s, o, err));
    TRY(lath_model_get_info(j->lm.s.model, &j->lm.info, err));
    j->threads = lath_runtime_threads(j->lm.s.rt);
    j->fma = roofline_fma_loop(lath_runtime_isa(j->lm.s.rt));
    if (strcmp(j->lm.info.kind, "embedder") == 0 && !asked) return bench_embedding(j, err);
    if (j->prefill == 0 && j->decode == 0)
        return err_set(err, LATH_ERR_USAGE, "--prefill, --decode: both are 0: nothing to measure");
    TRY(lath_session_get_plan(j->lm.s.model, NULL, &j->lm.plan, err));
    return bench_generation(j, err);
}

static void release(bench_job *j)
{
    progress_clear(&j->p);
    if (j->buffer) munmap(j->buffer, j->buffer_bytes);
    alloc_release(alloc_default(), j->ids, j->n_ids * sizeof(*j->ids));
    alloc_release(alloc_default(), j->vectors, j->vectors_bytes);
    lath_embedder_destroy(j->embedder);
    lm_close(&j->lm);
}

lath_status cmd_bench(options *o, lath_error *err)
{
    bench_job job = {0};
    output out = {0};
    lath_status st;
    if (o->args.n > 0)
        return err_set(err, LATH_ERR_USAGE, "%.60s: bench takes no arguments; the model is named with -m",
                       o->args.items[0]);
    prepare(&job, o);
    TRY_DONE(output_open(&out, o->output, err));
    TRY_DONE(bench_model(&job, err));
    progress_clear(&job.p);
    if (o->json || o->jsonl)
        put_json(&job, &out.b);
    else
        put_table(&job, &out.b);
    st = output_close(&out, err);
done:
    output_abort(&out);
    release(&job);
    return st;
}
