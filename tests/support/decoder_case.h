/* SPDX-License-Identifier: Apache-2.0
 *
 * decoder_case.h: the cases of the programs that compare tiny language models with the reference: the directories of tests/golden/decoder, or with
 * --gguf those of tests/golden/gguf, whose models are GGUF files, most of them of the same models.
 */
#ifndef LATH_TESTS_DECODER_CASE_H
#define LATH_TESTS_DECODER_CASE_H

#include "store/safetensors.h"

/* PROGRAM [--gguf] [CASE] */
void decoder_case_args(int argc, char **argv);
/* Calls `check` with the path and the name of every case, or of the one that was named. */
void decoder_case_each(void (*check)(const char *path, const char *name));
/* Whether these are all cases of tests/golden/decoder: then nothing that a check looks for may be missing. */
bool decoder_case_all(void);
/* What to open as the model of the case at `path`. */
void decoder_case_model(const char *path, char *out, size_t n);
/* What the reference gives: of a GGUF file that has none beside it, what it gives for the directory of that name. */
safetensors *decoder_case_expected(const char *path);

#endif
