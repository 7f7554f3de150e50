/* SPDX-License-Identifier: MIT */
/* attention.h - what attention.c has of attention_blocks.c. */
#ifndef core_ops_attention_h
#define core_ops_attention_h

#include "core/pointwise/temps.h"

enum { QUERY, KEY, VALUE, MASK, CAUSAL, SCALE };

/* Operands in the type of the computation: q [... x n x e], k [... x m x e], v
   [... x m x v] and the mask [... x n x m] or NULL, with the same leading
   sizes. */
typedef struct Operands {
  Tensor *t[4];
  int causal;
  double scale;
} Operands;

extern int64_t nc_attention_block_bytes; /* of scores, about; tests change it */

/* What scores are computed from: float16 as float32, whose range they need. */
Tensor *nc_attention_wide(Temps *w, Tensor *t);

/* s [.. x n x m], whose rows are queries from `first' (0-based) on, with -inf
   where a key is a later one. */
Tensor *nc_attention_causal(Temps *w, Tensor *s, int64_t first);

/* The weights, of this type, from scores; 0 for a query that sees no key. */
Tensor *nc_attention_softmax(Temps *w, Tensor *s, DType type);

/* Attention by operations, a part of the scores at a time: y, of the type of
   the operands; and the gradients that `need' names, in to[QUERY..VALUE], of y
   and its gradient g. */
Tensor *nc_attention_blocks(Temps *w, const Operands *o);
void nc_attention_blocks_grad(Temps *w, const Operands *o, Tensor *y, Tensor *g,
                              const int need[3], Tensor *to[3]);

#endif
