/* SPDX-License-Identifier: MIT */
/*
** ops.h - the pointwise operations and reductions of ops.def by name.  Only
** files that name one include it: an edit of ops.def compiles no others.
*/
#ifndef core_ops_h
#define core_ops_h

#define EVERY_OP(op, ...) OP_##op,
enum {
#include "core/ops.def"
  OP_COUNT
};

#endif
