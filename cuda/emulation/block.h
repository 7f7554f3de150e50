/* SPDX-License-Identifier: MIT */
/*
** block.h - the block that runs, shared by block.c and warp.c.
*/
#ifndef cuda_emulation_block_h
#define cuda_emulation_block_h

#include "cuda/emulation/fiber.h"
#include "cuda/emulation/internal.h"

#define MAXTHREADS 1024

enum { NEW, RUNNING, AT_BARRIER, AT_WARP, DONE };

typedef struct Meeting {     /* lanes that wait for each other */
  unsigned mask, arrived;
  int kind;
} Meeting;

typedef struct Warp {
  unsigned present;          /* lanes that exist and have not ended */
  int meetings;
  Meeting meeting[32];
} Warp;

typedef struct Block {
  int n, started, done, current;
  int order[MAXTHREADS];     /* in which threads start */
  unsigned char state[MAXTHREADS];
  uint16_t epoch[MAXTHREADS];      /* of its warp, for the race detector */
  Fiber *fiber[MAXTHREADS];
  uint3 place[MAXTHREADS];
  uint64_t value[MAXTHREADS], result[MAXTHREADS];   /* of warp operations */
  int from[MAXTHREADS];
  int ready[MAXTHREADS], head, waiting;   /* a ring: may go on */
  Warp warp[MAXTHREADS / 32];
  struct {
    int arrived, line, site, trues;
    int result[4];           /* by EMU_SYNC ... EMU_OR */
    uint16_t epoch;
  } barrier;
} Block;
extern Block emu_block;

void emu_block_ready(int thread);    /* it may go on */
void emu_block_wait(int state);      /* the running thread waits */
void emu_block_yield(void);          /* others may go first */
void emu_warp_end(int thread);       /* a thread has ended */
/* Runs all blocks of a launch. */
void emu_block_run(const EmuLaunch *launch, const void *closure, size_t size);

#endif
