/* SPDX-License-Identifier: MIT */
/*
** op_call.h - calls the function f of a pointwise operation, which
** core/pointwise/op_functions.inc makes of its line of ops.def.  v has the
** operands: v[j] is operand j as a Number, v.condition() operand 0 as a
** condition.
*/
#ifndef cuda_pointwise_op_call_h
#define cuda_pointwise_op_call_h

#include "cuda/typed_elements.h"

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

NC_DEVICE constexpr bool takes_condition(ChooseOp *) { return true; }
template <class F> NC_DEVICE constexpr bool takes_condition(F *) {
  return false;
}

#endif
