/* SPDX-License-Identifier: MIT */
/* operator_grads.h - the gradient functions that operators.def names. */
#ifndef core_operator_grads_h
#define core_operator_grads_h

#include "core/operators.h"
#include "core/tape.h"

/* NC_GRADONLY_<class>(x) is x if the class has gradient functions. */
#define NC_GRADONLY_COMPLEX(class) NC_GRADONLY_##class
#define NC_GRADONLY_MOVES(class) NC_GRADONLY_##class
#define NC_GRADONLY_NOGRAD(...)
#define NC_GRADONLY_COMPOSED(...)
#define NC_GRADONLY_VIEW(...)
#define NC_GRADONLY_INPLACE(...)
#define NC_GRADONLY_GRAD(...) __VA_ARGS__
#define OPERATOR(op, class, ...) \
  NC_GRADONLY_##class(int nc_grad_##op(OperatorGrad *g);)
#include "core/operators.def"
#undef OPERATOR

#endif
