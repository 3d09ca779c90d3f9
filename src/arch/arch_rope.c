/* SPDX-License-Identifier: Apache-2.0
 *
 * arch_rope.c: frequencies of rotary embeddings (Su et al. 2021) and what stretches them to longer texts: linear (Chen et al. 2023), llama3
 * (Llama 3.1: long wavelengths are stretched, short ones stay, those between are blended), yarn (Peng et al. 2023, eq. 22 to 24: a ramp over
 * the dimensions, and a factor on cos and sin), longrope (Ding et al. 2024: a factor for each frequency, of two sets, and one on cos and sin),
 * dynamic (a base that grows with the text). Arithmetic runs in double and is rounded once; the base's powers are rounded as the reference
 * rounds them (an f32 exponent), because an angle of thousands of radians shows the difference.
 */
#include "arch/arch_rope.h"

#include <math.h>
#include <string.h>

/* The members that describe the rotation: of "rope_parameters" (and there of the layer type), of "rope_scaling", or none. */
typedef struct rope_source {
    const json_value *params; /* or NULL */
    double theta, partial;
    const char *type;
} rope_source;

static lath_status find_source(const json_value *c, const char *name, const arch_rope_spec *s, rope_source *out,
                               lath_error *err)
{
    *out = (rope_source){.theta = s->theta, .partial = s->partial > 0 ? s->partial : 1, .type = "default"};
    TRY(json_get_real(c, s->theta_key, name, &out->theta, err));
    TRY(json_get_real(c, "partial_rotary_factor", name, &out->partial, err));
    const json_value *p = json_get(c, "rope_parameters");
    if (json_present(p) && s->layer_type && json_present(json_get(p, s->layer_type))) p = json_get(p, s->layer_type);
    if (!json_present(p) && s->scaled) p = json_get(c, "rope_scaling");
    if (!json_present(p)) return LATH_OK;
    if (p->kind != JSON_OBJECT)
        return err_set(err, LATH_ERR_FORMAT, "%s: line %u: \"%s\": want an object", name, p->line, p->key);
    out->params = p;
    TRY(json_get_str(p, "type", name, &out->type, err));
    TRY(json_get_str(p, "rope_type", name, &out->type, err));
    TRY(json_get_real(p, "rope_theta", name, &out->theta, err));
    return json_get_real(p, "partial_rotary_factor", name, &out->partial, err);
}

/* A number that has to be there, greater than 0. */
static lath_status want_positive(const rope_source *s, const char *key, const char *name, double *out, lath_error *err)
{
    *out = 0;
    TRY(json_get_real(s->params, key, name, out, err));
    if (!(*out > 0) || isinf(*out))
        return err_set(err, LATH_ERR_FORMAT, "%s: rope type \"%s\": want \"%s\", a number over 0", name, s->type, key);
    return LATH_OK;
}

static lath_status original_length(const rope_source *s, const json_value *c, const char *name, int64_t most,
                                   double *out, lath_error *err)
{
    int64_t n = most;
    TRY(json_get_int(s->params, "original_max_position_embeddings", name, 1, INT32_MAX, &n, err));
    TRY(json_get_int(c, "original_max_position_embeddings", name, 1, INT32_MAX, &n, err));
    *out = (double)n;
    return LATH_OK;
}

lath_status arch_rope_init(arena *mem, double theta, int64_t n_pairs, nn_rope *out, lath_error *err)
{
    float *inv = arena_array(mem, (size_t)n_pairs, sizeof(float));
    if (!inv) return err_nomem(err, (size_t)n_pairs * sizeof(float));
    nn_rope_frequencies(theta, n_pairs, inv);
    *out = (nn_rope){.inv_freq = inv, .n_pairs = n_pairs, .scale = 1.0f, .theta = theta};
    return LATH_OK;
}

lath_status arch_rope_check(const nn_rope *r, const char *name, lath_error *err)
{
    static const float most_positions = 1 << 30;
    bool good = isfinite(r->scale) && r->scale > 0;
    for (int64_t i = 0; good && i < r->n_pairs; i++) {
        good = r->inv_freq[i] > 0 && isfinite(r->inv_freq[i] * most_positions);
        if (r->long_freq) good = good && r->long_freq[i] > 0 && isfinite(r->long_freq[i] * most_positions);
    }
    if (good) return LATH_OK;
    return err_set(err, LATH_ERR_FORMAT, "%s: the base or the scaling of its rotary embeddings is out of range", name);
}

static lath_status scale_linear(const rope_source *s, const char *name, nn_rope *r, lath_error *err)
{
    double factor;
    TRY(want_positive(s, "factor", name, &factor, err));
    for (int64_t i = 0; i < r->n_pairs; i++) r->inv_freq[i] /= (float)factor;
    return LATH_OK;
}

/* A larger base, and all slower ("fixed NTK": kexue.fm/archives/9706, eq. 6, which the GTE models have). */
static lath_status scale_ntk(const rope_source *s, const char *name, nn_rope *r, lath_error *err)
{
    double factor;
    TRY(want_positive(s, "factor", name, &factor, err));
    if (json_present(json_get(s->params, "mixed_b")))
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: rope type \"ntk\": mixed_b is not supported", name);
    nn_rope_frequencies(s->theta * factor, r->n_pairs, r->inv_freq);
    for (int64_t i = 0; i < r->n_pairs; i++) r->inv_freq[i] /= (float)pow(factor, 1 / (double)r->n_pairs);
    return LATH_OK;
}

static lath_status scale_llama3(const rope_source *s, const json_value *c, const char *name, int64_t most, nn_rope *r,
                                lath_error *err)
{
    double factor, low, high, length;
    TRY(want_positive(s, "factor", name, &factor, err));
    TRY(want_positive(s, "low_freq_factor", name, &low, err));
    TRY(want_positive(s, "high_freq_factor", name, &high, err));
    TRY(original_length(s, c, name, most, &length, err));
    if (!(high > low)) /* nothing is between, where they are blended */
        return err_set(err, LATH_ERR_FORMAT,
                       "%s: rope type \"llama3\": high_freq_factor %g is not over low_freq_factor %g", name, high, low);
    for (int64_t i = 0; i < r->n_pairs; i++) {
        const double f = (double)r->inv_freq[i], wavelength = 2 * M_PI / f;
        if (wavelength < length / high) continue;
        const double blend = wavelength > length / low ? 0 : (length / wavelength - low) / (high - low);
        r->inv_freq[i] = (float)((1 - blend) * f / factor + blend * f);
    }
    return LATH_OK;
}

/* freq[i] /= the i-th number of a list that has to be there. */
static lath_status divide_by(const rope_source *s, const char *key, const char *name, int64_t n, float *freq,
                             lath_error *err)
{
    const json_value *list = json_get(s->params, key);
    bool good = json_present(list) && list->kind == JSON_ARRAY && list->u.items.count == (size_t)n;
    int64_t i = 0;
    for (const json_value *v = good ? list->u.items.first : NULL; v && good; v = v->next, i++) {
        const double factor = v->kind == JSON_INT ? (double)v->u.integer : v->kind == JSON_REAL ? v->u.real : 0;
        good = factor > 0 && factor < 1e30;
        if (good) freq[i] /= (float)factor;
    }
    if (good) return LATH_OK;
    return err_set(err, LATH_ERR_FORMAT, "%s: rope type \"%s\": want \"%s\", an array of %lld numbers over 0", name,
                   s->type, key, (long long)n);
}

/* The dimension whose wavelength makes `turns` turns over the original length. */
static double yarn_dimension(double turns, double dims, double theta, double length)
{
    return dims * log(length / (turns * 2 * M_PI)) / (2 * log(theta));
}

static double yarn_magnitude(double factor, double mscale) { return factor <= 1 ? 1 : 0.1 * mscale * log(factor) + 1; }

static lath_status scale_yarn(const rope_source *s, const json_value *c, const char *name, int64_t most, nn_rope *r,
                              lath_error *err)
{
    double factor, length, fast = 32, slow = 1, attention = 0, mscale = 0, mscale_all = 0;
    bool truncate = true;
    TRY(original_length(s, c, name, most, &length, err));
    TRY(want_positive(s, "factor", name, &factor, err));
    TRY(json_get_real(s->params, "beta_fast", name, &fast, err));
    TRY(json_get_real(s->params, "beta_slow", name, &slow, err));
    TRY(json_get_real(s->params, "attention_factor", name, &attention, err));
    TRY(json_get_real(s->params, "mscale", name, &mscale, err));
    TRY(json_get_real(s->params, "mscale_all_dim", name, &mscale_all, err));
    TRY(json_get_bool(s->params, "truncate", name, &truncate, err));
    if (!(fast > 0) || !(slow > 0) || !(s->theta > 1))
        return err_set(err, LATH_ERR_FORMAT, "%s: rope type \"yarn\": beta_fast, beta_slow or rope_theta out of range",
                       name);
    const double dims = 2 * (double)r->n_pairs;
    double low = yarn_dimension(fast, dims, s->theta, length), high = yarn_dimension(slow, dims, s->theta, length);
    if (truncate) {
        low = floor(low);
        high = ceil(high);
    }
    low = fmax(low, 0);
    high = fmin(high, dims - 1);
    if (low == high) high += 0.001; /* as the reference does */
    for (int64_t i = 0; i < r->n_pairs; i++) {
        const double f = (double)r->inv_freq[i], ramp = fmin(fmax(((double)i - low) / (high - low), 0), 1);
        r->inv_freq[i] = (float)(f / factor * ramp + f * (1 - ramp));
    }
    if (attention <= 0)
        attention = mscale != 0 && mscale_all != 0 ? yarn_magnitude(factor, mscale) / yarn_magnitude(factor, mscale_all)
                                                   : yarn_magnitude(factor, 1);
    r->scale = (float)attention;
    r->longest = (int64_t)fmin(length * factor, 1 << 30);
    return LATH_OK;
}

/* The base depends on the text where that is longer than the model knows. */
static lath_status scale_dynamic(const rope_source *s, const char *name, int64_t most, nn_rope *r, lath_error *err)
{
    double factor;
    TRY(want_positive(s, "factor", name, &factor, err));
    if (!(factor >= 1 && factor <= 1e6))
        return err_set(err, LATH_ERR_FORMAT, "%s: rope type \"dynamic\": factor %g is out of range", name, factor);
    if (r->n_pairs < 2)
        return err_set(err, LATH_ERR_UNSUPPORTED, "%s: rope type \"dynamic\": heads with one pair are not supported",
                       name);
    r->trained = most;
    r->theta = s->theta;
    r->stretch = factor;
    r->longest = (int64_t)fmin((double)most * factor, 1 << 30);
    return LATH_OK;
}

static lath_status scale_longrope(const rope_source *s, const json_value *c, const char *name, int64_t most, arena *mem,
                                  nn_rope *r, lath_error *err)
{
    double length, factor = 0, attention = 0;
    TRY(original_length(s, c, name, 0, &length, err));
    if (length < 2)
        return err_set(err, LATH_ERR_FORMAT,
                       "%s: rope type \"%s\": want \"original_max_position_embeddings\", 2 or more", name, s->type);
    factor = (double)most / length;
    TRY(json_get_real(s->params, "factor", name, &factor, err));
    TRY(json_get_real(s->params, "attention_factor", name, &attention, err));
    const size_t bytes = (size_t)r->n_pairs * sizeof(float);
    r->long_freq = arena_array(mem, (size_t)r->n_pairs, sizeof(float));
    if (!r->long_freq) return err_nomem(err, bytes);
    memcpy(r->long_freq, r->inv_freq, bytes);
    TRY(divide_by(s, "short_factor", name, r->n_pairs, r->inv_freq, err));
    TRY(divide_by(s, "long_factor", name, r->n_pairs, r->long_freq, err));
    r->trained = (int64_t)length;
    if (attention <= 0) attention = factor <= 1 ? 1 : sqrt(1 + log(factor) / log(length));
    r->scale = (float)attention;
    return LATH_OK;
}

static lath_status scale(const rope_source *s, const json_value *c, const char *name, int64_t most, arena *mem,
                         nn_rope *r, lath_error *err)
{
    if (strcmp(s->type, "default") == 0) return LATH_OK;
    if (strcmp(s->type, "linear") == 0) return scale_linear(s, name, r, err);
    if (strcmp(s->type, "dynamic") == 0) return scale_dynamic(s, name, most, r, err);
    if (strcmp(s->type, "ntk") == 0) return scale_ntk(s, name, r, err);
    if (strcmp(s->type, "factors") == 0) return divide_by(s, "factors", name, r->n_pairs, r->inv_freq, err);
    if (strcmp(s->type, "llama3") == 0) return scale_llama3(s, c, name, most, r, err);
    if (strcmp(s->type, "longrope") == 0 || strcmp(s->type, "su") == 0)
        return scale_longrope(s, c, name, most, mem, r, err);
    if (strcmp(s->type, "yarn") == 0) return scale_yarn(s, c, name, most, r, err);
    return err_set(err, LATH_ERR_UNSUPPORTED, "%s: rope type \"%.60s\" is not supported", name, s->type);
}

lath_status arch_rope_parse(const json_value *config, const char *name, const arch_rope_spec *spec, arena *mem,
                            nn_rope *out, lath_error *err)
{
    rope_source s;
    TRY(find_source(config, name, spec, &s, err));
    if (!(s.theta > 0) || isinf(s.theta))
        return err_set(err, LATH_ERR_FORMAT, "%s: %s is out of range", name, spec->theta_key);
    const int64_t pairs = s.partial > 0 && s.partial <= 1 ? (int64_t)((double)spec->head_dim * s.partial) / 2 : 0;
    if (pairs < 1)
        return err_set(err, LATH_ERR_FORMAT, "%s: partial_rotary_factor leaves nothing of a head of %lld", name,
                       (long long)spec->head_dim);
    TRY(arch_rope_init(mem, s.theta, pairs, out, err));
    TRY(scale(&s, config, name, spec->max_positions, mem, out, err));
    return arch_rope_check(out, name, err);
}

lath_status arch_rope_parse_whole(const json_value *config, const char *name, const arch_rope_spec *spec, arena *mem,
                                  nn_rope *out, lath_error *err)
{
    TRY(arch_rope_parse(config, name, spec, mem, out, err));
    if (2 * out->n_pairs == spec->head_dim) return LATH_OK;
    return err_set(err, LATH_ERR_UNSUPPORTED, "%s: heads of %lld features of which %lld turn are not supported", name,
                   (long long)spec->head_dim, (long long)(2 * out->n_pairs));
}

const json_value *arch_rope_scaling(const json_value *config, const char *layer_type, const char **type)
{
    const arch_rope_spec spec = {.layer_type = layer_type, .theta_key = "rope_theta", .scaled = true};
    rope_source s;
    if (find_source(config, "", &spec, &s, NULL) != LATH_OK) s = (rope_source){.type = "default"};
    *type = s.type;
    return s.params;
}
