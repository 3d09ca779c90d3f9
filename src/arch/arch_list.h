/* SPDX-License-Identifier: Apache-2.0
 * arch_list.h: every architecture: ARCH(model_type, descriptor). */
ARCH("bert", arch_bert)
ARCH("llama", arch_llama)
ARCH("mistral", arch_mistral)
ARCH("qwen2", arch_qwen2)
ARCH("qwen3", arch_qwen3)
ARCH("gemma3_text", arch_gemma3_text)
