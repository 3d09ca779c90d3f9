/* SPDX-License-Identifier: Apache-2.0
 *
 * model_path.c: see model_path.h. The layout of the cache is that of huggingface_hub ("Understand caching" of its
 * documentation): refs/main holds the commit that the branch had when it was fetched, snapshots/COMMIT holds links into
 * blobs/.
 */
#include "model_path.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"

enum { NAME_MAX_BYTES = 200, REF_MAX_BYTES = 256, PATH_BYTES = 1 << 16 };

static bool exists(const char *path)
{
    struct stat sb;
    return stat(path, &sb) == 0;
}

static const char *env(const char *name)
{
    const char *v = getenv(name);
    return v && *v ? v : NULL;
}

static bool name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
}

/* name or org/name of letters, digits, '-', '_', '.', neither part beginning with a dot (which would be a relative
 * path). */
static bool is_hub_name(const char *s)
{
    size_t slashes = 0;
    if (strlen(s) > NAME_MAX_BYTES) return false;
    for (const char *p = s; *p; p++) {
        const bool begins = p == s || p[-1] == '/';
        if (*p == '/') {
            if (begins || !p[1] || ++slashes > 1) return false;
        } else if (!name_char(*p) || (begins && *p == '.')) {
            return false;
        }
    }
    return *s != 0;
}

/* The cache folder into b; false when there is no way to know it. */
static bool cache_dir(buf *b)
{
    const char *dir;
    if ((dir = env("HF_HUB_CACHE")) || (dir = env("HUGGINGFACE_HUB_CACHE"))) {
        buf_clear(b);
        buf_str(b, dir);
        (void)buf_cstr(b);
        return true;
    }
    if ((dir = env("HF_HOME"))) {
        file_join(b, dir, "hub");
        return true;
    }
    if ((dir = env("XDG_CACHE_HOME"))) {
        file_join(b, dir, "huggingface/hub");
        return true;
    }
    if ((dir = env("HOME"))) {
        file_join(b, dir, ".cache/huggingface/hub");
        return true;
    }
    return false;
}

/* The newest folder inside `dir` that has a config.json, joined into out. */
static bool newest_snapshot(const char *dir, buf *out)
{
    const lath_allocator *alloc = alloc_default();
    buf path, probe;
    struct dirent *e;
    time_t newest = 0;
    bool found = false;
    DIR *d = opendir(dir);
    if (!d) return false;
    buf_init(&path, alloc, PATH_BYTES);
    buf_init(&probe, alloc, PATH_BYTES);
    while ((e = readdir(d))) {
        struct stat sb;
        if (e->d_name[0] == '.') continue;
        file_join(&path, dir, e->d_name);
        file_join(&probe, buf_cstr(&path), "config.json");
        if (stat(buf_cstr(&path), &sb) != 0 || !S_ISDIR(sb.st_mode) || !exists(buf_cstr(&probe))) continue;
        if (found && sb.st_mtime <= newest) continue;
        newest = sb.st_mtime;
        found = true;
        buf_clear(out);
        buf_str(out, buf_cstr(&path));
    }
    closedir(d);
    buf_deinit(&path);
    buf_deinit(&probe);
    return found;
}

/* Looks for the name in the cache folder. */
static bool find_cached(const char *cache, const char *name, buf *out)
{
    const lath_allocator *alloc = alloc_default();
    bool found = false;
    buf repo, part, ref;
    buf_init(&repo, alloc, PATH_BYTES);
    buf_init(&part, alloc, PATH_BYTES);
    buf_init(&ref, alloc, PATH_BYTES);
    file_join(&repo, cache, "models--");
    for (const char *p = name; *p; p++) buf_str(&repo, *p == '/' ? "--" : (const char[]){*p, 0});
    file_join(&part, buf_cstr(&repo), "refs/main");
    if (file_read(&ref, buf_cstr(&part), REF_MAX_BYTES, NULL) == LATH_OK) {
        while (ref.len > 0 &&
               (ref.data[ref.len - 1] == '\n' || ref.data[ref.len - 1] == '\r' || ref.data[ref.len - 1] == ' '))
            ref.len--;
        file_join(&part, buf_cstr(&repo), "snapshots");
        file_join(out, buf_cstr(&part), buf_cstr(&ref));
        found = ref.len > 0 && !memchr(ref.data, '/', ref.len) && file_is_dir(buf_cstr(out));
    }
    if (!found) {
        file_join(&part, buf_cstr(&repo), "snapshots");
        found = newest_snapshot(buf_cstr(&part), out);
    }
    buf_deinit(&repo);
    buf_deinit(&part);
    buf_deinit(&ref);
    return found;
}

/* models/name, or the file models/name.gguf; either without its organisation, too. */
static bool find_in(const char *models, const char *name, buf *out)
{
    const char *slash = strchr(name, '/'), *const names[] = {name, slash ? slash + 1 : name};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        file_join(out, models, names[i]);
        if (exists(buf_cstr(out))) return true;
        buf_str(out, ".gguf");
        if (exists(buf_cstr(out))) return true;
    }
    return false;
}

/* Where ./run and tools/models/fetch.sh keep models when LATH_MODELS does not say otherwise. */
static bool own_dir(buf *b)
{
    const char *dir = env("XDG_CACHE_HOME"), *home = env("HOME");
    if (dir)
        file_join(b, dir, "lath/models");
    else if (home)
        file_join(b, home, ".cache/lath/models");
    (void)buf_cstr(b);
    return dir || home;
}

/* A GGUF file that stands for a model: no later part of one, no projector of images. */
static bool is_gguf_model(const char *name)
{
    const size_t n = strlen(name), part = sizeof("-00001-of-00002.gguf") - 1;
    if (n <= 5 || strcmp(name + n - 5, ".gguf") != 0 || strncmp(name, "mmproj", 6) == 0) return false;
    const bool is_part = n > part && strncmp(name + n - part + 6, "-of-", 4) == 0;
    return !is_part || strncmp(name + n - part, "-00001", 6) == 0;
}

/* A folder whose only model is a GGUF file stands for that file; an index of features (lath extract) has one that holds keys alone. */
static lath_status enter_gguf_folder(buf *path, lath_error *err)
{
    struct dirent *e;
    size_t n = 0;
    buf probe, file;
    buf_init(&probe, alloc_default(), PATH_BYTES);
    buf_init(&file, alloc_default(), PATH_BYTES);
    static const char *const others[] = {"config.json", "modules.json", "index.json"};
    bool other = false;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        file_join(&probe, buf_cstr(path), others[i]);
        other |= exists(buf_cstr(&probe));
    }
    DIR *d = other ? NULL : opendir(buf_cstr(path));
    while (d && (e = readdir(d))) {
        if (!is_gguf_model(e->d_name)) continue;
        if (n++ == 0) file_join(&file, buf_cstr(path), e->d_name);
    }
    if (d) closedir(d);
    lath_status st = LATH_OK;
    if (n > 1)
        st =
            err_set(err, LATH_ERR_NOT_FOUND, "%s: %zu GGUF models are in it; name one of the files", buf_cstr(path), n);
    if (n == 1) {
        buf_clear(path);
        buf_str(path, buf_cstr(&file));
    }
    buf_deinit(&probe);
    buf_deinit(&file);
    return st == LATH_OK ? buf_status(path, err) : st;
}

static lath_status find_any(const char *name, buf *out, lath_error *err)
{
    const char *models = env("LATH_MODELS");
    lath_status st = LATH_OK;
    buf cache;
    if (!name || !*name) return err_set(err, LATH_ERR_USAGE, "-m: no model given (a model folder or a hub name)");
    buf_clear(out);
    if (exists(name)) {
        buf_str(out, name);
        (void)buf_cstr(out);
        return buf_status(out, err);
    }
    if (!is_hub_name(name))
        return err_set(err, LATH_ERR_NOT_FOUND, "%s: no such model: no file or folder of this path", name);
    if (models && find_in(models, name, out)) return buf_status(out, err);
    buf_init(&cache, alloc_default(), PATH_BYTES);
    if (own_dir(&cache) && find_in(buf_cstr(&cache), name, out)) {
        buf_deinit(&cache);
        return buf_status(out, err);
    }
    const bool have_cache = cache_dir(&cache);
    if (!have_cache || !find_cached(buf_cstr(&cache), name, out)) {
        st = err_set(err, LATH_ERR_NOT_FOUND,
                     "%s: no such model: no folder of this path, not in LATH_MODELS (%s), ~/.cache/lath/models or the "
                     "Hugging Face cache (%s)",
                     name, models ? models : "not set", have_cache ? buf_cstr(&cache) : "none");
    }
    (void)buf_cstr(out);
    buf_deinit(&cache);
    return st == LATH_OK ? buf_status(out, err) : st;
}

lath_status model_path_find(const char *name, buf *out, lath_error *err)
{
    TRY(find_any(name, out, err));
    return file_is_dir(buf_cstr(out)) ? enter_gguf_folder(out, err) : LATH_OK;
}
