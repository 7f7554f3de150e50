/* SPDX-License-Identifier: MIT */
/*
** sort.h - sorting along a dimension, for sort.c, which plans it, and for the
** kernels.
**
** Lines lie one behind the other.  Elements are moved as they are; what is
** compared is a key made of their bits, an unsigned integer in whose order
** they are sorted: nan last, -0 as 0.  Equal keys keep their order, always.
**
** Short lines are sorted by a block in shared memory.  Long ones are sorted
** by their digits of 8 bits, the last first: spans of a line count their
** digits, the counts are added up, and each span puts its elements where they
** belong.  Of the few first elements of a long line, or of any one rank, only
** the key is looked for, by digits from the highest on; what lies before it
** is then a short line.
*/
#ifndef sort_cuda_h
#define sort_cuda_h

#include "cuda.h"
#include "dims.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SORT_THREADS 256      /* of a block, but for short lines */
#define SORT_DIGITS 256
#define SORT_FINDBITS 11      /* of a digit when a rank is looked for */
#define SORT_BINS (1 << SORT_FINDBITS)

/* Elements of the longest short line, by the bits of an element. */
#define nc_shortline(bits) ((bits) == 64 ? 2048 : 4096)

/* Elements a block takes at a time, of a long line. */
#define nc_sorttile(bits) ((bits) == 64 ? 2048 : 4096)

/* What makes keys of elements: the bits of sign and infinity (0 where there
   is none), and those to be turned round for a descending order. */
typedef struct Order {
  uint64_t sign, inf, flip;
} Order;

typedef struct SortLines {
  Order order;
  int bits;                   /* of an element */
  const void *x;
  const uint32_t *from;       /* where elements of x come from; NULL: x */
  int64_t lines;
  uint32_t n, first, keep;    /* elements of a line; the ranks wanted */
  void *y;                    /* lines of keep; may be NULL */
  int64_t *at;                /* positions, from 1 */
  /* Of long lines: */
  int spans;                  /* of a line, */
  uint32_t span;              /* of so many elements, whole tiles */
  uint32_t *count;            /* a line's counters, each for all spans */
  uint32_t *total;            /* their sums */
  void *raw[2];               /* elements and positions between passes */
  uint32_t *pos[2];
  unsigned long long *varies; /* bits in which keys differ; NULL: all */
  int shift;                  /* of the digit at work */
  int last;                   /* is it the last one? */
  /* Of a search for the element of rank first+keep-1: */
  uint64_t *key;              /* of each line: the digits found, */
  uint32_t *left;             /* and the rank among those that have them */
  uint32_t *bin;              /* SORT_BINS of each line */
  int digit;                  /* bits of the digit at work */
} SortLines;

cudaError_t nc_sortshort(const SortLines *k, cudaStream_t s);

/* *k->varies, which is 0, becomes what it says. */
cudaError_t nc_sortvaries(const SortLines *k, cudaStream_t s);
/* One digit: from where the elements lie to where they lie next. */
cudaError_t nc_sortpass(const SortLines *k, cudaStream_t s);
/* Counters of `each' kinds a line: sums over the spans before each. */
cudaError_t nc_sortscan(const SortLines *k, int each, cudaStream_t s);

/* One digit of the key; then what the lines raw[0] and pos[0] of `keep'
   elements are to be, in the order in which it lies. */
cudaError_t nc_sortfind(const SortLines *k, cudaStream_t s);
cudaError_t nc_sortcollect(const SortLines *k, cudaStream_t s);

/* Lines that are dense, by the host: y, which may be NULL, and at. */
int nc_sortlines(const Device *d, SortLines *k, DType type);

/* The order of a type. */
Order nc_orderof(DType type, int descending);

#ifdef __cplusplus
}
#endif

/*
** In kernels
*/
#if defined(__CUDACC__) || (defined(NC_EMULATED) && defined(__cplusplus))

#define KEYOF(name, K)                                                        \
  NC_DEVICE K name(Order o, K u) {                                            \
    const K sign = (K)o.sign, inf = (K)o.inf;                                 \
    if (inf == 0) {                                                           \
      u ^= sign;                                                              \
    } else if ((u & ~sign) > inf) {                                           \
      u = sign | (sign - 1);                                                  \
    } else {                                                                  \
      if (u == sign) u = 0;                                                   \
      u = u & sign ? ~u & (sign | (sign - 1)) : u | sign;                     \
    }                                                                         \
    return u ^ (K)o.flip;                                                     \
  }
KEYOF(nc_key32, uint32_t)
KEYOF(nc_key64, uint64_t)
#undef KEYOF

/* The sum of v over the threads before this one of SORT_THREADS; *all becomes
   that of all.  Every thread calls it; `warp' is shared, of 2 x 8, and turn
   alternates between calls that no barrier parts. */
NC_DEVICE uint32_t nc_sumbefore(uint32_t v, uint32_t *all, uint32_t *warp,
                                int turn) {
  const int me = threadIdx.x, lane = me % 32;
  uint32_t sum = v, rest = 0, whole = 0;
  warp += turn * (SORT_THREADS / 32);
  for (int by = 1; by < 32; by *= 2) {
    const uint32_t up = __shfl_up_sync(~0u, sum, by, 32);
    if (lane >= by) sum += up;
  }
  if (lane == 31) warp[me / 32] = sum;
  __syncthreads();
  for (int w = 0; w < SORT_THREADS / 32; w++) {
    if (w == me / 32) rest = whole;
    whole += warp[w];
  }
  *all = whole;
  return rest + sum - v;
}

#endif
#endif
