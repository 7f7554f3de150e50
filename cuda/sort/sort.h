/* SPDX-License-Identifier: MIT */
/*
** sort.h - sorting along a dimension, for sort.c, which plans it, and for the
** kernels.
**
** Lines lie one behind the other.  Elements are moved as they are; what is
** compared is a key made of their bits, an unsigned integer in whose order
** they are sorted: nan last, -0 as 0.  Equal keys keep their order, always.
**
** Short lines are sorted by a block in shared memory, long ones by CUB's radix
** sort.  Of the few first elements of a long line, or of any one rank, only
** the key is looked for, by digits from the highest on; what lies before it
** is then a short line.
*/
#ifndef cuda_sort_sort_h
#define cuda_sort_sort_h

#include "cuda/cuda.h"
#include "cuda/strided_offset.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SORT_THREADS 256      /* of a block, but for short lines */
#define SORT_FINDBITS 11      /* of a digit when a rank is looked for */
#define SORT_BINS (1 << SORT_FINDBITS)

/* Elements of the longest short line, by the bits of an element. */
#define nc_shortline(bits) ((bits) == 64 ? 2048 : 4096)

/* Elements a block takes at a time, in the search for a rank. */
#define nc_sorttile(bits) ((bits) == 64 ? 2048 : 4096)

/* What makes keys of elements: the bits of sign and infinity (0 where there
   is none), and those to be turned round for a descending order. */
typedef struct Order {
  uint64_t sign, inf, flip;
} Order;

typedef struct SortLines {
  Order order;
  int bits;                   /* of an element */
  int told;                   /* bits of the keys; 0: all.  What exceeds them
                                 comes last, as if it were equal */
  const void *x;
  const uint32_t *from;       /* where elements of x come from; NULL: x */
  int64_t lines;
  uint32_t n, first, keep;    /* elements of a line; the ranks wanted */
  void *y;                    /* lines of keep; may be NULL */
  int64_t *at;                /* positions, from 1 */
  /* Of a search for the element of rank first+keep-1: */
  int spans;                  /* of a line, */
  uint32_t span;              /* of so many elements, whole tiles */
  uint32_t *count;            /* a line's counters, each for all spans */
  uint32_t *total;            /* their sums */
  void *raw;                  /* of each line the elements that are wanted, */
  uint32_t *pos;              /* and their positions */
  uint64_t *key;              /* of each line: the digits found, */
  uint32_t *left;             /* and the rank among those that have them */
  uint32_t *bin;              /* SORT_BINS of each line */
  int shift, digit;           /* of the digit at work: where, how many bits */
} SortLines;

cudaError_t nc_sortshort(const SortLines *k, cudaStream_t s);

/* All of long lines: one by one if they have at least `alone' elements, else
   together, up to `most' elements (2^31 at most) at a time. */
int nc_sortlong(const Device *d, const SortLines *k, int64_t alone,
                int64_t most);

/* One digit of the key; then what the lines raw and pos of `keep' elements
   are to be, in the order in which it lies. */
cudaError_t nc_sortfind(const SortLines *k, cudaStream_t s);
cudaError_t nc_sortcollect(const SortLines *k, cudaStream_t s);

/* Lines that are dense, by the host: y, which may be NULL, and at. */
int nc_sortlines(const Device *d, SortLines *k, DType type);

/* The order of a type. */
Order nc_orderof(DType type, int descending);

/* Scratch for several arrays, in one piece: part i begins at offset[i]. */
int nc_sortmemory(const Device *d, char **p, int n, const int64_t bytes[],
                  int64_t offset[]);

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

#endif
#endif
