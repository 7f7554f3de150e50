/* SPDX-License-Identifier: MIT */
/*
** element_draws.h - random numbers by rejection, on the host: each element has
** uniform numbers of its own.
*/
#ifndef core_ops_element_draws_h
#define core_ops_element_draws_h

#include "core/tensor.h"

typedef struct Uniforms { /* the uniform numbers of one element, two a block */
  uint64_t key, block;
  uint32_t retry, w[4];
  int used;
} Uniforms;

/* Returns the next uniform number, in [0, 1). */
double nc_next_uniform(Uniforms *u);

typedef struct ElementDraw {
  /* Fails, with the number i of the element, for parameters that no
     distribution has. */
  int (*check)(int64_t i, const double p[]);
  double (*draw)(const double p[], Uniforms *u);
} ElementDraw;

/* c->out[0] = numbers drawn by d with the first n arguments of c, which are
   tensors and broadcast, as parameters; of their dtype. Element i uses block i
   of the call (see philox.h) and as many retries of that block as it needs, so
   that the result does not depend on the number of threads. */
int nc_draw_elements(Call *c, int n, const ElementDraw *d);

#endif
