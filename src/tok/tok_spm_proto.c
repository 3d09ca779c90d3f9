/* SPDX-License-Identifier: Apache-2.0
 * tok_spm_proto.c: reading the SentencePiece file. A message is a row of fields: a varint key (number << 3 | wire
 * type), then a varint (0), 8 bytes (1), a length and so many bytes (2) or 4 bytes (5). Numbers of fields are those of
 * sentencepiece_model.proto; fields that do not matter are stepped over. Every length is checked against what is left.
 */
#include "tok/tok_spm_proto.h"

#include <math.h>
#include <string.h>

#include "base/utf8.h"

typedef struct reader {
    const char *name;
    const uint8_t *p, *end;
    lath_error *err;
} reader;

typedef struct field {
    uint64_t number;
    unsigned wire;
    uint64_t value;      /* wire 0, 5 */
    const uint8_t *data; /* wire 2: [n] */
    size_t n;
} field;

static lath_status cut(const reader *r)
{
    return err_set(r->err, LATH_ERR_FORMAT, "%s: not a SentencePiece file, or cut", r->name);
}

static lath_status read_varint(reader *r, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; shift < 64 && r->p < r->end; shift += 7) {
        uint8_t b = *r->p++;
        *out |= (uint64_t)(b & 0x7F) << shift;
        if (b < 0x80) return LATH_OK;
    }
    return cut(r);
}

static lath_status read_field(reader *r, field *f)
{
    uint64_t key;
    TRY(read_varint(r, &key));
    *f = (field){.number = key >> 3, .wire = key & 7};
    size_t left = (size_t)(r->end - r->p), take;
    switch (f->wire) {
    case 0: return read_varint(r, &f->value);
    case 1: take = 8; break;
    case 5: take = 4; break;
    case 2:
        TRY(read_varint(r, &f->value));
        left = (size_t)(r->end - r->p);
        if (f->value > left) return cut(r);
        take = (size_t)f->value;
        f->data = r->p;
        f->n = take;
        break;
    default: return cut(r);
    }
    if (take > left) return cut(r);
    if (f->wire == 5) f->value = r->p[0] | (uint64_t)r->p[1] << 8 | (uint64_t)r->p[2] << 16 | (uint64_t)r->p[3] << 24;
    r->p += take;
    return LATH_OK;
}

static reader inside(const reader *r, const field *f) { return (reader){r->name, f->data, f->data + f->n, r->err}; }

static lath_status read_piece(const reader *file, const field *whole, size_t index, tok_spm_piece *out)
{
    reader r = inside(file, whole);
    *out = (tok_spm_piece){.s = "", .type = TOK_SPM_NORMAL};
    while (r.p < r.end) {
        field f;
        TRY(read_field(&r, &f));
        if (f.number == 1 && f.wire == 2) {
            out->s = (const char *)f.data;
            out->n = f.n;
        } else if (f.number == 2 && f.wire == 5) {
            uint32_t bits = (uint32_t)f.value;
            memcpy(&out->score, &bits, sizeof(bits));
        } else if (f.number == 3 && f.wire == 0) {
            if (f.value < TOK_SPM_NORMAL || f.value > TOK_SPM_BYTE)
                return err_set(r.err, LATH_ERR_FORMAT, "%s: piece %zu: type %llu is not known", r.name, index,
                               (unsigned long long)f.value);
            out->type = (tok_spm_type)f.value;
        }
    }
    if (out->n == 0) return err_set(r.err, LATH_ERR_FORMAT, "%s: piece %zu is empty", r.name, index);
    if (utf8_first_invalid(out->s, out->n) < out->n)
        return err_set(r.err, LATH_ERR_FORMAT, "%s: piece %zu is not valid UTF-8", r.name, index);
    if (!isfinite(out->score))
        return err_set(r.err, LATH_ERR_FORMAT, "%s: piece %zu: the score is not finite", r.name, index);
    return LATH_OK;
}

static lath_status read_trainer(const reader *file, const field *whole, tok_spm *m)
{
    reader r = inside(file, whole);
    uint64_t kind = (uint64_t)m->kind;
    while (r.p < r.end) {
        field f;
        TRY(read_field(&r, &f));
        if (f.wire != 0) continue;
        if (f.number == 3) kind = f.value;
        if (f.number == 24 && f.value)
            return err_set(r.err, LATH_ERR_UNSUPPORTED, "%s: treat_whitespace_as_suffix is not supported", r.name);
        if (f.number == 35) m->byte_fallback = f.value != 0;
        if (f.number == 41) m->bos = (int64_t)f.value;
        if (f.number == 42) m->eos = (int64_t)f.value;
    }
    if (kind != TOK_SPM_UNIGRAM && kind != TOK_SPM_BPE)
        return err_set(r.err, LATH_ERR_UNSUPPORTED, "%s: model type %llu is not supported", r.name,
                       (unsigned long long)kind);
    m->kind = (tok_spm_kind)kind;
    return LATH_OK;
}

static lath_status read_normalizer(const reader *file, const field *whole, tok_spm *m)
{
    reader r = inside(file, whole);
    while (r.p < r.end) {
        field f;
        TRY(read_field(&r, &f));
        if (f.number == 2 && f.wire == 2) {
            m->charsmap = (const char *)f.data;
            m->n_charsmap = f.n;
        }
        if (f.wire != 0) continue;
        if (f.number == 3) m->add_dummy_prefix = f.value != 0;
        if (f.number == 4) m->remove_extra_spaces = f.value != 0;
        if (f.number == 5) m->escape_spaces = f.value != 0;
    }
    return LATH_OK;
}

static lath_status count_pieces(reader r, size_t *n)
{
    *n = 0;
    while (r.p < r.end) {
        field f;
        TRY(read_field(&r, &f));
        *n += f.number == 1 && f.wire == 2;
    }
    return LATH_OK;
}

/* An id of a control piece; others are none. */
static int64_t control_or_none(const tok_spm *m, int64_t id)
{
    return id >= 0 && (uint64_t)id < m->n && m->pieces[id].type == TOK_SPM_CONTROL ? id : -1;
}

lath_status tok_spm_parse(arena *mem, const char *name, const char *bytes, size_t n, tok_spm *out, lath_error *err)
{
    reader r = {name, (const uint8_t *)bytes, (const uint8_t *)bytes + n, err};
    *out = (tok_spm){.kind = TOK_SPM_UNIGRAM,
                     .unk = -1,
                     .bos = 1,
                     .eos = 2,
                     .add_dummy_prefix = true,
                     .remove_extra_spaces = true,
                     .escape_spaces = true,
                     .charsmap = ""};
    TRY(count_pieces(r, &n));
    if (n == 0) return err_set(err, LATH_ERR_FORMAT, "%s: no SentencePiece file: it has no pieces", name);
    if (n > INT32_MAX / 2) return err_set(err, LATH_ERR_LIMIT, "%s: %zu pieces", name, n);
    out->pieces = arena_array(mem, n, sizeof(*out->pieces));
    if (!out->pieces) return err_nomem(err, n * sizeof(*out->pieces));
    while (r.p < r.end) {
        field f;
        TRY(read_field(&r, &f));
        if (f.wire != 2) continue;
        if (f.number == 1) {
            TRY(read_piece(&r, &f, out->n, &out->pieces[out->n]));
            if (out->pieces[out->n].type == TOK_SPM_UNKNOWN && out->unk < 0) out->unk = (int64_t)out->n;
            out->n++;
        }
        if (f.number == 2) TRY(read_trainer(&r, &f, out));
        if (f.number == 3) TRY(read_normalizer(&r, &f, out));
    }
    if (out->unk < 0) return err_set(err, LATH_ERR_FORMAT, "%s: no piece is the unknown one", name);
    out->bos = control_or_none(out, out->bos);
    out->eos = control_or_none(out, out->eos);
    return LATH_OK;
}
