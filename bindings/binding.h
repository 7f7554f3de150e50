/* SPDX-License-Identifier: MIT */
/*
** binding.h - what the files of the binding share.
**
** A tensor is a userdata, the box, that holds a Tensor *.  Lua functions may
** jump out through any call of the Lua API, so the box is made first, empty,
** and the core then fills it: nothing is held by a C variable alone.
** Collection may run finalizers that free tensors: the binding only starts
** it where no tensor pointer is used afterwards, and what they free while Lua
** itself collects lives on until then (nl_free).
*/
#ifndef binding_h
#define binding_h

#include <lauxlib.h>
#include <lua.h>

#include "bindings/nacre.h"
#include "core/tensor.h"

/*
** Boxes and errors (userdata.c)
*/
typedef struct State {        /* of a Lua state; its extra space points here */
  int64_t threshold;          /* see gc_pacing.c */
  int64_t lastyoung, lastfull; /* ns: when the binding collected */
  int64_t young, full;        /* ns: what a collection of the kind costs */
  int64_t total;              /* ns spent collecting */
  int64_t finalized;          /* boxes that the collector found */
  int64_t check;              /* bytes after which to look at the clock */
  int collecting;             /* by the binding: no tensor is in use */
  int refs;                   /* functions of Lua that graphs hold */
  int untied;                 /* ... for a collection (graph_cycles.c) */
} State;

#define nl_state(L) (*(State **)lua_getextraspace(L))

Tensor **nl_newbox(lua_State *L);             /* pushes an empty box */
/* Pushes memory of zeros that gives back what it holds when it is collected,
   as when an error jumps. */
void *nl_newowner(lua_State *L, size_t bytes, const char *kind,
                  lua_CFunction giveback);
Tensor *nl_totensor(lua_State *L, int i);     /* NULL: it is none */
int nl_istensor(lua_State *L, int i);         /* and was not freed */
const char *nl_typename(lua_State *L, int i); /* a tensor is no userdata */
int nl_isfreed(lua_State *L, int i);          /* a tensor that was */
int nl_iserror(lua_State *L, int i);          /* an error of the core? */
int nl_isinterrupt(lua_State *L, int i);      /* ... or else, by Ctrl-C? */
Tensor *nl_checktensor(lua_State *L, int i);
void nl_free(lua_State *L, int i);            /* empties the box at i */
void nl_free_deferred(lua_State *L);              /* what nl_free had to keep */
int nl_check(lua_State *L, int status);       /* raises the core's error */
int nl_written(int status, const char *op);   /* ... of one into a tensor */
void nl_pusherror(lua_State *L, const Error *e);      /* its object */
/* op_events.c: tells of what nc_trace_any says */
void nl_report_events(lua_State *L);
int nl_error(lua_State *L, const char *op, const char *fmt, ...);
void nl_pushscalar(lua_State *L, Scalar v);
int nl_toscalar(lua_State *L, int i, Scalar *v); /* a number or boolean? */
void nl_open_userdata(lua_State *L);
/* ("cuda:0").type (string_fields.c) */
void nl_open_string_fields(lua_State *L);

/* Releases what is garbage if it is time; `bytes' is what the next
   operation is likely to allocate. */
void nl_pace(lua_State *L, int64_t bytes);
void nl_collect(lua_State *L);
/* What the memory of devices wants of the collector (gpu_gc.c). */
typedef enum Pressure {
  PRESSURE_NONE, PRESSURE_SOME, PRESSURE_FULL
} Pressure;
Pressure nl_gpu_pressure(void);
void nl_collected(int full);   /* a collection was made */
void nl_empty_caches(void);    /* every cache goes */
/* Is an operation without memory worth another attempt?  Then collects:
   tensors must be fetched anew. */
int nl_retry(lua_State *L, int status, int attempt);

/* The same for what writes to the tensor, or the list of tensors, at index
   out (0: to none): not once a part of it may be written.  `writes' is what
   nl_writes gave before. */
int nl_retry_into(lua_State *L, int status, int attempt, int out,
                 int64_t writes);
int64_t nl_writes(lua_State *L, int out);

/*
** Signatures (signature.c) and arguments (arguments.c)
*/
typedef enum ParamType {
  P_TENSOR, P_OPERAND, P_TENSORS, P_DIM, P_DIMS, P_DIMORTENSOR, P_SIZE,
  P_INTS, P_INDEX, P_INT, P_NUM, P_BOOL, P_DTYPE, P_DEVICE, P_TEXT, P_CHOICE,
  P_ANY, P_GENERATOR
} ParamType;

typedef struct Param {
  char name[20];
  ParamType type;
  int optional, byname;
  Arg fallback;               /* used if it is not given */
  int64_t one;                /* what fallback.list points to */
  const char *choices;        /* "none|tanh", up to '=' */
} Param;

#define NL_MAXPARAM 12        /* of a function of the binding's own */

typedef struct Signature {
  const char *name;
  int n, positional;
  int inplace;                /* is there a name_ ? */
  Param param[NL_MAXPARAM];
  const char *results;        /* text behind "->", or "" */
  int boxes;                  /* for so many results, at most */
} Signature;

void nl_parsesignature(Signature *s, const char *name, const char *text);
const Signature *nl_pointwise_signature(Op op);
const Signature *nl_operator_signature(Operator f);
/* Pushes "sum(self, dim=nil, ...) -> tensor". */
int nl_findparam(const Signature *s, const char *name); /* or -1 */
int nl_creates(const Signature *s);
void nl_pushsignature(lua_State *L, const Signature *s);
void nl_pushparams(lua_State *L, const Signature *s);

typedef struct Args {
  Arg arg[NL_MAXPARAM];
  int out;                    /* stack index of {out=...}, or 0 */
  int require;                /* {requires_grad=true}, of what makes tensors */
  int pin;                    /* {pin_memory=true}, of the same */
  int64_t list[NL_MAXPARAM][NC_MAXDIM];
} Args;

/* What is to be read from the path, or the open file of Lua's, at index i; the
   bytes of a stream are read, and stay on the stack. */
void nl_read_source(lua_State *L, int i, Source *from);

/* Reads the arguments on the stack; what is too long for Args is pushed. */
void nl_readargs(lua_State *L, const Signature *s, Args *a);
/* The same for a function of the binding's own; s keeps what text says. */
void nl_args(lua_State *L, Signature *s, const char *name, const char *text,
             Args *a);
/* The error of the arguments from `next' to `top', which are too many: sets
   it if all can be given by name; raises it (extra_arguments.c). */
int nl_hint_named_arguments(lua_State *L, const Signature *s, int next,
                            int top);
int nl_too_many_arguments(lua_State *L, const Signature *s, int next, int top);
/* What seeds the generator of every device, by the name of op. */
#define NL_SEED "seed:int"
void nl_reseed(lua_State *L, Signature *s, const char *op);

/*
** Tables (table_arguments.c)
*/
/* A table at index i that Lua reads by events gives way to a plain one with
   what these say: its elements, and, if it is no list, the names that the
   list at index `names' (0: none) has.  0: it stays. */
int nl_plain(lua_State *L, int i, int names);
void nl_plainoptions(lua_State *L, int i, const Signature *s);
/* Is the pair on top, of a table of n elements, the n of table.pack? */
int nl_ispacked(lua_State *L, int64_t n);
/* Are there names in the table at index i, and no elements? */
int nl_isoptions(lua_State *L, int i, const Signature *s);
/* What is wrong with the keys of the list at index i, or NULL; *name: it has
   this name.  On the stack are values that hold the text. */
const char *nl_find_bad_key(lua_State *L, int i, const char **name);
void nl_checklist(lua_State *L, const char *op, int i); /* the error */
/* The list of results on top says what it is where a tensor is meant. */
void nl_setlist(lua_State *L);

/*
** Functions
*/
typedef struct Bound {        /* a function written for the binding */
  const char *name;
  lua_CFunction f;
  const char *signature, *doc;
  int where;                  /* NL_FUNCTION, NL_METHOD or both */
} Bound;

/* Pushes it: called, it refuses what its signature does not have (arguments.c).
   Is that what is at index i? */
void nl_pushbound(lua_State *L, const Bound *b);
int nl_isbound(lua_State *L, int i, const Bound *b);

#define NL_FUNCTION 1         /* nacre.name */
#define NL_METHOD 2           /* t:name */

/* A function that knows which of a table's lines it is: nl_which, in it. */
int nl_closure(lua_State *L, lua_CFunction f, int which);     /* gives 1 */
#define nl_which(L) ((int)(intptr_t)lua_touserdata(L, lua_upvalueindex(1)))

/* The name of the operation that `name' is another one of, or name itself;
   the i-th such name, or NULL (aliases.c). */
#define NL_NAME 32
const char *nl_resolve_alias(const char *name, char own[NL_NAME]);
const char *nl_alias(int i);
/* Pushes the function of a name (registry.c); 0: there is none. */
int nl_pushfunction(lua_State *L, const char *name, int where);
void nl_makeall(lua_State *L, int where);     /* into the table on top */
/* Pushes what nacre[name] stands for, made at its first use; 0: nothing. */
int nl_pushname(lua_State *L, const char *name);
/* The error that nacre, or its part at a path, at index 1 has no such name;
   0 for a name that begins with "_" (strict_names.c). */
int nl_unknown_name(lua_State *L, const char *path, const char *name);
/* From now on the table on top, the part at that path, and those in it raise
   that error for what they have not. */
void nl_make_strict(lua_State *L, const char *path);
void nl_setcasts(lua_State *L, int lib);      /* nacre.long is "int64" */
int nl_info(lua_State *L);                    /* nacre._info, _names, _rows */
int nl_names(lua_State *L);
int nl_rows(lua_State *L);

int nl_call_pointwise(lua_State *L);                 /* dispatch.c */
int nl_call_pointwise_into(lua_State *L);
int nl_call_operator(lua_State *L);
int nl_call_operator_into(lua_State *L);
int nl_callwhere(lua_State *L);               /* overloads.c: t:where */
int nl_where_condition(lua_State *L);
/* The results of a call of f in a form that is not its signature's, or 0. */
int nl_call_overload(lua_State *L, Operator f);

/* Functions of Lua that graphs hold (graph_cycles.c) */
typedef struct Ref {
  lua_State *main;
  int ref;
  Node **node;                /* in the userdata, if it is one of a node */
} Ref;

/* What is at index i, for the core; an error if memory is short. */
Ref *nl_newref(lua_State *L, int i, Node **node);
void nl_dropref(void *ref);
int nl_isref(void (*drop)(void *));           /* does it drop a Ref? */
int nl_pushref(lua_State *L, const Ref *f);   /* 0: it was collected */
/* The tensor at index i leads to such a function, or may. */
void nl_maycycle(lua_State *L, int i);
#define nl_result(L, i) (nl_state(L)->refs ? nl_maycycle(L, i) : (void)0)
/* Around a full collection: what only tensors lead to that only it leads to
   is found.  nl_untie_cycles gives 0 where nothing is to be done. */
int nl_untie_cycles(lua_State *L);
void nl_retie_cycles(lua_State *L);
int nl_inbackward(void);                      /* autograd.c */

extern const Bound nl_conversions[];               /* conversion.c */
extern const Bound nl_bytes[];                /* byte_strings.c */
extern const Bound nl_tensor_fields[];              /* tensor_fields.c */
extern const Bound nl_inplace_views[];               /* inplace_views.c */
extern const Bound nl_defaults[];              /* defaults.c */
extern const Bound nl_files[];                /* tensor_files.c */
extern const Bound nl_op_events[];             /* op_events.c */
extern const Bound nl_to_device[];                /* to_device.c */
extern const Bound nl_cuda[];                 /* cuda_module.c: nacre.cuda */
extern const Bound nl_stream_methods[]; /* cuda_streams.c: methods */
extern const Bound nl_gradient_methods[];            /* autograd.c */
extern const Bound nl_autograd_functions[]; /* names in nacre.autograd */
extern const Bound nl_event_methods[];
extern const Bound nl_png[];                  /* png.c */
extern const Bound nl_random_functions[];           /* generator.c */
extern const Bound nl_generator_methods[];            /* methods */
Generator *nl_togenerator(lua_State *L, int i); /* NULL: it is none */

void nl_open_overrides(lua_State *L);           /* lua_overrides.c */
int nl_getfield(lua_State *L);                /* tensor_fields.c: t[key] */
int nl_isfield(const char *key);              /* shape, dtype, ...? */
void nl_push_user_methods(lua_State *L); /* user_methods.c: nacre.Tensor */
/* An error if t[key] = value is to set a field; 0: key is an index. */
int nl_checkassign(lua_State *L);
/* autograd.c: pushes t.grad and the like; 0: key is no such field */
int nl_gradfield(lua_State *L, Tensor *t, const char *key);
int nl_setgradfield(lua_State *L, const char *key); /* t[key] = value */
int nl_pushautograd(lua_State *L);            /* nacre.autograd */

typedef struct Embedded {     /* a text in Lua, see repl/embed.cmake */
  const char *name;
  const unsigned char *text;
  size_t size;
} Embedded;

extern const Embedded nl_embedded[];
void nl_pushembedded(lua_State *L, const char *name); /* as a function */
void nl_pushfail(lua_State *L);       /* fail(op, text, hint, role, t, ...) */
/* The table of arguments.lua, which reads arguments by a signature. */
void nl_pusharguments(lua_State *L);

/* Operations written in Lua (composed.c): push one, what is known of it (by
   its name or itself, at index i); add their names to the list on top, which
   has n; make all in the table on top. */
int nl_pushcomposed(lua_State *L, const char *name, int where);
int nl_composedinfo(lua_State *L, int i);
int nl_composednames(lua_State *L, int n, int all);
void nl_makecomposed(lua_State *L, int where);
int nl_pairs(lua_State *L);

/*
** Devices
*/
/* The device that the name or number at index i stands for; NULL: there is
   neither. */
const Device *nl_device(lua_State *L, int i, const char *op);
/* The same, for what must be one. */
const Device *nl_needdevice(lua_State *L, int i, const char *op);
/* What the box holds gives way to the same in page-locked memory. */
int nl_pin(Tensor **box);
void nl_checkcuda(lua_State *L, int r, const char *op); /* nl_check, a hint */
void nl_device_changed(void);   /* to be called when another one is current */
int nl_convert_dtype(lua_State *L); /* to_device.c: the upvalue says to which */

int nl_pushtable(lua_State *L, const char *name); /* nacre.cuda, .backends */
const Accelerator *nl_accelerator(lua_State *L, const char *op);
/* The ordinal of a CUDA device at index i, or of {device=...}; the current
   one's if it is nil. */
int nl_ordinal(lua_State *L, int i, const char *op);

#define NL_STREAM "device:device=nil, priority:int=0 -> stream"
#define NL_EVENT "enable_timing=false, blocking=false -> event"
int nl_newstream(lua_State *L);               /* cuda_streams.c */
int nl_newevent(lua_State *L);
int nl_withstream(lua_State *L);
int nl_recordstream(lua_State *L);
int nl_setstream(lua_State *L);
int nl_currentstream(lua_State *L);
int nl_defaultstream(lua_State *L);
/* Pushes what, once closed, makes current what is so now: the device, and
   the stream of device i. */
void nl_push_restore(lua_State *L, int i);

int nl_index(lua_State *L);                   /* index_keys.c: not a name */
int nl_newindex(lua_State *L);
int nl_call(lua_State *L);

#endif
