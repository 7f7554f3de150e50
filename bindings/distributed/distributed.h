/* SPDX-License-Identifier: MIT */
/* distributed.h - what the files of nacre.distributed share. */
#ifndef bindings_distributed_h
#define bindings_distributed_h

#include "bindings/binding.h"
#include "core/device_teams.h"
#include "core/transport.h"

/* The transport; raises an error of `op' before init_process_group.
   [-0, +0, e] */
const Transport *nl_transport(lua_State *L, const char *op);
/* The team of the group at index i, or that of all processes for nil; raises an
   error if this process is not in it. [-0, +0, e] */
Team *nl_team(lua_State *L, int i, const char *op);
/* The rank in the team of rank `rank' of the world. [-0, +0, e] */
int nl_teamrank(lua_State *L, Team *t, lua_Integer rank, const char *op);

/* How the memory of a tensor is used. */
typedef enum Use { USE_READ, USE_WRITE, USE_CHANGE } Use;

/* An operation on tensors that is under way.  The transport reads and writes
   `in' and `out', which are dense and of the host; or the device does, on which
   both lie. */
typedef struct Flight {
  Work *w;                    /* NULL: done, unless there is the other one */
  DeviceWork *d;              /* on a device */
  Use use;                    /* of out */
  Tensor *in, *out;
  Tensor *target;             /* takes out; NULL: out is the user's tensor */
  int mean;                   /* out is divided by this; 0: it is not */
  CollKind kind;
} Flight;

/* Sets f->in of a tensor that is read, f->out of one that is written to. */
int nl_flight_tensor(Flight *f, Tensor *t, Use use);
/* Starts c with the tensors of f. */
int nl_start_flight(Flight *f, Coll *c);
/* Waits, and gives the results to the user's tensors. */
int nl_finish_flight(Flight *f, double seconds, int *sender);
/* Gives up the references, or keeps the memory for as long as it is in use. */
void nl_drop_flight(Flight *f);
/* Pushes a work that takes over *f; `result', the value at index i, is what its
   wait gives. [-0, +1, m] */
Flight *nl_push_work(lua_State *L, int i);
int nl_after_work(lua_State *L);              /* works.c */

/* Lets stdout be that of all ranks, of rank 0 only ("rank0"), or lines with the
   rank before them ("prefix"); NULL: as the environment says. */
int nl_rank_output(const Transport *t, const char *mode);

int nl_world_group(lua_State *L);             /* process_group.c */
int nl_deafen_group(lua_State *L);
int nl_tell_failure(lua_State *L);

#endif
