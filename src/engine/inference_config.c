/* SPDX-License-Identifier: Apache-2.0
 *
 * inference_config.c: inference_config.json of a model directory: how long texts may be and where they end, set by whoever deploys the model.
 * The file and each of its members may be missing; a member that is there must make sense. Members of other names are not looked at.
 */
#include "base/file.h"
#include "engine/engine.h"

const inference_config inference_defaults = {-1, 0, INFERENCE_GPU_MAX_SEQ_LEN};

lath_status inference_config_load(arena *a, const char *path, inference_config *out, lath_error *err)
{
    int64_t eos = -1, rope = 0, gpu = INFERENCE_GPU_MAX_SEQ_LEN;
    json_value *j;
    *out = inference_defaults;
    if (!file_exists(path)) return LATH_OK;
    TRY(json_load(a, path, NULL, &j, err));
    if (j->kind != JSON_OBJECT) return err_set(err, LATH_ERR_FORMAT, "%s: want a JSON object", path);
    TRY(json_get_int(j, "eos_token_id", path, 0, INT32_MAX, &eos, err));
    TRY(json_get_int(j, "rope_table_max_seq_len", path, 1, INT32_MAX, &rope, err));
    TRY(json_get_int(j, "gpu_max_seq_len", path, 1, INT32_MAX, &gpu, err));
    *out = (inference_config){(int32_t)eos, (int32_t)rope, (int32_t)gpu};
    return LATH_OK;
}
