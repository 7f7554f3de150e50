/* SPDX-License-Identifier: MIT */
/*
** nccl_team.h - what the files of this folder share: communicators and the
** operations that they have under way.
*/
#ifndef cuda_nccl_nccl_team_h
#define cuda_nccl_nccl_team_h

#include "cuda/nccl/nccl_library.h"
#include "cuda/runtime/gpu.h"
#include "core/accelerator.h"
#include "core/transport.h"

struct DeviceWork {
  DeviceTeam *team;
  Coll c;                     /* kind and number, to say what is waited for */
  cudaEvent_t event;          /* after it, in the stream of the team */
  int passed;                 /* has the event? Then it is given back */
  int failed;                 /* it ended by an abort */
  int freed;                  /* by who started it */
  DeviceWork *next;           /* of the team, the next one */
};

struct DeviceTeam {
  Gpu *gpu;
  Stream *stream;             /* all its operations are in this one */
  Comm comm;                  /* NULL: it was aborted */
  Team *team;                 /* of the transport */
  int rank, size;
  int isready;
  int freed;                  /* by the core; works may refer to it */
  int64_t failed;             /* when NCCL reported a failure, or 0 */
  int64_t seen, since;        /* the operation that the host found under way,
                                 by number, and when it first did */
  DeviceWork *first, *last;   /* under way, in order */
  int works;                  /* of which somebody holds the handle */
  DeviceTeam *next;           /* of all */
};

/* Waits until NCCL has taken what it was given: a communicator that does not
   block says so later. */
int nc_settle_team(DeviceTeam *t, int result);
/* Nothing more can be done in it. */
void nc_abort_team(DeviceTeam *t);
/* Forgets the works whose events have passed. */
int nc_prune_team(DeviceTeam *t);
/* Fails with the error of an NCCL call, after abort. */
int nc_fail_team(DeviceTeam *t, int code, int result);

/* Gives NCCL the operation, in the stream of the team (nccl_calls.c). */
int nc_call_nccl(DeviceTeam *t, const Coll *c);

#endif
