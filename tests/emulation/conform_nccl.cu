/* SPDX-License-Identifier: MIT */
/*
** conform_nccl.cu - holds what the plug-in calls of NCCL (nccl_abi.h) against
** the emulation's declarations, which conform_nccl.c holds against NVIDIA's, as
** conform_blas.cu does for cuBLAS.
*/
#include <stddef.h>

#include <type_traits>

#include "cuda/nccl/nccl_abi.h"
#include "cuda/emulation/libraries/nccl.h"

template <class A, class B> constexpr bool alike() {
  return sizeof(A) == sizeof(B) &&
         std::is_pointer<A>::value == std::is_pointer<B>::value;
}

template <class... A, class... B>
constexpr bool fits(int (*)(A...), ncclResult_t (*)(B...)) {
  static_assert(sizeof...(A) == sizeof...(B), "number of parameters");
  return (alike<A, B>() && ... && true);
}

#define X(name, symbol, params)                                             \
  static_assert(fits((int(*) params) nullptr, decltype (&symbol)(nullptr)), \
                #symbol);
NCCL_FUNCTIONS(X)
NCCL_NEWER(X)
#undef X

#define SAME(ours, theirs) static_assert((int)ours == (int)theirs, #theirs);
SAME(NCCL_SUCCESS, ncclSuccess)
SAME(NCCL_CUDA_ERROR, ncclUnhandledCudaError)
SAME(NCCL_REMOTE_ERROR, ncclRemoteError)
SAME(NCCL_IN_PROGRESS, ncclInProgress)
SAME(NCCL_SUM, ncclSum)
SAME(NCCL_PROD, ncclProd)
SAME(NCCL_MAX, ncclMax)
SAME(NCCL_MIN, ncclMin)
SAME(NCCL_I8, ncclInt8)
SAME(NCCL_U8, ncclUint8)
SAME(NCCL_I32, ncclInt32)
SAME(NCCL_I64, ncclInt64)
SAME(NCCL_F16, ncclFloat16)
SAME(NCCL_F32, ncclFloat32)
SAME(NCCL_F64, ncclFloat64)
SAME(NCCL_BF16, ncclBfloat16)
SAME(NCCL_NO_COLOR, NCCL_SPLIT_NOCOLOR)
SAME(sizeof(UniqueId), sizeof(ncclUniqueId))
SAME(sizeof(CommConfig), sizeof(ncclConfig_t))
SAME(offsetof(CommConfig, blocking), offsetof(ncclConfig_t, blocking))
SAME(offsetof(CommConfig, splitshare), offsetof(ncclConfig_t, splitShare))
