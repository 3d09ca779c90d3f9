# SPDX-License-Identifier: Apache-2.0
"""NomicBert in PyTorch, written from its published description: for what the class of transformers lacks.

transformers has the family without biases and with rotation of the whole head; the checkpoints' own configuration
(n_embd, rotary_emb_fraction, qkv_proj_bias, ...) also describes models with them. Maths: word and type embeddings,
LayerNorm; then per layer x = norm1(x + attention(x)), x = norm2(x + fc2(fc11(x) * silu(fc12(x)))). Rotation is the
non-interleaved form of RoFormer (arXiv:2104.09864) on the first rotary_emb_fraction of each head. The script that uses
this checks it against the class of transformers where that can say the same model.
"""

import torch
from torch import nn
from torch.nn import functional as F
from transformers.modeling_outputs import BaseModelOutput


def modern_config(old: dict) -> dict:
    """config.json of the checkpoints as transformers 5 has it; biases and fractions cannot be said there."""
    return {"architectures": ["NomicBertModel"], "model_type": "nomic_bert", "hidden_act": "silu",
            "hidden_size": old["n_embd"], "intermediate_size": old["n_inner"], "layer_norm_eps": old["layer_norm_epsilon"],
            "max_position_embeddings": old["n_positions"], "num_attention_heads": old["n_head"],
            "num_hidden_layers": old["n_layer"], "pad_token_id": 0, "type_vocab_size": old["type_vocab_size"],
            "rope_parameters": {"rope_theta": float(old["rotary_emb_base"]), "rope_type": "default"},
            "vocab_size": old["vocab_size"]}


class Attention(nn.Module):
    def __init__(self, config: dict):
        super().__init__()
        d, self.heads = config["n_embd"], config["n_head"]
        self.Wqkv = nn.Linear(d, 3 * d, bias=config["qkv_proj_bias"])
        self.o_proj = nn.Linear(d, d, bias=config["qkv_proj_bias"])
        self.rotated = int(d // self.heads * config["rotary_emb_fraction"])
        self.base = float(config["rotary_emb_base"])

    def rotate(self, x: torch.Tensor) -> torch.Tensor:
        """x: [tokens, heads, head]"""
        n = self.rotated
        speed = self.base ** (-torch.arange(0, n, 2, dtype=torch.float32) / n)
        angle = torch.outer(torch.arange(len(x), dtype=torch.float32), speed)[:, None, :]
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        a, b, rest = x[..., : n // 2], x[..., n // 2 : n], x[..., n:]
        return torch.cat([a * cos - b * sin, b * cos + a * sin, rest], dim=-1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: [1, tokens, d]"""
        q, k, v = (part.view(x.shape[1], self.heads, -1) for part in self.Wqkv(x)[0].chunk(3, dim=-1))
        q, k = self.rotate(q), self.rotate(k)
        scores = torch.einsum("qhd,khd->hqk", q, k) / q.shape[-1] ** 0.5
        mixed = torch.einsum("hqk,khd->qhd", scores.softmax(dim=-1), v)
        return self.o_proj(mixed.reshape(1, x.shape[1], -1))


class Mlp(nn.Module):
    def __init__(self, config: dict):
        super().__init__()
        d, inner = config["n_embd"], config["n_inner"]
        self.fc11 = nn.Linear(d, inner, bias=config["mlp_fc1_bias"])
        self.fc12 = nn.Linear(d, inner, bias=config["mlp_fc1_bias"])
        self.fc2 = nn.Linear(inner, d, bias=config["mlp_fc2_bias"])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(self.fc11(x) * F.silu(self.fc12(x)))


class Layer(nn.Module):
    def __init__(self, config: dict):
        super().__init__()
        self.self_attn, self.mlp = Attention(config), Mlp(config)
        self.post_attention_layernorm = nn.LayerNorm(config["n_embd"], eps=config["layer_norm_epsilon"])
        self.post_mlp_layernorm = nn.LayerNorm(config["n_embd"], eps=config["layer_norm_epsilon"])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.post_attention_layernorm(x + self.self_attn(x))
        return self.post_mlp_layernorm(x + self.mlp(x))


class Embeddings(nn.Module):
    def __init__(self, config: dict):
        super().__init__()
        self.word_embeddings = nn.Embedding(config["vocab_size"], config["n_embd"])
        self.token_type_embeddings = nn.Embedding(config["type_vocab_size"], config["n_embd"])
        self.LayerNorm = nn.LayerNorm(config["n_embd"], eps=config["layer_norm_epsilon"])

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.LayerNorm(self.word_embeddings(ids) + self.token_type_embeddings.weight[0])


class NomicBert(nn.Module):
    """Takes the place of the model in a sentence-transformers Transformer module; one text at a time."""

    def __init__(self, config: dict, weights: dict[str, torch.Tensor], hf_config):
        super().__init__()
        self.config = hf_config
        self.embeddings = Embeddings(config)
        self.layers = nn.ModuleList([Layer(config) for _ in range(config["n_layer"])])
        self.load_state_dict({own_name(n): w.float() for n, w in weights.items()}, strict=True)

    def forward(self, input_ids: torch.Tensor, **_) -> BaseModelOutput:
        x = self.embeddings(input_ids)
        for layer in self.layers:
            x = layer(x)
        return BaseModelOutput(last_hidden_state=x)


def own_name(name: str) -> str:
    """A checkpoint's name of a tensor as it is called here."""
    for theirs, ours in (("encoder.layers", "layers"), ("emb_ln", "embeddings.LayerNorm"), ("attn.out_proj", "attn.o_proj"),
                         (".attn.", ".self_attn."), ("norm1", "post_attention_layernorm"), ("norm2", "post_mlp_layernorm")):
        name = name.replace(theirs, ours)
    return name
