/* SPDX-License-Identifier: Apache-2.0
 * arch_list.h: every architecture: ARCH(model_type, descriptor). */
ARCH("bert", arch_bert)
