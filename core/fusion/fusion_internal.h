/* SPDX-License-Identifier: MIT */
/*
** fusion_internal.h - notes, values and parts of a traced function.
**
** A value is a tensor at one point of the trace: an argument, a tensor from
** outside that the function knows, or a result.  An operation in place makes a
** new value of the same tensor.
*/
#ifndef core_fusion_fusion_internal_h
#define core_fusion_fusion_internal_h

#include "core/tape.h"
#include "core/fusion.h"
#include "core/tensor.h"

typedef struct Note {         /* a call */
  const char *name;
  Call *call;                 /* as it was made, without its tensors */
  int line;                   /* of the function; 0: unknown */
  int no_grad;                /* was nothing recorded? */
  int in[NC_MAXARG];          /* values of its arguments; -1: no tensor */
  int *list[NC_MAXARG];       /* values of a list */
  int *index;                 /* values of indices */
  int into;                   /* the value that is overwritten; -1: none */
  int out[NC_MAXOUT];         /* values; -1: none */
  int *outlist, noutlist;     /* of an operator that gives a list */
  Op op;                      /* the step of a part that it can be */
  double par[2];
  int is_row;                 /* did it run one pointwise loop, `loop'? */
  int is_fold;                /* or one reduction of the last dimension? */
  int is_view;                /* did it only make a view of in[0]? */
  FusedAlong along;           /* or is it such an operator, of floats? */
  int draw;                   /* of random numbers: which of its part */
  TensorIter loop;            /* its operands are those in in[] */
  int part;
} Note;

typedef struct ValueInfo {
  Tensor *t;                  /* while it is traced; a tensor from outside */
  int outside;
  DType dtype;
  int nd;
  int64_t size[NC_MAXDIM], step[NC_MAXDIM];
  const Device *device;       /* that of the tensor, or its meta device */
  int note;                   /* that made it; -1: none */
  int of_lines;               /* one element for each line of its part? */
  int last;                   /* the part that uses it last; of a result the
                                 number of parts */
} ValueInfo;

typedef struct Gradient Gradient;           /* fused_grad.h */

/* Where the random numbers of a note begin: a state of a generator. */
typedef struct Draw {
  uint64_t key, block;
} Draw;

/* Does the note draw random numbers that a part can have? */
static inline int nc_note_draws(FusedAlong along) {
  return along == FUSED_RAND || along == FUSED_RANDN;
}

typedef struct Part {
  int first, end;             /* notes */
  int views;                  /* are they views alone? */
  int aliases;                /* has it views of values that it makes? */
  FusedCode *code;            /* NULL: they run one by one */
  int operand[NC_FUSED_TENSORS], result[NC_FUSED_TENSORS];
  int into[NC_FUSED_TENSORS]; /* the operand, by its place, whose memory a
                                 result takes; -1: none */
  int writes;                 /* is there such a result? */
  int work;                   /* operations on an element, to be counted */
  int main;                   /* a value of the shape of its rows; -1: none */
  int line, lines;            /* as in FusedCode */
  int exact;                  /* nc_fusion_is_exact holds of all rows */
  int draws;                  /* how many notes draw random numbers */
  int model;                  /* of FusedCall: a result, or -1 - an operand */
  const ValueInfo *shape;     /* NULL; or the model is a tensor without values
                                 of this shape: all operands broadcast */
  unsigned leads[NC_FUSED_TENSORS]; /* bits: operands to which a result has a
                                 gradient */
  Scalar number[NC_FUSED_STEPS];
  Gradient *gradient;         /* made at the first backward */
} Part;

struct Fusion {
  int refs;
  int narg;
  int nnote, nvalue, npart, nresult;
  Note *note;
  ValueInfo *value;
  Part *part;
  int *result;
  int64_t noteroom, valueroom, partroom, resultroom; /* in bytes */
  struct Kept { struct Kept *next; int64_t bytes; } *kept;
  int short_of_memory;        /* a note is missing */
  char why[128];              /* it cannot be run again; "" otherwise */
  DType dtype;                /* of the context that it was traced in */
  const Device *device;
  int no_grad;
  int uniform;                /* any shape will do: see is_uniform */
  int at_end;                 /* are halves rounded in results alone? */
  int sized;                  /* the function has looked at sizes: for others
                                 the trace may be another */
  /* during the trace */
  unsigned tracing;           /* before */
  Fusion *outer;
  int requests, loops;        /* of the operation that runs */
  TensorIter loop;
  int (*line)(void *ctx);
  void *ctx;
};

/* Memory that is released with f; NULL if there is none. */
void *nc_fusion_keep(Fusion *f, int64_t bytes);

/* Cuts the notes into parts (fusion_parts.c). */
int nc_fusion_cut(Fusion *f);
/* Calls use for each value that a note reads, and for -1 in between. */
void nc_note_values(const Note *n, void (*use)(void *ctx, int value),
                    void *ctx);
/* with[i]: on which results of the part (bits) the later notes that read result
   i depend.  of: room for a number for each value. */
void nc_fusion_used_with(const Fusion *f, const Part *p, unsigned of[],
                         unsigned with[]);
/* Has value v, which the part has made, one element for each of its lines?  Has
   it the elements of the part's main value, in their order? */
int nc_fusion_of_lines(const Fusion *f, const Part *p, int v);
int nc_fusion_is_full(const Fusion *f, const Part *p, int v);
/* How many lines of n elements are computed at once; 0: a block would be too
   large.  exact: nc_fusion_is_exact holds of all rows. */
int nc_fusion_lines(int64_t n, int exact);

/* Two values of one shape and of equal strides? */
int nc_fusion_same_layout(const ValueInfo *a, const ValueInfo *b);

/* Makes the code of the part (fused_code.c).  No code: it is not possible. */
int nc_fusion_compile(Fusion *f, Part *p);

/* Runs the notes of a part one by one.  slot[] are the tensors of values, with
   references (fusion_run.c).  draw: the random numbers of its notes; NULL: new
   ones. */
int nc_fusion_replay(const Fusion *f, const Part *p, const Scalar number[],
                     const Draw draw[], Tensor *slot[]);
/* Runs a part whose results are computed from operands that need a record
   (fused_grad.c). */
int nc_fusion_record(Fusion *f, Part *p, const Scalar number[],
                     const Draw draw[], Tensor *const operand[],
                     Tensor *result[]);
/* Has the node of a part code for the gradients to these operands? */
int nc_fusion_has_gradient(Fusion *f, Part *p, Tensor *const operand[]);
/* Runs the code of a part on new results or on those that are there. */
int nc_fusion_execute(const Part *p, const Scalar number[],
                      const Draw draw[], Tensor *const operand[],
                      Tensor *result[]);
/* Does the device run the code now, if it is asked to? */
int nc_fusion_is_ready(const Device *d, const FusedCode *code);
void nc_fusion_drop_gradients(Gradient *g); /* and those after it */
/* Sets leads[] of the part; of: room for each value (fused_grad_code.c). */
void nc_fusion_set_leads(const Fusion *f, Part *p, unsigned *of);

/* A number of the trace as it is now. */
static inline Scalar nc_fusion_number(Scalar s, const Scalar number[]) {
  return s.symbol ? number[s.symbol - 1] : s;
}

#endif
