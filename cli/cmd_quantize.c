/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_quantize.c: `lath quantize`: a model folder as a GGUF file. The file is the result; what is printed is about it.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "output.h"
#include "setup.h"
#include "signals.h"

static lath_status check_options(const options *o, lath_error *err)
{
    if (o->args.n > 0)
        return err_set(err, LATH_ERR_USAGE, "quantize: %s: takes no arguments (-m FOLDER -o FILE)", o->args.items[0]);
    if (!o->output) return err_set(err, LATH_ERR_USAGE, "-o: quantize wants the file to write");
    if (!o->gguf_type)
        return err_set(err, LATH_ERR_USAGE, "--type: quantize wants f32, f16, bf16, q8_0, q4_0, q4_k or q6_k");
    return LATH_OK;
}

static lath_status print_json(const options *o, const lath_quantize_result *r, double seconds, lath_error *err)
{
    output out = {0};
    lath_status st;
    TRY_DONE(output_open(&out, NULL, err));
    buf_str(&out.b, "{\"file\":");
    json_put_string(&out.b, o->output, strlen(o->output));
    buf_printf(&out.b,
               ",\"architecture\":\"%s\",\"bytes\":%llu,\"source_bytes\":%llu,\"tensors\":%d,\"other_types\":%d",
               r->architecture, (unsigned long long)r->bytes, (unsigned long long)r->source_bytes, (int)r->n_tensors,
               (int)r->n_other);
    buf_str(&out.b, ",\"seconds\":");
    json_put_f64(&out.b, seconds);
    buf_str(&out.b, "}\n");
    TRY_DONE(output_close(&out, err));
done:
    output_abort(&out);
    return st;
}

static void print_line(const options *o, const lath_quantize_result *r, double seconds)
{
    fprintf(stderr, "%s: %s, %d tensors, %.1f MB of %.1f MB, %.1f s\n", o->output, r->architecture, (int)r->n_tensors,
            (double)r->bytes / 1e6, (double)r->source_bytes / 1e6, seconds);
    if (r->n_other)
        fprintf(stderr,
                "%d matrices have rows that are no whole number of blocks and are of another type (-v says which)\n",
                (int)r->n_other);
}

lath_status cmd_quantize(options *o, lath_error *err)
{
    setup s = {0};
    progress p;
    lath_quantize_options qo = LATH_QUANTIZE_OPTIONS_INIT;
    lath_quantize_result r = LATH_QUANTIZE_RESULT_INIT;
    lath_status st;
    progress_init(&p, "quantize", o->quiet);
    progress_chunk(&p, 0, 1);
    p.unit = "MB";
    p.per_unit = 1000;
    TRY_DONE(check_options(o, err));
    TRY_DONE(setup_path(&s, o, err));
    qo.type = (lath_gguf_type)(o->gguf_type - 1);
    qo.name = o->model_name;
    qo.progress = progress_tick;
    qo.progress_ctx = &p;
    const char *path = strcmp(o->output, "-") == 0 ? "/dev/stdout" : o->output;
    TRY_DONE(lath_quantize(s.rt, buf_cstr(&s.path), path, &qo, &r, err));
    progress_clear(&p);
    if (o->json || o->jsonl)
        TRY_DONE(print_json(o, &r, progress_seconds(&p), err));
    else if (!o->quiet)
        print_line(o, &r, progress_seconds(&p));
done:
    progress_clear(&p);
    setup_close(&s);
    return st;
}
