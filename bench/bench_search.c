/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_search.c: searching a vector index in each of its types, against the read bandwidth of the same threads over
 * the same pages, measured in turns; and how many of the exact ten nearest the smaller types find.
 *
 *     bench_search [--rows N] [--dim N] [--threads N] [--rounds N] [--dir DIR]
 *
 * Rows are drawn around centres (24 numbers of a centre are shared by near ones), as embeddings of texts crowd; queries
 * are rows with noise. The files go to DIR (the current folder) and are removed. A round is bandwidth, search,
 * bandwidth; its ratio is the search's bytes a second over the mean of its neighbours. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/pool.h"
#include "lath/lath.h"
#include "roofline.h"

enum { K = 10, QUERIES = 32, CENTRES = 20000, CHUNK = 4096, MAX_ROUNDS = 501 };

static size_t n_rows = 1000000, rounds = 21;
static int64_t dim = 384;
static int32_t n_threads = 2;
static const char *dir = ".";
static lath_runtime *rt;
static pool *threads; /* of the bandwidth's loops; the runtime's own sleep meanwhile */
static lath_error err;

static void must(lath_status st, const char *what)
{
    if (st == LATH_OK) return;
    fprintf(stderr, "bench_search: %s: %s\n", what, err.msg);
    exit(1);
}

/* -------------------------------------------------------------------------------------------------------- vectors */

static uint64_t mix(uint64_t z) /* splitmix64 */
{
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Near a normal deviate: the sum of four uniform ones. Number i of stream s. */
static float deviate(uint64_t s, int64_t i)
{
    const uint64_t z = mix(s * 0x100000001b3u + (uint64_t)i);
    const float a = (float)(z & 0xffff), b = (float)(z >> 16 & 0xffff), c = (float)(z >> 32 & 0xffff),
                e = (float)(z >> 48);
    return (a + b + c + e - 131070.0f) / 37837.0f;
}

static void make_vector(uint64_t row, float noise, uint64_t noise_stream, float *v)
{
    double sum = 0;
    const uint64_t centre = mix(row) % CENTRES;
    for (int64_t i = 0; i < dim; i++) {
        v[i] = deviate(centre, i) + 0.6f * deviate(CENTRES + row, i) + noise * deviate(noise_stream, i);
        sum += (double)v[i] * (double)v[i];
    }
    for (int64_t i = 0; i < dim; i++) v[i] = (float)((double)v[i] / sqrt(sum));
}

static void build(const char *const paths[], const lath_index_type *types, int n_types)
{
    const lath_index_key key = {.corpus_bytes = n_rows};
    lath_index_writer *w[3];
    float *v = malloc(CHUNK * (size_t)dim * sizeof(*v));
    lath_span *spans = malloc(CHUNK * sizeof(*spans));
    for (int t = 0; t < n_types; t++) {
        const lath_index_options o = {sizeof(o), types[t]};
        must(lath_index_create_with(rt, paths[t], &key, dim, &o, &w[t], &err), "create");
    }
    for (size_t at = 0; v && spans && at < n_rows; at += CHUNK) {
        const size_t n = n_rows - at < CHUNK ? n_rows - at : CHUNK;
        for (size_t i = 0; i < n; i++) {
            make_vector(at + i, 0, 0, v + i * (size_t)dim);
            spans[i] = (lath_span){at + i, 1};
        }
        for (int t = 0; t < n_types; t++) must(lath_index_add(w[t], v, spans, n, &err), "add");
    }
    for (int t = 0; t < n_types; t++) must(lath_index_commit(w[t], &err), "commit");
    free(v);
    free(spans);
}

/* ------------------------------------------------------------------------------------------------------ bandwidth */

typedef struct reading {
    const uint8_t *data;
    size_t bytes, task_bytes;
} reading;

static void read_task(void *ctx, int64_t task, int32_t worker)
{
    const reading *r = ctx;
    (void)worker;
    roofline_read_streams(r->data + (size_t)task * r->task_bytes, r->task_bytes / 4);
}

/* Bytes a second of all threads over the file. */
static double read_once(const reading *r)
{
    const double begin = clock_now();
    pool_enter(threads);
    pool_run(threads, read_task, (void *)(uintptr_t)r, (int64_t)(r->bytes / r->task_bytes));
    pool_leave(threads);
    return (double)(r->bytes / r->task_bytes * r->task_bytes) / (clock_now() - begin);
}

/* The task size that reads fastest on this machine. */
static void choose_task(reading *r)
{
    static const size_t sizes[] = {64 << 10, 256 << 10, 1 << 20, 8 << 20};
    double best = 0;
    size_t chosen = sizes[0];
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            r->task_bytes = sizes[i];
            const double rate = r->bytes < sizes[i] ? 0 : read_once(r);
            if (rate > best) best = rate, chosen = sizes[i];
        }
    }
    r->task_bytes = chosen;
}

/* ---------------------------------------------------------------------------------------------------------- search */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double search(const lath_index *x, const float *queries, size_t n, lath_hit *hits)
{
    const double begin = clock_now();
    must(lath_index_search(x, queries, n, K, hits, &err), "search");
    return clock_now() - begin;
}

/* Part of the exact K nearest that are among the hits. */
static double recall(const lath_hit *exact, const lath_hit *hits)
{
    size_t found = 0;
    for (size_t q = 0; q < QUERIES; q++) {
        for (size_t i = 0; i < K; i++) {
            for (size_t j = 0; j < K; j++) found += exact[q * K + i].row == hits[q * K + j].row;
        }
    }
    return (double)found / (QUERIES * K);
}

static void measure(const char *name, const char *path, const float *queries, const lath_hit *exact, lath_hit *hits)
{
    static double time[MAX_ROUNDS], rate[MAX_ROUNDS], ratio[MAX_ROUNDS];
    lath_index *x;
    lath_index_info info = {.struct_size = sizeof(info)};
    file_map m;
    must(file_map_open(&m, alloc_default(), path, FILE_MAP, &err), "map");
    reading r = {.data = m.data, .bytes = m.size};
    choose_task(&r);
    const double open_begin = clock_now();
    must(lath_index_open(rt, path, LATH_LOAD_MAP, &x, &err), "open");
    const double open = clock_now() - open_begin, first = search(x, queries, 1, hits);
    must(lath_index_get_info(x, &info, &err), "info");
    const size_t bytes = (size_t)info.file_bytes - n_rows * 32;
    double before = read_once(&r);
    for (size_t i = 0; i < rounds; i++) {
        time[i] = search(x, queries + (i % QUERIES) * (size_t)dim, 1, hits);
        const double after = read_once(&r);
        rate[i] = after;
        ratio[i] = (double)bytes / time[i] / ((before + after) / 2);
        before = after;
    }
    const double many = search(x, queries, QUERIES, hits) / QUERIES;
    qsort(time, rounds, sizeof(*time), by_value);
    qsort(rate, rounds, sizeof(*rate), by_value);
    qsort(ratio, rounds, sizeof(*ratio), by_value);
    printf(
        "%-5s %5.0f MB  open %5.2f ms, first %6.1f ms | search median %6.1f ms (best %6.1f), read %5.1f GB/s (best %5.1f), "
        "%5.1f %% of it (best %5.1f) | %d together %5.1f ms each | recall@%d %.4f\n",
        name, (double)bytes / 1e6, 1e3 * open, 1e3 * first, 1e3 * time[rounds / 2], 1e3 * time[0],
        rate[rounds / 2] / 1e9, rate[rounds - 1] / 1e9, 100 * ratio[rounds / 2], 100 * ratio[rounds - 1], QUERIES,
        1e3 * many, K, exact ? recall(exact, hits) : 1.0);
    fflush(stdout);
    lath_index_close(x);
    file_map_close(&m);
}

static void parse(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        const long v = strtol(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--rows") == 0 && v > 0)
            n_rows = (size_t)v;
        else if (strcmp(argv[i], "--dim") == 0 && v > 0)
            dim = v;
        else if (strcmp(argv[i], "--threads") == 0 && v > 0)
            n_threads = (int32_t)v;
        else if (strcmp(argv[i], "--rounds") == 0 && v > 0 && v <= MAX_ROUNDS)
            rounds = (size_t)v;
        else if (strcmp(argv[i], "--dir") == 0)
            dir = argv[i + 1];
        else
            argc = 0;
    }
    if (argc % 2 == 1) return;
    fprintf(stderr, "usage: bench_search [--rows N] [--dim N] [--threads N] [--rounds N] [--dir DIR]\n");
    exit(2);
}

int main(int argc, char **argv)
{
    static const lath_index_type types[] = {LATH_INDEX_F32, LATH_INDEX_F16, LATH_INDEX_INT8};
    static const char *const names[] = {"f32", "f16", "int8"};
    static lath_hit exact[QUERIES * K], hits[QUERIES * K];
    char files[3][1024];
    const char *paths[3];
    lath_runtime_options ro = LATH_RUNTIME_OPTIONS_INIT;
    parse(argc, argv);
    ro.n_threads = n_threads;
    must(lath_runtime_create(&ro, &rt, &err), "runtime");
    must(pool_create(alloc_default(), n_threads, &threads, &err), "threads");
    for (int t = 0; t < 3; t++) {
        snprintf(files[t], sizeof(files[t]), "%s/bench_search.%ld.%s.lath", dir, (long)getpid(), names[t]);
        paths[t] = files[t];
    }
    printf("%zu rows of %lld numbers, %d threads, %s, %zu rounds\n", n_rows, (long long)dim, n_threads,
           lath_runtime_isa(rt), rounds);
    build(paths, types, 3);
    float *queries = malloc(QUERIES * (size_t)dim * sizeof(*queries));
    for (size_t q = 0; queries && q < QUERIES; q++)
        make_vector(mix(q) % n_rows, 0.4f, CENTRES + 2 * n_rows + q, queries + q * (size_t)dim);
    for (int t = 0; queries && t < 3; t++) {
        measure(names[t], paths[t], queries, t ? exact : NULL, t ? hits : exact);
        unlink(paths[t]);
    }
    free(queries);
    pool_destroy(threads);
    lath_runtime_destroy(rt);
    return 0;
}
