/* SPDX-License-Identifier: MIT */
/* nvrtc_tensor.h - what kernels use of core/tensor.h, for NVRTC. */
#ifndef cuda_fusion_headers_nvrtc_tensor_h
#define cuda_fusion_headers_nvrtc_tensor_h

#define NC_MAXDIM 8           /* fused_text.c compares */
#define NC_MAXIN 5

#endif
