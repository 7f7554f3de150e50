/* SPDX-License-Identifier: MIT */
/*
** warp.c - warp operations.  The lanes of the mask wait for each other; the
** last one to arrive computes the results of all and continues.
*/
#include "cuda/emulation/block.h"

static const char *names[] = { "__syncwarp",       "__shfl_sync",
                               "__shfl_down_sync", "__shfl_up_sync",
                               "__shfl_xor_sync",  "__ballot_sync" };

int emu_lane(void) {
  return emu_block.current & 31;
}

/* Reports why a mask is invalid. */
static void report_bad_mask(unsigned mask, const char *what) {
  const Block *b = &emu_block;
  const int lane = b->current & 31, first = b->current - lane;
  if (!(mask >> lane & 1))
    emu_report("bad warp mask",
               "%s: the calling lane %d is not in the mask "
               "0x%08x",
               what, lane, mask);
  for (int l = 0; l < 32; l++) {
    if (!(mask >> l & 1)) continue;
    if (first + l >= b->n)
      emu_report("bad warp mask",
                 "%s: mask 0x%08x names lane %d, but the "
                 "block has only %d threads",
                 what, mask, l, b->n);
    if (b->state[first + l] == DONE)
      emu_report("bad warp mask",
                 "%s: mask 0x%08x names lane %d, which has "
                 "ended",
                 what, mask, l);
  }
}

void emu_warp_end(int t) {
  Warp *w = &emu_block.warp[t / 32];
  const unsigned bit = 1u << (t & 31);
  for (int i = 0; i < w->pending_ops; i++)
    if (w->pending[i].mask & bit)
      emu_report("bad warp mask",
                 "lane %d ends while lanes 0x%08x wait in %s "
                 "whose mask 0x%08x names it",
                 t & 31, w->pending[i].arrived, names[w->pending[i].kind],
                 w->pending[i].mask);
  w->present &= ~bit;
}

/* The pending operation with this mask and kind, or a new one. */
static WarpOp *pending_op(Warp *w, unsigned mask, int kind) {
  WarpOp *m = w->pending;
  while (m < w->pending + w->pending_ops &&
         (m->mask != mask || m->kind != kind))
    m++;
  if (m == w->pending + w->pending_ops) {
    m->mask = mask;
    m->kind = kind;
    m->arrived = 0;
    w->pending_ops++;
  }
  return m;
}

static void shuffle(unsigned mask, int first) {
  Block *b = &emu_block;
  for (unsigned m = mask; m; m &= m - 1) {
    int t = first + __builtin_ctz(m);
    b->result[t] = b->value[first + b->from[t]];
  }
}

static void ballot(unsigned mask, int first) {
  Block *b = &emu_block;
  uint64_t votes = 0;
  for (unsigned m = mask; m; m &= m - 1)
    votes |= b->value[first + __builtin_ctz(m)] << __builtin_ctz(m);
  for (unsigned m = mask; m; m &= m - 1)
    b->result[first + __builtin_ctz(m)] = votes;
}

/* Starts a new epoch: __syncwarp, unlike the other operations, orders memory
   accesses among the lanes. */
static void start_epoch(unsigned mask, int first) {
  Block *b = &emu_block;
  uint16_t last = 0;
  for (unsigned m = mask; m; m &= m - 1) {
    int t = first + __builtin_ctz(m);
    if (b->epoch[t] > last) last = b->epoch[t];
  }
  for (unsigned m = mask; m; m &= m - 1)
    b->epoch[first + __builtin_ctz(m)] = (uint16_t)(last + 1);
}

/* All lanes have arrived: computes the results and releases the others. */
static void complete(unsigned mask, int kind, int me) {
  Block *b = &emu_block;
  const int first = me & ~31;
  if (kind == EMU_SYNCWARP) start_epoch(mask, first);
  else if (kind == EMU_BALLOT) ballot(mask, first);
  else shuffle(mask, first);
  for (unsigned m = mask; m; m &= m - 1) {
    int t = first + __builtin_ctz(m);
    if (t != me) emu_block_ready(t);
  }
  if (kind == EMU_SYNCWARP && emu_settings.order == EMU_RANDOM)
    emu_block_yield();
  b->state[me] = RUNNING;
  emu_view.warp = b->epoch[me];
}

uint64_t emu_warp(unsigned mask, int kind, uint64_t value, int from) {
  Block *b = &emu_block;
  const int me = b->current;
  const unsigned bit = 1u << (me & 31);
  Warp *w = &b->warp[me / 32];
  WarpOp *m;
  emu_quiet++;
  if ((mask & w->present) != mask || !(mask & bit))
    report_bad_mask(mask, names[kind]);
  if (from < 0 || from > 31 || !(mask >> from & 1))
    emu_report("bad warp mask",
               "%s reads lane %d, which is not in the mask "
               "0x%08x",
               names[kind], from, mask);
  b->value[me] = value;
  b->from[me] = from;
  m = pending_op(w, mask, kind);
  m->arrived |= bit;
  if (m->arrived != mask) {
    emu_block_wait(AT_WARP);
  } else {
    *m = w->pending[--w->pending_ops];
    complete(mask, kind, me);
  }
  emu_quiet--;
  return b->result[me];
}
