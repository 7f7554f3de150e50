/* SPDX-License-Identifier: MIT */
/*
** nccl_comm.h - what nccl.c (communicators, the API) and nccl_exchange.c (the
** operations) share.  Ranks are processes of this machine, or of one process,
** and meet in memory that is mapped from a file, which the unique id names.
*/
#ifndef cuda_emulation_nccl_comm_h
#define cuda_emulation_nccl_comm_h

#include <stdatomic.h>

#include "cuda/emulation/internal.h"
#include "cuda/emulation/libraries/nccl.h"

enum {
  NCCL_RANKS = 8,             /* at most */
  NCCL_ROOM = 1 << 16,        /* bytes that a rank shows in a round */
  NCCL_PIPE = 1 << 14         /* bytes on their way from a rank to another */
};

/* Of a rank.  All ranks take part in each round of a communicator: they show
   bytes, and read those of the others before the next round. */
typedef struct Slot {
  _Atomic uint64_t written, read;   /* rounds */
  uint64_t sign;              /* of the operation that the round is of */
  int device;
  _Atomic unsigned splits;    /* that this rank has asked for */
  int color[2], key[2];       /* of split k, at k % 2 */
  _Alignas(16) char data[NCCL_ROOM];
} Slot;

typedef struct Pipe {
  _Atomic uint64_t written, read;   /* pieces */
  size_t n;                   /* bytes of the piece that is in it */
  char data[NCCL_PIPE];
} Pipe;

typedef struct Shared {
  _Atomic int here, aborted;
  Slot slot[NCCL_RANKS];
  Pipe pipe[NCCL_RANKS][NCCL_RANKS];          /* from, to */
} Shared;

struct ncclComm {
  Shared *s;
  int rank, n, device;
  int aborted, finalized, refused;
  int refs;                   /* the user's, and one for each operation */
  int calls;
  uint64_t round;
  unsigned splits;            /* that are done */
  ncclComm_t *part;           /* of the split under way; else NULL */
  Op *held;                   /* not in its stream yet */
  cudaStream_t stream;        /* where it goes */
  char path[NCCL_UNIQUE_ID_BYTES];
};

typedef enum ExchangeKind {
  EX_ALL_REDUCE, EX_REDUCE, EX_BROADCAST, EX_ALL_GATHER, EX_REDUCE_SCATTER
} ExchangeKind;

typedef struct Exchange {
  ncclComm_t c;
  ExchangeKind kind;
  const char *in;
  char *out;
  size_t count;               /* of a block */
  ncclDataType_t type;
  ncclRedOp_t op;
  int root;
  size_t at;                  /* bytes that are done */
  int shown;
} Exchange;

typedef struct Transfer {     /* a send or recv of a group */
  char *p;
  size_t n, at;
  int peer, issend;
} Transfer;

typedef struct Group {
  ncclComm_t c;
  int n;
  Transfer t[];
} Group;

size_t emu_nccl_size(ncclDataType_t t);
/* The polls of the operations of streams. */
int emu_nccl_exchange(void *exchange);
int emu_nccl_group(void *group);
void emu_nccl_release(ncclComm_t c);          /* one of its references */

#endif
