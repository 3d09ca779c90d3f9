/* SPDX-License-Identifier: Apache-2.0
 * tmpdir.h: temporary directories and model directories that are broken on purpose: a good one is copied, then
 * files are rewritten, texts in them replaced, bytes of a tensor patched. Everything fails the test when it does
 * not work. */
#ifndef LATH_TESTS_TMPDIR_H
#define LATH_TESTS_TMPDIR_H

#include <stddef.h>
#include <stdint.h>

enum { TMP_PATH = 512 };

/* A new empty directory under $TMPDIR or P_tmpdir; its path into out[TMP_PATH]. */
void tmp_make(char *out);
/* A new directory with all files and folders of `from` in it. */
void tmp_copy(char *out, const char *from);
/* Removes the directory and everything in it. */
void tmp_remove(const char *dir);

/* "dir/name". */
void tmp_join(char out[TMP_PATH], const char *dir, const char *name);

/* dir/name := n bytes, folders on the way are made. */
void tmp_write_bytes(const char *dir, const char *name, const void *p, size_t n);
void tmp_write(const char *dir, const char *name, const char *text);
/* The whole of dir/name, malloc'd, terminated. */
char *tmp_read(const char *dir, const char *name, size_t *n);
/* Replaces the only occurrence of `old` in dir/name. */
void tmp_replace(const char *dir, const char *name, const char *old, const char *with);
void tmp_delete(const char *dir, const char *name);
void tmp_rename(const char *dir, const char *from, const char *to);

/* n bytes of the tensor's data in dir/model.safetensors, from byte `at` of it. */
void tmp_patch_tensor(const char *dir, const char *name, size_t at, const void *p, size_t n);
/* Replaces `old` in the header of dir/model.safetensors; the length in front is set anew. */
void tmp_edit_header(const char *dir, const char *old, const char *with);
/* Puts the tensors of dir/model.safetensors into n shards (tensor i of the file's order into shard i * n / count) and an
 * index; the file itself goes. */
void tmp_split(const char *dir, int32_t n);

#endif
