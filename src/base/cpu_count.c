/* SPDX-License-Identifier: Apache-2.0
 * cpu_count.c: how many threads this process may use: the affinity mask and the CPU quota of its cgroup (v2:
 * cpu.max of each ancestor, v1: cpu.cfs_quota_us), rounded up. A quota that cannot be read is none. */
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/pool.h"

static int32_t affinity_count(void)
{
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0) return (int32_t)CPU_COUNT(&set);
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int32_t)n : 1;
}

#if defined(__linux__)
static bool read_text(const char *path, char *out, size_t cap)
{
    FILE *f = fopen(path, "re");
    if (!f) return false;
    size_t n = fread(out, 1, cap - 1, f);
    fclose(f);
    out[n] = 0;
    return n > 0;
}

/* CPUs that "quota period" in microseconds come to, rounded up; `most` when there is no limit. */
static int32_t quota_cpus(long quota, long period, int32_t most)
{
    if (quota <= 0 || period <= 0) return most;
    long n = quota / period + (quota % period != 0);
    return n < most ? (n < 1 ? 1 : (int32_t)n) : most;
}

/* The group's own directory and every ancestor may have a limit. */
static int32_t quota_v2(char *group, int32_t most)
{
    for (;;) {
        char path[1200], text[64];
        long quota, period;
        snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cpu.max", strcmp(group, "/") == 0 ? "" : group);
        if (read_text(path, text, sizeof(text)) && sscanf(text, "%ld %ld", &quota, &period) == 2)
            most = quota_cpus(quota, period, most);
        char *slash = strrchr(group, '/');
        if (!slash || group[1] == 0) return most;
        slash[slash == group] = 0;
    }
}

static int32_t quota_v1(int32_t most)
{
    char a[64], b[64];
    long quota, period;
    if (read_text("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", a, sizeof(a)) &&
        read_text("/sys/fs/cgroup/cpu/cpu.cfs_period_us", b, sizeof(b)) && sscanf(a, "%ld", &quota) == 1 &&
        sscanf(b, "%ld", &period) == 1)
        return quota_cpus(quota, period, most);
    return most;
}
#endif

int32_t pool_default_threads(void)
{
    int32_t n = affinity_count();
#if defined(__linux__)
    char text[4096];
    if (read_text("/proc/self/cgroup", text, sizeof(text))) {
        char *line = strstr(text, "0::"), group[1024];
        if (line && (line == text || line[-1] == '\n') && sscanf(line + 3, "%1023[^\n]", group) == 1 && group[0] == '/')
            n = quota_v2(group, n);
    }
    n = quota_v1(n);
#endif
    return n < 1 ? 1 : n > 256 ? 256 : n;
}
