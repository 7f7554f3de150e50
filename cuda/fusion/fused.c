/* SPDX-License-Identifier: MIT */
/*
** fused.c - the requests fused and fused_ready: a part of a fused function as
** one kernel, once its text is compiled.
**
** The text does not depend on the layout of tensors: it has a kernel for
** vectors of 16 bytes and one for single elements, and both take strides.
*/
#include <stdlib.h>
#include <string.h>

#include "core/pointwise/scalar.h"
#include "cuda/blocks.h"
#include "cuda/cuda.h"
#include "cuda/fusion/fused_args.h"
#include "cuda/fusion/fused_text.h"
#include "cuda/fusion/nvrtc.h"
#include "cuda/fusion/programs.h"
#include "cuda/pointwise/pointwise.h"

#define MOST ((int64_t)1 << 31)
#define PARAMETERS 4096 /* bytes of a kernel's parameters */
#define TENSORS (2 * NC_FUSED_TENSORS)
#define WAVES 32 /* blocks for a multiprocessor */

/* What is known of a code: its program, and how the kernels are called. */
typedef struct Known {
  uint64_t id;
  int capability;
  FusedProgram *program;
  FusedText plan; /* without its text */
} Known;

enum { LINES = 1, ONE = 2 };

static Known *known[512]; /* by the id of the code; a new one replaces */

/*
** Programs of codes
*/
static size_t argument_bytes(int tensors, int numbers) {
  return sizeof(FusedLayout) + 8 * (size_t)(numbers > 0 ? numbers : 1) +
         4 * NC_MAXDIM * (size_t)tensors;
}

static void forget(Known *k) {
  if (k == NULL) return;
  nc_fused_text_free(&k->plan);
  free(k);
}

/* NULL: there is no memory, or too much to give a kernel. */
static Known *new_known(const Device *d, const FusedCode *code) {
  const int tensors = code->noperands + code->nresults;
  Known *k = calloc(1, sizeof *k);
  if (k == NULL) return NULL;
  k->id = code->id;
  k->capability = nc_capability(d);
  if (!nc_nvrtc_open()) return k;
  if (nc_fused_text(&k->plan, code, nc_opinfo) != NC_OK ||
      argument_bytes(tensors, k->plan.numbers) + 8 * (size_t)tensors >
          PARAMETERS) {
    forget(k);
    return NULL;
  }
  k->program = nc_fused_program(k->plan.text, k->capability);
  free(k->plan.text);
  k->plan.text = NULL;
  return k;
}

static Known *find(const Device *d, const FusedCode *code) {
  Known **k = &known[code->id % (sizeof known / sizeof *known)];
  const int capability = nc_capability(d);
  if (*k && (*k)->id == code->id && (*k)->capability == capability) return *k;
  forget(*k);
  return *k = new_known(d, code);
}

int nc_cuda_fused_ready(const Device *d, const FusedReadyCall *c) {
  const Known *k = find(d, c->code);
  *c->ready = k != NULL && k->program != NULL &&
              nc_fused_kernels(k->program, d) != NULL;
  return NC_OK;
}

void nc_fused_forget(void) {
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    forget(known[i]);
    known[i] = NULL;
  }
}

/*
** The loop over the elements
*/
/* The dimensions in the order in which elements lie, the innermost first, and
   the strides of all tensors in elements. */
typedef struct Loop {
  const Device *d;
  const FusedCall *call;
  const Known *known;
  int ntensors, nd;
  int64_t n, first; /* elements, and those before them */
  int64_t size[NC_MAXDIM];
  int64_t step[TENSORS][NC_MAXDIM];
  char *p[TENSORS];
  DType type[TENSORS];
  char of_lines[TENSORS]; /* it has an element for each line, LINES, or one for
                             all, ONE */
} Loop;

static const Tensor *tensor_of(const FusedCall *c, int j) {
  return j < c->code->noperands ? c->operand[j]
                                : c->result[j - c->code->noperands];
}

static int is_dense(const Tensor *t) {
  int64_t n = 1;
  for (int d = t->nd; d-- > 0; n *= t->size[d])
    if (t->size[d] != 1 && t->step[d] != n) return 0;
  return 1;
}

static int is_one(const Tensor *t) {
  int one = 1;
  for (int d = 0; d < t->nd; d++) one &= t->size[d] == 1 || t->step[d] == 0;
  return one;
}

/* The stride of tensor t along a dimension of the model, to which it
   broadcasts; or both lie row by row, with as many elements. */
static int64_t stride_along(const Tensor *t, const Tensor *model, int dim) {
  const int own = dim - model->nd + t->nd;
  if (nc_numel(t) == nc_numel(model) && is_dense(t) && is_dense(model))
    return model->step[dim];
  return own < 0 || t->size[own] == 1 ? 0 : t->step[own];
}

/* Dimension `dim' of the model becomes the next of the loop, unless it and the
   one before are one for all tensors. */
static void add_dim(Loop *l, int dim) {
  const Tensor *m = l->call->model;
  const int at = l->nd, before = at - 1;
  int joined = at > 0;
  l->size[at] = m->size[dim];
  for (int j = 0; j < l->ntensors; j++) {
    l->step[j][at] =
        l->of_lines[j] ? 0 : stride_along(tensor_of(l->call, j), m, dim);
    if (joined && !l->of_lines[j])
      joined = l->step[j][at] == l->step[j][before] * l->size[before];
  }
  if (!joined) l->nd++;
  else l->size[before] *= m->size[dim];
}

static void set_loop(Loop *l, const Device *d, const FusedCall *c,
                     const Known *k) {
  const Tensor *m = c->model;
  int order[NC_MAXDIM], n = 0;
  memset(l, 0, sizeof *l);
  l->d = d;
  l->call = c;
  l->known = k;
  l->ntensors = c->code->noperands + c->code->nresults;
  l->n = nc_numel(m);
  for (int r = 0; r < c->code->nregs; r++) {
    const FusedReg *g = &c->code->reg[r];
    if (!g->of_lines) continue;
    if (g->kind == FUSED_OPERAND)
      l->of_lines[g->index] = is_one(c->operand[g->index]) ? ONE : LINES;
    else if (g->result >= 0)
      l->of_lines[c->code->noperands + g->result] = LINES;
  }
  for (int j = 0; j < l->ntensors; j++) {
    l->p[j] = nc_data(tensor_of(c, j));
    l->type[j] = tensor_of(c, j)->dtype;
  }
  for (int i = m->nd - 1; i >= 0; i--) {
    int at = n;
    if (m->size[i] == 1) continue;
    for (; at > 0 && m->step[order[at - 1]] > m->step[i]; at--)
      order[at] = order[at - 1];
    order[at] = i;
    n++;
  }
  for (int i = 0; i < n; i++) add_dim(l, order[i]);
}

/*
** The layout
*/
/* Is every element of tensor j where the loop counts it (1), or one and the
   same (2)?  0: neither. */
static int flatness(const Loop *l, int j) {
  int64_t n = 1;
  int flat = 1, still = 1;
  for (int i = 0; i < l->nd; n *= l->size[i++]) {
    flat &= l->step[j][i] == n;
    still &= l->step[j][i] == 0;
  }
  return still ? 2 : flat;
}

/* Can tensor j be read in vectors of `width' elements? */
static int is_vectored(const Loop *l, int j, int width) {
  const int64_t bytes = width * nc_dtypesize(l->type[j]);
  const uintptr_t aligned = bytes < NC_VECTOR ? (uintptr_t)bytes : NC_VECTOR;
  const int flat = flatness(l, j);
  if (l->of_lines[j] || flat == 2) return 1;
  if (flat == 1) return (uintptr_t)l->p[j] % aligned == 0;
  if (l->step[j][0] > 1 || l->size[0] % width != 0) return 0;
  if (l->step[j][0] == 0) return 1;
  for (int i = 1; i < l->nd; i++)
    if (l->step[j][i] % width != 0) return 0;
  return (uintptr_t)l->p[j] % aligned == 0;
}

/* The elements of a vector: 1 if not all tensors can be read in vectors. */
static int choose_width(const Loop *l) {
  const int width = l->known->plan.width;
  for (int j = 0; j < l->ntensors; j++)
    if (!width || !is_vectored(l, j, width)) return 1;
  return width;
}

static void set_layout(FusedLayout *a, uint32_t step[][NC_MAXDIM],
                       const Loop *l, int width) {
  const int line = l->call->code->line;
  int strided = 0;
  for (int j = 0; j < l->ntensors; j++) {
    const int flat = flatness(l, j);
    if (flat) a->flat |= (uint64_t)1 << j;
    if (l->of_lines[j] ? l->of_lines[j] == ONE
                       : flat == 2 || (!flat && l->step[j][0] == 0))
      a->still |= (uint64_t)1 << j;
    strided |= !flat && !l->of_lines[j];
    for (int i = 0; i < l->nd; i++) step[j][i] = (uint32_t)l->step[j][i];
    step[j][0] = (uint32_t)(l->step[j][0] * width);
  }
  a->first = (uint64_t)l->first;
  a->n = (uint32_t)(line ? l->n / line : l->n / width);
  a->tail = line ? 0 : (uint32_t)(l->n % width);
  a->nd = strided ? l->nd : 0;
  for (int i = 0; i < a->nd; i++)
    a->size[i] = nc_divisor(i ? l->size[i] : l->size[0] / width);
}

/*
** Launching
*/
/* The bits of the numbers, each in the type that it is computed in. */
static void set_numbers(uint64_t bits[], const Loop *l) {
  const FusedCode *code = l->call->code;
  const FusedText *t = &l->known->plan;
  for (int r = 0; r < code->nregs; r++) {
    const FusedReg *g = &code->reg[r];
    Scalar v;
    if (g->kind != FUSED_NUMBER) continue;
    v = l->call->number[g->index];
    if (nc_compute_type(g->type) == DT_f32 || g->type == DT_f64)
      bits[g->index] =
          nc_parameterbits(nc_tofloat(v), nc_compute_type(g->type));
    else bits[g->index] = (uint64_t)v.i;
  }
  for (int i = 0; i < code->nsteps; i++) {
    const FusedStep *s = &code->step[i];
    const int k = (int)s->par[0];
    if (s->along != FUSED_RAND && s->along != FUSED_RANDN) continue;
    bits[code->nnumbers + 2 * k] = l->call->draw[k].key;
    bits[code->nnumbers + 2 * k + 1] = l->call->draw[k].block;
  }
  for (int i = 0; i < t->nmore; i++)
    bits[code->nnumbers + 2 * t->draws + i] =
        nc_parameterbits(t->more[i].v, nc_compute_type(t->more[i].type));
}

static unsigned block_count(const Loop *l, const FusedLayout *a, int width) {
  const int64_t most = (int64_t)nc_multiprocessors(l->d) * WAVES;
  const FusedLine *line = &l->known->plan.line[width == 1];
  const int64_t items = a->n > a->tail ? a->n : a->tail;
  const int64_t each =
      l->call->code->line ? (int64_t)line->lines : NC_FUSED_BLOCK;
  return (unsigned)min64(ceil_div(items, each), most);
}

static int launch(const Loop *l) {
  _Alignas(8) char args[PARAMETERS];
  const int width = choose_width(l), numbers = l->known->plan.numbers;
  const Kernel *kernels = nc_fused_kernels(l->known->program, l->d);
  const cudaStream_t s = nc_current_stream(l->d);
  const unsigned block[3] = { NC_FUSED_BLOCK, 1, 1 };
  unsigned grid[3] = { 1, 1, 1 };
  void *parameter[TENSORS + 1];
  FusedLayout *a = (FusedLayout *)(void *)args;
  uint64_t *bits = (uint64_t *)(void *)(args + sizeof *a);
  memset(args, 0, argument_bytes(l->ntensors, numbers));
  set_numbers(bits, l);
  set_layout(a, (uint32_t(*)[NC_MAXDIM])(void *)(bits + max64(numbers, 1)), l,
             width);
  for (int j = 0; j < l->ntensors; j++) {
    nc_record_use(l->d, l->p[j]);
    parameter[j] = (void *)&l->p[j];
  }
  parameter[l->ntensors] = args;
  grid[0] = block_count(l, a, width);
  nc_cuda_counters.fused++;
  TRY(nc_launch_kernel(kernels[width == 1], grid, block, 0, s, parameter));
  return nc_check_launch(l->d, "fused");
}

static int fits(const Loop *l) {
  return l->nd == 0 || nc_fitsoffsets(l->nd, l->size, l->ntensors,
                                      (const int64_t(*)[NC_MAXDIM])l->step);
}

/* The elements first .. first+n-1 of the outermost dimension. */
static Loop part_of(const Loop *l, int64_t first, int64_t n) {
  const int at = l->nd - 1;
  const int line = l->call->code->line;
  Loop p = *l;
  p.n = l->n / l->size[at] * n;
  p.first += l->n / l->size[at] * first;
  p.size[at] = n;
  for (int j = 0; j < l->ntensors; j++) {
    const int64_t elements = l->of_lines[j] == ONE ? 0
                             : l->of_lines[j] == LINES
                                 ? l->n / l->size[at] * first / line
                                 : first * l->step[j][at];
    p.p[j] = l->p[j] + elements * nc_dtypesize(l->type[j]);
  }
  if (n == 1) p.nd--;
  return p;
}

/* Cuts the loop in halves until 32 bits hold its offsets.  A line is never cut,
   and vectors stay aligned. */
static int run(const Loop *l) {
  const int line = l->call->code->line;
  int64_t half, unit = 1;
  Loop p;
  if (fits(l)) return launch(l);
  if (l->nd == 1) unit = line ? line : 64;
  half = l->size[l->nd - 1] / 2 / unit * unit;
  if (half == 0 && l->nd == 1)
    return nc_fail(NC_EDEVICE, "the strides of an operand are too large");
  if (half == 0) half = 1;
  p = part_of(l, 0, half);
  TRY(run(&p));
  if (half == l->size[l->nd - 1]) return NC_OK;
  p = part_of(l, half, l->size[l->nd - 1] - half);
  return run(&p);
}

int nc_cuda_fused(const Device *d, const FusedCall *c) {
  const Known *k = find(d, c->code);
  Loop l;
  if (k == NULL || k->program == NULL ||
      nc_fused_kernels(k->program, d) == NULL)
    return nc_fail(NC_EDEVICE, "the kernel is not compiled");
  set_loop(&l, d, c, k);
  return run(&l);
}
