# SPDX-License-Identifier: Apache-2.0
"""The cases of make_decoder_goldens.py: configurations as published language models have them, in small.

Windows and original lengths are shorter than the longest prompt. The older and the newer spelling are both here wherever
both are found in the field.
"""

import dataclasses

VOCAB = 101


@dataclasses.dataclass
class Case:
    """One model directory."""

    name: str
    config: dict  # config.json without vocab_size and dtype
    dtype: str = "float32"
    probes: tuple = ()  # changes of config.json that must show; None removes
    same: tuple = ()  # changes that must not: other spellings of the same model
    head: float = 0.5  # spread of the output matrix
    unset: tuple = ()  # fields that the file leaves to their defaults
    notes: tuple = ()

    def file_config(self) -> dict:
        config = {k: v for k, v in self.config.items() if k not in self.unset}
        return config | {"dtype": self.dtype} | ({} if "text_config" in config else {"vocab_size": VOCAB})


def decoder(kind: str, architecture: str, **changes) -> dict:
    """config.json as transformers 4 wrote it."""
    return {"architectures": [architecture + "ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2,
            "head_dim": 6, "hidden_act": "silu", "hidden_size": 20, "initializer_range": 0.02, "intermediate_size": 27,
            "max_position_embeddings": 512, "model_type": kind, "num_attention_heads": 4, "num_hidden_layers": 2,
            "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_scaling": None, "rope_theta": 10000.0,
            "tie_word_embeddings": False, "use_cache": True} | changes


def rope(theta: float, **more) -> dict:
    """rope_parameters of transformers 5."""
    return {"rope_parameters": {"rope_theta": theta, "rope_type": "default"} | more, "rope_scaling": None,
            "rope_theta": None}


def rope_type(**fields) -> dict:
    return {"rope_scaling": fields}


def drop(config: dict, *names: str) -> dict:
    return {k: v for k, v in config.items() if k not in names and v is not None}


LLAMA3 = {"factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 16,
          "rope_type": "llama3"}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}


def llama(**changes) -> dict:
    return decoder("llama", "Llama", attention_bias=False, mlp_bias=False, pretraining_tp=1, rms_norm_eps=1e-5) | changes


def qwen3_moe(**changes) -> dict:
    return decoder("qwen3_moe", "Qwen3Moe", attention_bias=False, decoder_sparse_step=1, max_window_layers=2,
                   mlp_only_layers=[], moe_intermediate_size=11, norm_topk_prob=True, num_experts=7,
                   num_experts_per_tok=3, output_router_logits=False, router_aux_loss_coef=0.001, sliding_window=None,
                   use_sliding_window=False) | changes


def gemma2(**changes) -> dict:
    config = decoder("gemma2", "Gemma2", attention_bias=False, attn_logit_softcapping=50.0, cache_implementation="hybrid",
                     final_logit_softcapping=30.0, hidden_activation="gelu_pytorch_tanh", num_attention_heads=2,
                     num_key_value_heads=1, num_hidden_layers=3, query_pre_attn_scalar=9, rope_theta=500.0,
                     sliding_window=9)
    del config["rope_scaling"], config["tie_word_embeddings"]
    return config | {"hidden_act": "gelu_pytorch_tanh", "head_dim": 10} | changes


def gemma3(**changes) -> dict:
    config = decoder("gemma3_text", "Gemma3", attention_bias=False, attn_logit_softcapping=None,
                     final_logit_softcapping=None, hidden_activation="gelu_pytorch_tanh", num_attention_heads=2,
                     num_key_value_heads=1, num_hidden_layers=3, query_pre_attn_scalar=12, rope_local_base_freq=100.0,
                     rope_theta=50000.0, sliding_window=10, sliding_window_pattern=3, head_dim=10)
    del config["hidden_act"], config["tie_word_embeddings"]
    return config | changes


def gemma3_outer(**changes) -> dict:
    """config.json of the models that see images, too: the text model's is inside, and leaves much to defaults."""
    text = gemma3(hidden_size=24, head_dim=6, rope_scaling={"rope_type": "linear", "factor": 8.0}, vocab_size=VOCAB)
    keep = ("head_dim", "hidden_size", "intermediate_size", "model_type", "num_hidden_layers", "rope_scaling",
            "sliding_window", "sliding_window_pattern", "query_pre_attn_scalar", "vocab_size")
    vision = {"hidden_size": 8, "image_size": 28, "intermediate_size": 8, "model_type": "siglip_vision_model",
              "num_attention_heads": 1, "num_hidden_layers": 1, "patch_size": 14, "vision_use_head": False}
    return {"architectures": ["Gemma3ForConditionalGeneration"], "boi_token_index": 97, "eoi_token_index": 98,
            "eos_token_id": [1, 2], "image_token_index": 99, "initializer_range": 0.02, "mm_tokens_per_image": 4,
            "model_type": "gemma3", "text_config": {k: text[k] for k in keep}, "vision_config": vision} | changes


def phi3(**changes) -> dict:
    config = decoder("phi3", "Phi3", embd_pdrop=0.0, original_max_position_embeddings=512, pad_token_id=0,
                     resid_pdrop=0.0, rms_norm_eps=1e-5, sliding_window=11, hidden_size=24, num_attention_heads=3,
                     num_key_value_heads=1)
    del config["head_dim"]
    return config | changes


def longrope(pairs: int, **more) -> dict:
    return {"type": "longrope", "short_factor": [1.0 + 0.05 * i for i in range(pairs)],
            "long_factor": [1.0 + 0.9 * i for i in range(pairs)]} | more


def granite(**changes) -> dict:
    return llama(architectures=["GraniteForCausalLM"], model_type="granite", attention_multiplier=0.3,
                 embedding_multiplier=5.0, logits_scaling=3.0, residual_multiplier=0.37, tie_word_embeddings=True) | changes


def smollm3(**changes) -> dict:
    config = llama(architectures=["SmolLM3ForCausalLM"], model_type="smollm3", max_window_layers=4, rope_theta=300.0,
                   hidden_size=24, no_rope_layer_interval=2, no_rope_layers=[1, 1, 0], num_hidden_layers=3, pad_token_id=0, sliding_window=None,
                   use_sliding_window=False, layer_types=["full_attention"] * 3)
    del config["tie_word_embeddings"], config["head_dim"]
    return config | changes


CASES = [
    Case("llama2", drop(llama(num_key_value_heads=4, hidden_size=24), "head_dim", "rope_theta"), notes=("As many key heads as heads.",),
         probes=({"rms_norm_eps": 0.003}, {"num_attention_heads": 2, "num_key_value_heads": 2}, {"rope_theta": 500.0})),
    Case("llama3_scaling_tied", llama(rope_theta=500.0, tie_word_embeddings=True, **rope_type(**LLAMA3)), dtype="bfloat16",
         probes=({"rope_scaling": None}, {"rope_scaling": LLAMA3 | {"low_freq_factor": 2.0}}, {"head_dim": None, "rope_scaling": None})[:2],
         same=(rope(500.0, **LLAMA3),)),
    Case("llama_linear_biases", llama(attention_bias=True, mlp_bias=True, num_key_value_heads=1,
                                      **rope_type(type="linear", factor=2.5)), dtype="float16",
         probes=({"rope_scaling": {"type": "linear", "factor": 3.0}},), same=(rope(1e4, rope_type="linear", factor=2.5),)),
    Case("llama_dynamic", llama(max_position_embeddings=33, rope_theta=100.0, **rope_type(type="dynamic", factor=3.0)),
         probes=({"rope_scaling": None}, {"rope_scaling": {"type": "dynamic", "factor": 2.0}}),
         same=(rope(100.0, rope_type="dynamic", factor=3.0),)),
    Case("llama_yarn", llama(rope_theta=200.0, max_position_embeddings=64,
                             **rope_type(**YARN, beta_fast=4.0, beta_slow=0.5, mscale=0.7, mscale_all_dim=0.4)),
         probes=({"rope_scaling": YARN | {"beta_fast": 4.0, "beta_slow": 0.5}},)),
    Case("mistral_window", decoder("mistral", "Mistral", sliding_window=9, num_key_value_heads=1, hidden_size=18,
                                   num_attention_heads=3, rms_norm_eps=1e-5, head_dim=8), dtype="bfloat16",
         probes=({"sliding_window": 10}, {"sliding_window": 8}, {"sliding_window": None})),
    Case("mistral_plain_tied", decoder("mistral", "Mistral", num_attention_heads=5, num_key_value_heads=5,
                                       tie_word_embeddings=True, rms_norm_eps=1e-5) | rope(1000.0) | {"sliding_window": None},
         dtype="float16", probes=({"sliding_window": 20},)),
    Case("qwen2_second_layer_slides", drop(decoder("qwen2", "Qwen2", hidden_size=24, max_window_layers=1, sliding_window=7,
                                                   use_sliding_window=True, num_key_value_heads=1), "head_dim"),
         probes=({"max_window_layers": 2}, {"sliding_window": 8}, {"use_sliding_window": False})),
    Case("qwen2_tied", drop(decoder("qwen2", "Qwen2", hidden_size=24, max_window_layers=2, sliding_window=7,
                                    use_sliding_window=False, tie_word_embeddings=True), "head_dim"), dtype="bfloat16",
         same=({"sliding_window": 3},)),
    Case("qwen3_yarn_tied", decoder("qwen3", "Qwen3", attention_bias=False, max_window_layers=2, sliding_window=None,
                                    use_sliding_window=False, tie_word_embeddings=True, head_dim=10, rope_theta=1000.0,
                                    max_position_embeddings=40, **rope_type(**YARN)), dtype="bfloat16",
         probes=({"rope_scaling": None}, {"rope_scaling": YARN | {"factor": 3.0}},
                 {"rope_scaling": YARN | {"attention_factor": 1.0}}, {"rope_scaling": YARN | {"truncate": False}})[:3],
         same=(rope(1000.0, **YARN),)),
    Case("qwen3_bias_untied", decoder("qwen3", "Qwen3", attention_bias=True, num_attention_heads=3, num_key_value_heads=1,
                                      hidden_size=18, sliding_window=None, use_sliding_window=False) | rope(300.0)),
    Case("gemma2_caps", gemma2(attn_logit_softcapping=1.5, final_logit_softcapping=4.0), dtype="bfloat16",
         probes=({"attn_logit_softcapping": 2.0}, {"final_logit_softcapping": 5.0}, {"sliding_window": 10},
                 {"sliding_window": 8}, {"query_pre_attn_scalar": 8},
                 {"layer_types": ["full_attention", "sliding_attention", "full_attention"]}),
         same=({"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}, {"hidden_act": "relu"},
               rope(500.0))),
    Case("gemma2_default_caps", drop(gemma2(), "attn_logit_softcapping", "final_logit_softcapping"), head=6.0,
         probes=({"attn_logit_softcapping": 5.0}, {"final_logit_softcapping": 20.0}),
         same=({"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0},),
         notes=("The caps are left to their defaults, 50 and 30.",)),
    Case("gemma2_no_caps_biases", gemma2(attn_logit_softcapping=None, final_logit_softcapping=None, attention_bias=True,
                                         layer_types=["full_attention", "sliding_attention", "full_attention"],
                                         tie_word_embeddings=False), dtype="float16",
         probes=({"attn_logit_softcapping": 2.0},)),
    Case("gemma3_pattern_linear", gemma3(rope_scaling={"rope_type": "linear", "factor": 8.0}), dtype="bfloat16",
         probes=({"rope_scaling": None}, {"rope_local_base_freq": 300.0}, {"sliding_window_pattern": 2},
                 {"sliding_window": 11}, {"sliding_window": 9}),
         same=({"sliding_window_pattern": None, "layer_types": ["sliding_attention"] * 2 + ["full_attention"]},)),
    Case("gemma3_new_form_cap", drop(gemma3(
        rope_scaling=None, rope_theta=None, rope_local_base_freq=None, sliding_window_pattern=None, final_logit_softcapping=3.0,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        rope_parameters={"full_attention": {"rope_theta": 30000.0, "rope_type": "default"},
                         "sliding_attention": {"rope_theta": 300.0, "rope_type": "default"}})),
         probes=({"final_logit_softcapping": 4.0},)),
    Case("gemma3_with_images", gemma3_outer(), dtype="bfloat16",
         notes=("The text model of one that sees images, too: text_config, with heads and others left to their defaults.",)),
    Case("qwen3_moe", qwen3_moe(), dtype="bfloat16",
         probes=({"norm_topk_prob": False}, {"num_experts_per_tok": 2}, {"num_experts_per_tok": 4})),
    Case("qwen3_moe_some_dense", qwen3_moe(norm_topk_prob=False, num_hidden_layers=4, decoder_sparse_step=2,
                                           mlp_only_layers=[3], num_experts=5, num_experts_per_tok=2, attention_bias=True,
                                           num_key_value_heads=1, tie_word_embeddings=True),
         probes=({"norm_topk_prob": True},), notes=("Layer 1 has experts, 0, 2 and 3 are dense.",)),
    Case("phi3_window", phi3(), dtype="bfloat16", probes=({"sliding_window": 12}, {"sliding_window": 10},
                                                         {"sliding_window": None})),
    Case("phi3_longrope", phi3(sliding_window=None, max_position_embeddings=120, original_max_position_embeddings=33,
                               rope_scaling=longrope(4), rope_theta=100.0),
         probes=({"rope_scaling": longrope(4, long_factor=[1.0, 1.2, 1.3, 1.4])},
                 {"rope_scaling": longrope(4, short_factor=[1.0, 1.2, 1.3, 1.4])}, {"max_position_embeddings": 200}),
         same=(rope(100.0, **(longrope(4) | {"rope_type": "longrope"})),)),
    Case("phi4_partial_tied", phi3(sliding_window=None, tie_word_embeddings=True, partial_rotary_factor=0.75,
                                   num_key_value_heads=3, max_position_embeddings=90, original_max_position_embeddings=25,
                                   rope_scaling=longrope(3, attention_factor=1.1)), dtype="float16",
         probes=({"partial_rotary_factor": 1.0, "rope_scaling": None},
                 {"rope_scaling": longrope(3, attention_factor=1.2)})),
    Case("granite_factors", granite(), dtype="bfloat16",
         probes=({"attention_multiplier": 0.4}, {"embedding_multiplier": 4.0}, {"logits_scaling": 2.0},
                 {"residual_multiplier": 0.5})),
    Case("granite_plain", drop(granite(attention_bias=True, mlp_bias=True, tie_word_embeddings=False) | rope(300.0),
                               "attention_multiplier", "embedding_multiplier", "logits_scaling", "residual_multiplier"),
         probes=({"attention_multiplier": 0.5},), notes=("No factors: all are 1, that on the scores, too.",)),
    Case("smollm3_unturned", smollm3(), dtype="bfloat16",
         probes=({"no_rope_layers": [1, 1, 1]}, {"no_rope_layers": [0, 1, 0]}),
         same=({"no_rope_layers": None, "no_rope_layer_interval": 3},)),
    Case("smollm3_slides", drop(smollm3(use_sliding_window=True, sliding_window=9, no_rope_layer_interval=2,
                                        tie_word_embeddings=False), "layer_types", "no_rope_layers"),
         probes=({"sliding_window": 10}, {"use_sliding_window": False})),
]
