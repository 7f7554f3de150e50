/* SPDX-License-Identifier: MIT */
/* math.h - for NVRTC, which knows the functions themselves. */
#ifndef cuda_fusion_headers_math_h
#define cuda_fusion_headers_math_h

#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)

#endif
