/* SPDX-License-Identifier: Apache-2.0
 * fuzz_grammar_schema.c: JSON schemas; those that open never run into a state from which no text ends. */
#include "fuzz_grammar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    grammar *g;
    if (size == 0 || size > 4096) return 0;
    if (grammar_open_schema(alloc_default(), "fuzz", (const char *)data, size, &g, NULL) != LATH_OK) return 0;
    fuzz_follow(g, data, size);
    grammar_close(g);
    return 0;
}
