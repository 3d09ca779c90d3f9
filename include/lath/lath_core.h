/* SPDX-License-Identifier: Apache-2.0
 *
 * lath_core.h: the few types that every part of lath shares: status codes, the error record, the allocator, the log callback.
 * Included by lath.h; programs include lath.h.
 */
#ifndef LATH_CORE_H
#define LATH_CORE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define LATH_API __attribute__((visibility("default")))
#else
#define LATH_API
#endif

#define LATH_VERSION_MAJOR 0
#define LATH_VERSION_MINOR 1
#define LATH_VERSION_PATCH 0

/* What a call came to. Names, texts, HTTP status and exit codes of each are one table, src/base/status.def. */
typedef enum lath_status {
    LATH_OK = 0,
    LATH_ERR_USAGE = 1,        /* an argument or option is wrong or out of range */
    LATH_ERR_NOT_FOUND = 2,    /* a model or file does not exist or cannot be opened */
    LATH_ERR_FORMAT = 3,       /* a file is malformed, cut, foreign, or holds NaN weights */
    LATH_ERR_UNSUPPORTED = 4,  /* a kind of model or a feature that lath does not have (named) */
    LATH_ERR_INPUT = 5,        /* a text or value given to work on is bad (invalid UTF-8, id out of range) */
    LATH_ERR_WINDOW = 6,       /* a text is longer than the model's window and truncation was refused */
    LATH_ERR_NOMEM = 7,        /* the allocator returned NULL */
    LATH_ERR_LIMIT = 8,        /* over a stated limit */
    LATH_ERR_IO = 9,           /* reading or writing failed */
    LATH_ERR_NETWORK = 10,     /* a network operation failed */
    LATH_ERR_INTERRUPTED = 11, /* a callback asked to stop */
    LATH_ERR_KV_FULL = 12      /* a session holds as many tokens as it can */
} lath_status;

/* Filled by a failing call when the caller passes one (NULL is allowed everywhere). Caller-owned, no resources inside. */
typedef struct lath_error {
    lath_status status;
    int os_errno;  /* errno of the failing system call, or 0 */
    int64_t item;  /* index of the text at fault in the call's input, or -1 */
    char msg[256]; /* one line, UTF-8, always terminated: "model.safetensors: tensor \"x\": shape [8,4], want [16,4]" */
} lath_error;

/* "LATH_ERR_FORMAT", or "LATH_?" for a number that is none. Static storage. Any thread. */
LATH_API const char *lath_status_name(lath_status status);
/* A short English text: "malformed file". Static storage. Any thread. */
LATH_API const char *lath_status_text(lath_status status);
/* The process exit code that stands for the status (0, 2..8, 130). Any thread. */
LATH_API int lath_status_exit_code(lath_status status);
/* The HTTP status that stands for it (200, 400...). Any thread. */
LATH_API int lath_status_http(lath_status status);

/* Where memory comes from. All three functions are called from any thread and must be thread safe.
 * alloc: `size` >= 1 bytes aligned to `align` (a power of two <= 64), or NULL. resize: as realloc, keeping the alignment; `p` from
 * alloc with `old_size`; NULL leaves `p` as it was. release: `p` from alloc or resize, never NULL. */
typedef struct lath_allocator {
    void *ctx;
    void *(*alloc)(void *ctx, size_t size, size_t align);
    void *(*resize)(void *ctx, void *p, size_t old_size, size_t size, size_t align);
    void (*release)(void *ctx, void *p, size_t size);
} lath_allocator;

typedef enum lath_log_level {
    LATH_LOG_ERROR = 0,
    LATH_LOG_WARN = 1,
    LATH_LOG_INFO = 2,
    LATH_LOG_DEBUG = 3
} lath_log_level;

/* Called with one line without newline; `line` is valid during the call only. May be called from any thread. */
typedef void (*lath_log_fn)(void *ctx, lath_log_level level, const char *line);

#ifdef __cplusplus
}
#endif
#endif
