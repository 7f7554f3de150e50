/* SPDX-License-Identifier: MIT */
/*
** gather.cu - moves picked elements from a tensor, or into it.
**
** What is moved is cut in units of up to 16 bytes, as rows and their places
** allow.  Where two offsets are equal, any one of the elements that go there
** stays, each for itself: no order is kept, and nothing is locked.
*/
#include "flag.h"
#include "index.h"

#include <string.h>

#define THREADS 256
#define EACH 2                /* units of a thread, both on their way */
#define DIMS (NC_MAXDIM + 1)
#define MOST ((int64_t)1 << 30)         /* units of a launch */

typedef struct Moves {
  char *x, *other;
  const int64_t *offset;
  int64_t n, esize;           /* units; bytes of an element */
  int out, distinct;          /* from x to other? */
  int nd, picked;             /* dimensions, 0 the innermost; that of offsets */
  Divisor by[DIMS];
  int64_t size[DIMS], xstep[DIMS], ostep[DIMS];   /* in bytes */
} Moves;

/* Where unit i lies; 0 if its offset is that of a wrong index. */
NC_DEVICE int lies(const Moves &k, uint32_t i, char **x, char **other) {
  int64_t atx = 0, ato = 0;
  int good = 1;
  for (int d = 0; d < k.nd; d++) {
    uint32_t rest = 0, c = i;
    if (d + 1 < k.nd) {       /* the last one takes what is left */
      rest = nc_quotient(i, k.by[d]);
      c = i - rest * k.by[d].d;
    }
    if (d == k.picked) {
      const int64_t at = k.offset[c];
      if (at < 0) good = 0;
      else atx += at * k.esize;
    } else {
      atx += c * k.xstep[d];
    }
    ato += c * k.ostep[d];
    i = rest;
  }
  *x = k.x + atx;
  *other = k.other + ato;
  return good;
}

/* A kernel that moves units of type U. */
#define MOVE(name, U)                                                       \
  NC_KERNEL_OF(THREADS) name(const Moves k) {                               \
    const uint32_t first = blockIdx.x * blockDim.x * EACH + threadIdx.x;    \
    U v[EACH];                                                              \
    char *to[EACH];                                                         \
    NC_UNROLL for (int j = 0; j < EACH; j++) {                              \
      const uint32_t i = first + j * blockDim.x;                            \
      char *x, *o;                                                          \
      to[j] = NULL;                                                         \
      if (i >= k.n) continue;                                               \
      const int good = lies(k, i, &x, &o);                                  \
      memset(&v[j], 0, sizeof v[j]);                                        \
      if (good) v[j] = *(const U *)(k.out ? x : o);                         \
      if (good || k.out) to[j] = k.out ? o : x;                             \
    }                                                                       \
    NC_UNROLL for (int j = 0; j < EACH; j++) {                              \
      if (to[j] == NULL) continue;                                          \
      if (k.distinct) *(U *)to[j] = v[j];                                   \
      else NC_STORE_RELAXED((U *)to[j], v[j]);                              \
    }                                                                       \
  }
MOVE(move1, uint8_t)
MOVE(move2, uint16_t)
MOVE(move4, uint32_t)
MOVE(move8, uint2)
MOVE(move16, uint4)
#undef MOVE

/*
** How elements lie
*/
/* Adds the next inner dimension, joined with the last if both run evenly. */
static void addinner(Moves *k, int64_t size, int64_t stepx, int64_t stepo) {
  int last = k->nd - 1;
  if (size == 1) return;
  if (last >= 0 && last != k->picked && k->xstep[last] == stepx * size &&
      k->ostep[last] == stepo * size) {
    k->size[last] *= size;
  } else {
    last = k->nd++;
    k->size[last] = size;
  }
  k->xstep[last] = stepx;
  k->ostep[last] = stepo;
}

/* Adds the dimensions of x that are not picked from, of other from..to-1. */
static void addkept(Moves *k, const Gather *g, int *d, int from, int to) {
  for (int o = from; o < to; o++) {
    while (g->picked >> *d & 1) ++*d;
    addinner(k, g->other->size[o], g->x->step[*d] * k->esize,
             g->other->step[o] * k->esize);
    ++*d;
  }
}

/* The step of other over the picked dimensions, which lie evenly. */
static int64_t pickedstep(const Gather *g) {
  const Tensor *o = g->other;
  int last = -1;
  for (int d = g->at; d < g->at + g->offset->nd; d++)
    if (o->size[d] != 1) last = d;
  return last < 0 ? 0 : o->step[last];
}

/* The largest unit of which everything is a multiple; the last dimension is
   then counted in it. */
static int unit(Moves *k, const Gather *g) {
  const int last = k->nd - 1;
  uint64_t all = (uintptr_t)k->x | (uintptr_t)k->other;
  int64_t bytes = 16;
  if (last < 0 || last == k->picked || k->xstep[last] != k->esize ||
      k->ostep[last] != k->esize)
    return (int)k->esize;
  for (int d = 0; d < g->x->nd; d++)
    if (g->picked >> d & 1 && g->x->size[d] > 1)
      all |= (uint64_t)(g->x->step[d] * k->esize);
  for (int d = 0; d < last; d++)
    all |= (uint64_t)(d == k->picked ? 0 : k->xstep[d]) | (uint64_t)k->ostep[d];
  all |= (uint64_t)(k->size[last] * k->esize);
  while (bytes > k->esize && all % (uint64_t)bytes) bytes /= 2;
  k->size[last] = k->size[last] * k->esize / bytes;
  k->xstep[last] = k->ostep[last] = bytes;
  return (int)bytes;
}

static void swap(int64_t *a, int64_t *b) {
  const int64_t c = *a;
  *a = *b;
  *b = c;
}

/* Puts the innermost dimension first. */
static void turn(Moves *k) {
  for (int d = 0; d < k->nd / 2; d++) {
    const int e = k->nd - 1 - d;
    swap(&k->size[d], &k->size[e]);
    swap(&k->xstep[d], &k->xstep[e]);
    swap(&k->ostep[d], &k->ostep[e]);
  }
  k->picked = k->nd - 1 - k->picked;
}

/* Fills k; gives the bytes of a unit. */
static int plan(Moves *k, const Gather *g) {
  const int behind = g->at + g->offset->nd;
  int d = 0, bytes;
  k->x = (char *)nc_data(g->x);
  k->other = (char *)nc_data(g->other);
  k->offset = (const int64_t *)nc_data(g->offset);
  k->esize = nc_dtypesize(g->x->dtype);
  k->nd = 0;
  k->picked = -1;
  addkept(k, g, &d, 0, g->at);
  k->picked = k->nd++;
  k->size[k->picked] = nc_numel(g->offset);
  k->xstep[k->picked] = 0;
  k->ostep[k->picked] = pickedstep(g) * k->esize;
  addkept(k, g, &d, behind, g->other->nd);
  bytes = unit(k, g);
  turn(k);
  return bytes;
}

static cudaError_t launch(Moves *k, int bytes, cudaStream_t s) {
  unsigned grid, threads = 32;
  while (threads < THREADS && threads * (int64_t)EACH < k->n) threads *= 2;
  grid = (unsigned)((k->n + threads * EACH - 1) / (threads * EACH));
  for (int d = 0; d < k->nd; d++) k->by[d] = nc_divisor(k->size[d]);
  switch (bytes) {
    case 1: return NC_LAUNCH(move1, grid, threads, 0, s, *k);
    case 2: return NC_LAUNCH(move2, grid, threads, 0, s, *k);
    case 4: return NC_LAUNCH(move4, grid, threads, 0, s, *k);
    case 8: return NC_LAUNCH(move8, grid, threads, 0, s, *k);
    default: return NC_LAUNCH(move16, grid, threads, 0, s, *k);
  }
}

/* Kernels count in 32 bits: what is more is done by halves. */
static cudaError_t launchall(Moves *k, int bytes, cudaStream_t s) {
  int cut = 0;
  Moves half;
  cudaError_t e;
  k->n = 1;
  for (int d = 0; d < k->nd; d++) {
    k->n *= k->size[d];
    if (k->size[d] > k->size[cut]) cut = d;
  }
  if (k->n <= MOST) return launch(k, bytes, s);
  half = *k;
  half.size[cut] /= 2;
  e = launchall(&half, bytes, s);
  if (e != cudaSuccess) return e;
  half = *k;
  half.size[cut] -= k->size[cut] / 2;
  half.other += k->size[cut] / 2 * k->ostep[cut];
  if (cut == k->picked) half.offset += k->size[cut] / 2;
  else half.x += k->size[cut] / 2 * k->xstep[cut];
  return launchall(&half, bytes, s);
}

static int move(const Device *d, const Gather *g, int out) {
  const cudaStream_t s = nc_current(d);
  Moves k = {};
  int bytes;
  if (nc_numel(g->other) == 0 || nc_numel(g->x) == 0) return NC_OK;
  bytes = plan(&k, g);
  k.out = out;
  k.distinct = out || g->distinct;
  nc_touch(d, k.x);
  nc_touch(d, k.other);
  nc_touch(d, k.offset);
  CUDA_TRY(launchall(&k, bytes, s));
  return nc_launched(d, out ? "index" : "index assignment");
}

int nc_cuda_gather(const Device *d, const Gather *g) {
  return move(d, g, 1);
}

int nc_cuda_scatter(const Device *d, const Gather *g) {
  return move(d, g, 0);
}
