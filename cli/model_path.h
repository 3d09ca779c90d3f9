/* SPDX-License-Identifier: Apache-2.0
 *
 * model_path.h: from what -m says to a path. A path that exists is taken as it is. Else a hub name (org/name, or name)
 * is looked up in
 *   $LATH_MODELS/org/name, $LATH_MODELS/name, both also with .gguf behind
 *   the Hugging Face cache: CACHE/models--org--name/snapshots/COMMIT with the commit of refs/main, else the newest
 *   snapshot; CACHE is the first that is set of $HF_HUB_CACHE, $HUGGINGFACE_HUB_CACHE, $HF_HOME/hub,
 *   $XDG_CACHE_HOME/huggingface/hub, ~/.cache/huggingface/hub
 * A folder whose only model is a GGUF file stands for that file. Nothing is fetched.
 */
#ifndef LATH_CLI_MODEL_PATH_H
#define LATH_CLI_MODEL_PATH_H

#include "base/buf.h"

/* The path into out, terminated. LATH_ERR_NOT_FOUND says where it looked; LATH_ERR_USAGE when name is NULL or empty. */
lath_status model_path_find(const char *name, buf *out, lath_error *err);

#endif
