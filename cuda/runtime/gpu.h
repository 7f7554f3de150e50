/* SPDX-License-Identifier: MIT */
/*
** gpu.h - a device as the runtime of the plug-in sees it: its streams, its
** memory, what went wrong.  For the files of the runtime only; kernels and
** their launchers use cuda.h.
**
** A device is opened at its first use (nc_open), so that those that are never
** used cost nothing.  All of it belongs to the thread that runs the program.
*/
#ifndef cuda_runtime_gpu_h
#define cuda_runtime_gpu_h

#include "cuda/cuda.h"

#define MAXDEVICES 16
#define MAXSTREAMS 64         /* of a device; as many as `used' has bits */
#define MiB ((int64_t)1 << 20)

typedef struct Gpu Gpu;
typedef struct Segment Segment;

/*
** Streams.  A stream that is given back keeps its handle, its memory and its
** place in the array: the next one that is asked for takes it over.
*/
struct Stream {
  Gpu *gpu;
  int index, priority, taken; /* taken: somebody has it */
  cudaStream_t handle;        /* NULL: not made yet */
};

/*
** Memory.  A segment is a piece that CUDA gave; it is cut into blocks, which
** belong to the stream that asked for it.
*/
typedef struct Block {
  char *p;
  int64_t bytes;
  Segment *segment;
  struct Block *before, *after;   /* neighbours in the segment */
  struct Block *next, *last;      /* in the list of its bin, while free */
  uint64_t used;              /* other streams that use it, a bit each */
  int isfree, awaited;        /* events that must pass before it is free */
} Block;

struct Segment {
  char *p;
  int64_t bytes, unit;        /* no two blocks begin in one unit */
  int stream, small;
  Block **at;                 /* for each unit the block that begins there */
};

#define BINSTEPS 8            /* an octave */
#define BINS (BINSTEPS * 40)

typedef struct Pool {
  uint64_t some[BINS / 64];   /* which bins hold a block */
  Block *bin[BINS];           /* last in, first out */
} Pool;

/* A block that was freed while another stream might be using it. */
typedef struct Awaited {
  Block *block;
  cudaEvent_t event;
  struct Awaited *next;
} Awaited;

typedef struct Stock {        /* of idle events */
  cudaEvent_t *event;
  int n, room;
} Stock;

struct Gpu {
  Device device;              /* first: a Gpu is a Device */
  char name[24];
  int ordinal, isopen, processors;
  int64_t total;              /* bytes of memory */
  char why[200];              /* what broke it; "" while it works */
  const char *latest;         /* the operation launched last, or NULL */
  Stream stream[MAXSTREAMS];
  int current, nstreams;
  ErrorFlag *flag, *flagthere;     /* for the host, for the device */
  Stock stock[2];             /* without and with timing */
  uint64_t peers;             /* devices whose memory it can reach */
  struct Staging *staging;

  Memory memory;
  MemoryInfo info;            /* the counters of it */
  Pool *pool[MAXSTREAMS][2];  /* large, small */
  Segment **segment;          /* by address */
  int nsegments, segmentroom;
  Awaited *awaited[MAXSTREAMS], **awaitedend[MAXSTREAMS];
};

extern Gpu nc_gpu[MAXDEVICES];
extern int nc_gpus;
extern int nc_selected;       /* the ordinal that "cuda" stands for */

#define gpuof(d) ((Gpu *)(d))

/*
** cuda_devices.c
*/
int nc_finddevices(void);     /* fills nc_gpu */
int nc_open(Gpu *g);          /* makes it current for CUDA, too */
void nc_activate(const Gpu *g);
Gpu *nc_active(void);         /* the one that is current for CUDA, or NULL */
int nc_info(int i, DeviceInfo *out);
int nc_peer(int i, int j);
const char *nc_fact(int n);
void nc_close(void);          /* gives everything back, waiting for it */

/*
** cuda_error.c
*/
void nc_errorinit(void);
int nc_broken(const Gpu *g);  /* fails with what broke it */
int nc_check_error_flag(Gpu *g);  /* fails if a kernel set it; clears it */
int nc_failed(int i);

/*
** wait.c: each polls, answers an interrupt with NC_EINTR, looks at the flag
*/
int nc_waitfor(Gpu *g, cudaStream_t s);
int nc_waitforevent(Gpu *g, cudaEvent_t e);
int nc_waitall(Gpu *g);       /* every stream */
int nc_waitidle(Gpu *g);      /* the same, leaving the flag alone */

/*
** event.c: those of the runtime itself
*/
int nc_takeevent(Gpu *g, cudaEvent_t *e);
void nc_putevent(Gpu *g, cudaEvent_t e);
int nc_record_event(Gpu *g, cudaEvent_t *e, cudaStream_t s); /* a new one */
void nc_closeevents(Gpu *g);

/*
** stream.c
*/
int nc_openstreams(Gpu *g);
void nc_closestreams(Gpu *g);

/*
** segments.c
*/
Block *nc_newsegment(Gpu *g, int64_t bytes, int small, cudaError_t *e);
int nc_dropsegment(Gpu *g, Segment *s);     /* 0: CUDA refused */
Block *nc_blockat(const Gpu *g, const void *p);     /* the block p lies in */
Block *nc_takeblock(Pool *pool, int64_t bytes);     /* NULL: none fits */
int nc_cutblock(Gpu *g, Block *b, int64_t bytes);    /* the rest is free */
void nc_returnblock(Gpu *g, Block *b);      /* merges it with neighbours */
Pool *nc_pool(Gpu *g, int stream, int small);
void nc_dropspares(void);

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
void nc_pinnedused(const Gpu *g, const void *p);  /* on its current stream */
int nc_newpages(void **p, int64_t bytes, unsigned flags);
void nc_closepinned(void);

/*
** transfer.c
*/
void nc_closestaging(Gpu *g);

#endif
