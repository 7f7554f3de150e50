/* SPDX-License-Identifier: MIT */
/*
** batch.h - functions that are mapped over samples (vmap): levels, and tensors
** that stand for a sample.
**
** Inside of a mapped function a tensor is one sample: it has the sizes of one
** sample, and holds the value of all of them, whose first dimension is the
** batch.  While a level is open, nc_call opens such tensors and makes the call
** on their values (core/batch/).
*/
#ifndef core_batch_h
#define core_batch_h

#include "core/tensor.h"

typedef enum BatchDraws {     /* what random numbers a level draws */
  BATCH_REFUSES, BATCH_SAME, BATCH_DIFFERENT
} BatchDraws;

#define NC_MAXLEVEL (NC_MAXDIM - 1)

typedef struct BatchLevel {
  struct BatchLevel *outer;
  int depth;                  /* from 1 */
  int64_t id;                 /* no other level has had it */
  int64_t n;                  /* samples */
  BatchDraws draws;
} BatchLevel;

/* Opens a level inside of those that are open; *depth is its number.  Levels
   are left in the reverse order. */
int nc_batch_enter(int *depth, int64_t n, BatchDraws draws);
void nc_batch_leave(void);

/* *y = a sample of `value', along whose first dimension are the samples of the
   level `depth'. */
int nc_batch_wrap(Tensor **y, Tensor *value, int depth);

/* Is t such a sample?  Then *value is the value of all (borrowed), and *depth
   that of its level, or 0 if the level was left. */
int nc_is_sample(const Tensor *t);
int nc_batch_open(Tensor **value, int *depth, const Tensor *t);

/* The device of the value of a sample on d; d itself if that is none. */
const Device *nc_outside(const Device *d);

/* Makes a call while a level is open (nc_call). */
int nc_batch_call(Call *c);

/* Fails: t is a sample, whose elements differ from sample to sample. */
int nc_batch_novalues(const Tensor *t);

#endif
