/* SPDX-License-Identifier: Apache-2.0
 * forward.c: see forward.h. */
#include "support/forward.h"

#include "arch/arch_head.h"
#include "support/test.h"

void test_forward(const lath_model *model, const prompt_ids *prompts, int n_prompts, const trace_sink *trace,
                  float *logits)
{
    lath_error err = {0};
    arch_model *m = (arch_model *)&model->arch;
    const backend_ops *ops = model->rt->ops;
    packer pack;
    int64_t n = 0;
    for (int p = 0; p < n_prompts; p++) n += prompts[p].n;
    packer_init(&pack, alloc_default(), &m->dims);
    assert_ok(packer_grow(&pack, n, n_prompts, &err), err);
    packer_clear(&pack);
    for (int p = 0; p < n_prompts; p++) packer_add(&pack, prompts[p].ids, NULL, prompts[p].n);
    stream s = {.ops = ops, .pool = model->rt->pool, .kern = &model->rt->kern, .err = &err};
    s.limits = arch_limits(m, n, n);
    const size_t state = m->desc->state_floats(m, ops, n), rows = ops->view_floats(n, m->dims.vocab_size),
                 all = state + rows + ops->scratch_floats(&s, &s.limits);
    float *memory = alloc_bytes(alloc_default(), all * sizeof(float), 64);
    assert_non_null(memory);
    memset(memory, 0, all * sizeof(float));
    s.scratch = memory + state + rows;
    const fwd f = {.s = &s, .b = &pack.b, .trace = trace};
    view hidden, out = ops->make_view(memory + state, n, m->dims.vocab_size);
    pool_enter(s.pool);
    assert_ok(m->desc->forward(m, &f, memory, &hidden), err);
    assert_ok(arch_lm_head_forward(&m->lm_head, &f, hidden, out), err);
    assert_ok(ops->read_rows(&s, out, 0, n, logits), err);
    pool_leave(s.pool);
    alloc_release(alloc_default(), memory, all * sizeof(float));
    packer_deinit(&pack);
}
