/* SPDX-License-Identifier: MIT */
/*
** gpu.h - the state of a device: its streams, its memory, its errors.  Only the
** files of cuda/runtime and cuda/nccl, cuda/product/cublas_library.c,
** cuda/fusion/programs.c and tests include it; kernels and their launchers use
** cuda.h.
**
** A device is opened at its first use (nc_open), so that unused devices cost
** nothing.  Only the thread that runs the program uses this state; there are no
** locks.
*/
#ifndef cuda_runtime_gpu_h
#define cuda_runtime_gpu_h

#include "cuda/cuda.h"
#include "core/accelerator.h"

#define MAXDEVICES 16
#define MAXSTREAMS 64         /* of a device; the bits of Block.used */
#define MiB ((int64_t)1 << 20)

typedef struct Gpu Gpu;
typedef struct Segment Segment;

/*
** Streams.  A stream that the user frees is not destroyed: it keeps its CUDA
** stream, its cached memory and its index, and nc_cuda_newstream returns it
** again.
*/
struct Stream {
  Gpu *gpu;
  int index, priority, taken; /* taken: the user holds it */
  cudaStream_t handle;        /* NULL: not created yet */
};

/*
** The caching allocator.  A segment is memory from one cudaMalloc.  It is cut
** into blocks, which belong to the stream that the segment was allocated for.
*/
typedef struct Block {
  char *p;
  int64_t bytes;
  Segment *segment;
  struct Block *before, *after;   /* neighbours in the segment */
  struct Block *next, *last;      /* in the list of its bin, while free */
  uint64_t used;              /* set of other streams that use it */
  int isfree, awaited;        /* awaited: events that must pass first */
} Block;

struct Segment {
  char *p;
  int64_t bytes, unit;        /* at most one block begins in a unit */
  int stream, small;
  Block **at;                 /* for each unit: the block that begins in it */
};

#define BINSTEPS 8            /* bins for each power of two */
#define BINS (BINSTEPS * 40)

typedef struct Pool {         /* free blocks of a stream, in bins by size */
  uint64_t some[BINS / 64];   /* bit set: the bin is not empty */
  Block *bin[BINS];           /* last in, first out */
} Pool;

/* A freed block, of the device or pinned, that a stream may still be using,
   until the event.  `end' makes it free after the last of its events, which
   *awaited counts. */
typedef void BlockEnd(Gpu *g, void *block);
typedef struct PendingFree {
  int *awaited;
  BlockEnd *end;
  void *block;
  cudaEvent_t event;
  struct PendingFree *next;
} PendingFree;

typedef struct EventPool {        /* unused CUDA events */
  cudaEvent_t *event;
  int n, room;
} EventPool;

struct Gpu {
  Device device;              /* first: a Gpu is a Device */
  char name[24];
  int ordinal, isopen, processors, capability;
  int64_t total;              /* bytes of memory */
  char why[200];              /* the sticky error; "": it works */
  const char *latest;         /* the operation launched last, or NULL */
  Stream stream[MAXSTREAMS];
  int current, nstreams;
  ErrorFlag *flag, *flagthere;     /* its host and device address */
  EventPool stock[2];             /* without and with timing */
  uint64_t peers;             /* devices with peer access tried */
  struct Staging *staging;

  Memory memory;
  MemoryInfo info;            /* the allocator's counters */
  Pool *pool[MAXSTREAMS][2];  /* large, small */
  Segment **segment;          /* sorted by address */
  int nsegments, segmentroom;
  PendingFree *awaited[MAXSTREAMS], **awaitedend[MAXSTREAMS];
};

extern Gpu nc_gpu[MAXDEVICES];
extern int nc_gpus;
extern int nc_selected;       /* the current device, which "cuda" means */

#define gpuof(d) ((Gpu *)(d))

/* The functions of the table Accelerator; core/devices.h has the contracts. */
#define X(type, name, parameters) type nc_cuda_##name parameters;
ACCELERATOR_CALLS(X)
DEVICE_TEAM_CALLS(X)
#undef X

/*
** cuda_devices.c
*/
int nc_finddevices(void);     /* fills nc_gpu */
/* Opens g unless it is open; makes it current for the CUDA runtime. */
int nc_open(Gpu *g);
cudaError_t nc_activate(const Gpu *g);  /* makes g current for CUDA */
Gpu *nc_active(void);         /* the device current for CUDA, or NULL */
int nc_check_number(int i);   /* fails if there is no device i */
void nc_close(void);          /* waits for all devices and frees all */

/*
** cuda_error.c
*/
void nc_errorinit(void);      /* reads NACRE_CUDA_SYNC */
int nc_broken(const Gpu *g);  /* fails with g's sticky error */
int nc_check_error_flag(Gpu *g);  /* fails if a kernel set it; clears it */

/*
** wait.c: each function that waits, but nc_waitidle, polls, fails with NC_EINTR
** if the user interrupts, and then checks the error flag
*/
int nc_waitfor(Gpu *g, cudaStream_t s);
/* *done = has the work ended whose query gave e? */
int nc_queried(cudaError_t e, int *done);
int nc_waitforevent(Gpu *g, cudaEvent_t e);
int nc_waitidle(Gpu *g);      /* every stream, without checking the flag */

/*
** event.c
*/
/* Takes an event without timing from the stock, or a new one, and records it on
   s; the caller puts it back into the stock. */
int nc_record_event(Gpu *g, cudaEvent_t *e, cudaStream_t s);
void nc_putevent(Gpu *g, cudaEvent_t e, int timing);
void nc_closeevents(Gpu *g);

/*
** stream.c
*/
int nc_openstreams(Gpu *g);
void nc_closestreams(Gpu *g);
/* Makes later work of stream `to' of h wait for all work submitted to stream
   `from' of g. */
int nc_order_streams(Gpu *g, cudaStream_t from, Gpu *h, cudaStream_t to);

/*
** segments.c
*/
/* Allocates a segment for the current stream; returns its only block, which is
   in use, or NULL with the error in *e. */
Block *nc_newsegment(Gpu *g, int64_t bytes, int small, cudaError_t *e);
/* Returns a segment, whose only block is free, to CUDA; 0 if CUDA fails. */
int nc_dropsegment(Gpu *g, Segment *s);
Block *nc_blockat(const Gpu *g, const void *p); /* containing p, or NULL */
/* Takes a free block of at least `bytes' from the pool; NULL if none fits. */
Block *nc_takeblock(Pool *pool, int64_t bytes);
/* Shortens b to `bytes' and frees the rest; 0 if out of host memory. */
int nc_cutblock(Gpu *g, Block *b, int64_t bytes);
/* Frees b, merging it with its free neighbours. */
void nc_returnblock(Gpu *g, Block *b);
/* The pool of a stream, created if need be; NULL if out of host memory. */
Pool *nc_pool(Gpu *g, int stream, int small);
void nc_dropspares(void);     /* frees the unused Block structures */

/*
** device_memory.c
*/
/* Records an event on stream i: the block is not free before it has passed. */
void nc_free_after(Gpu *g, int i, int *awaited, BlockEnd *end, void *block);
/* Frees the blocks whose events have passed.  Never waits. */
void nc_reclaim(Gpu *g);
void nc_closememory(Gpu *g);

/*
** pinned.c
*/
/* Records that the current stream of g uses the pinned block containing p. */
void nc_pinnedused(const Gpu *g, const void *p);
/* cudaHostAlloc without the cache; the caller calls cudaFreeHost. */
int nc_newpages(void **p, int64_t bytes, unsigned flags);
void nc_closepinned(void);

/*
** nccl_team.c, for wait.c
*/
/* One look at what teams have under way on g, since the host waits for g: fails
   if it cannot be done any more. */
int nc_watch_teams(const Gpu *g, int64_t waited);
/* The user interrupted the wait: ends what teams have under way on g.  Was
   there anything? */
int nc_stop_teams(const Gpu *g);

/*
** transfer.c
*/
void nc_closestaging(Gpu *g);

#endif
