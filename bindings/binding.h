/* SPDX-License-Identifier: MIT */
/*
** binding.h - what the files of the binding share.
**
** A tensor in Lua is a full userdata (in the code also a "box") that holds one
** reference to a core Tensor. A call of the Lua API may raise an error, which
** is a longjmp, so no C variable may be the only holder of a reference or of
** memory: the userdata is created first, empty, and the core then fills it.
** Scratch memory is a userdata, too.
**
** A garbage collection may run finalizers that free tensors. The binding
** starts one only where no Tensor * is used afterwards. A tensor that a
** finalizer frees while Lua itself collects stays alive until then (nl_free).
**
** Stack effects are in the notation of Lua's manual, [-o, +p, x]: o values
** popped, p values pushed; x is '-' for functions that never raise an error,
** 'm' for those that raise only memory errors, 'e' for those that raise other
** errors, 'v' for those that always raise one. Functions declared as
** f(lua_State *) without a comment are lua_CFunctions.
*/
#ifndef binding_h
#define binding_h

#include <lauxlib.h>
#include <lua.h>

#include "bindings/nacre.h"
#include "core/signature.h"

/*
** Tensors and errors (userdata.c)
*/

#define NL_MAXGPUS 64

/* The state of the binding in one Lua state, whose registry holds it. */
typedef struct State {
  Context context;            /* defaults and switches for the core */
  int64_t threshold;          /* live bytes that cause a full collection */
  int64_t early;              /* the same, if there is time for it */
  int64_t patience;           /* bytes that this adds to what is alive */
  int64_t lastyoung, lastfull; /* ns: time of the last collection */
  int64_t young, full;        /* ns: mean cost of a collection */
  int64_t total;              /* ns spent in collections */
  int64_t finalized;          /* number of tensors that the collector found */
  int64_t check;              /* allocated bytes until the clock is read */
  int64_t paced;              /* nc_memory.since when nl_pace last ran */
  int64_t lastbytes;          /* of the last operation's result */
  int64_t largest;            /* of recent ones; see gc_pacing.c */
  int64_t next;               /* as check, for nl_pace_next */
  const void *lastbox;        /* the last operation's result, maybe freed */
  int collecting;             /* the binding collects: no tensor is in use */
  int refs;                   /* number of Lua functions that graphs hold */
  int untied;                 /* they are untied (graph_cycles.c) */
  int64_t gpu_threshold[NL_MAXGPUS]; /* as `threshold', of each GPU; 0: none */
} State;

/* The State that was asked for last. It is found by the addresses of the main
   thread and of the registry: the extra space of a Lua state belongs to the
   host program, and a coroutine may be older than this library. */
extern struct LastState { /* state.c */
  const lua_State *main;
  const void *registry;
  State *state;
} nl_last;
State *nl_find_state(lua_State *L); /* [-0, +0, -] */
static inline State *nl_state(lua_State *L) {
  return L == nl_last.main || lua_topointer(L, LUA_REGISTRYINDEX) ==
                                  nl_last.registry
             ? nl_last.state
             : nl_find_state(L);
}
#define nl_context(L) (&nl_state(L)->context)
/* Makes the core work with the Context of this Lua state. nl_newbox,
   nl_readargs and the wrapper of nl_pushbound do it. What calls the core
   without them does it itself, and so does what goes on in the core after Lua
   code has run, which may have entered another Lua state. */
#define nl_select(L) ((void)(nc_context = nl_context(L)))

/* Pushes an empty tensor userdata. The caller, or the core, stores a reference
   in it, which the userdata then owns. Selects the Context. [-0, +1, m] */
Tensor **nl_newbox(lua_State *L);
/* Pushes a userdata of zeroed bytes with the metatable `kind'; `giveback' is
   its __gc and releases what the bytes hold. For C structs that own
   something while an error may be raised. [-0, +1, m] */
void *nl_newowner(lua_State *L, size_t bytes, const char *kind,
                  lua_CFunction giveback);
/* Pushes a tensor userdata with a new reference to t. [-0, +1, m] */
void nl_pushtensor(lua_State *L, Tensor *t);
/* The tensor at index i, borrowed from the userdata, or NULL for a value that
   is not a tensor; raises an error for a freed tensor. [-0, +0, e] */
Tensor *nl_totensor(lua_State *L, int i);
/* True for a tensor that was not freed. [-0, +0, -] */
int nl_istensor(lua_State *L, int i);
/* As luaL_typename, but "tensor" for a tensor. [-0, +0, -] */
const char *nl_typename(lua_State *L, int i);
#define NL_PYTHON           "nacre.python"     /* metatable of its objects */
#define NL_OBJECT_OF_PYTHON "object of Python" /* their nl_typename */
int nl_isfreed(lua_State *L, int i);          /* a freed tensor? */
int nl_iserror(lua_State *L, int i);          /* an error of the core? */
int nl_isinterrupt(lua_State *L, int i);      /* an error raised by Ctrl-C? */
/* As nl_totensor; raises an error for a value that is not a tensor.
   [-0, +0, e] */
Tensor *nl_checktensor(lua_State *L, int i);
/* The userdata of this kind at index i; raises an error of the method `op' for
   any other value. [-0, +0, v] */
void *nl_check_userdata(lua_State *L, int i, const char *kind, const char *op);
/* Empties the tensor userdata at index i. In a finalizer the release is
   deferred to nl_free_deferred. [-0, +0, m] */
void nl_free(lua_State *L, int i);
void nl_free_deferred(lua_State *L);
/* Raises the error that the core recorded unless status is NC_OK; otherwise
   reports pending trace events and returns 1. The only place that turns a
   status into a Lua error. [-0, +0, e] */
int nl_check(lua_State *L, int status);
/* As nl_check; the error is in the name of the operation op. [-0, +0, e] */
int nl_check_as(lua_State *L, int status, const char *op);
/* As nl_check; names op in an error without an operation. [-0, +0, e] */
int nl_check_op(lua_State *L, int status, const char *op);
/* The same; the tensor at index 1 is self in an error without operands.
   [-0, +0, e] */
int nl_check_self(lua_State *L, int status, const char *op);
/* Adds to the recorded error of `op' that a tensor may be partly updated, if
   that is so. Returns the status. */
int nl_written(int status, const char *op);
/* Pushes an error object: the fields of the record, with the roles of the
   operands in its texts; args, the operands; template, the texts with their
   placeholders "\2j", of which args[i].fills has the digits. [-0, +1, m] */
void nl_pusherror(lua_State *L, Error e);
/* Passes pending trace events to the callback (op_events.c). [-0, +0, e] */
void nl_report_events(lua_State *L);
/* Raises an error of the operation `op' ("" for none). [-0, +0, v] */
int nl_error(lua_State *L, const char *op, const char *fmt, ...);
/* The same, with its cause; NL_MISSING and NL_TYPE are two of them.
   [-0, +0, v] */
int nl_refuse(lua_State *L, const char *op, Cause c, const char *fmt, ...);
#define NL_MISSING(name)    ((Cause){ NC_CAUSE_missing, name, NULL })
#define NL_TYPE(L, name, i) ((Cause){ NC_CAUSE_type, name, nl_typename(L, i) })
/* [-0, +1, -] */
void nl_pushscalar(lua_State *L, Scalar v);
/* Reads a number or boolean; returns 0 for any other value. [-0, +0, -] */
int nl_toscalar(lua_State *L, int i, Scalar *v);
/* Finds the State of this Lua state, which its registry keeps alive, or creates
   it. Raises an error while another thread has one. [-0, +0, e] */
const State *nl_open_state(lua_State *L);
/* Creates the State and pushes the metatable of tensors. [-0, +1, e] */
void nl_open_userdata(lua_State *L);
/* Adds fields to strings, as ("cuda:0").type (string_fields.c). [-0, +0, m] */
void nl_open_string_fields(lua_State *L);

/*
** Tables and metatables (lua_helpers.c)
*/

/* Sets the metatable `kind' of the value on top. The first call creates it with
   these functions. [-0, +0, m] */
void nl_set_metatable(lua_State *L, const char *kind, const luaL_Reg *events);
/* Set a field of the table on top. [-0, +0, m] */
void nl_set_integer(lua_State *L, const char *key, lua_Integer v);
void nl_set_number(lua_State *L, const char *key, lua_Number v);
void nl_set_boolean(lua_State *L, const char *key, int v);
void nl_set_string(lua_State *L, const char *key, const char *v);
int nl_concat(lua_State *L);    /* __concat of values that have a __tostring */
/* Calls the function below the nargs values on top; then, also after an error,
   the __close of the value at index 1. The results go on top; returns how many
   values are above index 1. Lua leaves the to-be-closed variables of a
   coroutine that fails open until the coroutine is closed; there the call is
   protected instead. [-(nargs+1), +n, e] */
int nl_call_restoring(lua_State *L, int nargs);

/*
** Garbage collection (memory/)
*/

/* After an operation: collects garbage if it is time. The next operation is
   expected to allocate what this one did. A collection may free every tensor
   that is not on the stack. [-0, +0, e] */
void nl_pace(lua_State *L);
/* Before a new result: collects what the last operations left, if that is
   enough (nc_memory.since has reached `next') and worth it. [-0, +0, e] */
void nl_pace_next(lua_State *L);
/* Runs a full collection. [-0, +0, e] */
void nl_collect(lua_State *L);
/* The collection that the memory of devices calls for (gpu_gc.c). */
typedef enum Pressure {
  PRESSURE_NONE, PRESSURE_SOME, PRESSURE_FULL
} Pressure;
Pressure nl_gpu_pressure(const State *s);
void nl_collected(State *s, int full); /* a collection has run */
void nl_empty_caches(void);    /* frees the caches of all devices */
/* True if an operation failed for lack of memory and must be tried once more.
   It has then collected, so tensors must be read from the stack again.
   [-0, +0, e] */
int nl_retry(lua_State *L, int status, int attempt);

/* The same for an operation that writes to the tensor, or the list of tensors,
   at index out (0: none). It is not repeated if it may have written a part;
   `writes' is the result of nl_writes before the first attempt. [-0, +0, e] */
int nl_retry_into(lua_State *L, int status, int attempt, int out,
                 int64_t writes);
int64_t nl_writes(lua_State *L, int out);

/*
** Signatures and arguments (arguments.c)
*/
/* Sets fields of the table on top: signature = "sum(self, dim=nil) -> tensor",
   results = "tensor", and params, a list of {name=, type=, optional=, byname=,
   default=, choices="a|b"} (signature_table.c).
   [-0, +0, m] */
void nl_set_signature(lua_State *L, const Signature *s);

typedef struct Args {
  Arg arg[NC_MAXPARAM];
  int out;                    /* stack index of {out=...}, or 0 */
  int require;                /* {requires_grad=true} */
  int pin;                    /* {pin_memory=true} */
  int64_t list[NC_MAXPARAM][NC_MAXDIM]; /* storage for arg[].list */
} Args;

/* Sets *from to the input at index i: a path, or an open Lua file, which is
   read to its end; its bytes are pushed (io/input_source.c). [-0, +(0|1), e] */
void nl_read_source(lua_State *L, const char *op, int i, Source *from);

/* Reads all arguments on the stack by a signature. Lists that do not fit into
   Args are pushed; *a borrows from the stack and from itself, so it must not
   be moved. [-0, +n, e] */
void nl_readargs(lua_State *L, const Signature *s, Args *a);
/* The same for a C function of the binding: parses the text into the static
   *s at the first call. [-0, +n, e] */
void nl_args(lua_State *L, Signature *s, const char *name, const char *text,
             Args *a);
/* If the surplus arguments from index `next' to `top' can be given by name:
   records an error with a hint that says so, and returns 1
   (extra_arguments.c). [-0, +n, e] */
int nl_hint_named_arguments(lua_State *L, const Signature *s, int next,
                            int top);
/* Raises the error for these surplus arguments. [-0, +0, v] */
int nl_too_many_arguments(lua_State *L, const Signature *s, int next, int top);
/* Reads the argument of NL_SEED and seeds the generator of all devices and
   math.random. [-0, +0, e] */
#define NL_SEED "seed:int"
void nl_reseed(lua_State *L, Signature *s, const char *op);

/*
** Tables (table_arguments.c)
*/

/* Replaces the table at index i, if it has metamethods that affect reading, by
   a plain copy made through them: its elements, its pairs, and, if it is not
   a list, the fields named in the list at index `names' (0: none). Returns 0
   for any other value, which stays. [-0, +0, e] */
int nl_plain_table(lua_State *L, int i, int names);
/* The same for a table of named arguments. [-0, +0, e] */
void nl_plain_options(lua_State *L, int i, const Signature *s);
/* True if the pair on top is the field n of table.pack, in a table of n
   elements. [-0, +0, -] */
int nl_ispacked(lua_State *L, int64_t n);
/* True if the value at index i is a table with names and without elements.
   [-0, +0, e] */
int nl_isoptions(lua_State *L, int i, const Signature *s);
/* What is wrong with the keys of the list at index i, or NULL.  *name is the
   key if it is a string, else NULL. The strings stay on the stack.
   [-0, +n, e] */
const char *nl_find_bad_key(lua_State *L, int i, const char **name);
/* Raises an error if there is something wrong with the keys. [-0, +0, e] */
void nl_checklist(lua_State *L, const char *op, int i);
/* Sets the metatable of the list of results on top: using the list as a tensor
   raises an error that explains it. [-0, +0, m] */
void nl_setlist(lua_State *L);

/*
** Functions
*/
typedef struct Bound {        /* a C function of the binding */
  const char *name;
  lua_CFunction f;
  const char *signature, *doc;
  int where;                  /* NL_FUNCTION, NL_METHOD or both */
} Bound;

/* Pushes a table with the functions of the list. [-0, +1, m] */
void nl_push_bound_table(lua_State *L, const Bound *list);
/* Pushes the function of b, in a wrapper that refuses surplus arguments and
   moves named arguments to their positions (bound_functions.c). [-0, +1, m] */
void nl_pushbound(lua_State *L, const Bound *b);
/* True if the value at index i is that function. [-0, +0, -] */
int nl_isbound(lua_State *L, int i, const Bound *b);

#define NL_FUNCTION 1         /* nacre.name */
#define NL_METHOD 2           /* t:name */

/* Pushes f with the number `which' as its upvalue 1 and returns 1; f reads the
   number with nl_which. [-0, +1, m] */
int nl_closure(lua_State *L, lua_CFunction f, int which);
#define nl_which(L) ((int)(intptr_t)lua_touserdata(L, lua_upvalueindex(1)))

/* The name of the operation for which `name' is an alias, possibly stored in
   own[], or name itself; the i-th alias, or NULL (aliases.c). */
#define NL_NAME 32
const char *nl_resolve_alias(const char *name, char own[NL_NAME]);
const char *nl_alias(int i);
/* Pushes the function of this name that is defined in C; returns 0, with
   nothing pushed, if there is none (registry.c). [-0, +(0|1), m] */
int nl_pushfunction(lua_State *L, const char *name, int where);
/* Creates all functions, or methods, in the table on top. [-0, +0, e] */
void nl_makeall(lua_State *L, int where);
/* Pushes nacre[name], created if necessary; returns 0, with nothing pushed, if
   there is no such name. [-0, +(0|1), e] */
int nl_pushname(lua_State *L, const char *name);
/* Raises the error that nacre, or its subtable `path', at index 1 does not have
   this name. Returns 0 for a name that begins with "_" (strict_names.c).
   [-0, +0, e] */
int nl_unknown_name(lua_State *L, const char *path, const char *name);
/* Makes the table on top, the subtable `path', and those in it raise that error
   for absent fields. [-0, +0, m] */
void nl_make_strict(lua_State *L, const char *path);
/* Sets nacre.long = "int64" and so on in the table at index lib.
   [-0, +0, m] */
void nl_setcasts(lua_State *L, int lib);
int nl_info(lua_State *L);                    /* nacre._info, _names, _rows */
int nl_names(lua_State *L);
int nl_rows(lua_State *L);

/* Upvalue 1 of these is the Op or Operator (dispatch.c). */
int nl_call_pointwise(lua_State *L);
/* Has the second of two operands, a table or an object of Python, this
   metamethod itself? Then replaces them by its result: a tensor is asked first
   if it is the left one. NULL for the event: it has not. [-(0|2), +(0|1), e] */
int nl_call_others(lua_State *L, const char *event);
/* "__add" for OP_add; NULL for what is no operator of Lua (nacre.c). */
const char *nl_event_of(Op op);
int nl_call_pointwise_into(lua_State *L);
int nl_call_operator(lua_State *L);
int nl_call_operator_into(lua_State *L);
int nl_callwhere(lua_State *L);               /* overloads.c: t:where */
int nl_where_condition(lua_State *L);
/* Handles a call of f in a form that its signature does not have: pushes the
   results and returns how many, or returns 0. [-0, +n, e] */
int nl_call_overload(lua_State *L, Operator f);

/*
** Lua functions that autograd graphs hold (memory/graph_cycles.c)
*/
typedef struct Ref {
  lua_State *main;
  int ref;                    /* as of luaL_ref */
  Node **node;                /* in the userdata of a custom function */
} Ref;

/* Anchors the value at index i for a graph, which owns the result and frees it
   with nl_dropref. [-0, +0, e] */
Ref *nl_newref(lua_State *L, int i, Node **node);
void nl_dropref(void *ref);
int nl_isref(void (*drop)(void *));           /* does it free a Ref? */
/* Pushes the value; returns 0, with nothing pushed, if it was collected.
   [-0, +(0|1), -] */
int nl_pushref(lua_State *L, const Ref *f);
/* Registers the tensor at index i, whose graph may lead to such a value.
   [-0, +0, m] */
void nl_maycycle(lua_State *L, int i);
#define nl_result(L, i) (nl_state(L)->refs ? nl_maycycle(L, i) : (void)0)
/* Called before and after a full collection, so that cycles through graphs are
   found. nl_untie_cycles returns 0 if there is nothing to do; nl_retie_cycles
   must not be called then. [-0, +0, -] */
int nl_untie_cycles(lua_State *L);
void nl_retie_cycles(lua_State *L);
int nl_inbackward(void);                      /* lua_backward.c */

/*
** Traced functions (fused_functions.c, fused_numbers.c)
*/
#define NL_FUSED_NUMBERS 64

/* The numbers of a trace, each an argument, a constant, or an operation of Lua
   on two others. */
typedef struct Numbers {
  int n;
  struct {
    int op;                   /* LUA_OPADD ..., or one of these */
    int a, b;                 /* the argument; the numbers, from 1 */
    Scalar value;             /* of a constant */
  } number[NL_FUSED_NUMBERS];
} Numbers;
enum { NL_NUMBER_ARGUMENT = -1, NL_NUMBER_CONSTANT = -2 };

/* Pushes what stands for number `index' of the arguments, v, in a trace. The
   value at index `owner' holds *k. [-0, +1, e] */
void nl_push_symbol(lua_State *L, Numbers *k, int owner, int index, Scalar v);
/* Reads such a number as an operand; returns 0 for another value.
   [-0, +0, -] */
int nl_tosymbol(lua_State *L, int i, Scalar *v);
/* v[] = the numbers for the arguments at index first and following.
   [-0, +0, e] */
void nl_set_numbers(lua_State *L, const Numbers *k, int first, Scalar v[]);
extern const Bound nl_fused[];                /* fused_functions.c */

/*
** The tables of C functions, one or more of each file
*/
extern const Bound nl_conversions[];          /* conversion.c */
extern const Bound nl_bytes[];                /* byte_strings.c */
extern const Bound nl_tensor_fields[];        /* tensor_fields.c */
extern const Bound nl_inplace_views[];        /* inplace_views.c */
extern const Bound nl_defaults[];             /* defaults.c */
extern const Bound nl_files[];                /* tensor_files.c */
extern const Bound nl_archives[];             /* archive_handle.c */
extern const Bound nl_op_events[];            /* op_events.c */
extern const Bound nl_to_device[];            /* to_device.c */
extern const Bound nl_cuda[];                 /* cuda_module.c: nacre.cuda */
extern const Bound nl_stream_methods[];       /* cuda_streams.c: methods */
extern const Bound nl_gradient_methods[];     /* autograd.c */
extern const Bound nl_backward_methods[];     /* lua_backward.c */
extern const luaL_Reg nl_backward_internals[]; /* nacre.autograd._backward */
extern const Bound nl_grad_mode[];            /* grad_mode.c */
extern const Bound nl_autograd_functions[];   /* autograd.c: nacre.autograd */
extern const Bound nl_event_methods[];        /* cuda_streams.c: methods */
extern const Bound nl_png[];                  /* png.c */
extern const Bound nl_python[];               /* python_module.c */
extern const Bound nl_python_functions[];     /* the same: of nacre.python() */
extern const Bound nl_random_functions[];     /* generator.c */
extern const Bound nl_generator_methods[];    /* generator.c */
extern const Bound nl_process_groups[];       /* distributed/process_group.c */
extern const Bound nl_collectives[];          /* distributed/collectives.c */
extern const Bound nl_work_methods[];         /* distributed/works.c */
extern const luaL_Reg nl_distributed_internals[]; /* collectives.c */
/* The generator at index i, or NULL. [-0, +0, m] */
Generator *nl_togenerator(lua_State *L, int i);

/*
** Fields and indices of tensors
*/
int nl_getfield(lua_State *L);                /* tensor_fields.c: __index */
int nl_isfield(const char *key);              /* shape, dtype, ...? */
/* Replaces the table of methods on top by nacre.Tensor (user_methods.c).
   [-1, +1, m] */
void nl_push_user_methods(lua_State *L);
/* For t[key] = value with a string key: raises an error if key is a name,
   returns 0 if it is an index. [-0, +0, e] */
int nl_checkassign(lua_State *L);
/* Pushes t.grad and other fields of autograd.c; returns 0, with nothing pushed,
   if key is not such a field. [-0, +(0|1), e] */
int nl_gradfield(lua_State *L, Tensor *t, const char *key);
/* For t[key] = value: sets such a field; returns 0 if key is not one.
   [-0, +0, e] */
int nl_setgradfield(lua_State *L, const char *key);
/* t.data = x: the tensor at index 1 shows the storage of the one at index 3; a
   leaf that requires a gradient stays one. [-?, +1, e] */
int nl_setdata(lua_State *L);
/* Pushes nacre.autograd and returns 1. [-0, +1, e] */
int nl_pushautograd(lua_State *L);

/*
** Lua code of the binding (lib/)
*/
typedef struct Embedded {     /* a Lua file, see embed.cmake */
  const char *name;
  const unsigned char *text;
  size_t size;
} Embedded;

extern const Embedded nl_embedded[], nl_display[];
/* The Lua files take their globals now, not when the first of them is loaded:
   what scripts assign to these names later does not concern them.
   [-0, +0, m] */
void nl_open_embedded(lua_State *L);
/* In the program: foreign code, of Python for one, may have set a locale in
   which numbers have another point than ours (nc_keep_point). */
void nl_keep_point(void);
/* Pushes an embedded Lua file as a function. [-0, +1, e] */
void nl_pushembedded(lua_State *L, const char *name);
/* Pushes what an embedded Lua file returns, which runs once for each Lua state,
   with a table of these functions and of `fail' (nl_pushfail). [-0, +1, e] */
void nl_push_result_of(lua_State *L, const char *name,
                       const luaL_Reg functions[]);
/* Pushes the table nacre (nacre.c). [-0, +1, -] */
void nl_pushlibrary(lua_State *L);
/* Loads nn.Module and what is made of it (bindings/lib/modules), unless it is
   loaded; returns whether it did. [-0, +0, e] */
int nl_load_modules(lua_State *L);
/* Pushes all[name] of the Lua files, for functions that C calls.
   [-0, +1, e] */
int nl_push_module_function(lua_State *L, const char *name);
/* Sets functions of module_call.c in the table on top. [-0, +0, m] */
void nl_push_module_functions(lua_State *L);
/* Sets in the table on top, if an nn.Module runs, which does: module, "fc1:
   Linear(64, 128), of Net", path, "fc1", and network, the module Net.
   [-0, +0, m] */
void nl_set_modules(lua_State *L);
/* Pushes the path of the module that runs, "block[1].conv", and the class of
   the network, and returns 2, or 0 if none does. [-0, +(0|2), m] */
int nl_push_place(lua_State *L);
/* Pushes fail(op, text, hint, role, t, ...), which raises an error.
   [-0, +1, -] */
void nl_pushfail(lua_State *L);
/* Pushes the module of arguments.lua, which reads arguments by a signature.
   [-0, +1, e] */
void nl_pusharguments(lua_State *L);
/* nacre._signature(name, text): the signature as nl_set_signature gives it, and
   positional, method, inplace. [-0, +1, e] */
int nl_parse_signature(lua_State *L);

/* Operations written in Lua (composed.c). Push the function of a name, or the
   description of the function whose name, or which itself, is at index i;
   both return 0 if there is none, nl_pushcomposed with nothing pushed.
   [-0, +(0|1), e] */
int nl_pushcomposed(lua_State *L, const char *name, int where);
int nl_composedinfo(lua_State *L, int i);
/* Appends their names to the list on top, which has n elements; returns the new
   number. `all' includes names with a dot. [-0, +0, e] */
int nl_composednames(lua_State *L, int n, int all);
/* Creates all of them in the table on top. [-0, +0, e] */
void nl_makecomposed(lua_State *L, int where);
int nl_pairs(lua_State *L);                   /* tensor_fields.c: __pairs */

/*
** Devices (to_device.c, cuda_module.c)
*/

/* The device that the name or ordinal at index i stands for; NULL for another
   type of value. Raises an error if the device cannot be used.
   [-0, +0, e] */
const Device *nl_device(lua_State *L, int i, const char *op);
/* As nl_device; raises an error instead of returning NULL. [-0, +0, e] */
const Device *nl_needdevice(lua_State *L, int i, const char *op);
/* Moves the tensor of a userdata to page-locked memory. Returns a status. */
int nl_pin(Tensor **box);
/* As nl_check, with a hint if the plug-in cannot be opened. [-0, +0, e] */
void nl_checkcuda(lua_State *L, int r, const char *op);
/* t:float() and so on; upvalue 1 is the dtype. */
int nl_convert_dtype(lua_State *L);
/* Raises, with the nearest name, if there is no such dtype. [-0, +0, e] */
DType nl_dtype_named(lua_State *L, const char *op, const char *name);

/* Pushes nacre.cuda or nacre.backends; returns 0, with nothing pushed, for
   another name. [-0, +(0|1), e] */
int nl_pushtable(lua_State *L, const char *name);
/* The plug-in, opened if necessary; raises its error. [-0, +0, e] */
const Accelerator *nl_accelerator(lua_State *L, const char *op);
/* The ordinal of the CUDA device at index i, or in {device=...} there; for none
   or nil, that of the current device. [-0, +0, e] */
int nl_ordinal(lua_State *L, int i, const char *op);

#define NL_STREAM "device:device=nil, priority:int=0 -> stream"
#define NL_EVENT "enable_timing=false, blocking=false -> event"
int nl_empty_cache(lua_State *L);             /* defaults.c */
int nl_raw_kernel(lua_State *L);              /* cuda_kernels.c */
int nl_newstream(lua_State *L);               /* cuda_streams.c */
int nl_newevent(lua_State *L);
int nl_withstream(lua_State *L);
int nl_recordstream(lua_State *L);
int nl_setstream(lua_State *L);
int nl_currentstream(lua_State *L);
int nl_defaultstream(lua_State *L);
/* Pushes a userdata whose __close restores the device that is current now, and
   the current stream of device i. [-0, +1, m] */
void nl_push_restore(lua_State *L, int i);

int nl_index(lua_State *L);     /* index_keys.c: t[key], not a name */
int nl_newindex(lua_State *L);  /* __newindex */
int nl_call(lua_State *L);      /* __call */

#endif
