/* SPDX-License-Identifier: MIT */
/* nvrtc_device.h - what kernels use of cuda/device.h, for NVRTC. */
#ifndef cuda_fusion_headers_nvrtc_device_h
#define cuda_fusion_headers_nvrtc_device_h

#include <stdint.h>

#define NC_C_BEGIN
#define NC_C_END
#define NC_DEVICE static __device__ __forceinline__
#define NC_MEMBER __device__ __forceinline__
#define NC_SHARED(T, name, n) __shared__ T name[n]

#endif
