/* SPDX-License-Identifier: Apache-2.0
 * decoder_case.c: see decoder_case.h. */
#include "support/decoder_case.h"

#include "support/golden.h"
#include "support/test.h"

static const char *only;             /* NULL: all cases */
static const char *kind = "decoder"; /* or "gguf" */

void decoder_case_args(int argc, char **argv)
{
    int at = 1;
    if (at < argc && strcmp(argv[at], "--gguf") == 0) {
        kind = "gguf";
        at++;
    }
    only = at < argc ? argv[at] : NULL;
}

void decoder_case_each(void (*check)(const char *path, const char *name))
{
    arena mem;
    char dir[1024], path[1400];
    size_t n, checked = 0;
    arena_init(&mem, alloc_default());
    test_path(dir, sizeof(dir), "golden", kind);
    const char **names = test_list_dirs(&mem, dir, &n);
    for (size_t i = 0; i < n; i++) {
        if (only && strcmp(only, names[i]) != 0) continue;
        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        check(path, names[i]);
        checked++;
    }
    if (checked == 0) fail_msg("%s has no %s", dir, only ? only : "case");
    arena_deinit(&mem);
}

bool decoder_case_all(void) { return !only && strcmp(kind, "decoder") == 0; }

void decoder_case_model(const char *path, char *out, size_t n)
{
    snprintf(out, n, "%s%s", path, strcmp(kind, "gguf") == 0 ? "/model.gguf" : "");
}

safetensors *decoder_case_expected(const char *path)
{
    char file[1500], dir[1100];
    lath_error err;
    safetensors *out;
    snprintf(file, sizeof(file), "%s/expected.safetensors", path);
    if (!file_exists(file)) {
        test_path(dir, sizeof(dir), "golden", "decoder");
        snprintf(file, sizeof(file), "%s%s/expected.safetensors", dir, strrchr(path, '/'));
    }
    assert_ok(safetensors_open(alloc_default(), file, FILE_MAP, &out, &err), err);
    return out;
}
