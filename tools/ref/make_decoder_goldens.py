#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/decoder/CASE: tiny random language models of every architecture and kind of rope scaling, and
what the reference gives: logits at every position of some prompts, 32 tokens chosen greedily, tensors of the layers.

Each case is a whole model directory with expected.safetensors beside it (README.md has its tensors). Prompts are longer
than the windows, and than what rope scaling starts from. Weights are random but scaled so that mistakes show: every
case names changes of its configuration (`probes`), and is refused unless each of them moves a logit by more than three times
what a test allows. Models with delta nets (hybrid_cases.py, hybrid_reference.py) are refused, too, unless each kind of tensor does.

    make_decoder_goldens.py [CASE...]      all cases when none is named
"""

import contextlib
import re
import shutil
import tempfile
from pathlib import Path

import refcommon

refcommon.offline()

import numpy as np  # noqa: E402
import torch  # noqa: E402
from safetensors.torch import save_file  # noqa: E402
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText  # noqa: E402
from transformers.utils.logging import disable_progress_bar  # noqa: E402

import hybrid_cases  # noqa: E402
import hybrid_reference as hybrid  # noqa: E402
import tiny_tokenizers as tiny  # noqa: E402
from decoder_cases import CASES, VOCAB, Case  # noqa: E402
from hybrid_cases import HYBRIDS, Hybrid  # noqa: E402
from st_goldens import Random, run, write_weights  # noqa: E402

SHOWS = 3e-3  # what a probe must move at least; tests allow 1e-3
LENGTHS = (1, 19, 45)  # of the prompts
GREEDY, STEPS = 1, 32  # the prompt that is gone on with; it crosses windows and original lengths

# (name, scale, offset), the first that fits
RULES = [
    (r"[nN]orm\w*\.weight$", 0.2, 1.0),
    (r"bias$", 0.2, 0.0),
    (r"embed_tokens", 0.4, 0.0),
    (r"down_proj", 0.7, 0.0),
    (r"mlp\.gate\.weight", 0.8, 0.0),
    (r"(q|k|qkv)_proj", 0.5, 0.0),
    (r"", 0.35, 0.0),
]
GEMMA_RULES = [(r"norm\.weight$", 0.3, 0.0), (r"embed_tokens", 0.12, 0.0), *RULES]


def model_class(config):
    """The class that a directory's file is of. For Qwen3.5 with images the other one would be the text model alone."""
    return AutoModelForImageTextToText if config.model_type in ("qwen3_5", "qwen3_5_moe") else AutoModelForCausalLM


def rules_of(case: Case) -> list:
    if isinstance(case, Hybrid):
        return hybrid.rules(case) + RULES
    return GEMMA_RULES if "gemma" in case.config["model_type"] else RULES


def random_weights(case: Case, at: Path, rand: Random) -> dict[str, torch.Tensor]:
    """Weights under the names of the reference's own class, in the order in which that class has them."""
    config = AutoConfig.from_pretrained(at)
    with torch.device("meta"):
        shapes = {n: p.shape for n, p in model_class(config).from_config(config).named_parameters()}
    rules = [(r"lm_head", case.head, 0.0), *rules_of(case)]
    weights = {name: rand(*shape, scale=s, offset=o) for name, shape in shapes.items()
               for s, o in [next((s, o) for pattern, s, o in rules if re.search(pattern, name))]}
    return {name: w.float() if name.endswith("A_log") else w for name, w in weights.items()}


def file_weights(weights: dict[str, torch.Tensor], fused: bool = False) -> dict[str, torch.Tensor]:
    """The same as published files have them: most experts one by one, Gemma 3's parts under their older names."""
    out = {}
    older = any(name.startswith("model.vision_tower.") for name in weights)
    for name, value in weights.items():
        if older:
            name = name.replace("model.language_model.", "language_model.model.")
            name = re.sub(r"^model\.(vision_tower|multi_modal_projector)", r"\1", name)
        if fused or ".experts." not in name:
            out[name] = value
            continue
        base, leaf = name.rsplit(".", 1)
        for e, part in enumerate(value):
            pieces = zip(("gate_proj", "up_proj"), part.chunk(2)) if leaf == "gate_up_proj" else [("down_proj", part)]
            out |= {f"{base}.{e}.{piece}.weight": w.contiguous() for piece, w in pieces}
    return out


def load(at: Path, dtype: torch.dtype = torch.float32):
    model = model_class(AutoConfig.from_pretrained(at)).from_pretrained(
        at, dtype=dtype, attn_implementation="eager", experts_implementation="eager").eval()
    model.generation_config.eos_token_id = None
    return model


def points(model):
    gemma = "gemma" in model.config.model_type
    inner = getattr(model.model, "language_model", model.model)
    yield "embed", inner.embed_tokens
    for i, layer in enumerate(inner.layers):
        yield f"layer.{i}.attn_out", layer.post_attention_layernorm if gemma else (
            layer.linear_attn.out_proj if hasattr(layer, "linear_attn") else layer.self_attn.o_proj)
        yield f"layer.{i}.attn_norm", layer.pre_feedforward_layernorm if gemma else layer.post_attention_layernorm
        yield f"layer.{i}.ffn_out", layer.post_feedforward_layernorm if gemma else layer.mlp
        yield f"layer.{i}.residual", layer
    yield "final", inner.norm


def logits(at: Path, ids: torch.Tensor, dtype: torch.dtype = torch.float32, seen: dict | None = None) -> torch.Tensor:
    """[n, vocab] of a fresh model: dynamic scaling remembers the longest text."""
    model = load(at, dtype)
    factors = {"embed": getattr(model.config, "embedding_multiplier", 1.0)}
    factors |= dict.fromkeys(("attn_out", "ffn_out"), getattr(model.config, "residual_multiplier", 1.0))

    def keep(name: str, value) -> None:
        value = value[0] if isinstance(value, tuple) else value
        seen[name] = (value.reshape(len(ids), -1) * factors.get(name.rsplit(".", 1)[-1], 1.0)).clone()

    for name, module in points(model) if seen is not None else ():
        module.register_forward_hook(lambda _m, _in, out, name=name: keep(name, out))
    with torch.no_grad():
        return model(input_ids=ids[None], attention_mask=torch.ones_like(ids)[None], use_cache=False).logits[0]


def greedy(at: Path, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The next STEPS tokens, and how far each is ahead of the second best."""
    with torch.no_grad():
        made = load(at).generate(ids[None], attention_mask=torch.ones_like(ids)[None], do_sample=False, max_new_tokens=STEPS,
                                 output_logits=True, return_dict_in_generate=True, pad_token_id=0)
    best = torch.stack(made.logits)[:, 0].topk(2).values
    return made.sequences[0, len(ids):], best[:, 0] - best[:, 1]


@contextlib.contextmanager
def with_change(case: Case, at: Path, change: dict):
    """A copy of the directory with another config.json; None removes a field."""
    with tempfile.TemporaryDirectory() as other:
        shutil.copytree(at, other, dirs_exist_ok=True)
        config = {k: v for k, v in (case.file_config() | change).items() if k not in change or v is not None}
        refcommon.write_json(Path(other) / "config.json", config)
        yield Path(other)


def check_probes(case: Case, at: Path, prompts: list[torch.Tensor]) -> None:
    plain = [logits(at, p) for p in prompts]

    def moved(change: dict) -> float:
        with with_change(case, at, change) as other:
            return max(float((logits(other, p) - was).abs().max()) for p, was in zip(prompts, plain))

    for change in case.same:
        if moved(change) != 0:
            raise ValueError(f"{case.name}: {change} should not change anything")
    for change in case.probes:
        if not (by := moved(change)) > SHOWS:
            raise ValueError(f"{case.name}: {change} moves logits by {by:.2g} only")


def prompt_tensors(case: Case, at: Path, i: int, ids: torch.Tensor) -> tuple[dict[str, torch.Tensor], float]:
    """What is written down of one prompt, and how far its logits are from those of float64."""
    seen: dict[str, torch.Tensor] = {}
    values = logits(at, ids, seen=seen)
    error = float((values - logits(at, ids, torch.float64)).abs().max())
    out = {"ids": ids.to(torch.int32), "logits": values} | (seen if i == GREEDY else {})
    if isinstance(case, Hybrid):
        out |= hybrid.some_rows(len(ids), out)
    return {f"p{i}.{name}": value for name, value in out.items()}, error


def make(case: Case) -> int:
    """Writes one case; returns its size in bytes."""
    at = refcommon.GOLDEN / "decoder" / case.name
    shutil.rmtree(at, ignore_errors=True)
    at.mkdir(parents=True)
    tok, tok_config = tiny.letters()
    (at / "tokenizer.json").write_text(tok.to_str() + "\n", encoding="utf-8")
    refcommon.write_json(at / "tokenizer_config.json", tok_config)
    refcommon.write_json(at / "config.json", case.file_config())
    rand = Random(case.name, case.dtype)
    weights = random_weights(case, at, rand)
    is_hybrid = isinstance(case, Hybrid)
    more = hybrid.mtp_weights(weights, rand) if is_hybrid and case.mtp else {}
    write_weights(file_weights(weights | more, is_hybrid and case.fused), at, case.shard_bytes if is_hybrid else 0)
    have = load(at).state_dict()
    for name, value in weights.items():
        if not torch.equal(have[name], value.float()):
            raise ValueError(f"{name} was not loaded as written")
    prompts: list[torch.Tensor] = []
    tensors, error = {}, 0.0
    with hybrid.rule(load(at)) if is_hybrid else contextlib.nullcontext():
        for i, n in enumerate(hybrid_cases.LENGTHS if is_hybrid else LENGTHS):
            sure = False
            while not sure:
                ids = torch.from_numpy(rand.rng.integers(0, hybrid_cases.PLAIN if is_hybrid else VOCAB, n))
                some, off = prompt_tensors(case, at, i, ids)
                if i == GREEDY:
                    tokens, gaps = greedy(at, ids)
                sure = not is_hybrid or (off < case.sure and (i != GREEDY or float(gaps.min()) > SHOWS))
            prompts.append(ids)
            tensors |= some
            error = max(error, off)
        if is_hybrid and case.state:
            tensors |= hybrid.states(load(at), prompts[GREEDY], f"p{GREEDY}")
    tensors |= {"greedy.ids": tokens.to(torch.int32), "greedy.gaps": gaps}
    spread = float(np.ptp(tensors[f"p{GREEDY}.logits"].numpy()))
    versions = refcommon.versions("torch", "transformers", "tokenizers", "safetensors")
    save_file({n: t.contiguous() for n, t in tensors.items()}, at / "expected.safetensors", metadata={
        "reference": ", ".join(f"{k} {v}" for k, v in versions.items()), "max_abs_f32_minus_f64": f"{error:.2g}",
        "notes": " ".join(case.notes)})
    check_probes(case, at, prompts[1:3])
    if is_hybrid:
        hybrid.check_tensors(load(at), prompts[2], SHOWS)
    print(f"    logits span {spread:.3g}, f32 to f64 {error:.1e}, gaps {float(gaps.min()):.2g}..{float(gaps.max()):.2g}, "
          f"{len(set(tokens.tolist()))} different tokens")
    return sum(f.stat().st_size for f in at.rglob("*") if f.is_file())


if __name__ == "__main__":
    disable_progress_bar()
    run(CASES + HYBRIDS, make)
