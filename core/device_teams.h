/* SPDX-License-Identifier: MIT */
/*
** device_teams.h - collective operations between the devices of several
** processes, which an accelerator carries by itself (NCCL): a part of
** accelerator.h, which includes it.  core/transport.h has the operations, Coll.
**
** A device team belongs to a Team of the transport, over which its members meet
** (base/device_teams.c).  Its operations run in a stream of its own, in the
** order in which they are started; the host waits for none.
*/
#ifndef core_device_teams_h
#define core_device_teams_h

typedef struct DeviceTeam DeviceTeam;
typedef struct DeviceWork DeviceWork;
struct Coll;
struct Team;

#define NC_TEAMID 128         /* bytes */

/* A member of a new team. */
typedef struct TeamPlace {
  int device;                 /* its ordinal */
  int rank, size;
  int nids;
  const char *ids;            /* as many names, the same for all members */
  struct Team *team;          /* of the transport */
} TeamPlace;

/* X(type of the result, name, parameters), as in ACCELERATOR_CALLS */
#define DEVICE_TEAM_CALLS(X)                                              \
  /* The version of the library, 22809 is 2.28.9; 0: there is none. */    \
  X(int, teamversion, (void))                                             \
  X(int, newteamid, (char id[NC_TEAMID]))                                 \
  /* How many names a team of this size takes, each by another member. */ \
  X(int, teamids, (int size))                                             \
  /* Begins to connect the team; its members do so at the same time. */   \
  X(int, newteam, (DeviceTeam **t, const TeamPlace *p))                   \
  X(int, teamready, (DeviceTeam *t, int *done))                           \
  /* Every member of `of' calls it.  Those of one color begin to connect  \
     their part, in which p is; *t = NULL for a negative color, and, for  \
     all, if the library cannot. */                                       \
  X(int, splitteam, (DeviceTeam **t, DeviceTeam *of, int color,           \
                     const TeamPlace *p))                                 \
  /* `failed': operations under way are aborted. */                     \
  X(void, freeteam, (DeviceTeam *t, int failed))                          \
  /* Can a team do this?  It depends on kind, type and fold alone. */     \
  X(int, teamcan, (const struct Coll *c))                                 \
  /* After what the current stream of the device was given. */            \
  X(int, startwork, (DeviceWork **w, DeviceTeam *t, const struct Coll *c)) \
  X(int, querywork, (DeviceWork *w, int *done))                           \
  X(int, afterwork, (DeviceWork *w))  /* the current stream waits for it */ \
  X(int, waitwork, (DeviceWork *w))   /* the host waits */                \
  X(void, freework, (DeviceWork *w))  /* at any time */                   \
  /* While the host waits for other processes: makes progress on their common \
     work, for a device that does not by itself (the emulated one). */ \
  X(void, progress, (void))

#endif
