/* SPDX-License-Identifier: MIT */
/*
** error.h - the record that a failure leaves: what is wrong, of which
** operands, and what to type instead; a part of tensor.h, which includes it.
*/
#ifndef core_error_h
#define core_error_h

typedef struct Arg Arg;       /* of operations.h */

#include "core/error_codes.h"

/* The cause of a failure, for code that explains it; no code parses the text.
   `name' and `got' are the name and the type of the value. */
/* clang-format off */
#define NC_CAUSES(X)                                                         \
  X(missing)    /* the argument `name' */                                    \
  X(type)       /* the argument `name' cannot be of the type `got' */        \
  X(tensor)     /* the same; it must be a tensor */                          \
  X(argument)   /* there is no argument `name' */                            \
  X(index)      /* an index cannot be of the type `got' */                   \
  X(method)     /* tensors have no method `name' */                          \
  X(field)      /* tensors have no field `name' */                           \
  X(function)   /* there is no function `name', as "nn.LSTM" */              \
  X(broadcast)  /* the shapes of operands do not broadcast */               \
  X(infinite)   /* finite operands give inf */                               \
  X(mapped)     /* vmap: values differ from sample to sample */
/* clang-format on */

#define X(name) NC_CAUSE_##name,
enum { NC_NOCAUSE, NC_CAUSES(X) NC_CAUSECOUNT };
#undef X

typedef struct Cause {
  int kind;
  const char *name;           /* or NULL */
  const char *got;            /* or NULL */
} Cause;

typedef struct Operand {      /* what an operand of a failed operation was */
  char role[24];              /* "self", "arg 1", "left", "[2]", ... */
  int position;               /* among the operands of the call, or -1 */
  const Tensor *identity;     /* to be compared, never followed */
  DType dtype;
  int nd;
  int64_t size[NC_MAXDIM];
  const char *device;
  int isview;
  unsigned fills;             /* the placeholders that it fills, bits */
  char note[40];              /* what else there is to say, or "" */
} Operand;

#define NC_MAXERROROPERANDS 6

typedef struct Error {
  int code;
  int final;                  /* operation and operands are the right ones */
  int partly;                 /* what was written to may be partly updated */
  int cause;                  /* NC_CAUSE_..., or NC_NOCAUSE */
  char name[48];              /* of the cause, or "" */
  char got[16];               /* of the cause, or "" */
  char op[48];                /* the operation, or "" */
  char text[512];             /* what is wrong, without the operation */
  char rule[160];             /* the rule that was broken, or "" */
  char hint[160];             /* what to type instead, or "" */
  char first[96];             /* the first element that is wrong, or "" */
  uintptr_t node;             /* in the graph, of a failure in backward, or 0 */
  int rank;                   /* of the process that failed, or -1 */
  char host[64];              /* where that process runs, or "" */
  int n;
  Operand operand[NC_MAXERROROPERANDS];
} Error;

#if defined(__GNUC__)
#define NC_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define NC_PRINTF(f, a)
#endif

/* Decodes the UTF-8 sequence at the start of s, of n bytes (n > 0): *c is the
   code point, the result its length in bytes; 0 if s does not begin with a
   valid sequence. */
size_t nc_utf8(uint32_t *c, const char *s, size_t n);

/* Writes s, of n bytes, into buf of `room' bytes as it may be shown: control
   characters, backslashes and what is not UTF-8 as \xNN; cut with
   "..." if too long.  Returns buf. */
char *nc_printable(char *buf, size_t room, const char *s, size_t n);

/* The placeholder of operand j as an argument of a format. */
#define NC_OPERAND(j) "\2" #j
const char *nc_operandtext(int j);

/* Starts a new record; returns code.  In these formats {j} stands for operand j
   of the operation that fails, from 0, and {out} for the tensor it writes to.
   The record keeps this placeholder; whoever shows the error fills in what the
   user calls the operand. */
int nc_fail(int code, const char *fmt, ...) NC_PRINTF(2, 3);
void nc_rule(const char *fmt, ...) NC_PRINTF(1, 2);
void nc_hint(const char *fmt, ...) NC_PRINTF(1, 2);
void nc_error_first(const char *fmt, ...) NC_PRINTF(1, 2);
void nc_error_node(uintptr_t node);
void nc_error_peer(int rank, const char *host);

/* Says what the failure is about. */
void nc_cause(Cause c);
/* The names of the causes; the list ends with NULL. */
extern const char *const nc_causenames[];

/* Who calls an operation (nc_call, nc_apply, ...) adds its name and operands,
   or puts them in place of those of the operation inside that failed; r is
   the status, which it gives back.  An operation itself adds nothing. */
int nc_error_call(int r, const char *op, const Arg *in, int n);

/* For what is not an operation, or knows more than its operands. */
void nc_error_op(const char *op);                        /* names it */
void nc_error_operand(const char *role, const Tensor *t); /* adds an operand */
/* The same for operand j, which may be another one of an outer operation. */
void nc_error_operandat(int j, const char *role, const Tensor *t);
/* Changes the usual name of operand j. */
void nc_error_name(int j, const char *role);
/* Element i of a list, "[i + 1]". */
void nc_error_element(int i, const Tensor *t);
void nc_error_out(const Tensor *t);           /* what the operation writes to */
void nc_error_forget(const Tensor *t);        /* removes an operand */
void nc_error_note(const char *fmt, ...) NC_PRINTF(1, 2); /* to the last one */
void nc_error_final(void);    /* nobody is to replace these */
void nc_error_replace(const Tensor *from, const Tensor *to); /* in the record */
void nc_error_partial(void);  /* what was written to may be partly updated */

const Error *nc_lasterror(void);          /* of this thread; until the next */
void nc_error_restore(const Error *e);    /* puts a copy of a record back */
/* Copies a text of the record, with the roles of its operands in place of
   placeholders; returns out. */
char *nc_error_fill(char *out, size_t room, const Error *e, const char *text);
const char *nc_errname(int code);                 /* "ESHAPE" */

#endif
