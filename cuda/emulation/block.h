/* SPDX-License-Identifier: MIT */
/*
** block.h - the state of the running block, for block.c and warp.c.
*/
#ifndef cuda_emulation_block_h
#define cuda_emulation_block_h

#include "cuda/emulation/fiber.h"
#include "cuda/emulation/internal.h"

#define MAXTHREADS 1024

enum { NEW, RUNNING, AT_BARRIER, AT_WARP, DONE };

typedef struct WarpOp {     /* a warp operation that waits for lanes */
  unsigned mask, arrived;
  int kind;
} WarpOp;

typedef struct Warp {
  unsigned present;          /* lanes that exist and have not exited */
  int pending_ops;
  WarpOp pending[32];
} Warp;

typedef struct Block {
  int n, started, done, current;
  int order[MAXTHREADS];     /* the order in which threads start */
  unsigned char state[MAXTHREADS];
  uint16_t epoch[MAXTHREADS];      /* counts __syncwarp, for races */
  Fiber *fiber[MAXTHREADS];
  uint3 place[MAXTHREADS];
  uint64_t value[MAXTHREADS], result[MAXTHREADS];   /* of warp operations */
  int from[MAXTHREADS];
  int ready[MAXTHREADS], head, waiting;   /* ring of runnable threads */
  Warp warp[MAXTHREADS / 32];
  struct {
    int arrived, line, site;
    int any, result;         /* predicates; of the last barrier */
    uint16_t epoch;          /* counts barriers, for races */
  } barrier;
} Block;
extern Block emu_block;

void emu_block_ready(int thread);    /* makes a thread runnable */
void emu_block_wait(int state);      /* suspends the running thread */
void emu_block_yield(void);          /* lets other threads run first */
void emu_warp_end(int thread);       /* a thread has exited */
/* Runs all blocks of a launch; called by the operation of the launch. */
void emu_block_run(const EmuLaunch *launch, const void *closure, size_t size);

#endif
