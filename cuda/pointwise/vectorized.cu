/* SPDX-License-Identifier: MIT */
/*
** vectorized.cu - pointwise operations with vectorized loads and stores of 16
** bytes, for elements of type NC_TYPE; see VectorMap in launch.h.  pointwise.c
** calls the launchers nc_vectors_<type>.
**
** A thread first loads all its vectors and then computes, so that several loads
** are in flight.  The vectors of a thread are blockDim.x apart.  Grid: one
** thread for every `vectors' vectors (VECTORS or COSTLY); the first threads
** also compute the `tail' elements.
*/
#include "cuda/pointwise/launch.h"
#include "cuda/typed_elements.h"

#define BLOCK NC_ROWBLOCK

/*
** The number of vectors of a thread: enough for about four loads in flight, but
** at most 32 elements, or 8 for costly operations, to limit the code size.
*/
#if BITS == 8
#define VECTORS(inputs) (inputs == 1 ? 2 : 1)
#define COSTLY(inputs) 1
#elif BITS == 16
#define VECTORS(inputs) (inputs < 3 ? 2 : 1)
#define COSTLY(inputs) 1
#elif BITS == 32
#define VECTORS(inputs) (inputs == 1 ? 4 : 2)
#define COSTLY(inputs) (inputs < 3 ? 2 : 1)
#else
#define VECTORS(inputs) (inputs == 1 ? 4 : 1)
#define COSTLY(inputs) 1
#endif

/* Loads one element; element 0 of the result is it. */
NC_DEVICE uint4 fetchone(const char *p, uint64_t i, int byte) {
  if (byte) return make_uint4(*(const uint8_t *)(p + i), 0, 0, 0);
  return vectorof(((const Elem *)p)[i]);
}

/* Loads operand j at element i: a vector, or for a broadcast operand the one
   element, with which spread fills the vector later.  byte: its elements are
   bytes (a condition). */
NC_DEVICE uint4 fetch(const VectorMap *a, int j, uint64_t i, int byte) {
  const char *p = a->p[j];
  if (p == NULL) {
    const uint32_t low = (uint32_t)a->number[j];
    const uint32_t high = (uint32_t)(a->number[j] >> 32);
    return make_uint4(low, high, low, high);
  }
  if (a->still >> j & 1) return fetchone(p, i, byte);
  return byte ? loadbytes(p + i) : loadvector(p + i * sizeof(Elem));
}

/* Loads the operands of vector i with fetch; returns the offset of its result.
   condition: operand 1 is a condition. */
NC_DEVICE uint64_t fetchall(uint4 in[], const VectorMap *a, uint32_t i,
                            int inputs, int condition) {
  uint64_t at[NC_MAXIN];
  if (a->at.nd > 0) nc_offsets_at(at, &a->at, i, inputs + 1);
  else
    NC_UNROLL for (int j = 0; j <= inputs; j++) at[j] =
        a->still >> j & 1 ? 0 : (uint64_t)i * E;
  NC_UNROLL for (int j = 0; j < inputs; j++) in[j] =
      fetch(a, j + 1, at[j + 1], j == 0 && condition);
  return at[0];
}

/* Fills the vectors of broadcast operands with their element. */
NC_DEVICE void spread(uint4 in[], const VectorMap *a, int inputs,
                      int condition) {
  NC_UNROLL for (int j = 0; j < inputs; j++) if (a->still >> (j + 1) & 1)
      in[j] = j == 0 && condition ? bytesof((uint8_t)in[j].x)
                                  : vectorof(bitsin(in[j], 0));
}

/* Loads the operands of element i, which is behind the vectors. */
NC_DEVICE void fetchtail(uint4 in[], const VectorMap *a, uint64_t i, int inputs,
                         int condition) {
  NC_UNROLL for (int j = 0; j < inputs; j++) in[j] =
      a->p[j + 1] == NULL
          ? fetch(a, j + 1, 0, 0)
          : fetchone(a->p[j + 1], a->still >> (j + 1) & 1 ? 0 : i,
                     j == 0 && condition);
}

NC_DEVICE Number parameter(uint64_t bits) {
  Number x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* Normalizes the element of a bool result to 0 or 1. */
NC_DEVICE Elem settled(const VectorMap *a, Elem bits) {
#if CODE == CODE_u8
  if (a->truth) return bits != 0;
#else
  (void)a;
#endif
  return bits;
}

#define PUTNUMBER(value) setelement(w, e, settled(&map, bitsof(value)))
#define PUTTRUTH(value) w[e / 4] |= (uint32_t)((value) != 0) << 8 * (e % 4)
#define SAVENUMBER(i) storevector(map.p[0] + (i) * sizeof(Elem), w)
#define SAVETRUTH(i) storebytes(map.p[0] + (i), w)
#define LASTNUMBER(value, i) \
  ((Elem *)map.p[0])[i] = settled(&map, bitsof(value))
#define LASTTRUTH(value, i) map.p[0][i] = (value) != 0

#define KERNEL(op, inputs, vectors, condition, PUT, SAVE, LAST, value)     \
  NC_KERNEL_OF(BLOCK) TYPED(vector_##op)(const VectorMap map) {            \
    const Number p = parameter(map.par[0]), q = parameter(map.par[1]);     \
    const uint32_t start = blockIdx.x * (BLOCK * (vectors)) + threadIdx.x; \
    uint4 all[vectors][inputs];                                            \
    uint64_t to[vectors];                                                  \
    (void)p, (void)q;                                                      \
    NC_UNROLL for (int v = 0; v < (vectors);                               \
                   v++) if (start + v * BLOCK < map.n) to[v] =             \
        fetchall(all[v], &map, start + v * BLOCK, inputs, condition);      \
    NC_UNROLL for (int v = 0; v < (vectors); v++) {                        \
      uint4 *in = all[v];                                                  \
      uint32_t w[4] = { 0, 0, 0, 0 };                                      \
      if (start + v * BLOCK >= map.n) break;                               \
      spread(in, &map, inputs, condition);                                 \
      NC_UNROLL for (int e = 0; e < E; e++) PUT(value);                    \
      SAVE(to[v]);                                                         \
    }                                                                      \
    if (start < map.tail) {                                                \
      const uint64_t i = (uint64_t)map.n * E + start;                      \
      const int e = 0;                                                     \
      uint4 in[inputs];                                                    \
      fetchtail(in, &map, i, inputs, condition);                           \
      LAST(value, i);                                                      \
    }                                                                      \
  }
#define NUMBERS(op, inputs, vectors, condition, value)                      \
  KERNEL(op, inputs, vectors, condition, PUTNUMBER, SAVENUMBER, LASTNUMBER, \
         value)
#define TRUTHS(op, inputs, vectors, value) \
  KERNEL(op, inputs, vectors, 0, PUTTRUTH, SAVETRUTH, LASTTRUTH, value)
#define IN(j) element(in[j], e)

#define GENERIC "cuda/pointwise/vectorized.inc"
#include "core/pointwise/for_each_compute_type.h"
#undef GENERIC
