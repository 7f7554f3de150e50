/* SPDX-License-Identifier: MIT */
/*
** element_draws.c - random numbers by rejection, on the host.
*/
#include "core/ops/element_draws.h"
#include "core/base/philox.h"
#include "core/op.h"
#include "core/ops/random_fill.h"
#include "core/pointwise/temps.h"

enum { MOST = 2 }; /* parameters of a distribution */

double nc_next_uniform(Uniforms *u) {
  if (u->used == 4) {
    philox_block(u->w, u->key, u->block, u->retry++);
    u->used = 0;
  }
  u->used += 2;
  return philox_uniform2(u->w[u->used - 2], u->w[u->used - 1]);
}

typedef struct Fill {
  const ElementDraw *d;
  const double *of[MOST];
  int n;
  double *y;
  uint64_t key, block;
} Fill;

static void read_parameters(const Fill *f, int64_t i, double p[MOST]) {
  for (int k = 0; k < f->n; k++) p[k] = f->of[k][i];
}

static void draw(void *ctx, int64_t begin, int64_t end) {
  const Fill *f = ctx;
  for (int64_t i = begin; i < end && !nc_interrupted; i++) {
    Uniforms u = { .key = f->key, .block = f->block + (uint64_t)i, .used = 4 };
    double p[MOST];
    read_parameters(f, i, p);
    f->y[i] = f->d->draw(p, &u);
  }
}

static int fill(Fill *f, int64_t n, Generator *g) {
  if (g == NULL) g = &nc_context->generator;
  for (int64_t i = 0; i < n; i++) {
    double p[MOST];
    read_parameters(f, i, p);
    TRY(f->d->check(i, p));
  }
  f->key = nc_initialseed(g);
  f->block = nc_takeblocks(g, (uint64_t)n);
  return nc_parallel(n, 1024, draw, f);
}

int nc_draw_elements(Call *c, int n, const ElementDraw *d) {
  const Tensor *x = c->arg[0].t;
  int64_t size[NC_MAXDIM];
  Fill f = { .d = d, .n = n };
  Temps w = { 0 };
  Tensor *y;
  int nd;
  if (nc_device(x) != &nc_cpu) return nc_run_on_host(c, nc_device(x));
  for (int k = 0; k < n; k++) TRY(nc_check_float(c->arg[k].t->dtype));
  TRY(nc_broadcast(c->arg, n, &nd, size));
  for (int k = 0; k < n; k++) {
    Tensor *p = nc_temps_cast(&w, c->arg[k].t, DT_f64);
    p = nc_temps_dense(&w, nc_temps_expand(&w, p, nd, size));
    if (w.status == NC_OK) f.of[k] = nc_data(p);
  }
  y = nc_temps_new(&w, x, DT_f64, nd, size);
  if (w.status == NC_OK) {
    f.y = nc_data(y);
    w.status = fill(&f, nc_numel(y), nc_generatorof(c));
  }
  return nc_temps_endcall(&w, c,
                          nc_temps_cast(&w, y, nc_resulttype(c->arg, n)));
}
