/* SPDX-License-Identifier: MIT */
/*
** op_classes.h - the classes of ops.def as macros that keep their arguments if
** operations of the class are computed in the current type, and drop them
** otherwise.  INTS and FLTS say which type that is: one keeps its arguments.
** (no include guard: for_each_compute_type.h undefines what is defined here)
*/
#define COMPLEX(class) class
#define ANY(...)  __VA_ARGS__
#define NUMERIC(...)  __VA_ARGS__
#define NO_BOOL(...)  __VA_ARGS__
#define BOOL_AS_INT(...)  __VA_ARGS__
#define DIVISION(...)  __VA_ARGS__
#define TO_BOOL(...)  __VA_ARGS__
#define COUNT(...)  __VA_ARGS__
#define INT_OR_BOOL(...)  INTS(__VA_ARGS__)
#define INTEGER(...)  INTS(__VA_ARGS__)
#define ROUNDING(...)  FLTS(__VA_ARGS__)
#define FLOAT(...)  FLTS(__VA_ARGS__)
#define FLOAT_ONLY(...)  FLTS(__VA_ARGS__)
