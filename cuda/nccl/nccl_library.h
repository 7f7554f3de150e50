/* SPDX-License-Identifier: MIT */
/*
** nccl_library.h - NCCL, opened at the first collective operation on tensors of
** a device.
*/
#ifndef cuda_nccl_nccl_library_h
#define cuda_nccl_nccl_library_h

#include "cuda/nccl/nccl_abi.h"

typedef struct Nccl {
  int number;                 /* 22809 is 2.28.9; 0: there is none */
#define X(name, symbol, params) int(*name) params;
  NCCL_FUNCTIONS(X)
  NCCL_NEWER(X)               /* NULL: it has none */
#undef X
} Nccl;

/* Looks for the library at its first call. */
const Nccl *nc_nccl(void);

/* The text of a result, and what NCCL last said of c, which may be NULL. */
const char *nc_nccl_text(Comm c, int result);

/* "NCCL 2.28.9 (path)", or the reason why it is not available; NULL: nobody has
   asked for it yet. */
const char *nc_nccl_info(void);

#endif
