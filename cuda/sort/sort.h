/* SPDX-License-Identifier: MIT */
/*
** sort.h - sorting along a dimension: what sort.c plans for the kernels.
**
** Slices are contiguous, one after the other.  Elements are moved as they are;
** compared are keys made of their bits, unsigned integers in the wanted order:
** NaN last, -0 equal to 0.  All sorts are stable.
**
** Short slices are sorted by a block in shared memory, long ones by CUB's radix
** sort.  For the first few elements of a long slice, or for one rank, radix
** select finds the key of the last rank, digit by digit from the highest; the
** elements up to it are collected and sorted as a short slice.  For the first
** few, a sample of the slice mostly saves that (sort_top.cu).
*/
#ifndef cuda_sort_sort_h
#define cuda_sort_sort_h

#include "cuda/cuda.h"
#include "cuda/offsets.h"

NC_C_BEGIN

#define SORT_THREADS 256      /* of a block, except for short slices */
#define SORT_MOST_THREADS 1024 /* of one that takes a sample */
#define LARGE_SAMPLE 65536    /* elements of a slice that has a large one */
#define SORT_DIGIT_BITS 11      /* bits of a digit in radix select */
#define SORT_BINS (1 << SORT_DIGIT_BITS)

/* Elements of the longest short slice, by the bits of an element. */
#define nc_short_slice(bits) ((bits) == 64 ? 2048 : 4096)

/* Elements a block takes at a time in radix select. */
#define nc_sort_tile(bits) ((bits) == 64 ? 2048 : 4096)

/* How keys are made of elements: the bits of the sign and of infinity (0 where
   there is none), and those to invert for a descending order. */
typedef struct SortOrder {
  uint64_t sign, inf, flip;
} SortOrder;

typedef struct SortPlan {
  SortOrder order;
  int bits;                   /* of an element */
  int key_bits;               /* of a key; 0: all.  Keys that exceed them count
                                 as equal, after all others */
  const void *x;
  const uint32_t *from;       /* positions of the elements of x, or NULL */
  int64_t slices;
  uint32_t n;                 /* elements of a slice */
  uint32_t first, keep;       /* the ranks wanted: first .. first+keep-1 */
  void *y;                    /* [slices x keep]; may be NULL */
  int64_t *at;                /* positions, from 1 */
  /* Radix select of the element of rank first+keep-1: */
  int spans;                  /* of a slice, each for one block */
  uint32_t span;              /* elements of a span, whole tiles */
  uint32_t *count;            /* [slices x 2 x spans]: below the key, equal */
  uint32_t *total;            /* [slices x 2] */
  void *raw;                  /* [slices x keep]: the elements selected */
  uint32_t *pos;              /* and their positions */
  uint64_t *key;              /* [slices]: the digits found so far */
  uint32_t *left;             /* [slices]: the rank among elements with those */
  uint32_t *bin;              /* [slices x SORT_BINS]: the histogram */
  int shift, digit;           /* the current digit: its shift, its bits */
  /* Candidates for the first ranks, from a sample: */
  uint32_t *found;            /* [slices]: their number; a slice is done if it
                                 is from keep to room.  NULL: there are none */
  uint32_t *candidate;        /* [slices x room]: their positions.  Not NULL:
                                 to be sorted are they, where a slice is done;
                                 else the slices that are not */
  uint32_t room;
  int sample;                 /* elements */
  uint32_t sample_rank;       /* of the threshold, in the sample */
  int vectors;                /* slices are aligned to 16 bytes */
} SortPlan;

cudaError_t nc_sort_short(const SortPlan *k, cudaStream_t s);

/* Sorts long slices: one by one if they have at least `alone' elements, else in
   batches of up to `most' elements (2^31 at most). */
int nc_sort_long(const Device *d, const SortPlan *k, int64_t alone,
                int64_t most);

/* Radix select: finds the next digit of the keys; with all digits found, fills
   raw and pos in the order of x. */
cudaError_t nc_sort_find_digit(const SortPlan *k, cudaStream_t s);
cudaError_t nc_sort_collect(const SortPlan *k, cudaStream_t s);

/* Candidates: returns whether to look for them, and sets room, sample and
   sample_rank; fills found, which is 0, and candidate. */
int nc_sort_plan_top(SortPlan *k);
cudaError_t nc_sort_find_top(const SortPlan *k, cudaStream_t s);

/* Sorts k->slices slices; sets k->bits from type. */
int nc_sort_slices(const Device *d, SortPlan *k, DType type);

/* The order of a type. */
SortOrder nc_sort_order(DType type, int descending);

/* Allocates scratch memory for n arrays; array i begins at *p + offset[i]. */
int nc_sort_scratch(const Device *d, char **p, int n, const int64_t bytes[],
                  int64_t offset[]);

NC_C_END

/*
** In kernels
*/
#ifdef __cplusplus

/* The type of the key of an element with the bits of T. */
template <class T> struct SortKey { typedef uint32_t K; };
template <> struct SortKey<uint64_t> { typedef uint64_t K; };

/* Is a slice to be worked on: not done, or with candidates done? */
NC_DEVICE bool is_wanted(const SortPlan &k, int64_t slice) {
  if (k.found == NULL) return true;
  const uint32_t n = k.found[slice];
  return (n >= k.keep && n <= k.room) == (k.candidate != NULL);
}

template <class T, class K = typename SortKey<T>::K>
NC_DEVICE K sort_key(SortOrder o, T element) {
  const K sign = (K)o.sign, inf = (K)o.inf;
  K u = element;
  if (inf == 0) {
    u ^= sign;
  } else if ((u & ~sign) > inf) {
    u = sign | (sign - 1);
  } else {
    if (u == sign) u = 0;
    u = u & sign ? ~u & (sign | (sign - 1)) : u | sign;
  }
  return u ^ (K)o.flip;
}

#endif
#endif
