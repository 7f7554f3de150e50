/* SPDX-License-Identifier: MIT */
/*
** accelerator.h - the devices of a plug-in: streams, events, memory, and what
** the plug-in gets from the core; a part of tensor.h, which includes it.
*/
#ifndef core_accelerator_h
#define core_accelerator_h

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
   of streams of device i has a bit for each, by number: join makes the current
   one go on after what the others were given, fork them after what it was
   given. */
#define ACCELERATOR_CALLS(X)                                              \
  X(int, current, (void))             /* the device that "cuda" means */  \
  X(int, setcurrent, (int i))                                             \
  X(int, info, (int i, DeviceInfo *out))                                  \
  X(int, memory, (int i, MemoryInfo *out))                                \
  X(void, resetpeak, (int i))                                             \
  X(int, peer, (int i, int j))        /* can i read the memory of j? */   \
  X(int, pin, (void **p, int64_t bytes)) /* page-locked host memory */    \
  X(void, unpin, (void *p, int64_t bytes))                                \
  /* Streams.  The default one of a device is always there. */            \
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

/* What a plug-in gets from the core, and its one entry point.  What comes first
   stays: by it a plug-in of another build finds out that it is one, and says
   so. */
typedef struct Host {
  int abi;                    /* NC_ABI */
  size_t host, calls, device, accelerator; /* sizes of structures */
  const char *version;
  int (*fail)(int code, const char *fmt, ...);
  void (*hint)(const char *fmt, ...);
  int ops;                    /* OP_COUNT, and what they are */
  const OpInfo *op;
  const char *requests;       /* NC_REQUESTS */
  volatile sig_atomic_t *interrupted;
  void (*error_op)(const char *op);
  void (*error_final)(void);
  int (*newtensor)(Tensor **t, const Device *d, DType type, int nd,
                   const int64_t size[]);
  void (*release)(Tensor *t);
  int (*newdense)(Tensor **y, Tensor *x);   /* nc_dense */
  /* fails as nc_position does for a wrong index of dimension d of nd */
  int (*fail_index_range)(int64_t index, int64_t size, int d, int nd);
  int (*wrong_class)(int64_t given, int64_t classes); /* nc_wrong_class */
  char *(*bytestext)(char *buf, double bytes);  /* nc_bytestext */
  int (*parallel)(int64_t n, int64_t grain,     /* nc_parallel */
                  void (*fn)(void *ctx, int64_t begin, int64_t end),
                  void *ctx);
  void (*partly)(void);       /* nc_error_partial */
  int (*writefile)(const char *path, const void *p, int64_t n);
  const Error *(*lasterror)(void);
  /* The host waits for this operation since `waited' seconds: fails if another
     rank failed, or the time is over (Transport.watch). */
  int (*watch)(struct Team *t, const struct Coll *c, double waited);
  void (*lose)(struct Team *t);       /* Transport.lose */
} Host;

extern const Host nc_forplugins;

/* The requests by name, and the size of what each is called with. */
#define NC_REQUESTNAME(request, Call) #request " "
#define NC_REQUESTS \
  DEVICE_REQUESTS(NC_REQUESTNAME) OPTIONAL_REQUESTS(NC_REQUESTNAME)
#define NC_REQUESTSIZE(request, Call) + sizeof(Call)
#define NC_REQUESTBYTES \
  (0 DEVICE_REQUESTS(NC_REQUESTSIZE) OPTIONAL_REQUESTS(NC_REQUESTSIZE))

#define NC_ABI 5
#define NC_PLUGIN "nacre_plugin"
typedef int PluginEntry(const Host *h, const Accelerator **a);

#endif
