/* SPDX-License-Identifier: Apache-2.0
 * ranking.c: quickselect (Hoare 1961) by keys and by weights, heapsort (Williams 1964). */
#include "engine/ranking.h"

enum { SMALL = 16 };

static inline void swap(rank_key *a, rank_key *b)
{
    const rank_key t = *a;
    *a = *b;
    *b = t;
}

static void insertion_sort(rank_key *keys, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const rank_key key = keys[i];
        size_t at = i;
        for (; at > 0 && keys[at - 1] > key; at--) keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

/* The middle one of three keys goes to the front. Where they stand is mixed with n, so that no simple arrangement of keys
 * is bad round after round. */
static void choose_pivot(rank_key *keys, size_t n)
{
    const size_t mixed = (size_t)((n * 0x9E3779B97F4A7C15u) >> 40) % (n / 3);
    rank_key *a = keys + mixed, *b = keys + n / 3 + mixed, *c = keys + n - 1 - mixed;
    if (*a > *b) swap(a, b);
    if (*b > *c) swap(b, c);
    if (*a > *b) swap(a, b);
    swap(keys, b);
}

/* Returns p: keys before p are smaller than keys[p], keys behind it larger. n > SMALL. */
static size_t partition(rank_key *keys, size_t n)
{
    choose_pivot(keys, n);
    const rank_key pivot = keys[0];
    size_t i = 1, j = n - 1;
    for (;;) {
        while (i <= j && keys[i] < pivot) i++;
        while (keys[j] > pivot) j--;
        if (i >= j) break;
        swap(&keys[i++], &keys[j--]);
    }
    swap(&keys[0], &keys[j]);
    return j;
}

void rank_select(rank_key *keys, size_t n, size_t k)
{
    while (n > SMALL) {
        const size_t p = partition(keys, n);
        if (k == p || k == p + 1) return;
        if (k < p) {
            n = p;
        } else {
            keys += p + 1;
            n -= p + 1;
            k -= p + 1;
        }
    }
    insertion_sort(keys, n);
}

static void sift_down(rank_key *heap, size_t n, size_t i)
{
    for (;;) {
        size_t largest = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < n; child++) {
            if (heap[child] > heap[largest]) largest = child;
        }
        if (largest == i) return;
        swap(&heap[i], &heap[largest]);
        i = largest;
    }
}

void rank_sort(rank_key *keys, size_t n)
{
    if (n <= SMALL) {
        insertion_sort(keys, n);
        return;
    }
    for (size_t i = n / 2; i-- > 0;) sift_down(keys, n, i);
    for (size_t left = n; left > 1; left--) {
        swap(&keys[0], &keys[left - 1]);
        sift_down(keys, left - 1, 0);
    }
}

static double sum(const rank_key *keys, size_t n, const float *weights)
{
    double s = 0;
    for (size_t i = 0; i < n; i++) s += weights[rank_id(keys[i])];
    return s;
}

static inline bool crosses(double mass, double target, bool past) { return past ? mass > target : mass >= target; }

size_t rank_crossing(rank_key *keys, size_t n, const float *weights, double target, bool past, double *mass)
{
    double before = 0; /* of keys[0 .. low), which do not cross */
    size_t low = 0, high = n;
    while (high - low > SMALL) {
        const size_t p = low + partition(keys + low, high - low);
        const double left = before + sum(keys + low, p - low, weights);
        if (crosses(left, target, past)) {
            high = p;
            continue;
        }
        before = left + weights[rank_id(keys[p])];
        low = p + 1;
        if (!crosses(before, target, past)) continue;
        *mass = before;
        return low;
    }
    insertion_sort(keys + low, high - low);
    /* What lies behind `high` is out only because what is before it crossed; rounding may see it otherwise here. */
    while (low < high && !crosses(before, target, past)) before += weights[rank_id(keys[low++])];
    *mass = before;
    return low;
}
