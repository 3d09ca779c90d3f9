/* SPDX-License-Identifier: Apache-2.0
 * forward.c: see forward.h. */
#include "support/forward.h"

#include "arch/arch_head.h"
#include "support/test.h"

static int64_t pack_all(packer *pack, const arch_dims *dims, const prompt_ids *prompts, int n_prompts)
{
    lath_error err = {0};
    int64_t n = 0;
    for (int p = 0; p < n_prompts; p++) n += prompts[p].n;
    packer_init(pack, alloc_default(), dims);
    assert_ok(packer_grow(pack, n, n_prompts, &err), err);
    packer_clear(pack);
    for (int p = 0; p < n_prompts; p++) packer_add(pack, prompts[p].ids, NULL, prompts[p].n);
    return n;
}

void test_run(const lath_model *model, const prompt_ids *prompts, int n_prompts, const fwd *with, float *hidden,
              float *logits)
{
    lath_error err = {0};
    arch_model *m = (arch_model *)&model->arch;
    const backend_ops *ops = model->rt->ops;
    packer pack;
    const int64_t n = pack_all(&pack, &m->dims, prompts, n_prompts);
    stream s = {.ops = ops, .pool = model->rt->pool, .kern = &model->rt->kern, .err = &err};
    s.limits = arch_limits(m, n, n);
    const size_t state = m->desc->state_floats(m, ops, n), rows = ops->view_floats(n, m->dims.vocab_size),
                 own = with->ffn ? ffn_memory_floats(with->ffn, ops, n) : 0,
                 all = state + rows + own + ops->scratch_floats(&s, &s.limits);
    float *memory = alloc_bytes(alloc_default(), all * sizeof(float), 64);
    assert_non_null(memory);
    memset(memory, 0, all * sizeof(float));
    s.scratch = memory + state + rows + own;
    fwd f = *with;
    f.s = &s;
    f.b = &pack.b;
    f.ffn_memory = memory + state + rows;
    view x, out = ops->make_view(memory + state, n, m->dims.vocab_size);
    pool_enter(s.pool);
    assert_ok(m->desc->forward(m, &f, memory, &x), err);
    if (hidden) assert_ok(ops->read_rows(&s, x, 0, n, hidden), err);
    if (logits) {
        assert_ok(arch_lm_head_forward(&m->lm_head, &f, x, out), err);
        assert_ok(ops->read_rows(&s, out, 0, n, logits), err);
    }
    pool_leave(s.pool);
    alloc_release(alloc_default(), memory, all * sizeof(float));
    packer_deinit(&pack);
}

void test_forward(const lath_model *model, const prompt_ids *prompts, int n_prompts, const trace_sink *trace,
                  float *logits)
{
    const fwd with = {.trace = trace};
    test_run(model, prompts, n_prompts, &with, NULL, logits);
}
