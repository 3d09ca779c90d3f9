/* SPDX-License-Identifier: Apache-2.0
 *
 * replay.c: main() for a fuzz target without a fuzzer: `replay_fuzz_X DIR...` hands every file of the directories to LLVMFuzzerTestOneInput,
 * in name order. Part of the normal test run, so that an input that once broke something stays checked. No files at all is a failure.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int visible(const struct dirent *e) { return e->d_name[0] != '.'; }

/* The bytes lie in a block of exactly their size, so that a sanitizer sees a read behind them. */
static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL;
    long size;
    int st = 1;
    if (!f || fseek(f, 0, SEEK_END) != 0 || (size = ftell(f)) < 0 || fseek(f, 0, SEEK_SET) != 0) goto done;
    data = malloc((size_t)size > 0 ? (size_t)size : 1);
    if (!data || fread(data, 1, (size_t)size, f) != (size_t)size) goto done;
    LLVMFuzzerTestOneInput(data, (size_t)size);
    st = 0;
done:
    if (st) fprintf(stderr, "cannot read %s\n", path);
    free(data);
    if (f) fclose(f);
    return st;
}

static int replay_dir(const char *dir)
{
    struct dirent **names = NULL;
    const int n = scandir(dir, &names, visible, alphasort);
    int failed = 0;
    if (n <= 0) {
        fprintf(stderr, "%s: no files to replay\n", dir);
        free(names);
        return 1;
    }
    for (int i = 0; i < n; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", dir, names[i]->d_name);
        fprintf(stderr, "%s\n", names[i]->d_name); /* before the run: a crash is then named */
        failed |= replay_file(path);
        free(names[i]);
    }
    free(names);
    fprintf(stderr, "%d inputs replayed from %s\n", n, dir);
    return failed;
}

int main(int argc, char **argv)
{
    int failed = argc < 2;
    if (failed) fprintf(stderr, "usage: %s DIR...\n", argv[0]);
    for (int i = 1; i < argc; i++) failed |= replay_dir(argv[i]);
    return failed;
}
