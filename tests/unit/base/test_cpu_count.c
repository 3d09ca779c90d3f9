/* SPDX-License-Identifier: Apache-2.0
 * test_cpu_count.c: pool_default_threads in child processes whose affinity mask holds 1, 2, ... CPUs, against the
 * mask that was set and the CPU quota of the machine (a quota can only lower the number). */
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/pool.h"
#include "support/test.h"

enum { MOST = 256 };

/* pool_default_threads of a child that may run on the first n CPUs of `all`. */
static int in_child(const cpu_set_t *all, int n)
{
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        cpu_set_t few;
        CPU_ZERO(&few);
        for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&few) < n; i++) {
            if (CPU_ISSET(i, all)) CPU_SET(i, &few);
        }
        if (sched_setaffinity(0, sizeof(few), &few) != 0) _exit(255);
        int32_t got = pool_default_threads();
        _exit(got < 1 || got > 254 ? 254 : (int)got);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_affinity(void **state)
{
    cpu_set_t all;
    (void)state;
    CPU_ZERO(&all);
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    int have = CPU_COUNT(&all), free_run = pool_default_threads();
    assert_true(free_run >= 1 && free_run <= (have < MOST ? have : MOST));
    for (int n = 1; n <= have && n <= 64; n++) {
        int got = in_child(&all, n);
        if (got == 255) skip(); /* this system does not let it be set */
        assert_int_equal(got, n < free_run ? n : free_run);
    }
    assert_int_equal(pool_default_threads(), free_run);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_affinity)};
    return TEST_RUN(tests);
}
