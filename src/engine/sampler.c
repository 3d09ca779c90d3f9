/* SPDX-License-Identifier: Apache-2.0
 *
 * sampler.c: work that grows with the vocabulary is done in plain passes over arrays; what is chosen from is found through the largest
 * value of every block of 64 ids:
 *
 *     logits -> penalties, bias (at single ids) -> v, block_max (one pass) -> floor -> keys of what lies at or over the floor
 *
 * The k best ids lie in the k best blocks, so the k-th best block's value is a floor for top-k; min-p is a floor in logits. Where neither
 * is asked for, softmax needs a weight of every id, but the choice mostly falls among the best few: they are looked at first, more of
 * them and all ids only when their weights do not come to what is wanted. Nothing is sorted: rank_crossing finds where cumulated weights cross.
 */
#include "engine/sampler.h"

#include <float.h>
#include <math.h>

#include "engine/logprobs.h"

enum { BLOCK = 64, LANES = 16, BEST_FEW = 256 };

/* ------------------------------------------------------------------------------------------------------------ options */

static lath_status check_number(const char *name, double v, bool ok, const char *want, lath_error *err)
{
    return ok && isfinite(v) ? LATH_OK : err_set(err, LATH_ERR_USAGE, "%s: %g, want %s", name, v, want);
}

static lath_status check_options(const lath_sample_options *o, lath_error *err)
{
    if (o->struct_size != sizeof(*o)) return err_set(err, LATH_ERR_USAGE, "sampling: options of another version");
    TRY(check_number("temperature", o->temperature, o->temperature >= 0, "0 or more", err));
    if (o->top_k < 0) return err_set(err, LATH_ERR_USAGE, "top-k: %d, want 1 or more (0: all)", (int)o->top_k);
    TRY(check_number("top-p", o->top_p, o->top_p > 0 && o->top_p <= 1, "over 0, at most 1", err));
    TRY(check_number("min-p", o->min_p, o->min_p >= 0 && o->min_p < 1, "0 or more, below 1", err));
    TRY(check_number("repeat penalty", o->repeat_penalty, o->repeat_penalty > 0, "a number over 0", err));
    TRY(check_number("presence penalty", o->presence_penalty, true, "a number", err));
    return check_number("frequency penalty", o->frequency_penalty, true, "a number", err);
}

static lath_status copy_bias(sampler *s, lath_error *err)
{
    const lath_sample_options *o = &s->o;
    if (o->n_bias == 0) return LATH_OK;
    lath_logit_bias *copy = arena_array(&s->mem, o->n_bias, sizeof(*copy));
    uint8_t *there = arena_zero(&s->mem, (size_t)s->n_vocab);
    if (!copy || !there) return err_nomem(err, o->n_bias * sizeof(*copy) + (size_t)s->n_vocab);
    for (size_t i = 0; i < o->n_bias; i++) {
        const lath_logit_bias b = o->bias[i];
        if (b.id < 0 || b.id >= s->n_vocab)
            return err_set(err, LATH_ERR_USAGE, "logit bias: id %d, want 0 to %d", (int)b.id, (int)s->n_vocab - 1);
        if (isnan(b.bias) || b.bias > FLT_MAX)
            return err_set(err, LATH_ERR_USAGE, "logit bias of id %d: %g, want a number or -infinity", (int)b.id,
                           (double)b.bias);
        if (there[b.id]++) return err_set(err, LATH_ERR_USAGE, "logit bias: id %d is there twice", (int)b.id);
        copy[i] = b;
    }
    s->o.bias = copy;
    return LATH_OK;
}

static bool has_penalties(const lath_sample_options *o)
{
    return o->repeat_penalty != 1 || o->presence_penalty != 0 || o->frequency_penalty != 0;
}

static lath_status make_memory(sampler *s, lath_error *err)
{
    const size_t n = s->n_blocks * BLOCK, n_vocab = (size_t)s->n_vocab;
    s->v = arena_bytes(&s->mem, n * sizeof(*s->v), 64);
    s->w = arena_bytes(&s->mem, n * sizeof(*s->w), 64);
    s->keys = arena_bytes(&s->mem, n * sizeof(*s->keys), 64);
    s->block_max = arena_bytes(&s->mem, s->n_blocks * sizeof(*s->block_max), 64);
    if (!s->v || !s->w || !s->keys || !s->block_max) return err_nomem(err, n * (sizeof(*s->keys) + 2 * sizeof(*s->v)));
    if (!has_penalties(&s->o)) return LATH_OK;
    s->seen = arena_array(&s->mem, n_vocab, sizeof(*s->seen));
    s->listed = arena_array(&s->mem, n_vocab, sizeof(*s->listed));
    return s->seen && s->listed ? LATH_OK : err_nomem(err, n_vocab * (sizeof(*s->seen) + sizeof(*s->listed)));
}

lath_status sampler_init(sampler *s, const lath_allocator *alloc, const kern_table *kern, int32_t n_vocab,
                         const lath_sample_options *opts, lath_error *err)
{
    static const lath_sample_options defaults = LATH_SAMPLE_OPTIONS_INIT;
    *s = (sampler){.kern = kern, .n_vocab = n_vocab, .o = opts ? *opts : defaults};
    arena_init(&s->mem, alloc);
    TRY(check_options(&s->o, err));
    if (n_vocab < 1) return err_set(err, LATH_ERR_USAGE, "sampling: a vocabulary of %d", (int)n_vocab);
    s->n_blocks = ((size_t)n_vocab + BLOCK - 1) / BLOCK;
    rng_seed(&s->rng, s->o.seed);
    TRY(copy_bias(s, err));
    return make_memory(s, err);
}

void sampler_deinit(sampler *s)
{
    if (s->mem.alloc) arena_deinit(&s->mem);
    *s = (sampler){0};
}

size_t sampler_bytes(const sampler *s) { return s->mem.total; }

/* ------------------------------------------------------------------------------------------------------ tokens so far */

void sampler_accept(sampler *s, const int32_t *ids, size_t n)
{
    for (size_t i = 0; s->seen && i < n; i++) {
        if (ids[i] < 0 || ids[i] >= s->n_vocab) continue;
        sampler_seen *seen = &s->seen[ids[i]];
        if (seen->count++ > 0) continue;
        seen->at = (int32_t)s->n_listed;
        s->listed[s->n_listed++] = ids[i];
    }
}

void sampler_rewind(sampler *s, const int32_t *ids, size_t n)
{
    for (size_t i = 0; s->seen && i < n; i++) {
        if (ids[i] < 0 || ids[i] >= s->n_vocab) continue;
        sampler_seen *seen = &s->seen[ids[i]];
        if (seen->count == 0 || --seen->count > 0) continue;
        const int32_t last = s->listed[--s->n_listed];
        s->listed[seen->at] = last;
        s->seen[last].at = seen->at;
    }
}

void sampler_reset(sampler *s)
{
    while (s->n_listed > 0) s->seen[s->listed[--s->n_listed]].count = 0;
    rng_seed(&s->rng, s->o.seed);
}

/* ------------------------------------------------------------------------------------------------- from logits to v */

/* One rounding of what became of a logit; what overflows is as large as can be. One that is no number stays and is found below. */
static float changed(float l, double to)
{
    if (!(l <= FLT_MAX)) return l;
    return to > FLT_MAX ? FLT_MAX : (float)to;
}

static void add_penalties(sampler *s)
{
    const lath_sample_options *o = &s->o;
    for (size_t i = 0; i < s->n_listed; i++) {
        const int32_t id = s->listed[i];
        const float l = s->v[id];
        const float repeated = changed(l, l > 0 ? l / o->repeat_penalty : l * o->repeat_penalty);
        s->v[id] = changed(repeated, repeated - o->presence_penalty - o->frequency_penalty * s->seen[id].count);
    }
}

static void add_bias(sampler *s)
{
    for (size_t i = 0; i < s->o.n_bias; i++) {
        const lath_logit_bias b = s->o.bias[i];
        s->v[b.id] = changed(s->v[b.id], (double)s->v[b.id] + b.bias);
    }
}

#define BITS4(i) 1u << (i), 2u << (i), 4u << (i), 8u << (i)
static const uint32_t bit[32] = {BITS4(0), BITS4(4), BITS4(8), BITS4(12), BITS4(16), BITS4(20), BITS4(24), BITS4(28)};

/* The largest of 64 values; *bad: there is a NaN. Lanes side by side, so that compilers use vectors. */
static float block_largest(const float *v, uint32_t *bad)
{
    float m[LANES];
    uint32_t nan[LANES] = {0};
    memcpy(m, v, sizeof(m));
    for (int i = 0; i < BLOCK; i += LANES) {
        for (int j = 0; j < LANES; j++) {
            nan[j] |= v[i + j] != v[i + j];
            m[j] = v[i + j] > m[j] ? v[i + j] : m[j];
        }
    }
    for (int j = 1; j < LANES; j++) {
        nan[0] |= nan[j];
        m[0] = m[j] > m[0] ? m[j] : m[0];
    }
    *bad |= nan[0];
    return m[0];
}

/* Of a block whose largest value is m, ids whose bit is not set are out; the largest of what is left. `behind` is the block's
 * second word. Most blocks stay whole or go as a whole. */
static float mask_block(float *v, float m, uint32_t word, uint32_t behind)
{
    uint32_t no_nan = 0;
    if ((word & behind) == UINT32_MAX || m == -INFINITY) return m;
    for (int i = 0; i < 32; i++) {
        v[i] = word & bit[i] ? v[i] : -INFINITY;
        v[i + 32] = behind & bit[i] ? v[i + 32] : -INFINITY;
    }
    return (word | behind) == 0 ? -INFINITY : block_largest(v, &no_nan);
}

/* Only logits of the model can be bad: penalties and bias are finite. */
static lath_status bad_logit(const float *logits, int32_t n, lath_error *err)
{
    int32_t id = 0;
    while (id < n - 1 && logits[id] <= FLT_MAX) id++;
    return err_set(err, LATH_ERR_FORMAT, "logits: token %d has %s", (int)id, isnan(logits[id]) ? "NaN" : "+infinity");
}

/* v := logits with the changes that are asked for, the largest of each block and of all. */
static lath_status take_logits(sampler *s, const float *logits, bool change, const uint32_t *mask, lath_error *err)
{
    const size_t n = (size_t)s->n_vocab, padded = s->n_blocks * BLOCK, n_words = (n + 31) / 32;
    uint32_t bad = 0;
    memcpy(s->v, logits, n * sizeof(*s->v));
    for (size_t i = n; i < padded; i++) s->v[i] = -INFINITY;
    if (change) {
        add_penalties(s);
        add_bias(s);
    }
    s->largest = -INFINITY;
    for (size_t b = 0; b < s->n_blocks; b++) {
        float *v = s->v + b * BLOCK;
        float m = block_largest(v, &bad);
        if (m > FLT_MAX) bad = 1;
        if (mask) m = mask_block(v, m, mask[2 * b], 2 * b + 1 < n_words ? mask[2 * b + 1] : 0);
        s->block_max[b] = m;
        if (m > s->largest) s->largest = m;
    }
    if (bad) return bad_logit(logits, s->n_vocab, err);
    if (s->largest == -INFINITY)
        return err_set(err, LATH_ERR_INPUT, "no token can follow: all of them are masked%s",
                       mask ? "" : " (-infinity)");
    return LATH_OK;
}

/* ---------------------------------------------------------------------------------------------------------- choosing */

/* The lowest id of the largest value. */
static int32_t first_largest(const sampler *s)
{
    size_t b = 0;
    while (s->block_max[b] != s->largest) b++;
    size_t i = b * BLOCK;
    while (s->v[i] != s->largest) i++;
    return (int32_t)i;
}

/* At least k values are at or over it, where so many are finite at all. Works in s->keys. */
static float floor_of_best(sampler *s, size_t k)
{
    if (k >= s->n_blocks) return -FLT_MAX;
    for (size_t b = 0; b < s->n_blocks; b++) s->keys[b] = rank_key_of(s->block_max[b], (int32_t)b);
    rank_select(s->keys, s->n_blocks, k);
    float least = s->largest;
    for (size_t i = 0; i < k; i++) {
        const float m = s->block_max[rank_id(s->keys[i])];
        if (m < least) least = m;
    }
    return least > -FLT_MAX ? least : -FLT_MAX;
}

/* s->keys := all values at or over the floor, which is finite. */
static size_t gather(sampler *s, float floor)
{
    size_t n = 0;
    for (size_t b = 0; b < s->n_blocks; b++) {
        if (s->block_max[b] < floor) continue;
        for (size_t i = b * BLOCK; i < (b + 1) * BLOCK; i++) {
            s->keys[n] = rank_key_of(s->v[i], (int32_t)i);
            n += s->v[i] >= floor;
        }
    }
    return n;
}

static size_t gather_best(sampler *s, size_t k)
{
    const size_t n = gather(s, floor_of_best(s, k));
    if (n <= k) return n;
    rank_select(s->keys, n, k);
    return k;
}

/* In logits: the least that min-p leaves, rounded so that no value below it passes. */
static float floor_of_min_p(const sampler *s)
{
    if (s->o.min_p == 0) return -FLT_MAX;
    const double exact = s->largest + s->o.temperature * log(s->o.min_p);
    if (exact < -FLT_MAX) return -FLT_MAX;
    const float f = (float)exact;
    return f < exact ? nextafterf(f, INFINITY) : f;
}

/* In pieces that stay in L1. */
enum { PIECE = 1024 };

/* w[id] of n keys. Overflow to -infinity in the division is a weight of 0. */
static void weigh_keys(sampler *s, size_t n)
{
    float x[PIECE];
    for (size_t at = 0; at < n; at += PIECE) {
        const size_t m = n - at < PIECE ? n - at : PIECE;
        for (size_t i = 0; i < m; i++) x[i] = (float)((s->v[rank_id(s->keys[at + i])] - s->largest) / s->o.temperature);
        s->kern->map(KERN_FN_EXP, m, x, x);
        for (size_t i = 0; i < m; i++) s->w[rank_id(s->keys[at + i])] = x[i];
    }
}

/* w of all ids; returns their sum. The sum has a fixed order. */
static double weigh_all(sampler *s, double temperature)
{
    /* Neither infinite nor 0: 0 * infinity is no number. */
    const float scale = (float)fmin(fmax(1 / temperature, FLT_MIN), FLT_MAX), largest = s->largest;
    const size_t n = s->n_blocks * BLOCK;
    double lane[LANES] = {0};
    for (size_t at = 0; at < n; at += PIECE) {
        const size_t m = n - at < PIECE ? n - at : PIECE; /* a multiple of LANES */
        const float *v = s->v + at;
        float *w = s->w + at;
        for (size_t i = 0; i < m; i++) w[i] = (v[i] - largest) * scale;
        s->kern->map(KERN_FN_EXP, m, w, w);
        for (size_t i = 0; i < m; i += LANES) {
            for (size_t j = 0; j < LANES; j++) lane[j] += w[i + j];
        }
    }
    for (int j = 1; j < LANES; j++) lane[0] += lane[j];
    return lane[0];
}

/* Top-p and the choice among n weighed keys, whose weights come to `total` together with those of ids that are no keys.
 * false: their weights do not come to what is wanted. */
static bool choose(sampler *s, size_t n, double total, double r, int32_t *id)
{
    double mass = total;
    bool enough = true;
    if (s->o.top_p < 1) {
        n = rank_crossing(s->keys, n, s->w, s->o.top_p * total, false, &mass);
        enough = mass >= s->o.top_p * total;
    }
    const double target = r * mass;
    n = rank_crossing(s->keys, n, s->w, target, true, &mass);
    *id = rank_id(s->keys[n - 1]);
    return enough && mass > target;
}

static double sum_of_keys(const sampler *s, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += s->w[rank_id(s->keys[i])];
    return sum;
}

/* Rounding may leave the last cumulated weight just below what is wanted of the whole: the last one it is, then. */
static int32_t choose_some(sampler *s, float floor, double r)
{
    const size_t k = (size_t)s->o.top_k;
    const float best = k ? floor_of_best(s, k) : -FLT_MAX;
    size_t n = gather(s, best > floor ? best : floor);
    int32_t id;
    if (k && n > k) {
        rank_select(s->keys, n, k);
        n = k;
    }
    weigh_keys(s, n);
    choose(s, n, sum_of_keys(s, n), r, &id);
    return id;
}

static int32_t choose_any(sampler *s, double r)
{
    const double total = weigh_all(s, s->o.temperature);
    int32_t id;
    if (choose(s, gather_best(s, BEST_FEW), total, r, &id)) return id;
    if (choose(s, gather_best(s, s->n_blocks / 2 + 1), total, r, &id)) return id;
    choose(s, gather(s, -FLT_MAX), total, r, &id);
    return id;
}

lath_status sampler_pick(sampler *s, const float *logits, const uint32_t *mask, int32_t *id, lath_error *err)
{
    TRY(take_logits(s, logits, true, mask, err));
    if (s->o.temperature == 0) {
        *id = first_largest(s);
        return LATH_OK;
    }
    const double r = rng_uniform(&s->rng);
    const bool some = (s->o.top_k > 0 && s->o.top_k < s->n_vocab) || s->o.min_p > 0;
    *id = some ? choose_some(s, floor_of_min_p(s), r) : choose_any(s, r);
    return LATH_OK;
}

/* ---------------------------------------------------------------------------------------------------------- logprobs */

lath_status sampler_top_logprobs(sampler *s, const float *logits, size_t k, lath_token_logprob *top,
                                 lath_token_logprob *chosen, lath_error *err)
{
    const size_t n = (size_t)s->n_vocab;
    if (chosen) TRY(logprobs_of(s->kern, logits, n, chosen->id, &chosen->logprob, err));
    return logprobs_top(s->kern, logits, n, k, top, err);
}
