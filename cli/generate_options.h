/* SPDX-License-Identifier: Apache-2.0
 * generate_options.h: what the command line says about new text: how tokens are chosen and where it ends. For lath generate and lath chat. */
#ifndef LATH_CLI_GENERATE_OPTIONS_H
#define LATH_CLI_GENERATE_OPTIONS_H

#include "options.h"

/* Into *g, which has the defaults, and *sample, which g points to then. Lists are of the options' arena. */
lath_status generate_options_read(options *o, lath_generate_options *g, lath_sample_options *sample, lath_error *err);

#endif
