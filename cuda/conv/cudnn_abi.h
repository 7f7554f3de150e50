/* SPDX-License-Identifier: MIT */
/*
** cudnn_abi.h - the functions of cuDNN 9 that cudnn_library.c calls, for a
** build without its headers.  Types are those of cuDNN, with enumerations as
** int.
*/
#ifndef cuda_conv_cudnn_abi_h
#define cuda_conv_cudnn_abi_h

#include "cuda/device.h"

typedef struct DnnHandle *DnnHandle;
typedef struct DnnTensor *DnnTensor;
typedef struct DnnFilter *DnnFilter;
typedef struct DnnConv *DnnConv;

/* cudnnDataType_t, cudnnTensorFormat_t, cudnnConvolutionMode_t,
   cudnnMathType_t, cudnnConvolutionFwdAlgo_t and its like, cudnnStatus_t */
enum { DNN_FLOAT = 0, DNN_HALF = 2, DNN_BFLOAT16 = 9 };
enum { DNN_NCHW = 0 };
enum { DNN_CROSS_CORRELATION = 1 };
enum { DNN_DEFAULT_MATH = 0, DNN_TENSOR_OP_MATH = 1 };
/* the product of implied columns: IMPLICIT_PRECOMP_GEMM of the result, and
   ALGO_1 of both gradients; all give the same bits each time */
enum { DNN_IMPLIED_PRODUCT = 1 };
enum { DNN_SUCCESS = 0 };

/* clang-format off */
#define DNN_FUNCTIONS(X)                                                      \
  X(create,      cudnnCreate,        (DnnHandle *h))                          \
  X(destroy,     cudnnDestroy,       (DnnHandle h))                           \
  X(setstream,   cudnnSetStream,     (DnnHandle h, cudaStream_t s))           \
  X(newtensor,   cudnnCreateTensorDescriptor,       (DnnTensor *t))           \
  X(freetensor,  cudnnDestroyTensorDescriptor,      (DnnTensor t))            \
  X(settensor,   cudnnSetTensorNdDescriptor,                                  \
    (DnnTensor t, int type, int nd, const int size[], const int stride[]))    \
  X(newfilter,   cudnnCreateFilterDescriptor,       (DnnFilter *f))           \
  X(freefilter,  cudnnDestroyFilterDescriptor,      (DnnFilter f))            \
  X(setfilter,   cudnnSetFilterNdDescriptor,                                  \
    (DnnFilter f, int type, int format, int nd, const int size[]))            \
  X(newconv,     cudnnCreateConvolutionDescriptor,  (DnnConv *c))             \
  X(freeconv,    cudnnDestroyConvolutionDescriptor, (DnnConv c))              \
  X(setconv,     cudnnSetConvolutionNdDescriptor,                             \
    (DnnConv c, int n, const int pad[], const int stride[],                   \
     const int dilation[], int mode, int compute))                            \
  X(setmath,     cudnnSetConvolutionMathType,       (DnnConv c, int math))    \
  X(result_room, cudnnGetConvolutionForwardWorkspaceSize,                     \
    (DnnHandle h, DnnTensor x, DnnFilter w, DnnConv c, DnnTensor y, int algo, \
     size_t *bytes))                                                          \
  X(input_room,  cudnnGetConvolutionBackwardDataWorkspaceSize,                \
    (DnnHandle h, DnnFilter w, DnnTensor y, DnnConv c, DnnTensor x, int algo, \
     size_t *bytes))                                                          \
  X(weight_room, cudnnGetConvolutionBackwardFilterWorkspaceSize,              \
    (DnnHandle h, DnnTensor x, DnnTensor y, DnnConv c, DnnFilter w, int algo, \
     size_t *bytes))                                                          \
  X(result,      cudnnConvolutionForward,                                     \
    (DnnHandle h, const void *alpha, DnnTensor x, const void *px,             \
     DnnFilter w, const void *pw, DnnConv c, int algo, void *room,            \
     size_t bytes, const void *beta, DnnTensor y, void *py))                  \
  X(input,       cudnnConvolutionBackwardData,                                \
    (DnnHandle h, const void *alpha, DnnFilter w, const void *pw,             \
     DnnTensor y, const void *py, DnnConv c, int algo, void *room,            \
     size_t bytes, const void *beta, DnnTensor x, void *px))                  \
  X(weight,      cudnnConvolutionBackwardFilter,                              \
    (DnnHandle h, const void *alpha, DnnTensor x, const void *px,             \
     DnnTensor y, const void *py, DnnConv c, int algo, void *room,            \
     size_t bytes, const void *beta, DnnFilter w, void *pw))
/* clang-format on */

#endif
