/* SPDX-License-Identifier: MIT */
/*
** conform_nccl.c - holds the emulated NCCL against NVIDIA's nccl.h, as does
** conform.c for the runtime.  Ours is a shorter configuration, known as such by
** its size; the fields that are there lie where NVIDIA's do.
*/
#include <stddef.h>

#include <nccl.h>

#include "cuda/emulation/libraries/nccl.inc"

#define VALUE(name, value) _Static_assert((int)name == value, #name);
#include "cuda/emulation/libraries/nccl.def"

/* What nccl.h of the emulation writes out by itself. */
typedef struct Config {
  size_t size;
  unsigned magic, version;
  int blocking;
  int cgaClusterSize, minCTAs, maxCTAs;
  const char *netName;
  int splitShare;
} Config;

#define PLACE(field)                                                       \
  _Static_assert(offsetof(Config, field) == offsetof(ncclConfig_t, field), \
                 #field);
PLACE(size)
PLACE(magic)
PLACE(version)
PLACE(blocking)
PLACE(cgaClusterSize)
PLACE(minCTAs)
PLACE(maxCTAs)
PLACE(netName)
PLACE(splitShare)
_Static_assert(sizeof(Config) <= sizeof(ncclConfig_t), "an older one");
_Static_assert(sizeof(ncclUniqueId) == 128, "of ids");
_Static_assert(NCCL_SPLIT_NOCOLOR == -1, "no part");
_Static_assert(NCCL_CONFIG_UNDEF_INT == INT_MIN, "not given");

const ncclConfig_t usual_nccl_config;
const ncclConfig_t usual_nccl_config = NCCL_CONFIG_INITIALIZER;
_Static_assert(NCCL_VERSION(2, 17, 3) == 21703, "how versions are written");
