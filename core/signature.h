/* SPDX-License-Identifier: MIT */
/*
** signature.h - the parsed form of the signatures of operations, whose syntax
** operators.def explains.
**
** The tape reads from it what to save, the binding the arguments of a call,
** help and completion what they show.
*/
#ifndef core_signature_h
#define core_signature_h

#include "core/tensor.h"

typedef enum ParamType {
  P_TENSOR, P_OPERAND, P_TENSORS, P_DIM, P_DIMS, P_DIMORTENSOR, P_SIZE,
  P_INTS, P_INDEX, P_INT, P_NUM, P_BOOL, P_DTYPE, P_DEVICE, P_TEXT, P_CHOICE,
  P_ANY, P_GENERATOR
} ParamType;

typedef struct Param {
  char name[32];
  ParamType type;
  char type_name[16];         /* as it is written, but "text" for a choice,
                                 "tensor" for inplace, the first of a union */
  int optional, byname;       /* byname: not accepted by position */
  Arg fallback;               /* the default */
  int64_t one;                /* storage for fallback.list */
  const char *choices;        /* "none|tanh", ended by '=', ',' or ' '; of a
                                 union "num|fro|nuc" what follows its type */
  const char *written;        /* the default as it is written, of length */
  int nwritten;               /* nwritten */
  int quoted;                 /* the default is a string */
} Param;

#define NC_MAXPARAM 20

typedef struct Signature {
  const char *name;
  int n, positional;          /* parameters; those accepted by position */
  int method;                 /* the first parameter is called self */
  int inplace;                /* there is an in-place form name_ */
  int creates;                /* it creates tensors: the last parameters are
                                 requires_grad and pin_memory */
  int no_out;                 /* it takes no out= */
  unsigned saved_args;        /* those marked with "!", bits: the gradient */
  unsigned saved_results;     /* needs their values */
  Param param[NC_MAXPARAM];
  const char *results;        /* the text after "->", or "" */
  int nresults;               /* the maximum number of results */
} Signature;

/* Parses text; s keeps pointers to name and text. */
void nc_parse_signature(Signature *s, const char *name, const char *text);
/* The signature of an operation, parsed once per process. */
const Signature *nc_pointwise_signature(Op op);
const Signature *nc_operator_signature(Operator f);
int nc_findparam(const Signature *s, const char *name); /* position, or -1 */

#endif
