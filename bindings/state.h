/* SPDX-License-Identifier: MIT */
/* state.h - what the binding keeps for each Lua state, and when its garbage
   collector runs (memory/). */
#ifndef bindings_state_h
#define bindings_state_h

#include "bindings/binding.h"

typedef struct Node Node; /* core/autograd.h */

#define NL_MAXGPUS 64

/* The state of the binding in one Lua state, whose registry holds it. */
typedef struct State {
  Context context;            /* defaults and switches for the core */
  int64_t threshold;          /* live bytes that cause a full collection */
  int64_t early;              /* the same, if there is time for it */
  int64_t extra_slack;        /* bytes that this adds to what is alive */
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
  int weakened;               /* they are held weakly (graph_cycles.c) */
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

/* Finds the State of this Lua state, which its registry keeps alive, or creates
   it. Raises an error while another thread has one. [-0, +0, e] */
const State *nl_open_state(lua_State *L);

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
/* r = the status of a call, which is made again as nl_retry says. */
#define nl_try(L, r, call)                       \
  do {                                           \
    int attempt_ = 0;                            \
    do r = (call);                               \
    while (nl_retry(L, r, attempt_++));          \
  } while (0)

/* The same; raises the error in the name of op, or that of a method of self. */
#define nl_try_as(L, op, call)  \
  do {                          \
    int r_;                     \
    nl_try(L, r_, call);        \
    nl_check_as(L, r_, op);     \
  } while (0)
#define nl_try_self(L, op, call) \
  do {                           \
    int r_;                      \
    nl_try(L, r_, call);         \
    nl_check_self(L, r_, op);    \
  } while (0)

/* The same for an operation that writes to the tensor, or the list of tensors,
   at index out (0: none). It is not repeated if it may have written a part;
   `writes' is the result of nl_writes before the first attempt. [-0, +0, e] */
int nl_retry_into(lua_State *L, int status, int attempt, int out,
                 int64_t writes);
int64_t nl_writes(lua_State *L, int out);

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
   found. nl_weaken_cycles returns 0 if there is nothing to do; nl_anchor_cycles
   must not be called then. [-0, +0, -] */
int nl_weaken_cycles(lua_State *L);
void nl_anchor_cycles(lua_State *L);
int nl_inbackward(void);                      /* lua_backward.c */

#endif
