/* SPDX-License-Identifier: MIT */
/*
** mpi_transport.h - what the files of the transport over MPI share.  They are
** compiled together on the user's machine (nacre --build-mpi), against its
** mpi.h and core/transport.h, and need no symbol of the program.
**
** MPI is initialized with MPI_THREAD_SERIALIZED: whoever calls it holds `lock',
** so that a thread may move what is under way.
*/
#ifndef mpi_transport_h
#define mpi_transport_h

#include <mpi.h>
#include <pthread.h>

#include "core/transport.h"

/* Two communicators for each team: one for the data, one for notes between the
   ranks and for the check.  A rank that is stuck in one can be reached by the
   other. */
struct Team {
  MPI_Comm data, control;
  int rank, size;
  int *world;                 /* the ranks of the world by those of the team */
  int64_t number;             /* of the last collective operation */
  int broken;
  int works, left;            /* freed when it is left and has no works */
  int deaf;                   /* see Transport.deafen */
  int64_t hash[2], most[2];   /* of the check, which may be under way */
};

struct Work {
  Coll c;
  MPI_Request *req;
  MPI_Datatype *types;        /* made for this work */
  int n, ntypes;
  int done, source;
  MPI_Request one;            /* req of a work of one request */
};

extern const TransportCore *tp_core;
extern TransportSettings tp_settings;
extern Transport tp_transport;
extern const char *const tp_names[];        /* of the operations */
extern const char *const tp_folds[];

/* Notes on control communicators. */
enum { NOTE_FAILED = 1, NOTE_LATE, NOTE_ENDED };

void tp_lock(void);
void tp_unlock(void);
/* Records the failure of an MPI function; returns NC_EDEVICE. */
int tp_failed(const char *what, int code);

#define MPI(call)                                         \
  do {                                                    \
    int m_;                                               \
    tp_lock();                                            \
    m_ = (call);                                          \
    tp_unlock();                                          \
    if (m_ != MPI_SUCCESS) return tp_failed(#call, m_);   \
  } while (0)

/*
** Types and folds (mpi_types.c)
*/
int tp_open_types(void);
void tp_close_types(void);
MPI_Datatype tp_type(DType t);
MPI_Op tp_op(DType t, CollFold f);
int64_t tp_bytes(DType t);

/*
** Waiting (mpi_wait.c)
*/
typedef struct Wait {
  Team *team;
  const char *name;           /* "all_reduce" */
  int64_t number;             /* 0: of send and recv */
  int peer;                   /* the rank that is waited for; -1: all, or any */
  double seconds;             /* 0: no limit */
} Wait;

/* Waits until all requests are done; status may be NULL.  A collective
   operation that fails breaks the team. */
int tp_wait(MPI_Request *req, int n, MPI_Status *status, const Wait *w);
/* Transport.watch: one look in a wait that is not of MPI. */
int tp_watch(Team *t, const Coll *c, double waited);
extern MPI_Comm tp_faults; /* of all processes, never renewed */
void tp_tell(const char *text);
void tp_tell_end(void);       /* the program of this rank ends */
/* Learns whose programs have ended; returns one of these ranks, or -1. */
int tp_hear_ended(void);
/* The next note of a failure: its text and sender; 0 if there is none. */
enum { NOTE_TEXT = 400 };
int tp_told(char text[NOTE_TEXT], int *rank);
int tp_open_notes(void);
double tp_now(void);

/*
** Comparing what the ranks ask for (mpi_check.c)
*/
int tp_compare(const Coll *c);
/* Waits until all ranks of the team are in Transport.split, whose functions of
   MPI block. */
int tp_meet_to_split(Team *t);

/*
** Operations (mpi_works.c)
*/
int tp_fail_broken(void);     /* the error of a broken team */
void tp_free_left(Team *t);   /* unless something is under way */
int tp_announce(Coll *c);
int tp_start(Work **w, const Coll *c);
int tp_test(Work *w, int *done);
int tp_waitwork(Work *w, double seconds);
void tp_sender(const Work *w, int *rank);
void tp_freework(Work *w);

/*
** The thread (mpi_thread.c)
*/
void tp_background(int on);
void tp_count_async(int change);

#endif
