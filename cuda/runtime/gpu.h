/* SPDX-License-Identifier: MIT */
/*
** gpu.h - the state of a device: its streams, its memory, its errors.  Only the
** files of cuda/runtime include it; kernels and their launchers use cuda.h.
**
** A device is opened at its first use (nc_open), so that unused devices cost
** nothing.  Only the thread that runs the program uses this state; there are no
** locks.
*/
#ifndef cuda_runtime_gpu_h
#define cuda_runtime_gpu_h

#include "cuda/cuda.h"

#define MAXDEVICES 16
#define MAXSTREAMS 64         /* of a device; the bits of Block.used */
#define MiB ((int64_t)1 << 20)

typedef struct Gpu Gpu;
typedef struct Segment Segment;

/*
** Streams.  A stream that the user frees is not destroyed: it keeps its CUDA
** stream, its cached memory and its index, and nc_newstream returns it again.
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

/* A freed block that another stream may still be using, until the event. */
typedef struct Awaited {
  Block *block;
  cudaEvent_t event;
  struct Awaited *next;
} Awaited;

typedef struct Stock {        /* unused CUDA events */
  cudaEvent_t *event;
  int n, room;
} Stock;

struct Gpu {
  Device device;              /* first: a Gpu is a Device */
  char name[24];
  int ordinal, isopen, processors;
  int64_t total;              /* bytes of memory */
  char why[200];              /* the sticky error; "": it works */
  const char *latest;         /* the operation launched last, or NULL */
  Stream stream[MAXSTREAMS];
  int current, nstreams;
  ErrorFlag *flag, *flagthere;     /* its host and device address */
  Stock stock[2];             /* without and with timing */
  uint64_t peers;             /* devices with peer access tried */
  struct Staging *staging;

  Memory memory;
  MemoryInfo info;            /* the allocator's counters */
  Pool *pool[MAXSTREAMS][2];  /* large, small */
  Segment **segment;          /* sorted by address */
  int nsegments, segmentroom;
  Awaited *awaited[MAXSTREAMS], **awaitedend[MAXSTREAMS];
};

extern Gpu nc_gpu[MAXDEVICES];
extern int nc_gpus;
extern int nc_selected;       /* the current device, which "cuda" means */

#define gpuof(d) ((Gpu *)(d))

/*
** cuda_devices.c
*/
int nc_finddevices(void);     /* fills nc_gpu */
/* Opens g unless it is open; makes it current for the CUDA runtime. */
int nc_open(Gpu *g);
void nc_activate(const Gpu *g); /* makes g current for the CUDA runtime */
Gpu *nc_active(void);         /* the device current for CUDA, or NULL */
int nc_info(int i, DeviceInfo *out);
int nc_peer(int i, int j);
const char *nc_fact(int n);   /* info.c */
void nc_close(void);          /* waits for all devices and frees all */

/*
** cuda_error.c
*/
void nc_errorinit(void);      /* reads NACRE_CUDA_SYNC */
int nc_broken(const Gpu *g);  /* fails with g's sticky error */
int nc_check_error_flag(Gpu *g);  /* fails if a kernel set it; clears it */
int nc_failed(int i);         /* device i, or -1: any; see Accelerator */

/*
** wait.c: each function but nc_waitidle polls, fails with NC_EINTR if the user interrupts, and
** then checks the error flag
*/
int nc_waitfor(Gpu *g, cudaStream_t s);
int nc_waitforevent(Gpu *g, cudaEvent_t e);
int nc_waitall(Gpu *g);       /* every stream */
int nc_waitidle(Gpu *g);      /* the same without checking the flag */

/*
** event.c
*/
/* Events without timing, for the runtime itself. */
int nc_takeevent(Gpu *g, cudaEvent_t *e); /* from the stock, or a new one */
void nc_putevent(Gpu *g, cudaEvent_t e);  /* back into the stock */
/* Takes an event and records it on s; the caller puts it back. */
int nc_record_event(Gpu *g, cudaEvent_t *e, cudaStream_t s);
void nc_closeevents(Gpu *g);
/* Events of the user; core/devices.h has the contracts. */
int nc_newevent(Event **e, int timing);
void nc_freeevent(Event *e);
int nc_record(Event *e, Stream *s);
int nc_after(Stream *s, Event *e);
int nc_queryevent(Event *e, int *done);
int nc_waitevent(Event *e);
int nc_elapsed(double *ms, Event *from, Event *to);

/*
** stream.c
*/
int nc_openstreams(Gpu *g);
void nc_closestreams(Gpu *g);
/* Of the table Accelerator; core/devices.h has the contracts. */
int nc_newstream(Stream **s, int i, int priority);
void nc_freestream(Stream *s);
Stream *nc_stream(int i);
Stream *nc_defaultstream(int i);
int nc_setstream(Stream *s);
int nc_streamdevice(const Stream *s);
uint64_t nc_streamid(const Stream *s);
int nc_querystream(Stream *s, int *done);
int nc_waitstream(Stream *s);
int nc_streamnumber(int i);
int nc_join(int i, uint64_t streams);
int nc_fork(int i, uint64_t streams);

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
int nc_memoryinfo(int i, MemoryInfo *out);
void nc_resetpeak(int i);
void nc_closememory(Gpu *g);

/*
** pinned.c
*/
int nc_pinpages(void **p, int64_t bytes);
void nc_unpinpages(void *p, int64_t bytes);
/* Records that the current stream of g uses the pinned block containing p. */
void nc_pinnedused(const Gpu *g, const void *p);
/* cudaHostAlloc without the cache; the caller calls cudaFreeHost. */
int nc_newpages(void **p, int64_t bytes, unsigned flags);
void nc_closepinned(void);

/*
** transfer.c
*/
void nc_closestaging(Gpu *g);

#endif
