/* SPDX-License-Identifier: Apache-2.0
 * arch_list.h: every architecture: ARCH(model_type, descriptor). */
ARCH("bert", arch_bert)
ARCH("camembert", arch_camembert)
ARCH("data2vec-text", arch_data2vec_text)
ARCH("distilbert", arch_distilbert)
ARCH("electra", arch_electra)
ARCH("ernie", arch_ernie)
ARCH("mpnet", arch_mpnet)
ARCH("roberta", arch_roberta)
ARCH("xlm-roberta", arch_xlm_roberta)
