/* SPDX-License-Identifier: MIT */
/*
** transport.h - what carries the elements of tensors between processes.
**
** nacre.distributed asks a transport for collective operations on dense memory
** of the host.  A program that was not launched as one of several has the
** transport `single', of one rank, which is in the core.  Others are plug-ins
** (mpi/), opened when nacre.distributed is initialized.  A plug-in is compiled
** on the machine of the user against the MPI that is there, so this header and
** those that it includes stand alone.
**
** Ranks count from 0.  A team is some of the processes, in an order; ranks are
** those in the team unless the text says "of the world".  Calls come from one
** thread.  A function that can fail returns NC_OK or a code of error_codes.h,
** whose text it has given to TransportCore.fail.
*/
#ifndef core_transport_h
#define core_transport_h

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "core/dtype.h"
#include "core/error_codes.h"

/* X(name): the operations, in the order of the enumeration. */
#define COLLECTIVES(X)                                               \
  X(barrier) X(broadcast) X(all_reduce) X(reduce) X(all_gather)      \
  X(gather) X(scatter) X(reduce_scatter) X(all_to_all) X(split)      \
  X(send) X(recv)

#define X(name) COLL_##name,
typedef enum CollKind { COLLECTIVES(X) COLL_COUNT } CollKind;
#undef X

/* How elements of several ranks become one.  nan wins in min and max; for bool
   sum and max are or, prod and min are and. */
#define COLL_FOLDS(X) X(sum) X(prod) X(min) X(max) X(band) X(bor) X(bxor)

#define X(name) FOLD_##name,
typedef enum CollFold { COLL_FOLDS(X) FOLD_COUNT } CollFold;
#undef X

typedef struct Team Team;
typedef struct Work Work;     /* an operation under way */

/* Where operands lie: on the host; on devices that the members of the team have
   connected, or not yet. */
typedef enum CollPlace { PLACE_HOST, PLACE_DEVICE, PLACE_NEW } CollPlace;

/* One operation.  Every rank of the team starts the same ones in the same
   order; send and recv are of two ranks.  Transport.split is a kind, too, to be
   compared with the others, but is not started. */
typedef struct Coll {
  CollKind kind;
  CollFold fold;
  DType type;
  int root;                   /* or the other rank; recv: -1 is any */
  int tag;                    /* of send and recv; recv: -1 is any */
  int async;                  /* the program goes on before it waits */
  CollPlace place;            /* of the operands, to be compared */
  int64_t number;             /* of announce; 0: it was not called */
  int64_t n;                  /* elements of a block; a side that has a block
                                 for each rank has them one after the other */
  const void *in;             /* NULL: the operand is in `out' */
  void *out;
  int nd;                     /* the shape that the user gave, for messages */
  const int64_t *size;
  Team *team;
} Coll;

typedef struct TransportSettings {
  double timeout;             /* s that a wait may take; 0: no limit */
  double warn;                /* s after which a wait says for whom; 0: never */
  int check;                  /* compare what the ranks ask for */
  int background;             /* a thread moves what is under way */
  double spin;                /* s that a wait polls before it sleeps between
                                 polls */
  int64_t chunk;              /* elements of one message, at most */
} TransportSettings;

typedef struct Transport {
  const char *name;           /* "single", "mpi" */
  char library[128];          /* "Open MPI v4.1.4" */
  int rank, size;             /* of the world */
  int localrank, localsize;   /* among the processes of this machine */
  Team *world;
  void (*configure)(const TransportSettings *s);
  const char *(*host)(int rank);            /* of a rank of the world */

  /* Every rank of `of' calls split; those of one color become a team, in the
     order of the keys.  *t = NULL for a negative color. */
  int (*split)(Team **t, Team *of, int color, int key);
  /* Every rank of the team calls it.  What is under way goes on. */
  void (*freeteam)(Team *t);
  /* Waits in this team end by the other ranks only, when they answer or their
     program ends: not by Ctrl-C, failures and time.  For the session itself,
     not for what the user runs in it. */
  void (*deafen)(Team *t);
  void (*place)(const Team *t, int *rank, int *size);
  int (*worldrank)(const Team *t, int rank);
  /* Was the team left in the middle of an operation?  It cannot go on. */
  int (*broken)(const Team *t);

  /* Counts an operation, not send and recv, and compares what the ranks ask for
     if the settings say so; sets c->number.  `start' does that for what was not
     announced; others carry it by themselves (base/device_teams.c). */
  int (*announce)(Coll *c);
  /* This rank waits for c, which others carry, since `waited' seconds.  Fails
     like `wait', but not for Ctrl-C. */
  int (*watch)(Team *t, const Coll *c, double waited);
  /* The team was left in the middle of such an operation. */
  void (*lose)(Team *t);
  /* Starts an operation.  The memory must stay until it is done.  *w = NULL: it
     is done already. */
  int (*start)(Work **w, const Coll *c);
  int (*test)(Work *w, int *done);
  /* Ends also with NC_EINTR after Ctrl-C, and with NC_EPEER if another rank
     failed or did not answer within `seconds' (0: the limit of the settings).
     The work is then not done, and never will be. */
  int (*wait)(Work *w, double seconds);
  void (*sender)(const Work *w, int *rank); /* of a recv that is done */
  void (*freework)(Work *w);                /* done; or it has failed */

  /* This rank failed: those that wait, and will wait, are told. */
  void (*tell)(const char *text);
  /* After a failure: every process calls it.  What was told is forgotten; if
     the world is broken for one of them, all have a new one. */
  int (*renew)(Team **world);
  /* The end of the program.  With status 0 it waits for the other ranks to
     end; else it ends all of them. */
  void (*leave)(int status);
} Transport;

/* What a transport gets from the core.  What comes first stays: by it a plug-in
   of another build finds out that it is one, and says so. */
typedef struct TransportCore {
  int abi;                    /* NC_TRANSPORT_ABI */
  size_t core, transport, coll, settings;   /* sizes of structures */
  const char *version;
  int (*fail)(int code, const char *fmt, ...);
  void (*hint)(const char *fmt, ...);
  void (*error_peer)(int rank, const char *host);
  volatile sig_atomic_t *interrupted;
  /* acc[i] = acc[i] folded with x[i], by the fastest loop of this machine */
  void (*fold)(DType t, CollFold fold, void *acc, const void *x, int64_t n);
  void (*idle)(void);         /* to be called again and again in a wait */
} TransportCore;

#define NC_TRANSPORT_ABI 4
#define NC_TRANSPORT "nacre_transport"
typedef int TransportEntry(const TransportCore *core, const Transport **t);

/*
** The side of the program (core/base/transport.c)
*/

/* acc[i] = acc[i] folded with x[i], i < n.  Any thread may call it.  Halves
   are folded in float; floats have no band, bor and bxor (cpu/fold.c). */
void nc_fold_into(DType t, CollFold fold, void *acc, const void *x, int64_t n);

typedef enum Backend { BACKEND_AUTO, BACKEND_SINGLE, BACKEND_MPI } Backend;

/* Opens the transport: `auto' is `single' unless a launcher started this
   process as one of several.  The first transport that was opened stays. */
int nc_transport(const Transport **t, Backend b);
const Transport *nc_open_transport(void);   /* NULL: none is open */
/* The end of the program with this status; a second call does nothing. */
void nc_leave_transport(int status);

/* Operations on tensors of device d, which needs no copies where its plug-in
   can do them, or passes them through the host in parts.  Announces c.
   *taken = 0: nothing was started, the operands must be copied to the host.
   *w = NULL: it is done.  The other functions are
   those of the accelerator (device_teams.h). */
struct Device;
struct DeviceWork;
int nc_start_on_device(struct DeviceWork **w, Coll *c, const struct Device *d,
                       int *taken);
/* How operands on d go from rank to rank in this team: "nccl", or why they pass
   through the host; NULL: none has come yet. */
const char *nc_device_way(const Team *t, const struct Device *d);
/* After Transport.split, which has made `part' of `of', or NULL: parts of what
   is connected are connected at once, as all members of `of' are here. */
int nc_split_device_teams(const Team *of, Team *part, int color);
/* Before the team is freed, and, for all that have failed, after renew. */
void nc_free_device_teams(const Team *t);
void nc_free_failed_device_teams(void);
void nc_device_progress(void);

/* path = the folder of the user's own plug-ins; 0 if there is no home. */
int nc_plugin_folder(char *path, size_t room);
/* The settings of the environment, with the usual values for the rest. */
TransportSettings nc_transport_settings(void);

#endif
