# SPDX-License-Identifier: Apache-2.0
"""What make_decoder_goldens.py does otherwise for models with gated delta nets (hybrid_cases.py).

The reference computes a prompt in chunks of 64 and a step as the recurrence. In float32 the chunks are further from float64
where decay is strong: they take differences of a sum that grows with the chunk. So goldens are of the reference's recurrence
(torch_recurrent_gated_delta_rule), put in the place of its chunks, and the deviation that is written down is from the
recurrence in float64, which is here.
"""

import contextlib
import re
import sys

import torch
from transformers import DynamicCache

from hybrid_cases import LAYER_ROWS, ROWS

# The norms multiply by 1 + w but for the one behind the delta rule.
RULES = [
    (r"linear_attn\.norm\.weight$", 0.2, 1.0),
    (r"norm\w*\.weight$", 0.3, 0.0),
    (r"embed_tokens", 0.25, 0.0),
    (r"conv1d\.weight$", 0.5, 0.0),
    (r"in_proj_(z|qkv|qkvz)\.weight$", 0.25, 0.0),
    (r"in_proj_(a|b|ba)\.weight$", 0.2, 0.0),
    (r"(out|o)_proj\.weight$", 0.15, 0.0),
    (r"down_proj", 0.3, 0.0),
]


def rules(case) -> list:
    return [(r"A_log$", *case.decay), (r"dt_bias$", *case.time), *RULES]


def mtp_weights(weights: dict[str, torch.Tensor], rand) -> dict[str, torch.Tensor]:
    """A layer that guesses a second token, as the published files have it: the shapes of the last layer of the text model."""
    layers = {m[1]: m[0] for m in (re.search(r"^.*layers\.(\d+)\.", n) for n in weights if "self_attn.q_proj" in n)}
    last = layers[max(layers, key=int)]
    hidden = weights[last + "input_layernorm.weight"].shape[0]
    out = {"mtp.layers.0." + n[len(last):]: rand(*w.shape) for n, w in weights.items() if n.startswith(last)}
    out |= {f"mtp.{n}.weight": rand(hidden) for n in ("norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden")}
    return out | {"mtp.fc.weight": rand(hidden, 2 * hidden)}


def exact_rule(q, k, v, g, beta, initial_state=None, **_):
    """The gated delta rule in float64, a token at a time. q, k [1, t, key heads, dk], v [1, t, value heads, dv], g, beta [1, t,
    value heads]."""
    q, k, v, g, beta = (x[0].double() for x in (q, k, v, g, beta))
    shared = v.shape[1] // k.shape[1]
    q, k = (x * (x.square().sum(-1, keepdim=True) + 1e-6).rsqrt() for x in (q, k))
    q, k = (x.repeat_interleave(shared, dim=1) for x in (q / k.shape[-1] ** 0.5, k))
    state = k.new_zeros(v.shape[1], k.shape[2], v.shape[2]) if initial_state is None else initial_state[0].double()
    out = torch.empty_like(v)
    for t in range(len(v)):
        state = state * g[t].exp()[:, None, None]
        change = beta[t, :, None] * (v[t] - torch.einsum("hkv,hk->hv", state, k[t]))
        state = state + torch.einsum("hk,hv->hkv", k[t], change)
        out[t] = torch.einsum("hkv,hk->hv", state, q[t])
    return out[None], state[None]


@contextlib.contextmanager
def rule(model, *, chunks: bool = False):
    """The rule that prompts go by: the reference's recurrence (or chunks) in float32, the exact one in float64."""
    net = next(m for m in model.modules() if m.__class__.__name__.endswith("GatedDeltaNet"))
    module = sys.modules[type(net).__module__]
    own = module.torch_chunk_gated_delta_rule
    in_float32 = own if chunks else module.torch_recurrent_gated_delta_rule

    def either(query, key, value, **how):
        if query.dtype == torch.float64:
            return exact_rule(query, key, value, **how)
        return in_float32(query, key, value, **how)

    module.torch_chunk_gated_delta_rule = either
    try:
        yield
    finally:
        module.torch_chunk_gated_delta_rule = own


def some_rows(n: int, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The rows that are written down, and which they are where some are missing."""
    out = {}
    kept = {"logits": ROWS.get(n)} | {name: LAYER_ROWS for name in tensors if name not in ("ids", "logits")}
    for name, rows in kept.items():
        if rows:
            out[name] = tensors[name][list(rows)]
            out["rows" if name == "logits" else "layer_rows"] = torch.tensor(rows, dtype=torch.int32)
    return out


def states(model, ids: torch.Tensor, prefix: str) -> dict[str, torch.Tensor]:
    """What every delta net holds behind a prompt: the state [value heads, dk, dv], and what the convolution has read last
    [width - 1, channels], oldest first."""
    cache = DynamicCache(config=model.config)
    with torch.no_grad():
        model(input_ids=ids[None], attention_mask=torch.ones_like(ids)[None], cache=cache, use_cache=True)
    out = {}
    for i, kind in enumerate(model.config.get_text_config().layer_types):
        if kind == "linear_attention":
            out[f"{prefix}.layer.{i}.state"] = cache.get_recurrent_state(i)[0].clone()
            out[f"{prefix}.layer.{i}.conv"] = cache.get_conv_state(i)[0, :, 1:].t().clone()
    return out


def check_tensors(model, ids: torch.Tensor, shows: float) -> None:
    """Every kind of tensor has a say: with a fifth of noise on it a logit moves."""
    def values(model) -> torch.Tensor:
        with torch.no_grad():
            return model(input_ids=ids[None], attention_mask=torch.ones_like(ids)[None], use_cache=False).logits[0]

    random = torch.Generator().manual_seed(1)
    plain = values(model)
    kinds = {}
    for name, w in model.named_parameters():
        if "visual" not in name:
            kinds.setdefault(re.sub(r"\.\d+\.", ".*.", name), []).append(w)
    for kind, tensors in kinds.items():
        kept = [w.data.clone() for w in tensors]
        for w in tensors:
            w.data.mul_(1 + 0.2 * torch.randn(w.shape, generator=random))
        by = float((values(model) - plain).abs().max())
        if not by > shows:
            raise ValueError(f"{kind} moves logits by {by:.2g} only")
        for w, was in zip(tensors, kept):
            w.data.copy_(was)
