/* SPDX-License-Identifier: MIT */
/*
** nccl_abi.h - the functions of NCCL that are called, for a build without its
** headers, as ../product/cublas_abi.h; a test compares all of it with them.
*/
#ifndef cuda_nccl_nccl_abi_h
#define cuda_nccl_nccl_abi_h

#include "cuda/device.h"

typedef struct CommHandle *Comm;
typedef struct UniqueId { char internal[128]; } UniqueId;

/* As NCCL 2.17 had it.  Newer ones have more fields behind these, which by
   `size' and `version' they know not to be there. */
typedef struct CommConfig {
  size_t size;
  unsigned magic, version;
  int blocking;
  int cga, least, most;       /* NCCL decides */
  const char *net;
  int splitshare;
} CommConfig;

#define NCCL_OLDEST   21703   /* 2.17.3 */
#define CONFIG_MAGIC  0xcafebeefu
#define CONFIG_UNDEFINED  INT32_MIN
#define NCCL_NO_COLOR (-1)

/* ncclResult_t, ncclRedOp_t, ncclDataType_t */
enum {
  NCCL_SUCCESS = 0, NCCL_CUDA_ERROR = 1, NCCL_REMOTE_ERROR = 6,
  NCCL_IN_PROGRESS = 7
};
enum { NCCL_SUM = 0, NCCL_PROD = 1, NCCL_MAX = 2, NCCL_MIN = 3 };
enum {
  NCCL_I8 = 0, NCCL_U8 = 1, NCCL_I32 = 2, NCCL_I64 = 4, NCCL_F16 = 6,
  NCCL_F32 = 7, NCCL_F64 = 8, NCCL_BF16 = 9
};

/* clang-format off */
#define NCCL_FUNCTIONS(X)                                                     \
  X(version,   ncclGetVersion,          (int *version))                       \
  X(newid,     ncclGetUniqueId,         (UniqueId *id))                       \
  X(init,      ncclCommInitRankConfig,                                        \
    (Comm *c, int size, UniqueId id, int rank, CommConfig *config))           \
  X(state,     ncclCommGetAsyncError,   (Comm c, int *error))                 \
  X(finalize,  ncclCommFinalize,        (Comm c))                             \
  X(destroy,   ncclCommDestroy,         (Comm c))                             \
  X(abort,     ncclCommAbort,           (Comm c))                             \
  X(begin,     ncclGroupStart,          (void))                               \
  X(end,       ncclGroupEnd,            (void))                               \
  X(allreduce, ncclAllReduce,                                                 \
    (const void *in, void *out, size_t n, int type, int op, Comm c,           \
     cudaStream_t s))                                                         \
  X(reduce,    ncclReduce,                                                    \
    (const void *in, void *out, size_t n, int type, int op, int root, Comm c, \
     cudaStream_t s))                                                         \
  X(broadcast, ncclBroadcast,                                                 \
    (const void *in, void *out, size_t n, int type, int root, Comm c,         \
     cudaStream_t s))                                                         \
  X(allgather, ncclAllGather,                                                 \
    (const void *in, void *out, size_t n, int type, Comm c, cudaStream_t s))  \
  X(reducescatter, ncclReduceScatter,                                         \
    (const void *in, void *out, size_t n, int type, int op, Comm c,           \
     cudaStream_t s))                                                         \
  X(send,      ncclSend,                                                      \
    (const void *in, size_t n, int type, int peer, Comm c, cudaStream_t s))   \
  X(recv,      ncclRecv,                                                      \
    (void *out, size_t n, int type, int peer, Comm c, cudaStream_t s))

/* Newer ones: 2.18.1, 2.23.4.  A library without them does. */
#define NCCL_NEWER(X)                                                         \
  X(split,     ncclCommSplit,                                                 \
    (Comm c, int color, int key, Comm *part, CommConfig *config))             \
  X(initmany,  ncclCommInitRankScalable,                                      \
    (Comm *c, int size, int rank, int nids, UniqueId *ids,                    \
     CommConfig *config))
/* clang-format on */

#endif
