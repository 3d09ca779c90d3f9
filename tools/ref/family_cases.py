# SPDX-License-Identifier: Apache-2.0
"""The cases of make_family_goldens.py: configurations as published models of each family have them, in small.

The older and the newer spelling of a configuration are both here wherever both are found in the field.
"""

import dataclasses

import nomic_reference
import tiny_tokenizers as tiny
from st_goldens import TEXTS, Dense, Directory, legacy


@dataclasses.dataclass
class Case(Directory):
    """One model directory."""

    name: str  # FAMILY/CASE
    tokenizer: tuple  # of tiny_tokenizers: Tokenizer, tokenizer_config.json
    config: dict  # config.json without vocab_size and dtype
    dtype: str = "float32"
    torch_dtype: bool = False  # the older name of that field
    spare_rows: int = 0  # embedding rows beyond the tokenizer's
    model_max_length: float = 512  # tokenizer_config.json
    prefix: str = ""  # before the names in the file
    extra: dict = dataclasses.field(default_factory=dict)  # tensors of the file that no embedder reads: name -> shape
    shards: int = 1  # files that the weights are spread over
    probes: tuple = ()  # changes of config.json that must show
    same: tuple = ()  # changes of config.json that must not: other spellings of the same model
    read_as: dict | None = None  # config.json that the reference is given, where it cannot read the one of the file
    own_nomic: bool = False  # nomic_reference.py is the reference: biases and rotation of a part of each head

    @property
    def family(self) -> str:
        return self.name.split("/")[0]

    @property
    def hidden(self) -> int:
        return self.config.get("hidden_size", self.config.get("dim", self.config.get("n_embd")))

    def file_config(self) -> dict:
        rows = self.tokenizer[0].get_vocab_size() + self.spare_rows
        return self.config | {"torch_dtype" if self.torch_dtype else "dtype": self.dtype, "vocab_size": rows}

    def reference_config(self) -> dict:
        config = self.file_config()
        return config if self.read_as is None else self.read_as | {k: config[k] for k in ("vocab_size",)}


def bert_like(kind: str, architecture: str, **changes) -> dict:
    return {"architectures": [architecture], "model_type": kind, "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu",
            "hidden_dropout_prob": 0.1, "hidden_size": 20, "initializer_range": 0.02, "intermediate_size": 37,
            "layer_norm_eps": 1e-12, "max_position_embeddings": 40, "num_attention_heads": 4, "num_hidden_layers": 2,
            "pad_token_id": 0, "position_embedding_type": "absolute", "type_vocab_size": 2, "use_cache": True} | changes


MEAN = legacy("mean_tokens")
CLS = legacy("cls_token")


def roberta(kind: str, **changes) -> dict:
    architecture = {"roberta": "Roberta", "xlm-roberta": "XLMRoberta", "camembert": "Camembert",
                    "data2vec-text": "Data2VecText"}[kind]
    return {"architectures": [architecture + "Model"], "model_type": kind, "attention_probs_dropout_prob": 0.1,
            "bos_token_id": 0, "eos_token_id": 2, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 20,
            "initializer_range": 0.02, "intermediate_size": 37, "layer_norm_eps": 1e-5, "max_position_embeddings": 42,
            "num_attention_heads": 4, "num_hidden_layers": 2, "pad_token_id": 1,
            "position_embedding_type": "absolute", "type_vocab_size": 1, "use_cache": True} | changes


def bert_style(kind: str, architecture: str, **changes) -> dict:
    config = roberta("roberta", architectures=[architecture], model_type=kind, hidden_size=21, layer_norm_eps=1e-12,
                     max_position_embeddings=40, num_attention_heads=3, pad_token_id=0, type_vocab_size=2)
    return {k: v for k, v in config.items() if k not in ("bos_token_id", "eos_token_id")} | changes


PAD_TEXTS = tuple(({}, t) for t in ("one <pad> two <pad><pad> three", "<pad>", "water<pad>"))

LONG = " ".join(TEXTS[i].strip() for i in (0, 6, 3, 7))  # hundreds of tokens


def distilbert(**changes) -> dict:
    return {"activation": "gelu", "architectures": ["DistilBertModel"], "attention_dropout": 0.1, "dim": 21,
            "dropout": 0.1, "hidden_dim": 37, "initializer_range": 0.02, "max_position_embeddings": 40,
            "model_type": "distilbert", "n_heads": 3, "n_layers": 2, "pad_token_id": 0,
            "sinusoidal_pos_embds": False, "tie_weights_": True} | changes


def mpnet(**changes) -> dict:
    return {"architectures": ["MPNetModel"], "model_type": "mpnet", "attention_probs_dropout_prob": 0.1, "bos_token_id": 0,
            "eos_token_id": 2, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 20,
            "initializer_range": 0.02, "intermediate_size": 37, "layer_norm_eps": 1e-5, "max_position_embeddings": 42,
            "num_attention_heads": 2, "num_hidden_layers": 2, "pad_token_id": 1, "relative_attention_num_buckets": 32,
            } | changes


def modernbert(n_merges: int = 40, **changes) -> dict:
    ids = {n: 256 + n_merges + i for i, n in enumerate(("unk", "cls", "sep", "pad", "mask"))}
    return {"architectures": ["ModernBertModel"], "attention_bias": False, "attention_dropout": 0.0,
            "bos_token_id": ids["cls"], "classifier_activation": "gelu", "classifier_bias": False, "classifier_dropout": 0.0,
            "classifier_pooling": "mean", "cls_token_id": ids["cls"], "decoder_bias": True, "deterministic_flash_attn": False,
            "embedding_dropout": 0.0, "eos_token_id": ids["sep"], "global_attn_every_n_layers": 3, "global_rope_theta": 160000.0,
            "gradient_checkpointing": False, "hidden_activation": "gelu", "hidden_size": 20,
            "initializer_cutoff_factor": 2.0, "initializer_range": 0.02, "intermediate_size": 23,
            "layer_norm_eps": 1e-05, "local_attention": 6, "local_rope_theta": 10000.0, "max_position_embeddings": 512,
            "mlp_bias": False, "mlp_dropout": 0.0, "model_type": "modernbert", "norm_bias": False, "norm_eps": 1e-05,
            "num_attention_heads": 2, "num_hidden_layers": 4, "pad_token_id": ids["pad"],
            "position_embedding_type": "absolute", "sep_token_id": ids["sep"], "sparse_pred_ignore_index": -100,
            "sparse_prediction": False} | changes


def modernbert_new(layer_types: str, full: float, sliding: float, **changes) -> dict:
    """The same as transformers 5 writes it; layer_types as one letter a layer."""
    old = modernbert(**changes)
    for name in ("global_attn_every_n_layers", "global_rope_theta", "local_rope_theta", "layer_norm_eps",
                 "position_embedding_type", "gradient_checkpointing"):
        del old[name]
    kinds = {"f": "full_attention", "s": "sliding_attention"}
    return old | {"layer_types": [kinds[c] for c in layer_types], "num_hidden_layers": len(layer_types),
                  "rope_parameters": {"full_attention": {"rope_theta": full, "rope_type": "default"},
                                      "sliding_attention": {"rope_theta": sliding, "rope_type": "default"}},
                  "tie_word_embeddings": True}


def nomic(**changes) -> dict:
    """config.json as nomic-embed-text-v1.5 has it."""
    return {"activation_function": "swiglu", "architectures": ["NomicBertModel"], "attn_pdrop": 0.0,
            "bos_token_id": None, "causal": False, "dense_seq_output": True, "embd_pdrop": 0.0, "eos_token_id": None,
            "fused_bias_fc": True, "fused_dropout_add_ln": True, "initializer_range": 0.02,
            "layer_norm_epsilon": 1e-12, "max_trained_positions": 2048, "mlp_fc1_bias": False, "mlp_fc2_bias": False,
            "model_type": "nomic_bert", "n_embd": 20, "n_head": 2, "n_inner": 35, "n_layer": 2, "n_positions": 8192,
            "pad_vocab_size_multiple": 64, "parallel_block": False, "parallel_block_tied_norm": False,
            "prenorm": False, "qkv_proj_bias": False, "reorder_and_upcast_attn": False, "resid_pdrop": 0.0,
            "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False,
            "rotary_emb_scale_base": None, "rotary_scaling_factor": None, "scale_attn_by_inverse_layer_idx": False,
            "scale_attn_weights": True, "summary_activation": None, "summary_first_dropout": 0.0,
            "summary_proj_to_labels": True, "summary_type": "cls_index", "summary_use_proj": True,
            "transformers_version": "4.37.2", "type_vocab_size": 2, "use_cache": True, "use_flash_attn": True,
            "use_rms_norm": False, "use_xentropy": True} | changes


def nomic_case(name: str, config: dict, stretched: int = 0, **more) -> Case:
    """A case whose file the reference reads in the form of transformers 5."""
    read_as = nomic_reference.modern_config(config | {"vocab_size": 0})
    if stretched:  # a model trained on so many tokens, as transformers says it
        read_as |= {"max_position_embeddings": stretched, "rope_parameters": read_as["rope_parameters"] | {
            "rope_type": "dynamic", "factor": config["rotary_scaling_factor"]}}
    return Case(name, tiny.bert(), config, torch_dtype=True, pooling=MEAN, spare_rows=3, read_as=read_as, **more)


def jina(**changes) -> dict:
    return {"architectures": ["JinaEmbeddingsV3Model"], "attention_probs_dropout_prob": 0.1, "bos_token_id": 0,
            "classifier_dropout": None, "eos_token_id": 2, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
            "hidden_size": 20, "initializer_range": 0.02, "intermediate_size": 37, "layer_norm_eps": 1e-05,
            "max_position_embeddings": 8194, "model_type": "jina_embeddings_v3", "num_attention_heads": 2,
            "num_hidden_layers": 2, "pad_token_id": 1, "rope_parameters": {"rope_theta": 500.0, "rope_type": "default"},
            "tie_word_embeddings": True, "type_vocab_size": 1, "use_cache": True} | changes


def gte(**changes) -> dict:
    return {"architectures": ["GteModel"], "attention_probs_dropout_prob": 0.0, "bos_token_id": None,
            "classifier_dropout": None, "eos_token_id": None, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
            "hidden_size": 20, "initializer_range": 0.02, "intermediate_size": 35, "layer_norm_eps": 1e-12,
            "max_position_embeddings": 512, "model_type": "gte", "num_attention_heads": 2, "num_hidden_layers": 2,
            "pad_token_id": 1, "rope_parameters": {"rope_theta": 20000.0, "rope_type": "default"},
            "tie_word_embeddings": True, "type_vocab_size": 1} | changes


def new_model(**changes) -> dict:
    """config.json of the same family before transformers had it (model_type "new")."""
    return {"architectures": ["NewModel"], "attention_probs_dropout_prob": 0.0, "classifier_dropout": 0.0,
            "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 20, "initializer_range": 0.02,
            "intermediate_size": 35, "layer_norm_eps": 1e-12, "layer_norm_type": "layer_norm",
            "logn_attention_clip1": False, "logn_attention_scale": False, "max_position_embeddings": 512,
            "model_type": "new", "num_attention_heads": 2, "num_hidden_layers": 2, "pack_qkv": True, "pad_token_id": 0,
            "position_embedding_type": "rope", "rope_scaling": None, "rope_theta": 20000.0, "type_vocab_size": 0,
            "unpad_inputs": False, "use_memory_efficient_attention": False} | changes


def decoder(kind: str, architecture: str, **changes) -> dict:
    """config.json as transformers 4 wrote it."""
    return {"architectures": [architecture], "attention_dropout": 0.0, "bos_token_id": 256, "eos_token_id": 256,
            "head_dim": 10, "hidden_act": "silu", "hidden_size": 20, "initializer_range": 0.02, "intermediate_size": 27,
            "max_position_embeddings": 512, "model_type": kind, "num_attention_heads": 4, "num_hidden_layers": 2,
            "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_scaling": None, "rope_theta": 1000000,
            "tie_word_embeddings": True, "use_cache": True} | changes


def rope_new(config: dict, **more) -> dict:
    """The same with the rope fields of transformers 5."""
    rest = {k: v for k, v in config.items() if k not in ("rope_scaling", "rope_theta")}
    scaling = {k: v for k, v in (config["rope_scaling"] or {}).items()}
    return rest | {"rope_parameters": {"rope_theta": float(config["rope_theta"]), "rope_type": "default"} | scaling} | more


def only_rope(config: dict) -> dict:
    """The change that turns the old spelling of rope into the new one."""
    return {"rope_scaling": None, "rope_theta": None, "rope_parameters": rope_new(config)["rope_parameters"]}


def theta(value: float) -> dict:
    return {"rope_theta": value}


def qwen3(**changes) -> dict:
    return decoder("qwen3", "Qwen3ForCausalLM", attention_bias=False, max_window_layers=2, sliding_window=None,
                   use_sliding_window=False, transformers_version="4.51.3", **changes)


def qwen2(architecture: str, **changes) -> dict:
    config = decoder("qwen2", architecture, hidden_size=24, max_window_layers=2, sliding_window=None,
                     use_sliding_window=False) | changes
    return {k: v for k, v in config.items() if k != "head_dim"}


LAST = legacy("lasttoken", include_prompt=True)
INSTRUCT = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
QWEN_PROMPTS = {"prompts": {"query": INSTRUCT, "document": ""}, "default_prompt_name": None,
                "similarity_fn_name": "cosine"}
QWEN_PROMPTED = (({"prompt_name": "query"}, TEXTS[0]), ({"prompt_name": "query"}, ""), ({"prompt_name": "document"}, TEXTS[3]),
                 ({"prompt": "Instruct: short\nQuery:"}, TEXTS[4]))
IDENTITY = "torch.nn.modules.linear.Identity"


def gemma(**changes) -> dict:
    """config.json as EmbeddingGemma's was at first, with fewer layers between global ones."""
    return {"_sliding_window_pattern": 3, "architectures": ["Gemma3TextModel"], "attention_bias": False,
            "attention_dropout": 0.0, "attn_logit_softcapping": None, "bos_token_id": 2, "eos_token_id": 1,
            "final_logit_softcapping": None, "head_dim": 10, "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 20,
            "initializer_range": 0.02, "intermediate_size": 27,
            "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
            "max_position_embeddings": 2048, "model_type": "gemma3_text", "num_attention_heads": 4,
            "num_hidden_layers": 3, "num_key_value_heads": 2, "pad_token_id": 0, "query_pre_attn_scalar": 10,
            "rms_norm_eps": 1e-06, "rope_local_base_freq": 100.0, "rope_scaling": None, "rope_theta": 50000.0,
            "sliding_window": 10, "use_bidirectional_attention": True, "use_cache": True} | changes


GEMMA_PROMPTS = {"prompts": {"query": "task: search result | query: ", "document": "title: none | text: ",
                             "STS": "task: sentence similarity | query: "}, "default_prompt_name": None}
GEMMA_PROMPTED = (({"prompt_name": "query"}, TEXTS[0]), ({"prompt_name": "document"}, TEXTS[3]),
                  ({"prompt_name": "STS"}, ""))
LLAMA3_SCALING = {"factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                  "original_max_position_embeddings": 16, "rope_type": "llama3"}


CASES = [
    Case("roberta/mean_norm", tiny.roberta(), roberta("roberta"), pooling=MEAN, normalize=True,
         probes=({"hidden_act": "gelu_new"}, {"layer_norm_eps": 0.003}, {"num_attention_heads": 2})),
    Case("roberta/cls_prefix_f16", tiny.roberta(30), roberta("roberta", hidden_size=22, num_attention_heads=2,
                                                             intermediate_size=35, num_hidden_layers=1),
         pooling=CLS, dtype="float16", torch_dtype=True, prefix="roberta.", spare_rows=3,
         extra={"roberta.embeddings.position_ids": (1, 42), "lm_head.bias": (7,)},
         prompted=PAD_TEXTS, notes=("A pad token written in a text gets position pad_token_id and is not counted.",)),
    Case("xlm-roberta/mean_norm", tiny.xlm_roberta(), roberta("xlm-roberta", hidden_size=21, num_attention_heads=3),
         pooling=MEAN, normalize=True, probes=({"hidden_act": "gelu_new"},)),
    Case("xlm-roberta/cls_bge_m3", tiny.xlm_roberta(50), roberta("xlm-roberta", hidden_size=20, num_attention_heads=5,
                                                                 intermediate_size=41, max_position_embeddings=36),
         pooling=CLS, normalize=True, max_seq_length=34, torch_dtype=True,
         st_config={"prompts": {"query": "query: ", "document": "passage: "}, "default_prompt_name": None},
         prompted=(({"prompt_name": "query"}, TEXTS[0]), ({"prompt_name": "document"}, TEXTS[7]),
                   ({"prompt_name": "query"}, "")),
         extra={"pooler.dense.weight": (20, 20), "pooler.dense.bias": (20,)}),
    Case("camembert/mean", tiny.xlm_roberta(40, own_class="CamembertTokenizer"),
         roberta("camembert", hidden_size=18, num_attention_heads=2, bos_token_id=5, eos_token_id=6),
         pooling=MEAN, prefix="roberta."),
    Case("data2vec-text/mean_prefix", tiny.roberta(40), roberta("data2vec-text", hidden_size=21, num_attention_heads=3),
         pooling=MEAN, normalize=True, prefix="data2vec_text.", prompted=PAD_TEXTS,
         probes=({"layer_norm_eps": 0.003}, {"pad_token_id": 0})),
    Case("electra/small_projected", tiny.bert(), bert_like("electra", "ElectraModel", embedding_size=13, hidden_size=22,
                                                           num_attention_heads=2),
         pooling=MEAN, normalize=True, probes=({"hidden_act": "gelu_new"}, {"num_attention_heads": 1})),
    Case("electra/wide_embeddings", tiny.bert(140), bert_like("electra", "ElectraForPreTraining", embedding_size=170,
                                                              intermediate_size=33, num_hidden_layers=1),
         pooling=CLS, torch_dtype=True, prefix="electra.",
         extra={"discriminator_predictions.dense.weight": (20, 20), "electra.embeddings.position_ids": (1, 40)},
         notes=("Embeddings wider than anything in the layers.",)),
    Case("electra/base", tiny.bert(130), bert_like("electra", "ElectraModel", embedding_size=20, num_hidden_layers=1),
         pooling=CLS, normalize=True, notes=("embedding_size is hidden_size: nothing is projected.",)),
    Case("ernie/task_mean", tiny.bert(), bert_like("ernie", "ErnieModel", use_task_id=True, task_type_vocab_size=3,
                                                   type_vocab_size=4),
         pooling=MEAN, normalize=True, probes=({"use_task_id": False},)),
    Case("ernie/cls_prefix", tiny.bert(140), bert_like("ernie", "ErnieForMaskedLM", hidden_act="relu",
                                                       num_hidden_layers=1),
         pooling=CLS, prefix="ernie.", extra={"ernie.pooler.dense.weight": (20, 20), "cls.predictions.bias": (140,)}),
    Case("distilbert/mean_norm", tiny.distilbert(), distilbert(),
        pooling=MEAN, normalize=True, probes=({"activation": "gelu_new"}, {"n_heads": 7})),
    Case("distilbert/cls_relu_prefix", tiny.distilbert(140), {
        "activation": "relu", "architectures": ["DistilBertForMaskedLM"], "attention_dropout": 0.1, "dim": 20,
        "dropout": 0.1, "hidden_dim": 33, "initializer_range": 0.02, "max_position_embeddings": 40,
        "model_type": "distilbert", "n_heads": 2, "n_layers": 2, "pad_token_id": 0, "qa_dropout": 0.1,
        "seq_classif_dropout": 0.2, "sinusoidal_pos_embds": True, "tie_weights_": True},
        pooling=CLS, torch_dtype=True, prefix="distilbert.",
        extra={"vocab_projector.bias": (140,), "vocab_layer_norm.weight": (20,)},
        notes=("sinusoidal_pos_embds says how the table was filled at first; the file has the table.",),
        probes=({"activation": "gelu"},)),
    Case("mpnet/mean_norm", tiny.mpnet(), mpnet(), pooling=MEAN, normalize=True,
         probes=({"hidden_act": "gelu_new"}, {"layer_norm_eps": 0.003})),
    Case("mpnet/long_cls", tiny.mpnet(140), mpnet(hidden_size=18, num_attention_heads=3, intermediate_size=33,
                                                  num_hidden_layers=1, max_position_embeddings=212),
         pooling=CLS, max_seq_length=210, torch_dtype=True, prefix="mpnet.",
         prompted=(({}, LONG), *PAD_TEXTS),
         extra={"mpnet.embeddings.position_ids": (1, 212), "mpnet.pooler.dense.weight": (18, 18),
                "mpnet.pooler.dense.bias": (18,), "lm_head.bias": (141,)},
         notes=("Distances up to 200: past the 128 from which on all share a bucket.",)),
    Case("modernbert/local6_old", tiny.modernbert(), modernbert(hidden_size=18, num_attention_heads=3), pooling=MEAN,
         normalize=True, dtype="float16", torch_dtype=True,
         probes=({"local_attention": 8}, {"local_attention": 4}, {"global_attn_every_n_layers": 2},
                 {"global_rope_theta": 10000.0}, {"local_rope_theta": 100000.0}, {"hidden_activation": "gelu_new"},
                 {"norm_eps": 0.003}, {"num_attention_heads": 1}),
         same=({"local_attention": 7}, {"global_attn_every_n_layers": None, "layer_types": [
             "full_attention", "sliding_attention", "sliding_attention", "full_attention"]},
               {"layer_norm_eps": 0.1, "position_embedding_type": None, "classifier_pooling": "cls"})),
    Case("modernbert/biases_new", tiny.modernbert(36),
         modernbert_new("sfs", 80000.0, 500.0, n_merges=36, attention_bias=True, mlp_bias=True, norm_bias=True, local_attention=9,
                        num_attention_heads=5, intermediate_size=19, norm_eps=1e-3, bos_token_id=None),
         pooling=CLS, modern=True, max_seq_length=None, model_max_length=38, dtype="bfloat16", prefix="model.",
         extra={"head.dense.weight": (20, 20), "head.norm.weight": (20,), "decoder.bias": (301,)},
         probes=({"local_attention": 7}, {"layer_types": ["sliding_attention"] * 3},
                 {"rope_parameters": {"full_attention": {"rope_theta": 80000.0, "rope_type": "default"},
                                      "sliding_attention": {"rope_theta": 1000.0, "rope_type": "default"}}})),
    nomic_case("nomic_bert/v15", nomic(), normalize=True,
               st_config={"prompts": {"search_query": "search_query: "}, "default_prompt_name": None},
               prompted=(({"prompt_name": "search_query"}, TEXTS[0]), ({"prompt": "search_document: "}, TEXTS[7])),
               probes=({"rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}, {"hidden_act": "gelu"},
                       {"num_attention_heads": 5})),
    Case("nomic_bert/transformers5", tiny.bert(), nomic_reference.modern_config(
        nomic(n_embd=18, n_head=3, n_inner=37, rotary_emb_base=500) | {"vocab_size": 0}) | {"head_dim": 6},
        pooling=CLS, modern=True, max_seq_length=None, model_max_length=34,
        probes=({"rope_parameters": {"rope_theta": 1000.0, "rope_type": "default"}},)),
    nomic_case("nomic_bert/biases_half_rotated", nomic(
        n_embd=24, n_head=2, n_inner=31, rotary_emb_fraction=0.5, qkv_proj_bias=True, mlp_fc1_bias=True,
        mlp_fc2_bias=True, rotary_emb_base=10000), own_nomic=True, normalize=True,
        notes=("The reference is tools/ref/nomic_reference.py: transformers has no such model.",)),
    nomic_case("nomic_bert/dynamic", nomic(n_embd=24, n_head=2, rotary_scaling_factor=2.0, max_trained_positions=20),
               normalize=True, max_seq_length=70, stretched=20,
               probes=({"rope_parameters": {"rope_theta": 1000.0, "rope_type": "default"}}, {"max_position_embeddings": 19},
                       {"max_position_embeddings": 22},
                       {"rope_parameters": {"rope_theta": 1000.0, "rope_type": "dynamic", "factor": 2.3}}),
               notes=("Texts of over 20 tokens turn by frequencies of their own length: dynamic NTK. The reference is asked text by text, "
                      "and forgets the length of the text before.",)),
    Case("jina_embeddings_v3/mean_norm", tiny.xlm_roberta(), jina(), pooling=MEAN, normalize=True, prefix="roberta.",
         extra={"roberta.pooler.dense.weight": (20, 20), "roberta.pooler.dense.bias": (20,)},
         probes=({"rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}, {"hidden_act": "gelu_new"},
                 {"num_attention_heads": 5}, {"layer_norm_eps": 0.003})),
    Case("jina_embeddings_v3/cls_bf16", tiny.xlm_roberta(40), jina(hidden_size=18, num_attention_heads=3, num_hidden_layers=1,
                                                                  hidden_act="silu", type_vocab_size=2),
         pooling=CLS, dtype="bfloat16", modern=True, max_seq_length=None, model_max_length=36),
    Case("gte/mean_norm", tiny.xlm_roberta(50), gte(), pooling=MEAN, normalize=True,
         probes=({"rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}, {"hidden_act": "silu"},
                 {"num_attention_heads": 5})),
    Case("new/cls_no_types", tiny.bert(), new_model(hidden_size=18, num_attention_heads=3), pooling=CLS,
         normalize=True, torch_dtype=True, prefix="new.",
         read_as=gte(hidden_size=18, num_attention_heads=3, type_vocab_size=0, pad_token_id=0),
         notes=("transformers knows the family as gte: the reference is given that configuration.",)),
    Case("qwen3/embedding_old", tiny.qwen(), qwen3(), pooling=LAST, normalize=True, max_seq_length=None,
         model_max_length=90, torch_dtype=True, st_config=QWEN_PROMPTS, prompted=QWEN_PROMPTED,
         probes=(theta(10000), {"head_dim": 10, "rms_norm_eps": 0.003}),
         same=(only_rope(qwen3()), {"use_sliding_window": False, "sliding_window": 4})),
    Case("qwen3/embedding_bf16_sharded", tiny.qwen(30), rope_new(
        qwen3(hidden_size=18, num_attention_heads=3, num_key_value_heads=1, head_dim=8, intermediate_size=29, rope_theta=5e4),
        layer_types=["full_attention"] * 2, pad_token_id=None),
         pooling={"pooling_mode": "lasttoken", "include_prompt": True}, modern=True, normalize=True, max_seq_length=None,
         model_max_length=60, dtype="bfloat16", shards=3, st_config=QWEN_PROMPTS | {"truncate_dim": 11},
         prompted=QWEN_PROMPTED, probes=({"rope_parameters": {"rope_theta": 1e4, "rope_type": "default"}},),
         notes=("Weights in three files; truncate_dim 11 of 18 after Normalize.",)),
    Case("qwen3/causal_names_mean_bias", tiny.qwen(20, appended=None), qwen3(
        num_key_value_heads=4, hidden_size=22, num_attention_heads=4, head_dim=6) | {"attention_bias": True},
         pooling=legacy("mean_tokens"), max_seq_length=40, dtype="float16", torch_dtype=True, prefix="model.", empty=" ",
         extra={"lm_head.weight": (281, 22)},
         notes=("The tokenizer adds nothing; lm_head is in the file although it is tied.",)),
    Case("qwen3/plain_causal_lm", tiny.qwen(30), qwen3(), pooling=None, model_max_length=40, torch_dtype=True,
         notes=("No modules.json: the last token of a causal language model, not normalised.",)),
    Case("qwen2/plain_bidirectional", tiny.qwen(30), rope_new(
        qwen2("Qwen2ForCausalLM", num_hidden_layers=1, rope_theta=1000.0), layer_types=["full_attention"], is_causal=False),
         pooling=None, model_max_length=40, dtype="bfloat16",
         notes=("No modules.json, and every token sees all of its text: the mean.",)),
    Case("qwen2/last_bias", tiny.qwen(30), qwen2("Qwen2ForCausalLM", rope_theta=10000.0),
         pooling=LAST, normalize=True, max_seq_length=40, torch_dtype=True, st_config=QWEN_PROMPTS,
         prompted=QWEN_PROMPTED[:1], probes=(theta(1000.0),),
         notes=("q, k and v have a bias, the output projection has none, whatever the configuration says.",)),
    Case("qwen2/bidirectional_mean", tiny.qwen(30), rope_new(
        qwen2("Qwen2Model", num_key_value_heads=4, rope_theta=1000.0, sliding_window=6, max_window_layers=1,
              use_sliding_window=True), layer_types=["full_attention", "sliding_attention"], is_causal=False),
         pooling=MEAN, modern=True, max_seq_length=None, model_max_length=40, dtype="bfloat16",
         probes=({"is_causal": True}, {"sliding_window": 7}, {"sliding_window": 5}),
         notes=("is_causal false: every token sees all of its text; the second layer within a window.",)),
    Case("llama/last_llama3_scaling", tiny.llama3(30), decoder(
        "llama", "LlamaForCausalLM", attention_bias=False, mlp_bias=False, pretraining_tp=1, rms_norm_eps=1e-5,
        rope_scaling=LLAMA3_SCALING, rope_theta=500.0),
         pooling=LAST, normalize=True, max_seq_length=60, torch_dtype=True, dtype="bfloat16",
         probes=({"rope_scaling": None}, {"rope_scaling": LLAMA3_SCALING | {"factor": 4.0}},
                 {"rope_scaling": LLAMA3_SCALING | {"high_freq_factor": 3.0}},
                 {"rope_scaling": LLAMA3_SCALING | {"original_max_position_embeddings": 20}}),
         same=(only_rope({"rope_theta": 500.0, "rope_scaling": LLAMA3_SCALING}),)),
    Case("llama/mean_biases_new", tiny.llama3(30, ends=False), rope_new(
        decoder("llama", "LlamaModel", attention_bias=True, mlp_bias=True, rms_norm_eps=1e-5, rope_theta=2000.0,
                hidden_size=18, num_attention_heads=3, num_key_value_heads=1, head_dim=6)),
         pooling=MEAN, modern=True, max_seq_length=None, model_max_length=40,
         probes=({"rms_norm_eps": 0.003},)),
    Case("mistral/last_window", tiny.llama2(), decoder(
        "mistral", "MistralModel", sliding_window=9, rope_theta=10000.0, rms_norm_eps=1e-5, num_key_value_heads=1,
        hidden_size=18, num_attention_heads=3, head_dim=8, tie_word_embeddings=False),
         pooling=LAST, normalize=True, max_seq_length=50, torch_dtype=True, dtype="float16",
         probes=({"sliding_window": 10}, {"sliding_window": 8}, {"sliding_window": None})),
    Case("mistral/mean_new_no_window", tiny.llama2(30), rope_new(decoder(
        "mistral", "MistralModel", sliding_window=None, rope_theta=500.0, rms_norm_eps=1e-5, hidden_size=20,
        num_attention_heads=4, num_key_value_heads=2, head_dim=6)),
         pooling=MEAN, modern=True, max_seq_length=None, model_max_length=40, dtype="bfloat16",
         probes=({"sliding_window": 12},)),
    Case("gemma3_text/embedding_old", tiny.gemma(), gemma(), pooling=legacy("mean_tokens", include_prompt=True),
         dense=(Dense(51, False, IDENTITY), Dense(20, False, IDENTITY)), normalize=True, max_seq_length=60,
         torch_dtype=True, dtype="float16", st_config=GEMMA_PROMPTS, prompted=GEMMA_PROMPTED, model_max_length=2048,
         probes=({"sliding_window": 12}, {"sliding_window": 8}, {"rope_local_base_freq": 1000.0}, theta(10000.0),
                 {"query_pre_attn_scalar": 8}, {"use_bidirectional_attention": False},
                 {"rms_norm_eps": 0.003}, {"layer_types": ["sliding_attention"] * 3}),
         same=({"sliding_window": 11},
               {"layer_types": None, "sliding_window_pattern": 3, "rope_theta": None, "rope_local_base_freq": None,
                "rope_parameters": {"full_attention": {"rope_theta": 50000.0, "rope_type": "default"},
                                    "sliding_attention": {"rope_theta": 100.0, "rope_type": "default"}}})),
    Case("gemma3_text/causal_new_bf16", tiny.gemma(30), {
        k: v for k, v in gemma(hidden_size=18, num_attention_heads=3, head_dim=8, num_key_value_heads=1,
                               use_bidirectional_attention=False, sliding_window=7, num_hidden_layers=2,
                               layer_types=["sliding_attention", "full_attention"],
                               rope_parameters={
                                   "full_attention": {"factor": 4.0, "rope_theta": 30000.0, "rope_type": "linear"},
                                   "sliding_attention": {"rope_theta": 300.0, "rope_type": "default"}}).items()
        if k not in ("rope_theta", "rope_local_base_freq", "rope_scaling")},
         pooling={"pooling_mode": "lasttoken", "include_prompt": True}, modern=True, max_seq_length=None,
         model_max_length=50, dtype="bfloat16", prefix="model.",
         probes=({"sliding_window": 8}, {"sliding_window": 6}, {"rope_parameters": {
             "full_attention": {"rope_theta": 30000.0, "rope_type": "default"},
             "sliding_attention": {"rope_theta": 300.0, "rope_type": "default"}}})),
    Case("data2vec-text/mean", tiny.roberta(20), roberta("data2vec-text", num_hidden_layers=1), pooling=MEAN,
         dtype="float16", torch_dtype=True, prefix="data2vec_text."),
    Case("ernie/task_ids", tiny.bert(140), bert_style("ernie", "ErnieModel", task_type_vocab_size=3, use_task_id=True,
                                                     num_hidden_layers=1),
         pooling=CLS, normalize=True, torch_dtype=True,
         notes=("The embedding of task 0 is added to every token.",)),
    Case("electra/projected", tiny.bert(140), bert_style("electra", "ElectraModel", embedding_size=14), pooling=MEAN,
         normalize=True, torch_dtype=True, prefix="electra.",
         notes=("Embeddings of 14 numbers, projected to 21 after their norm.",)),
]
