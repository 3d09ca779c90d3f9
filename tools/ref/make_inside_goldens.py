#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes inside.safetensors beside the models of tests/golden/decoder and of some encoders: what the reference, looked into with forward
hooks, has at points that the other goldens leave out, and what it gives when values are replaced there.

    ids                              the tokens
    layer.L.attn_in, heads, middle   what attention reads, what its heads give before the output projection, the stream behind it
    layer.L.act                      the FFN's hidden features; layer.L.act.E those of expert E, [its tokens, d_expert]
    layer.L.sum.attn, sum.ffn        post-norm models: what the norms behind the two sums read
    layer.L.weights                  of attention, of the tokens ROWS: [heads, len(ROWS), n]
    lens                             language models: the output head on the last token's stream behind each layer
    edit.NAME                        the result with a change: a language model's logits of the tokens RESULTS, an encoder's hidden states

README.md lists the edits. An edit that moves no number of the result by SHOWS is refused.

    make_inside_goldens.py [FAMILY/CASE...]      all cases when none is named
"""

import dataclasses
import json
import logging
import sys
import zlib
from pathlib import Path

import refcommon

refcommon.offline()

import numpy as np  # noqa: E402
import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from transformers import AutoModel, AutoModelForCausalLM  # noqa: E402
from transformers.utils.logging import disable_progress_bar  # noqa: E402

ENCODERS = ("bert/mean_norm_gelu", "distilbert/mean_norm", "mpnet/mean_norm", "modernbert/local6_old")
ROWS = (4, -1)  # tokens whose attention weights are written down; -1: the last
EDIT_LAYER, EDIT_HEAD, EDIT_FEATURE, EDIT_TOKEN, PATCH_TOKEN, ALPHA, GAIN = 1, 1, 4, 3, 5, 1.5, 0.75
RESULTS = (EDIT_TOKEN, PATCH_TOKEN, -1)
SHOWS = 1e-3  # tests allow 1e-4 of the largest value


@dataclasses.dataclass
class Block:
    """The modules of a layer. in_X: X is the module's input; out_X: its output."""

    layer: torch.nn.Module  # out: the stream behind it
    in_attn: torch.nn.Module
    in_heads: torch.nn.Module
    out_attn: torch.nn.Module  # what attention adds
    in_middle: torch.nn.Module | None  # the stream behind attention, a pre-norm layer's
    out_middle: torch.nn.Module | None  # or a post-norm layer's
    in_act: torch.nn.Module | None  # None: experts
    out_ffn: torch.nn.Module  # what the FFN adds
    in_sums: tuple = ()  # the two norms of a post-norm layer
    experts: torch.nn.Module | None = None
    shared: torch.nn.Module | None = None
    attention: torch.nn.Module | None = None  # a decoder's: what gives its weights, too
    n_heads: int = 0  # 0: the configuration's


def decoder_blocks(model):
    gemma = "gemma" in model.config.model_type
    config = model.config.get_text_config()
    for layer in getattr(model.model, "language_model", model.model).layers:
        attn, mlp = getattr(layer, "self_attn", None) or layer.linear_attn, layer.mlp
        experts = getattr(mlp, "experts", None)
        reads = next(getattr(attn, n) for n in ("q_proj", "qkv_proj", "in_proj_qkv", "in_proj_qkvz") if hasattr(attn, n))
        out = attn.o_proj if hasattr(attn, "o_proj") else attn.out_proj
        yield Block(
            layer, reads, out, layer.post_attention_layernorm if gemma else out,
            layer.pre_feedforward_layernorm if gemma else layer.post_attention_layernorm, None,
            None if experts else mlp.down_proj, layer.post_feedforward_layernorm if gemma else mlp, experts=experts,
            shared=getattr(mlp, "shared_expert", None), attention=getattr(layer, "self_attn", None),
            n_heads=config.num_attention_heads if hasattr(layer, "self_attn") else config.linear_num_value_heads)


def bert_blocks(model):
    for layer in model.encoder.layer:
        out = layer.attention.output
        yield Block(layer, layer.attention.self.query, out.dense, out.dense, None, out.LayerNorm, layer.output.dense,
                    layer.output.dense, (out.LayerNorm, layer.output.LayerNorm))


def distilbert_blocks(model):
    for layer in model.transformer.layer:
        attn = layer.attention
        yield Block(layer, attn.q_lin, attn.out_lin, attn.out_lin, None, layer.sa_layer_norm, layer.ffn.lin2, layer.ffn.lin2,
                    (layer.sa_layer_norm, layer.output_layer_norm))


def mpnet_blocks(model):
    for layer in model.encoder.layer:
        attn, norm = layer.attention.attn, layer.attention.LayerNorm
        yield Block(layer, attn.q, attn.o, attn.o, None, norm, layer.output.dense, layer.output.dense,
                    (norm, layer.output.LayerNorm))


def modernbert_blocks(model):
    for layer in model.layers:
        yield Block(layer, layer.attn.Wqkv, layer.attn.Wo, layer.attn.Wo, layer.mlp_norm, None, layer.mlp.Wo, layer.mlp)


BLOCKS = {"decoder": decoder_blocks, "bert": bert_blocks, "distilbert": distilbert_blocks, "mpnet": mpnet_blocks,
          "modernbert": modernbert_blocks}


def first(value):
    return value[0] if isinstance(value, tuple) else value


class Case:
    """A model directory, opened anew for every run: dynamic scaling remembers the longest text."""

    def __init__(self, name: str):
        self.family, self.at = name.split("/")[0], refcommon.GOLDEN / name
        self.decoder = self.family == "decoder"
        if self.decoder:
            self.ids = load_file(self.at / "expected.safetensors")["p1.ids"].long()
        else:
            self.ids = torch.tensor(json.loads((self.at / "expected.json").read_text())["texts"][3]["ids"])

    def open(self):
        kind = AutoModelForCausalLM if self.decoder else AutoModel
        more = {"experts_implementation": "eager"} if self.decoder else {}
        model = kind.from_pretrained(self.at, dtype=torch.float32, attn_implementation="eager", **more).eval()
        return model, list(BLOCKS[self.family](model))

    def run(self, model, ids, **more):
        with torch.no_grad():
            more |= {"use_cache": False} if self.decoder else {}
            return model(input_ids=ids[None], attention_mask=torch.ones_like(ids)[None], **more)

    def result(self, model, ids):
        out = self.run(model, ids)
        return out.logits[0][list(RESULTS)] if self.decoder else out.last_hidden_state[0]


def see(module, name: str, seen: dict, of_input: bool) -> None:
    def keep(_module, args, out):
        x = args[0] if of_input else first(out)
        seen[name] = x.reshape(-1, x.shape[-1]).clone()

    module.register_forward_hook(keep)


def see_experts(experts, name: str, seen: dict) -> None:
    """The hidden features of every expert that a token goes through."""
    def keep(module, args, _out):
        x, index, _ = args
        for e in range(module.num_experts):
            tokens = (index == e).any(-1).nonzero()[:, 0]
            if len(tokens):
                gate, up = torch.nn.functional.linear(x[tokens], module.gate_up_proj[e]).chunk(2, dim=-1)
                seen[f"{name}.{e}"] = module.act_fn(gate) * up

    experts.register_forward_hook(keep)


def look(case: Case) -> dict[str, torch.Tensor]:
    """What passes by, and the weights of attention."""
    seen: dict[str, torch.Tensor] = {}
    weights: dict[int, torch.Tensor] = {}
    model, blocks = case.open()
    for i, b in enumerate(blocks):
        at = f"layer.{i}."
        see(b.in_attn, at + "attn_in", seen, True)
        see(b.in_heads, at + "heads", seen, True)
        see(b.in_middle or b.out_middle, at + "middle", seen, b.in_middle is not None)
        for norm, name in zip(b.in_sums, ("attn", "ffn")):
            see(norm, f"{at}sum.{name}", seen, True)
        if b.attention:
            b.attention.register_forward_hook(lambda _m, _in, out, i=i: weights.__setitem__(i, out[1]))
        if b.shared:
            see(b.shared.down_proj, f"{at}act.{b.experts.num_experts}", seen, True)
        if b.experts:
            see_experts(b.experts, at + "act", seen)
        else:
            see(b.in_act, at + "act", seen, True)
        see(b.layer, f"stream.{i}", seen, False)
    out = case.run(model, case.ids, **({} if case.decoder else {"output_attentions": True}))
    for i, value in weights.items() if case.decoder else enumerate(out.attentions):
        seen[f"layer.{i}.weights"] = value[0][:, list(ROWS)]
    stream = torch.stack([seen.pop(f"stream.{i}")[-1] for i in range(len(blocks))])
    if case.decoder:
        seen["lens"] = lens(model, stream)
        if not torch.allclose(seen["lens"][-1], out.logits[0, -1], rtol=1e-5, atol=1e-5):
            raise ValueError("the lens behind the last layer is not the model's result")
    return seen


def lens(model, stream: torch.Tensor) -> torch.Tensor:
    config = model.config.get_text_config()
    inner = getattr(model.model, "language_model", model.model)
    with torch.no_grad():
        logits = model.lm_head(inner.norm(stream)) / getattr(config, "logits_scaling", 1.0)
    cap = getattr(config, "final_logit_softcapping", None)
    return torch.tanh(logits / cap) * cap if cap else logits


def replaced(module, change, of_input: bool) -> None:
    """change(x): [n, d], in place."""
    def before(_module, args):
        x = args[0].clone()
        change(x.reshape(-1, x.shape[-1]))
        return (x, *args[1:])

    def behind(_module, _args, out):
        x = first(out).clone()
        change(x.reshape(-1, x.shape[-1]))
        return (x, *out[1:]) if isinstance(out, tuple) else x

    if of_input:
        module.register_forward_pre_hook(before)
    else:
        module.register_forward_hook(behind)


def edits(case: Case, vector: torch.Tensor, donor: torch.Tensor):
    """(name, what is done to the blocks). Layers, heads and tokens are those of README.md."""
    def zero(x):
        x.zero_()

    def layer(blocks):
        replaced(blocks[EDIT_LAYER].out_attn, zero, False)
        replaced(blocks[EDIT_LAYER].out_ffn, zero, False)

    def head(blocks):
        def change(x):
            size = x.shape[-1] // (blocks[0].n_heads or case.heads)
            x[:, EDIT_HEAD * size:(EDIT_HEAD + 1) * size] = 0
        replaced(blocks[0].in_heads, change, True)

    def at(row, value):
        def change(x):
            x[row] = value(x[row])
        return change

    yield "layer", layer
    yield "head", head
    yield "token", lambda blocks: replaced(blocks[0].layer, at(EDIT_TOKEN, torch.zeros_like), False)
    yield "steer", lambda blocks: replaced(blocks[0].layer, at(-1, lambda x: x + ALPHA * vector), False)
    yield "patch", lambda blocks: replaced(blocks[0].layer, at(PATCH_TOKEN, lambda _x: donor), False)
    # The reference's stream has no module of its own there: what attention adds is changed instead.
    yield "middle", lambda blocks: replaced(blocks[0].out_middle or blocks[0].out_attn,
                                            at(-1, lambda x: x + vector / (1 if blocks[0].out_middle else case.factor)), False)

    def gain(blocks):
        module = blocks[EDIT_LAYER].layer
        usual = module.forward
        def scaled(hidden_states, *args, **more):
            out = usual(hidden_states, *args, **more)
            return (GAIN * hidden_states, *out[1:]) if isinstance(out, tuple) else GAIN * hidden_states
        module.forward = scaled

    yield "gain", gain
    if case.dense:
        def feature(x):
            x[:, EDIT_FEATURE] = 0
        yield "feature", lambda blocks: replaced(blocks[EDIT_LAYER].in_act, feature, True)


def make(name: str) -> int:
    case = Case(name)
    model, blocks = case.open()
    config = model.config.get_text_config()
    case.heads, case.dense = config.num_attention_heads, blocks[EDIT_LAYER].experts is None
    case.factor = getattr(config, "residual_multiplier", 1.0)
    plain = case.result(model, case.ids)
    tensors = look(case)
    d = tensors["layer.0.middle"].shape[-1]
    rng = np.random.Generator(np.random.PCG64(zlib.crc32(name.encode())))
    vector = torch.from_numpy(rng.standard_normal(d, dtype=np.float32))
    seen: dict[str, torch.Tensor] = {}
    model, blocks = case.open()
    see(blocks[0].layer, "donor", seen, False)
    case.run(model, case.ids.flip(0))
    donor = seen["donor"][PATCH_TOKEN]
    tensors |= {"ids": case.ids.to(torch.int32), "vector": vector, "donor": donor}
    for edit, do in edits(case, vector, donor):
        model, blocks = case.open()
        do(blocks)
        result = tensors[f"edit.{edit}"] = case.result(model, case.ids)
        if not (by := float((result - plain).abs().max())) > SHOWS:
            raise ValueError(f"{name}: {edit} moves the result by {by:.2g} only")
    path = case.at / "inside.safetensors"
    versions = refcommon.versions("torch", "transformers")
    save_file({n: t.contiguous().clone() for n, t in tensors.items()}, path,
              metadata={"reference": ", ".join(f"{k} {v}" for k, v in versions.items())})
    return path.stat().st_size


def main() -> None:
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    disable_progress_bar()
    known = [f"decoder/{p.name}" for p in sorted((refcommon.GOLDEN / "decoder").iterdir()) if p.is_dir()] + list(ENCODERS)
    wanted = sys.argv[1:] or known
    if unknown := set(wanted) - set(known):
        sys.exit(f"no such case: {', '.join(sorted(unknown))}")
    for name in wanted:
        print(f"{name}: {make(name)} bytes", flush=True)


if __name__ == "__main__":
    main()
