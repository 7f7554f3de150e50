/* SPDX-License-Identifier: MIT */
/*
** operators.h - the operators of operators.def by name, and their functions.
** Only files that name one include it: an edit of operators.def compiles no
** others.
*/
#ifndef core_operators_h
#define core_operators_h

#include "core/tensor.h"

#define OPERATOR(op, ...) OPERATOR_##op,
enum {
#include "core/operators.def"
  OPERATOR_COUNT
};
#undef OPERATOR

#define OPERATOR(op, ...) int nc_op_##op(Call *c);
#define OPERATOR_AS(other, ...)
#include "core/operators.def"
#undef OPERATOR

#endif
