/* SPDX-License-Identifier: MIT */
/* ops_end.h - ends a use of ops.def (no include guard: it is meant to recur) */
#undef UNARY
#undef TEST
#undef BINARY
#undef COMPARE
#undef TERNARY
#undef CHOOSE
#undef REDUCE
