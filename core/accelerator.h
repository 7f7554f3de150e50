/* SPDX-License-Identifier: MIT */
/*
** accelerator.h - the devices of a plug-in: streams, events, memory; its entry
** point.  host.h is what it gets from the core.
*/
#ifndef core_accelerator_h
#define core_accelerator_h

#include "core/host.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "core/device_teams.h"

/* Devices are opened at first use; see plugin.c.  Ordinals count from 0. */
typedef struct Stream Stream;
typedef struct Event Event;

typedef struct DeviceInfo {
  char name[256];             /* "NVIDIA H200" */
  int major, minor;           /* compute capability */
  int processors;             /* multiprocessors */
  int64_t memory, l2;         /* bytes */
  int clock, memoryclock;     /* kHz, 0: unknown */
  int bus;                    /* bits, of the memory */
  char uuid[48], pci[24];
} DeviceInfo;

typedef struct MemoryInfo {
  int64_t free, total;        /* of the device, as its driver says */
  int64_t allocated, peak;    /* held by tensors */
  int64_t reserved, reservedpeak;           /* and by the cache */
  int64_t allocs, hits, frees, segments;    /* calls, cudaMalloc'ed pieces */
  int64_t retries;            /* the cache was given back to allocate again */
} MemoryInfo;

typedef struct RawKernel RawKernel;

typedef struct RawSource {
  const char *text;           /* CUDA C++ */
  const char *name;           /* of the kernel in it: "f", "f<float>" */
  const char *const *option;  /* of the compiler; NULL at the end */
} RawSource;

typedef struct RawLaunch {
  int device;
  unsigned grid[3], block[3];
  unsigned shared;            /* bytes of dynamic shared memory */
  void **parameter;           /* where each is */
  Tensor *const *tensor;      /* that the parameters point to */
  int ntensors;
} RawLaunch;

typedef struct RawFacts {
  int registers;              /* of a thread */
  int local;                  /* bytes of a thread in memory: spills, arrays */
  int shared, constant;       /* bytes */
  int threads;                /* of a block, at most */
  int blocks;                 /* of so many threads, at once on a
                                 multiprocessor */
} RawFacts;

/* The functions of an accelerator: X(type of the result, name, parameters). The
   fields of Accelerator and the functions nc_cuda_<name> come from it.  A set
   of streams of device i is a bit mask of their numbers: join makes the current
   stream wait for the work given to the others, fork makes the others wait for
   the work given to it. */
#define ACCELERATOR_CALLS(X)                                              \
  X(int, current, (void))             /* the device that "cuda" means */  \
  X(int, setcurrent, (int i))                                             \
  X(int, info, (int i, DeviceInfo *out))                                  \
  X(int, memory, (int i, MemoryInfo *out))                                \
  X(void, resetpeak, (int i))                                             \
  X(int, peer, (int i, int j))        /* can i read the memory of j? */   \
  X(int, pin, (void **p, int64_t bytes)) /* page-locked host memory */    \
  X(void, unpin, (void *p, int64_t bytes))                                \
  /* Streams. The default stream of a device always exists. */            \
  X(int, newstream, (Stream **s, int i, int priority))                    \
  X(void, freestream, (Stream *s))                                        \
  X(Stream *, stream, (int i))        /* the current one */               \
  X(Stream *, defaultstream, (int i))                                     \
  X(int, setstream, (Stream *s))      /* also makes its device current */ \
  X(int, streamdevice, (const Stream *s))                                 \
  X(uint64_t, streamid, (const Stream *s)) /* the CUDA handle, to show */ \
  X(int, querystream, (Stream *s, int *done))                             \
  X(int, waitstream, (Stream *s))     /* the host waits */                \
  X(int, streamnumber, (int i))       /* of the current one, below 64 */  \
  X(int, join, (int i, uint64_t streams))                                 \
  X(int, fork, (int i, uint64_t streams))                                 \
  X(int, newevent, (Event **e, int timing))                               \
  X(void, freeevent, (Event *e))                                          \
  X(int, record, (Event *e, Stream *s))                                   \
  X(int, after, (Stream *s, Event *e)) /* what s does next waits for e */ \
  X(int, queryevent, (Event *e, int *done))                               \
  X(int, waitevent, (Event *e))                                           \
  X(int, elapsed, (double *ms, Event *from, Event *to))                   \
  /* Kernels of the user's own text, compiled for device i.  After a failure \
     in the text *log is what the compiler says, until the next call. */     \
  X(int, newkernel, (RawKernel **k, int i, const RawSource *s,            \
                     const char **log))                                   \
  X(void, freekernel, (RawKernel *k))                                     \
  X(int, launchkernel, (RawKernel *k, const RawLaunch *l))                \
  X(int, kernelfacts, (RawKernel *k, int i, int threads, RawFacts *f))    \
  X(const char *, kernelptx, (const RawKernel *k)) /* NULL: there is none */ \
  /* Settings by name: "allow_tf32" (0, 1); and figures, which cannot be  \
     set: see cuda.h. */                                                  \
  X(int, get, (const char *name, int64_t *value))                         \
  X(int, set, (const char *name, int64_t value))                          \
  /* A fact by number, as text, for :doctor: "driver 580.65, CUDA 13.0";  \
     NULL at the end. */                                                  \
  X(const char *, fact, (int n))                                          \
  /* Has device i, or any if i is -1, failed so that only a restart       \
     helps?  The program's exit status must tell. */                      \
  X(int, failed, (int i))

typedef struct Accelerator {
  const char *kind;           /* "cuda" */
  int emulated;
  int count;
  const Device *const *device;
#define X(type, name, parameters) type(*name) parameters;
  ACCELERATOR_CALLS(X)
  DEVICE_TEAM_CALLS(X)
#undef X
} Accelerator;

/* Opens the plug-in; fails with the reason if there is nothing to use. */
int nc_accelerator(const Accelerator **a);
/* The same if it is open already, else NULL. */
const Accelerator *nc_open_accelerator(void);

extern const Host nc_forplugins;

/* The requests by name, and the size of what each is called with. */
#define NC_REQUESTNAME(request, Call) #request " "
#define NC_REQUESTS \
  DEVICE_REQUESTS(NC_REQUESTNAME) OPTIONAL_REQUESTS(NC_REQUESTNAME)
#define NC_REQUESTSIZE(request, Call) + sizeof(Call)
#define NC_REQUESTBYTES \
  (0 DEVICE_REQUESTS(NC_REQUESTSIZE) OPTIONAL_REQUESTS(NC_REQUESTSIZE))

#define NC_ABI 6
#define NC_PLUGIN "nacre_plugin"
typedef int PluginEntry(const Host *h, const Accelerator **a);

#ifdef __cplusplus
}
#endif

#endif
