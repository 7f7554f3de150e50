/* SPDX-License-Identifier: MIT */
/*
** nccl.h - the part of NCCL that the emulated device implements, for C and C++;
** it replaces <nccl.h>.  emu_nccl (emulation.h) looks up its functions by name,
** as dlsym does in the real library.
*/
#ifndef cuda_emulation_nccl_h
#define cuda_emulation_nccl_h

#include "cuda/emulation/runtime.h"

#define ENUM(tag)           typedef enum {
#define VALUE(name, value)  name = value,
#define END(tag)            tag##_limit_ = 1000 /* ends the list */ } tag;
#include "cuda/emulation/libraries/nccl.def"

typedef struct ncclComm *ncclComm_t;

#define NCCL_UNIQUE_ID_BYTES 128
#define NCCL_SPLIT_NOCOLOR -1
typedef struct { char internal[NCCL_UNIQUE_ID_BYTES]; } ncclUniqueId;

/* As NCCL 2.17 had it: what came later is behind this, and `size' and `version'
   tell a later one that it is not there. */
typedef struct ncclConfig {
  size_t size;
  unsigned magic, version;
  int blocking;
  int cgaClusterSize, minCTAs, maxCTAs;
  const char *netName;
  int splitShare;
} ncclConfig_t;

#ifdef __cplusplus
extern "C" {
#endif
#include "cuda/emulation/libraries/nccl.inc"
#ifdef __cplusplus
}
#endif

#endif
