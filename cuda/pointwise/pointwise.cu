/* SPDX-License-Identifier: MIT */
/*
** pointwise.cu - pointwise operations, for elements of type NC_TYPE: with
** vectorized loads and stores of 16 bytes (VectorMap in launch.h) and, if
** NC_TYPE is one that is computed in, on operands of any types and strides
** (StridedMap).  pointwise.c calls the launchers nc_pointwise_<type>.
**
** call(f, v, p, q) calls the function f of an operation, which
** core/pointwise/op_functions.inc makes of its line of ops.def.  v has the
** operands: v[j] is operand j as a Number, v.condition() operand 0 as a
** condition.
*/
#include "cuda/pointwise/strided.h"
#include "core/ops.h"

typedef Number UnaryOp(Number a, Number p, Number q);
typedef Number BinaryOp(Number a, Number b, Number p, Number q);
typedef Number TernaryOp(Number a, Number b, Number c, Number p, Number q);
typedef Number ChooseOp(uint8_t condition, Number a, Number b);

template <class V> NC_DEVICE Number call(UnaryOp *f, V v, Number p, Number q) {
  return f(v[0], p, q);
}

template <class V> NC_DEVICE Number call(BinaryOp *f, V v, Number p, Number q) {
  return f(v[0], v[1], p, q);
}

template <class V>
NC_DEVICE Number call(TernaryOp *f, V v, Number p, Number q) {
  return f(v[0], v[1], v[2], p, q);
}

template <class V> NC_DEVICE Number call(ChooseOp *f, V v, Number, Number) {
  return f(v.condition(), v[1], v[2]);
}

NC_DEVICE constexpr bool takes_condition(ChooseOp *) {
  return true;
}
template <class F> NC_DEVICE constexpr bool takes_condition(F *) {
  return false;
}

/*
** By vectors
*/
/* The number of vectors of a thread: enough for about four loads in flight, but
   at most 32 elements, or 8 for costly operations, to limit the code size. */
constexpr int vectors_of_thread(OpClass c, int inputs) {
  const int kind = c & ~NC_TAKES_COMPLEX;
  const bool costly =
      kind == CLASS_DIVISION || kind == CLASS_FLOAT || kind == CLASS_FLOAT_ONLY;
  switch (sizeof(Stored)) {
    case 1: return costly || inputs > 1 ? 1 : 2;
    case 2: return costly || inputs > 2 ? 1 : 2;
    case 4: return costly ? (inputs < 3 ? 2 : 1) : inputs == 1 ? 4 : 2;
    default: return costly || inputs > 1 ? 1 : 4;
  }
}

/* Loads one element into element 0 of the result. */
NC_DEVICE uint4 load_one(const char *p, uint64_t i, int byte) {
  if (byte) return make_uint4(*(const uint8_t *)(p + i), 0, 0, 0);
  return filled_vector(((const Stored *)p)[i]);
}

/* Loads operand j at element i: a vector, or for a broadcast operand the one
   element, with which fill_broadcast fills the vector later.  byte: its
   elements are bytes (a condition). */
NC_DEVICE uint4 load_operand(const VectorMap *a, int j, uint64_t i, int byte) {
  const char *p = a->p[j];
  if (p == NULL) {
    const uint32_t low = (uint32_t)a->number[j];
    const uint32_t high = (uint32_t)(a->number[j] >> 32);
    return make_uint4(low, high, low, high);
  }
  if (a->still >> j & 1) return load_one(p, i, byte);
  return byte ? load_bytes(p + i) : load_vector(p + i * sizeof(Stored));
}

/* Loads the operands of vector i; returns the offset of its result.
   condition: operand 1 is a condition. */
NC_DEVICE uint64_t load_operands(uint4 in[], const VectorMap *a, uint32_t i,
                                 int inputs, int condition) {
  uint64_t at[NC_MAXIN];
  if (a->at.nd > 0) nc_offsets_at(at, &a->at, i, inputs + 1);
  else
    NC_UNROLL for (int j = 0; j <= inputs; j++) at[j] =
        a->still >> j & 1 ? 0 : (uint64_t)i * E;
  NC_UNROLL for (int j = 0; j < inputs; j++) in[j] =
      load_operand(a, j + 1, at[j + 1], j == 0 && condition);
  return at[0];
}

/* Fills the vectors of broadcast operands with their element. */
NC_DEVICE void fill_broadcast(uint4 in[], const VectorMap *a, int inputs,
                              int condition) {
  NC_UNROLL for (int j = 0; j < inputs; j++) if (a->still >> (j + 1) & 1)
      in[j] = j == 0 && condition ? filled_vector((uint8_t)in[j].x)
                                  : filled_vector(element_of<Stored>(in[j], 0));
}

/* Loads the operands of element i, which is behind the vectors. */
NC_DEVICE void load_tail(uint4 in[], const VectorMap *a, uint64_t i, int inputs,
                         int condition) {
  NC_UNROLL for (int j = 0; j < inputs; j++) in[j] =
      a->p[j + 1] == NULL
          ? load_operand(a, j + 1, 0, 0)
          : load_one(a->p[j + 1], a->still >> (j + 1) & 1 ? 0 : i,
                     j == 0 && condition);
}

/* Element e of the operands, which are vectors. */
struct VectorOperands {
  const uint4 *in;
  int e;
  NC_MEMBER Number operator[](int j) const { return element(in[j], e); }
  NC_MEMBER uint8_t condition() const { return (uint8_t)byte_of(in[0], e); }
};

/* The result as an element; of a bool result 0 or 1. */
NC_DEVICE Stored stored_result(const VectorMap &map, Number v) {
  const Stored s = store_element<Stored>(v);
#if CODE == CODE_u8
  if (map.truth) return s != 0;
#else
  (void)map;
#endif
  return s;
}

/* A thread first loads all its vectors and then computes, so that several loads
   are in flight.  The vectors of a thread are blockDim.x apart.  Grid: one
   thread for every `vectors' vectors; the first threads also compute the `tail'
   elements.  truth: the result is a byte, 0 or 1. */
template <class S, auto f, int inputs, int vectors, bool truth>
NC_KERNEL_OF(BLOCK)
vector_map(const VectorMap map) {
  const Number p = number_of_bits(map.par[0]), q = number_of_bits(map.par[1]);
  const uint32_t start = blockIdx.x * (BLOCK * vectors) + threadIdx.x;
  const int condition = takes_condition(f);
  uint4 all[vectors][inputs];
  uint64_t to[vectors];
  NC_UNROLL for (int v = 0; v < vectors; v++) if (start + v * BLOCK < map.n)
      to[v] = load_operands(all[v], &map, start + v * BLOCK, inputs, condition);
  NC_UNROLL for (int v = 0; v < vectors; v++) {
    uint4 *in = all[v];
    uint32_t w[4] = { 0, 0, 0, 0 };
    if (start + v * BLOCK >= map.n) break;
    fill_broadcast(in, &map, inputs, condition);
    NC_UNROLL for (int e = 0; e < E; e++) {
      const Number y = call(f, VectorOperands{ in, e }, p, q);
      if (truth) set_element(w, e, (uint8_t)(y != 0));
      else set_element(w, e, stored_result(map, y));
    }
    if (truth) store_words(map.p[0] + to[v], w, E);
    else store_vector(map.p[0] + to[v] * sizeof(S), w);
  }
  if (start < map.tail) {
    const uint64_t i = (uint64_t)map.n * E + start;
    uint4 in[inputs];
    load_tail(in, &map, i, inputs, condition);
    const Number y = call(f, VectorOperands{ in, 0 }, p, q);
    if (truth) map.p[0][i] = y != 0;
    else ((S *)map.p[0])[i] = stored_result(map, y);
  }
}

/*
** One by one
*/
/* Element k of the operands. */
template <int inputs> struct StridedOperands {
  const Number (*v)[NC_EACH];
  int k;
  NC_MEMBER Number operator[](int j) const { return v[j][k]; }
  NC_MEMBER uint8_t condition() const { return v[0][k] != 0; }
};

/* truth: the result is a byte, 0 or 1. */
template <class S, auto f, int inputs, bool truth>
NC_KERNEL_OF(BLOCK)
strided_map(const StridedMap map) {
  const Number p = number_of_bits(map.par[0]), q = number_of_bits(map.par[1]);
  const uint32_t start = blockIdx.x * (BLOCK * NC_EACH) + threadIdx.x;
  uint64_t at[inputs + 1][NC_EACH];
  Number v[inputs][NC_EACH];
  if (start >= map.n) return;
  locate_elements(at, &map, start, inputs + 1);
  NC_UNROLL for (int j = 0; j < inputs; j++)
      load_operand(v[j], &map, j + 1, at[j + 1]);
  EACH(k) if (start + k * BLOCK < map.n) {
    const Number y = call(f, StridedOperands<inputs>{ v, k }, p, q);
    if (truth) map.p[0][at[0][k]] = y != 0;
    else store(map.p[0], at[0][k], y, map.type[0]);
  }
}

/*
** The launcher
*/
#if CODE == CODE_u8 || CODE == CODE_i32 || CODE == CODE_i64 || CODE >= CODE_f32
#define STRIDED(...) __VA_ARGS__
#else
#define STRIDED(...)
#endif

extern "C" cudaError_t TYPED(nc_pointwise)(int op, const VectorMap *v,
                                           const StridedMap *s,
                                           cudaStream_t stream) {
  void (*by_vectors)(const VectorMap) = NULL;
  void (*one_by_one)(const StridedMap) = NULL;
  int vectors = 1;
#define CASE(op, class, inputs, truth)                                   \
  class(case OP_##op                                                     \
        : vectors = vectors_of_thread(CLASS_##class, inputs);            \
        by_vectors =                                                     \
            vector_map<Stored, NAME(op), inputs,                         \
                       vectors_of_thread(CLASS_##class, inputs), truth>; \
        STRIDED(one_by_one =                                             \
                    strided_map<Stored, NAME(op), inputs, truth>;) break;)
  switch (op) {
#define UNARY(op, class, ...) CASE(op, class, 1, false)
#define TEST(op, class, ...) CASE(op, class, 1, true)
#define BINARY(op, class, ...) CASE(op, class, 2, false)
#define COMPARE(op, class, ...) CASE(op, class, 2, true)
#define TERNARY(op, class, ...) CASE(op, class, 3, false)
#define CHOOSE TERNARY
#include "core/ops.def"
  }
  if (v && by_vectors)
    return NC_LAUNCH(
        by_vectors,
        ((v->n > v->tail ? v->n : v->tail) - 1) / (BLOCK * vectors) + 1, BLOCK,
        0, stream, *v);
  if (s && one_by_one)
    return NC_LAUNCH(one_by_one, (s->n - 1) / (BLOCK * NC_EACH) + 1, BLOCK, 0,
                     stream, *s);
  return cudaErrorInvalidDeviceFunction;
}
