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

#include <stddef.h>

#include "core/tensor.h"

typedef enum ParamType {
  P_TENSOR, P_OPERAND, P_TENSORS, P_DIM, P_DIMS, P_DIMORTENSOR, P_SIZE,
  P_INTS, P_INDEX, P_INT, P_NUM, P_BOOL, P_DTYPE, P_DEVICE, P_TEXT, P_CHOICE,
  P_ANY, P_GENERATOR,
  /* values of Lua, which only the binding reads */
  P_TARGET, P_OBJECT, P_FUNCTION, P_TABLE, P_MODULE, P_OPTIMIZER, P_NUMS,
  P_FUNCTIONS, P_SEVERAL, P_PARAMETERS, P_LENGTHS, P_GRADIENTS
} ParamType;

typedef struct Param {
  char name[32];
  ParamType type;
  char type_name[16];         /* as it is written, but "text" for a choice,
                                 "tensor" for inplace, the first of a union */
  const char *noun;           /* of the type, in messages: "a tensor" */
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
  const char *results;        /* the text after "->", or "" */
  int nresults;               /* the maximum number of results */
  Param param[NC_MAXPARAM];   /* last: a copy may end with param[n - 1] */
} Signature;

#define NC_SIGNATURE_BYTES(s) \
  (offsetof(Signature, param) + (size_t)(s)->n * sizeof(Param))

/* Parses text; s keeps pointers to name and text. */
void nc_parse_signature(Signature *s, const char *name, const char *text);
/* The signature of an operation, parsed once per process. */
const Signature *nc_pointwise_signature(Op op);
const Signature *nc_operator_signature(Operator f);
/* Sets the arguments to the defaults; a Call holds NC_MAXARG of them. */
void nc_set_defaults(Arg *arg, const Signature *s);
/* What the parameter takes, in a message: "a tensor", "one of none|tanh", which
   is written to text. */
#define NC_NOUN 160
const char *nc_param_noun(const Param *p, char text[NC_NOUN]);
/* The position of a word among the choices of p, or -1. */
int nc_find_choice(const Param *p, const char *word);
int nc_findparam(const Signature *s, const char *name); /* position, or -1 */

/*
** The errors of arguments, which all readers record, in the name of the
** function `op' (argument_errors.c). Those that always fail return NC_EVALUE.
*/
/* Fails if a mandatory parameter has no argument. One of sizes needs none
   unless `all' is set. */
int nc_check_given(const Signature *s, const char *op, const Arg *arg,
                   int all);
/* The value, shown as "a number", of a type, "number", does not fit p. */
int nc_wrong_argument(const char *op, const Param *p, const char *value,
                      const char *type);
int nc_repeated_argument(const char *op, const Param *p);
/* There are `got' positional arguments, more than the function takes. */
int nc_surplus_arguments(const Signature *s, const char *op, int got);
/* No parameter has this name; out: there is out=, too. */
int nc_unknown_argument(const Signature *s, const char *op, const char *name,
                        int out);
/* Fails, with the nearest name, if there is no such dtype. */
int nc_read_dtype(DType *type, const char *op, const char *name);

#endif
