# SPDX-License-Identifier: Apache-2.0
"""The cases of make_decoder_goldens.py that have gated delta nets between their layers of attention: Qwen3.5 and Qwen3-Next.

Sizes are what a reader takes for each other: key and value heads differ in number and width, a head is no share of the
hidden size, the part of it that turns is none of these.
"""

import dataclasses

from decoder_cases import VOCAB, Case, decoder, drop, rope

PLAIN = 95  # ids from here on may stand for images
LINEAR, FULL = "linear_attention", "full_attention"

# The prompts: with 65 tokens layers are compared and tokens chosen, which goes over the end of a chunk of 64, with 130 sessions.
LENGTHS = (1, 65, 130, 2, 63, 64)
# The positions that are kept of the long ones.
ROWS = {63: (0, 1, 31, 61, 62), 64: (0, 15, 32, 62, 63), 130: (0, 2, 3, 31, 32, 62, 63, 64, 65, 66, 95, 127, 128, 129)}
LAYER_ROWS = (0, 1, 2, 3, 4, 16, 31, 32, 62, 63, 64)


@dataclasses.dataclass
class Hybrid(Case):
    """One model directory with delta nets."""

    head: float = 0.3
    # A prompt is drawn again when float32 is further from float64 (the norm behind the delta rule blows up what is nearly 0), or a
    # token behind it is undecided.
    sure: float = 4e-5
    decay: tuple = (1.5, -1.5)  # spread and middle of A_log
    time: tuple = (1.5, 0.0)  # and of dt_bias
    fused: bool = False  # experts in one tensor, as transformers 5 and Qwen3.5-MoE's files have them
    mtp: bool = False  # the file has the layer that guesses a second token, which nothing here reads
    shard_bytes: int = 0  # the file is cut into pieces of that
    state: bool = False  # what the delta nets hold behind a prompt is written down, too


def delta(kind: str, architecture: str, **changes) -> dict:
    """config.json of a text model."""
    return drop(decoder(kind, architecture, attention_bias=False, hidden_size=40, head_dim=24, num_hidden_layers=5,
                        layer_types=[LINEAR, LINEAR, FULL, LINEAR, FULL], linear_conv_kernel_dim=4, linear_key_head_dim=12,
                        linear_num_key_heads=2, linear_num_value_heads=6, linear_value_head_dim=20,
                        rope_parameters={"rope_theta": 300.0, "rope_type": "default", "partial_rotary_factor": 0.5,
                                         "mrope_section": [3, 2, 1], "mrope_interleaved": True}) | changes,
                "rope_theta", "rope_scaling")


def text(**changes) -> dict:
    return delta("qwen3_5_text", "Qwen3_5", **changes)


def moe(**changes) -> dict:
    return drop(delta("qwen3_5_moe_text", "Qwen3_5Moe", moe_intermediate_size=11, num_experts=7, num_experts_per_tok=3,
                      router_aux_loss_coef=0.001, shared_expert_intermediate_size=13), "intermediate_size") | changes


def following(**changes) -> dict:
    """Qwen3-Next, with the fields of its published files."""
    return drop(delta("qwen3_next", "Qwen3Next", decoder_sparse_step=1, full_attention_interval=4, mlp_only_layers=[],
                      moe_intermediate_size=9, norm_topk_prob=True, num_experts=6, num_experts_per_tok=2,
                      num_hidden_layers=4, output_router_logits=False, partial_rotary_factor=0.25,
                      router_aux_loss_coef=0.001, shared_expert_intermediate_size=7), "layer_types", "rope_parameters") | {
                          "rope_theta": 100.0, "rope_scaling": None} | changes


def outer(kind: str, architecture: str, inner: dict, **changes) -> dict:
    """config.json of the published models: the text model is one part, what sees images the other."""
    vision = {"depth": 1, "hidden_act": "gelu_pytorch_tanh", "hidden_size": 8, "in_channels": 3, "initializer_range": 0.02,
              "intermediate_size": 6, "model_type": kind, "num_heads": 1, "num_position_embeddings": 4,
              "out_hidden_size": inner["hidden_size"], "patch_size": 2, "spatial_merge_size": 2, "temporal_patch_size": 2}
    more = {"attn_output_gate": True, "mamba_ssm_dtype": "float32", "mlp_only_layers": [], "mtp_num_hidden_layers": 1,
            "mtp_use_dedicated_embeddings": False, "vocab_size": VOCAB}
    return {"architectures": [architecture + "ForConditionalGeneration"], "image_token_id": 97, "model_type": kind,
            "text_config": drop(inner, "architectures") | more, "tie_word_embeddings": False, "video_token_id": 98,
            "vision_config": vision, "vision_start_token_id": 95, "vision_end_token_id": 96} | changes


def inside(config: dict, **changes) -> dict:
    """A change of the text model's part."""
    return {"text_config": config["text_config"] | changes}


def small(**changes) -> dict:
    """Three layers, for what the decay does."""
    return text(hidden_size=20, head_dim=10, num_attention_heads=2, num_key_value_heads=1, num_hidden_layers=3,
                layer_types=[LINEAR, LINEAR, FULL], linear_key_head_dim=9, linear_value_head_dim=7,
                linear_num_value_heads=4, rope_parameters={"rope_theta": 300.0, "rope_type": "default",
                                                           "partial_rotary_factor": 0.6}) | changes


DENSE = outer("qwen3_5", "Qwen3_5", drop(text(
    hidden_size=36, head_dim=16, num_attention_heads=3, num_key_value_heads=1, num_hidden_layers=4, intermediate_size=21,
    full_attention_interval=2, linear_num_key_heads=1, linear_num_value_heads=4, linear_key_head_dim=10,
    linear_value_head_dim=6, partial_rotary_factor=0.25) | {"rope_parameters": {
        "mrope_interleaved": True, "mrope_section": [1, 1, 0], "rope_theta": 1000.0, "rope_type": "default",
        "partial_rotary_factor": 0.25}}, "layer_types"))
# As the smallest of the published models, in small: tied, as many key heads as value heads, both ways to say which layers are which.
TIED = outer("qwen3_5", "Qwen3_5", text(
    hidden_size=24, head_dim=16, num_attention_heads=4, num_key_value_heads=1, num_hidden_layers=4, intermediate_size=19,
    full_attention_interval=4, layer_types=[LINEAR] * 3 + [FULL], linear_num_value_heads=2, linear_key_head_dim=8,
    linear_value_head_dim=8, tie_word_embeddings=True, rope_parameters={
        "mrope_interleaved": True, "mrope_section": [1, 1, 0], "rope_theta": 10000000, "rope_type": "default",
        "partial_rotary_factor": 0.25}), tie_word_embeddings=True)
EXPERTS = outer("qwen3_5_moe", "Qwen3_5Moe", moe(
    hidden_size=28, head_dim=12, num_attention_heads=2, num_key_value_heads=1, num_hidden_layers=3,
    layer_types=[LINEAR, FULL, LINEAR], linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=6,
    linear_value_head_dim=10, num_experts=5, num_experts_per_tok=2, moe_intermediate_size=8,
    shared_expert_intermediate_size=5))

HYBRIDS = [
    Hybrid("qwen3_5_text", text(tie_word_embeddings=True), dtype="bfloat16", state=True, sure=2e-5,
           probes=({"rms_norm_eps": 1e-4}, {"rope_parameters": {"rope_theta": 300.0, "rope_type": "default"}},
                   rope(3000.0, partial_rotary_factor=0.5), rope(300.0, partial_rotary_factor=0.75)),
           same=(rope(300.0, partial_rotary_factor=0.5),
                 {"rope_parameters": None, "rope_theta": 300.0, "partial_rotary_factor": 0.5})),
    Hybrid("qwen3_5_with_images", DENSE, dtype="bfloat16", mtp=True, shard_bytes=30000,
           probes=(inside(DENSE, full_attention_interval=2, rms_norm_eps=1e-4),
                   inside(DENSE, rope_parameters={"rope_theta": 1000.0, "rope_type": "default",
                                                  "partial_rotary_factor": 0.5})),
           same=(inside(DENSE, layer_types=[LINEAR, FULL] * 2),
                 inside(DENSE, rope_parameters={"rope_theta": 1000.0, "rope_type": "default"})),
           notes=("In the form of the published models, with what sees images and the layer that guesses a second token.",)),
    Hybrid("qwen3_5_tied_with_images", TIED, dtype="bfloat16", mtp=True, sure=1.5e-5,
           probes=(inside(TIED, rms_norm_eps=1e-4),),
           same=(inside(TIED, layer_types=None), inside(TIED, full_attention_interval=7)),
           notes=("In the form of the smallest published model.",)),
    Hybrid("qwen3_5_moe_text", moe(num_hidden_layers=3, layer_types=[LINEAR, FULL, LINEAR], hidden_size=28), dtype="bfloat16",
           fused=True, probes=({"num_experts_per_tok": 2}, {"num_experts_per_tok": 4}),
           notes=("Experts are one tensor a layer.",)),
    Hybrid("qwen3_5_moe_with_images", EXPERTS, mtp=True, dtype="bfloat16",
           probes=(inside(EXPERTS, num_experts_per_tok=3),), notes=("Experts are tensors of their own.",)),
    Hybrid("qwen3_next", following(hidden_size=28, decoder_sparse_step=2, num_hidden_layers=4, mlp_only_layers=[3],
                                   intermediate_size=17, linear_value_head_dim=8, linear_key_head_dim=10,
                                   linear_num_value_heads=4, head_dim=16, num_key_value_heads=1, num_attention_heads=2),
           dtype="bfloat16", mtp=True, state=True,
           probes=({"norm_topk_prob": False}, {"partial_rotary_factor": 0.5}, {"rope_theta": 1000.0}),
           same=({"layer_types": [LINEAR] * 3 + [FULL]}, rope(100.0, partial_rotary_factor=0.25),
                 rope(100.0) | {"partial_rotary_factor": 0.25}, {"partial_rotary_factor": None}),
           notes=("Layer 1 has experts, 0, 2 and 3 are dense.",)),
    Hybrid("qwen3_next_fused", following(hidden_size=20, norm_topk_prob=False, num_hidden_layers=2, full_attention_interval=2,
                                         attention_bias=True, linear_num_key_heads=3, linear_num_value_heads=3,
                                         tie_word_embeddings=True, head_dim=16, partial_rotary_factor=0.75,
                                         num_key_value_heads=1),
           dtype="float16", fused=True, probes=({"norm_topk_prob": True}, {"partial_rotary_factor": 0.5}),
           notes=("Experts are one tensor a layer; as many key heads as value heads.",)),
    Hybrid("qwen3_5_strong_decay", small(), decay=(0.6, 5.0), time=(3.0, -6.0), state=True, head=0.15, sure=1.5e-5,
           notes=("A token is forgotten at once by some heads, after some more by others.",)),
    Hybrid("qwen3_5_weak_decay", small(), decay=(0.8, -6.5), time=(3.0, 1.0), state=True,
           notes=("Nothing is forgotten but what new values replace.",)),
    Hybrid("qwen3_5_last_linear", small(num_hidden_layers=3, layer_types=[FULL, FULL, LINEAR], linear_num_key_heads=3,
                                        linear_num_value_heads=3, linear_conv_kernel_dim=3, attention_bias=True),
           dtype="float16", state=True, notes=("A convolution of width 3; as many key heads as value heads; biases.",)),
    Hybrid("qwen3_5_real_heads", small(num_hidden_layers=2, layer_types=[LINEAR, FULL], hidden_size=16, head_dim=256,
                                       num_attention_heads=1, linear_num_key_heads=1, linear_num_value_heads=2,
                                       linear_key_head_dim=128, linear_value_head_dim=128,
                                       rope_parameters={"rope_theta": 1e4, "rope_type": "default",
                                                        "partial_rotary_factor": 0.25}),
           dtype="bfloat16", notes=("Heads are as wide as those of the published models.",)),
]
