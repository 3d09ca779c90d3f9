/* SPDX-License-Identifier: Apache-2.0
 *
 * logprobs.c: softmax in logarithms, shifted by the largest logit so that nothing overflows. The best k are kept in a heap whose root is
 * the worst of them, in the caller's array: no memory is needed, and most tokens cost one comparison.
 */
#include "engine/logprobs.h"

#include <float.h>
#include <math.h>

#include "engine/engine.h"

enum { LANES = 16, PIECE = 1024 }; /* in pieces that stay in L1 */

/* ln(sum of exp(v[i])); largest: of v, finite. */
static double log_total(const kern_table *kern, const float *v, size_t n, float largest)
{
    double lane[LANES] = {0};
    float w[PIECE];
    for (size_t at = 0; at < n; at += PIECE) {
        const size_t m = n - at < PIECE ? n - at : PIECE;
        for (size_t i = 0; i < m; i++) w[i] = v[at + i] - largest;
        kern->map(KERN_FN_EXP, m, w, w);
        for (size_t i = m; i % LANES; i++) w[i] = 0;
        for (size_t i = 0; i < m; i += LANES) {
            for (size_t j = 0; j < LANES; j++) lane[j] += w[i + j];
        }
    }
    for (int j = 1; j < LANES; j++) lane[0] += lane[j];
    return (double)largest + log(lane[0]);
}

/* The largest of them, which is finite. Lanes side by side, so that compilers use vectors. */
static lath_status find_largest(const float *v, size_t n, float *out, lath_error *err)
{
    float m[LANES];
    uint32_t bad[LANES] = {0};
    for (int j = 0; j < LANES; j++) m[j] = -INFINITY;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (size_t j = 0; j < LANES; j++) {
            bad[j] |= !(v[i + j] <= FLT_MAX);
            m[j] = v[i + j] > m[j] ? v[i + j] : m[j];
        }
    }
    for (; i < n; i++) {
        bad[0] |= !(v[i] <= FLT_MAX);
        m[0] = v[i] > m[0] ? v[i] : m[0];
    }
    for (int j = 1; j < LANES; j++) {
        bad[0] |= bad[j];
        m[0] = m[j] > m[0] ? m[j] : m[0];
    }
    for (i = 0; bad[0]; i++) {
        if (!(v[i] <= FLT_MAX))
            return err_set(err, LATH_ERR_FORMAT, "logits: token %zu has %s", i, isnan(v[i]) ? "NaN" : "+infinity");
    }
    *out = m[0];
    return m[0] >= -FLT_MAX ? LATH_OK : err_set(err, LATH_ERR_INPUT, "no token can follow: all logits are -infinity");
}

static bool is_worse(lath_token_logprob a, lath_token_logprob b)
{
    return a.logprob < b.logprob || (a.logprob == b.logprob && a.id > b.id);
}

/* Puts `x` in at the root of a heap of k and lets it sink: every entry is worse than those below it. */
static void sink(lath_token_logprob *heap, size_t k, size_t at, lath_token_logprob x)
{
    for (size_t child; (child = 2 * at + 1) < k; at = child) {
        if (child + 1 < k && is_worse(heap[child + 1], heap[child])) child++;
        if (!is_worse(heap[child], x)) break;
        heap[at] = heap[child];
    }
    heap[at] = x;
}

/* top[0 .. k) := the best by value, best first; logprob holds the value. */
static void find_best(const float *v, size_t n, size_t k, lath_token_logprob *top)
{
    for (size_t i = 0; i < k; i++) top[i] = (lath_token_logprob){(int32_t)i, v[i]};
    for (size_t i = k / 2; i-- > 0;) sink(top, k, i, top[i]);
    for (size_t i = k; i < n; i++) {
        if (v[i] > top[0].logprob)
            sink(top, k, 0, (lath_token_logprob){(int32_t)i, v[i]}); /* of equal ones the lower */
    }
    for (size_t m = k; m-- > 1;) { /* the worst goes to the end */
        const lath_token_logprob worst = top[0], x = top[m];
        sink(top, m, 0, x);
        top[m] = worst;
    }
}

lath_status logprobs_top(const kern_table *kern, const float *logits, size_t n, size_t k, lath_token_logprob *top,
                         lath_error *err)
{
    float largest;
    TRY(find_largest(logits, n, &largest, err));
    if (k == 0) return LATH_OK;
    const double total = log_total(kern, logits, n, largest);
    find_best(logits, n, k, top);
    for (size_t i = 0; i < k; i++) top[i].logprob -= total;
    return LATH_OK;
}

lath_status logprobs_of(const kern_table *kern, const float *logits, size_t n, int32_t id, double *logprob,
                        lath_error *err)
{
    float largest;
    TRY(find_largest(logits, n, &largest, err));
    *logprob = (double)logits[id] - log_total(kern, logits, n, largest);
    return LATH_OK;
}

lath_status lath_logits_top(const lath_runtime *rt, const float *logits, size_t n, size_t k, lath_token_logprob *top,
                            lath_error *err)
{
    err_clear(err);
    if (!rt || !logits || (k && !top)) return err_set(err, LATH_ERR_USAGE, "lath_logits_top: an argument is missing");
    if (n < 1 || n > INT32_MAX || k > n)
        return err_set(err, LATH_ERR_USAGE, "lath_logits_top: %zu of %zu tokens", k, n);
    return logprobs_top(&rt->kern, logits, n, k, top, err);
}

lath_status lath_logits_logprob(const lath_runtime *rt, const float *logits, size_t n, int32_t id, double *logprob,
                                lath_error *err)
{
    err_clear(err);
    if (!rt || !logits || !logprob) return err_set(err, LATH_ERR_USAGE, "lath_logits_logprob: an argument is missing");
    if (id < 0 || (size_t)id >= n)
        return err_set(err, LATH_ERR_INPUT, "lath_logits_logprob: id %d of %zu tokens", id, n);
    return logprobs_of(&rt->kern, logits, n, id, logprob, err);
}
