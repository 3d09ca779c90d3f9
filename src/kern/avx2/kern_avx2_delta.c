/* SPDX-License-Identifier: Apache-2.0
 * kern_avx2_delta.c: the gated delta rule and the convolution before it: those of the reference. */
#include "kern/avx2/kern_avx2.h"
#include "kern/ref/kern_ref.h"
void kern_avx2_delta(const kern_delta_args *a) { kern_ref_delta(a); }
void kern_avx2_delta_row(const kern_delta_row_args *a) { kern_ref_delta_row(a); }
void kern_avx2_conv(const kern_conv_args *a) { kern_ref_conv(a); }
void kern_avx2_conv_row(const kern_conv_row_args *a) { kern_ref_conv_row(a); }
