/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_extract.c: `lath extract`: a model's FFNs as an index of features. The directory is the result; what is printed is about it.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "lath/lath_vindex.h"
#include "output.h"
#include "setup.h"

static const char *level_name(const options *o)
{
    static const char *const names[] = {"browse", "attention", "inference", "all"};
    return names[o->index_level ? o->index_level - 1 : LATH_VINDEX_INFERENCE];
}

static lath_status check_options(const options *o, lath_error *err)
{
    if (o->args.n > 0)
        return err_set(err, LATH_ERR_USAGE, "extract: %s: takes no arguments (-m MODEL -o DIR)", o->args.items[0]);
    if (!o->output || strcmp(o->output, "-") == 0)
        return err_set(err, LATH_ERR_USAGE, "-o: extract wants the directory to write");
    return LATH_OK;
}

static lath_status print_json(const options *o, const lath_extract_result *r, double seconds, lath_error *err)
{
    output out = {0};
    lath_status st;
    TRY_DONE(output_open(&out, NULL, err));
    buf_str(&out.b, "{\"index\":");
    json_put_string(&out.b, o->output, strlen(o->output));
    buf_printf(&out.b,
               ",\"level\":\"%s\",\"dtype\":\"%s\",\"layers\":%d,\"features\":%llu,\"bytes\":%llu,\"kept_bytes\":%llu",
               level_name(o), r->dtype, (int)r->n_layers, (unsigned long long)r->features, (unsigned long long)r->bytes,
               (unsigned long long)r->kept);
    buf_str(&out.b, ",\"seconds\":");
    json_put_f64(&out.b, seconds);
    buf_str(&out.b, "}\n");
    TRY_DONE(output_close(&out, err));
done:
    output_abort(&out);
    return st;
}

static void print_line(const options *o, const lath_extract_result *r, double seconds)
{
    char kept[64] = "";
    if (r->kept) snprintf(kept, sizeof(kept), ", %.1f MB of it were there", (double)r->kept / 1e6);
    fprintf(stderr, "%s: level %s, %d layers, %llu features in %s, %.1f MB%s, %.1f s\n", o->output, level_name(o),
            (int)r->n_layers, (unsigned long long)r->features, r->dtype, (double)r->bytes / 1e6, kept, seconds);
}

lath_status cmd_extract(options *o, lath_error *err)
{
    setup s = {0};
    progress p;
    lath_extract_options eo = LATH_EXTRACT_OPTIONS_INIT;
    lath_extract_result r = LATH_EXTRACT_RESULT_INIT;
    lath_status st;
    progress_init(&p, "extract", o->quiet);
    progress_chunk(&p, 0, 1);
    p.unit = "MB";
    p.per_unit = 1000;
    TRY_DONE(check_options(o, err));
    TRY_DONE(setup_path(&s, o, err));
    eo.type = (lath_row_type)o->row_type;
    if (o->index_level) eo.level = (lath_vindex_level)(o->index_level - 1);
    eo.resume = o->resume;
    eo.progress = progress_tick;
    eo.progress_ctx = &p;
    TRY_DONE(lath_extract(s.rt, buf_cstr(&s.path), o->output, &eo, &r, err));
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
