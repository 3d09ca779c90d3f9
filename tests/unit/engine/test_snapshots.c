/* SPDX-License-Identifier: Apache-2.0
 * test_snapshots.c: slots of snapshots: how many there are, what comes back, which one goes when all are taken. */
#include "engine/snapshots.h"

#include "support/test.h"

enum { N_STATE = 37, N_LOGITS = 5, SLOT_BYTES = (48 + 16) * 4 };

static lath_error err;

static snapshots make(uint64_t budget)
{
    snapshots s;
    snapshots_plan(&s, N_STATE, N_LOGITS, budget);
    assert_ok(snapshots_init(&s, alloc_default(), &err), err);
    return s;
}

/* A state that says where it was taken. */
static void take(snapshots *s, int32_t at, snapshot_kind kind)
{
    float state[N_STATE], logits[N_LOGITS];
    for (int i = 0; i < N_STATE; i++) state[i] = (float)(at * 64 + i);
    for (int i = 0; i < N_LOGITS; i++) logits[i] = (float)-(at * 64 + i);
    snapshots_take(s, at, kind, state, kind == SNAPSHOT_END ? logits : NULL);
}

static bool holds(const snapshots *s, int32_t at)
{
    const snapshot *one = snapshots_below(s, at);
    return one && one->at == at;
}

static void check(const snapshots *s, int32_t at)
{
    float state[N_STATE], logits[N_LOGITS] = {0};
    const snapshot *one = snapshots_below(s, at);
    assert_non_null(one);
    snapshots_restore(s, one, state, logits);
    for (int i = 0; i < N_STATE; i++) assert_true(state[i] == (float)(one->at * 64 + i));
    for (int i = 0; i < N_LOGITS; i++) assert_true(logits[i] == (one->has_logits ? (float)-(one->at * 64 + i) : 0));
}

static void test_room(void **state)
{
    (void)state;
    static const struct {
        size_t n_state, n_logits;
        uint64_t budget;
        int32_t n;
        size_t bytes;
    } rooms[] = {
        {N_STATE, N_LOGITS, 0, 8, 8 * SLOT_BYTES},
        {N_STATE, N_LOGITS, 1, 0, 0},
        {N_STATE, N_LOGITS, SLOT_BYTES - 1, 0, 0},
        {N_STATE, N_LOGITS, SLOT_BYTES, 1, SLOT_BYTES},
        {N_STATE, N_LOGITS, 5 * SLOT_BYTES + 1, 5, 5 * SLOT_BYTES},
        {N_STATE, N_LOGITS, (uint64_t)1 << 40, SNAPSHOTS_MOST, SNAPSHOTS_MOST * SLOT_BYTES},
        {0, N_LOGITS, 0, 0, 0},                                                    /* nothing recurs */
        {4718592, 248320, 0, 8, 8 * (size_t)(4718592 + 248320) * 4},               /* 20 MB each */
        {(size_t)38 << 20, 248320, 0, 3, 3 * (((size_t)38 << 20) + 248320) * 4},   /* 160 MB each */
        {(size_t)1 << 30, 16, (uint64_t)1 << 33, 1, (((size_t)1 << 30) + 16) * 4}, /* 4 GB each */
        {SIZE_MAX / 8, 16, 0, 0, 0},                                               /* no such machine */
    };
    for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
        snapshots s;
        snapshots_plan(&s, rooms[i].n_state, rooms[i].n_logits, rooms[i].budget);
        if (s.n_slots != rooms[i].n || s.bytes != rooms[i].bytes)
            fail_msg("row %zu: %d slots of %zu bytes in all", i, s.n_slots, s.bytes);
    }
}

static void test_what_comes_back(void **state)
{
    (void)state;
    snapshots s = make(4 * SLOT_BYTES);
    assert_null(snapshots_below(&s, 1000));
    take(&s, 10, SNAPSHOT_PASSING);
    take(&s, 20, SNAPSHOT_TURN);
    take(&s, 20, SNAPSHOT_END); /* the same one: it has its logits now */
    take(&s, 30, SNAPSHOT_END);
    assert_int_equal(snapshots_held(&s), 3);
    assert_null(snapshots_below(&s, 9));
    for (int32_t at = 10; at < 40; at++) {
        assert_int_equal(snapshots_below(&s, at)->at, at / 10 * 10);
        check(&s, at);
    }
    assert_true(snapshots_below(&s, 20)->has_logits);
    assert_int_equal(snapshots_below(&s, 20)->kind, SNAPSHOT_TURN);
    snapshots_drop(&s, 29);
    assert_int_equal(snapshots_held(&s), 2);
    assert_int_equal(snapshots_below(&s, 1000)->at, 20);
    snapshots_drop(&s, 0);
    assert_int_equal(snapshots_held(&s), 0);
    snapshots_deinit(&s, alloc_default());
    s = make(1);
    take(&s, 10, SNAPSHOT_TURN); /* there is no room: nothing */
    assert_null(snapshots_below(&s, 10));
    assert_false(snapshots_mark(&s, 10, NULL, NULL));
    snapshots_deinit(&s, alloc_default());
}

/* With eight of one kind, to go back by d tokens means to read no more than max(1024, 2 d) again, in a text of up to 100,000. */
static void test_thinning(void **state)
{
    (void)state;
    enum { CHUNK = 512, CHUNKS = 200 };
    snapshots s = make(0);
    for (int32_t i = 1; i <= CHUNKS; i++) {
        const int32_t n = i * CHUNK;
        take(&s, n, SNAPSHOT_PASSING);
        assert_true(holds(&s, n));
        assert_int_equal(snapshots_held(&s), i < 8 ? i : 8);
        for (int32_t d = 0; d < n; d += 61) {
            const snapshot *one = snapshots_below(&s, n - d);
            const int32_t again = n - d - (one ? one->at : 0);
            if (again > 2 * (d > CHUNK ? d : CHUNK)) fail_msg("%d tokens, back by %d: %d again", n, d, again);
        }
    }
    for (const snapshot *one = snapshots_below(&s, INT32_MAX); one; one = snapshots_below(&s, one->at - 1))
        check(&s, one->at);
    snapshots_deinit(&s, alloc_default());
}

/* A conversation of 30 messages of 200 tokens with 700 steps behind each: the last messages' beginnings and the last end stay. */
static void test_messages_stay(void **state)
{
    (void)state;
    snapshots s = make(0);
    int32_t n = 0;
    for (int turn = 0; turn < 30; turn++) {
        const int32_t before = n + 195, end = n + 200;
        take(&s, before, SNAPSHOT_TURN);
        take(&s, end, SNAPSHOT_END);
        for (n = end; n < end + 700; n++)
            if (n % 256 == 0) take(&s, n, SNAPSHOT_PASSING);
        assert_true(holds(&s, before));
        if (turn > 0) assert_true(holds(&s, before - 900));
        if (turn > 1) assert_true(holds(&s, before - 1800));
    }
    snapshots_deinit(&s, alloc_default());
}

static void test_marks(void **state)
{
    (void)state;
    float zero[N_STATE] = {0};
    snapshots s = make(4 * SLOT_BYTES);
    take(&s, 10, SNAPSHOT_PASSING);
    assert_true(snapshots_mark(&s, 10, zero, NULL)); /* there already: its state stays */
    check(&s, 10);
    assert_true(snapshots_mark(&s, 11, zero, NULL));
    assert_true(snapshots_mark(&s, 11, zero, NULL));
    for (int32_t i = 2; i < 300; i++) take(&s, i * 10, i % 3 ? SNAPSHOT_END : SNAPSHOT_TURN);
    assert_true(holds(&s, 10) && holds(&s, 11) && holds(&s, 2990));
    assert_true(snapshots_mark(&s, 3000, zero, NULL));
    assert_false(snapshots_mark(&s, 3001, zero, NULL)); /* one stays for everything else */
    assert_false(holds(&s, 3001));
    take(&s, 3002, SNAPSHOT_PASSING);
    take(&s, 3003, SNAPSHOT_PASSING);
    assert_true(holds(&s, 10) && holds(&s, 11) && holds(&s, 3000) && holds(&s, 3003));
    s.pinned = 3003;
    take(&s, 3004, SNAPSHOT_TURN); /* nothing may go */
    assert_true(holds(&s, 3003) && !holds(&s, 3004));
    s.pinned = 0;
    snapshots_unmark(&s, 3000);
    snapshots_unmark(&s, 3000);
    snapshots_unmark(&s, 3003); /* it has none */
    assert_int_equal(s.n_marked, 2);
    assert_true(snapshots_mark(&s, 3005, zero, NULL));
    snapshots_drop(&s, 100);
    assert_int_equal(s.n_marked, 2);
    assert_int_equal(snapshots_held(&s), 2);
    snapshots_deinit(&s, alloc_default());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_room),          cmocka_unit_test(test_what_comes_back), cmocka_unit_test(test_thinning),
        cmocka_unit_test(test_messages_stay), cmocka_unit_test(test_marks),
    };
    return TEST_RUN(tests);
}
