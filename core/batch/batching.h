/* SPDX-License-Identifier: MIT */
/*
** batching.h - what the files of core/batch share: a call on samples, which
** becomes a call on the values of all samples.
*/
#ifndef core_batch_batching_h
#define core_batch_batching_h

#include "core/batch.h"
#include "core/op.h"
#include "core/pointwise/temps.h"

typedef struct Batching {
  const BatchLevel *level;    /* the highest among the operands */
  Call *c;                    /* the call as it was made */
  int mapped;                 /* is an operand a sample? */
  int by_sample;              /* a rule sets it: make the call once for each
                                 sample instead */
  Temps w;                    /* of the rule */
} Batching;

/* A rule makes the call on values and sets the results of b->c. */
typedef int (*BatchRule)(Batching *b);

/* The value of t, of all samples, if t is a sample of the level; else NULL. */
Tensor *nc_batch_value(const Batching *b, const Tensor *t);

/* Returns NC_OK; the call is to be made once for each sample. */
int nc_batch_loop(Batching *b);
int nc_batch_samples(Batching *b);    /* makes it so (batch_samples.c) */

/* *y = t as a sample of the level, of which it is the value. */
int nc_batch_result(const Batching *b, Tensor **y, Tensor *value);

/* Makes the call `low' on values.  Its results become those of b->c. */
int nc_batch_run(Batching *b, Call *low);
/* The same for a rule that has computed the one result itself, NULL after a
   failure. */
int nc_batch_end(Batching *b, Tensor *value);

/* The value of t; of what is the same for all samples, t repeated (a view). */
Tensor *nc_batch_expanded(Batching *b, Tensor *t);
/* The value of t with dimensions of size 1 behind the batch until a sample has
   nd dimensions; t itself if it is the same for all samples. */
Tensor *nc_batch_aligned(Batching *b, Tensor *t, int nd);
/* to[] = n, the batch, and the sizes of a sample. */
int nc_batch_sizes(int64_t to[NC_MAXDIM], int64_t n, int nd,
                   const int64_t size[]);

/* Fails: the operation cannot be mapped, for this reason. */
int nc_batch_refuse(const char *why, const char *hint);

/* Rules of kinds of calls (batch_kinds.c) and of operators. */
BatchRule nc_batch_rule(const Call *c);
BatchRule nc_operator_rule(int op);                    /* NULL: none */
int nc_batch_pointwise(Batching *b);                   /* operands broadcast */
int nc_batch_max(Batching *b), nc_batch_squeeze(Batching *b);
int nc_batch_unsqueeze(Batching *b), nc_batch_reshape(Batching *b);
int nc_batch_expand(Batching *b), nc_batch_permute(Batching *b);
int nc_batch_flip(Batching *b), nc_batch_tile(Batching *b);
int nc_batch_transpose(Batching *b), nc_batch_new(Batching *b);
int nc_batch_shift(Batching *b);
int nc_batch_product(Batching *b), nc_batch_linear(Batching *b);
int nc_batch_addmm(Batching *b), nc_batch_outer(Batching *b);
/* *y = x times the transpose of weight, both values; returns 0 if weight is not
   one matrix that is repeated and recorded (batch_shared.c). */
int nc_batch_shared(Batching *b, Tensor **y, Tensor *x, Tensor *weight);
int nc_batch_join(Batching *b), nc_batch_gather(Batching *b);
int nc_batch_index_select(Batching *b), nc_batch_conv(Batching *b);
int nc_batch_fold(Batching *b), nc_batch_norm(Batching *b);
int nc_batch_class_loss(Batching *b);
int nc_batch_is_draw(const Call *c);
int nc_batch_draw(Batching *b);

#endif
