/* SPDX-License-Identifier: MIT */
/*
** internal.h - declarations that the files of the emulator share.  One host
** thread uses the emulator; there are no locks.  The emulator itself is not
** instrumented by sanitizers: it reports its own memory accesses to the build
** variant's shadow memory through shadow.h.
*/
#ifndef cuda_emulation_internal_h
#define cuda_emulation_internal_h

#include "cuda/emulation/emulation.h"
#include "cuda/emulation/kernel.h"

#define EMU_DEVICES  8      /* at most */
#define EMU_STREAMS  256    /* at one time */
#define EMU_GAP      512    /* least bytes between two allocations */
#define EMU_FILLER   0xFB

/*
** settings.c: settings, and the entry and exit of every API function
*/
enum { EMU_SEQUENTIAL, EMU_REVERSED, EMU_RANDOM };   /* order */
enum { EMU_EAGER, EMU_LAZY, EMU_ANYTIME };           /* streams */
enum { EMU_AUTO, EMU_OFF, EMU_MPROTECT, EMU_PKEYS }; /* protect */

/* X(name, default value, fixed after the first call) */
#define EMU_SETTINGS(X) \
  X(devices, 1, 1) X(memory, 1LL << 30, 1) X(protect, EMU_AUTO, 1) \
  X(order, EMU_SEQUENTIAL, 0) X(streams, EMU_EAGER, 0) X(seed, 1, 0) \
  X(failat, 0, 0) X(failcode, cudaErrorMemoryAllocation, 0) X(peer, 1, 0) \
  X(fill, 1, 0) X(driver, CUDART_VERSION, 0) X(busy, 0, 0) X(ulps, 0, 0) \
  X(late, 0, 0)
#define EMU_COUNTERS(X) \
  X(launches) X(threads) X(switches) X(calls)

typedef struct Settings {
#define X(name, value, fixed) long long name;
  EMU_SETTINGS(X)
#undef X
} Settings;
extern Settings emu_settings;

typedef struct Counters {
#define X(name) long long name;
  EMU_COUNTERS(X)
#undef X
} Counters;
extern Counters emu_counts;

extern int emu_quiet;        /* > 0: the emulator runs; check no accesses */
extern int emu_inkernel;      /* does a kernel run? */
void emu_start(void);         /* initializes the emulator on the first call */
/* Every API function begins with emu_enter, which returns the error that it
   must fail with (failat, or a sticky error), and ends with emu_leave, which
   records the error e for cudaGetLastError and returns it. */
cudaError_t emu_enter(void);
cudaError_t emu_leave(cudaError_t e);
/* API(f, (parameters), (their names)) { ... } defines function f of the API. */
#define API(f, parameters, names) \
  static cudaError_t do_##f parameters; \
  cudaError_t f parameters { \
    const cudaError_t e_ = emu_enter(); \
    return emu_leave(e_ != cudaSuccess ? e_ : do_##f names); \
  } \
  static cudaError_t do_##f parameters
cudaError_t emu_lasterror(int clear);
void emu_clear_sticky(void);            /* clears the sticky error */
uint32_t emu_random(uint32_t n);   /* 0..n-1 */
double emu_now(void);              /* seconds */

/*
** report.c: emu_report prints an error with its context and ends the process
*/
void emu_report(const char *kind, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));
void emu_report_no_peer(const void *p) __attribute__((noreturn));
void emu_context(void);            /* prints the running kernel or operation */
const char *emu_where(const void *p);  /* describes p; static buffer */
/* The name of an operation: of its kernel, unless that is NULL.  Only for
   reports: it searches the program's file, and the text is never freed. */
const char *emu_op_name(const char *name, const void *kernel);

/*
** arena.c: device memory and pinned host memory
*/
enum { EMU_LIVE, EMU_FREED };
typedef struct Allocation { char *p; size_t n; int id, state; } Allocation;
typedef struct Arena {
  char *base;
  size_t size, high, used;   /* high: bytes in use so far, from base on */
  Allocation *allocation;     /* sorted by address */
  int allocations, room;
} Arena;
extern Arena emu_arena[EMU_DEVICES + 1];
#define EMU_PINNED (&emu_arena[EMU_DEVICES])
extern char *emu_arenas;     /* all: those of devices, then pinned memory */
extern size_t emu_arenasize, emu_devicesize;

int emu_arena_start(void);    /* 0, or -1: no memory */
int emu_deviceof(const void *p);              /* -1: not device memory */
/* The last allocation that begins at p or before. */
Allocation *emu_allocation_at(Arena *a, const void *p);
/* The live allocation that contains p, or NULL. */
Allocation *emu_live_allocation(const void *p);
void *emu_allocate(Arena *a, size_t n);    /* NULL: no room */
void emu_deallocate(Arena *a, Allocation *allocation);
/* Access of the host thread to device memory: emu_open_only allows it for this
   set of devices only, emu_open for one more (-1: none). */
void emu_open_only(unsigned devices);
void emu_open(int device);
int emu_isopen(int device);
void emu_closeall(void);

/* The running operation accesses n bytes at p.  If p is in an arena, reports an
   error unless all bytes are within one allocation.  Updates the shadow
   memory. */
void emu_access(const void *p, size_t n, int write);
int emu_pinned(const void *p, size_t n);      /* cuda_memory.c */
int emu_memoryleaks(void);

/*
** cuda_stream.c: streams, operations, vector clocks.  A clock contains for each
** stream the number of its operations that happen before.
*/
typedef struct Op Op;
struct Op {
  Op *next;                  /* in its stream */
  cudaStream_t stream;
  Op **wait;                 /* operations of other streams to wait for */
  int waits, refs, done, device;
  const char *name;          /* a string constant, unless it is a launch */
  const void *kernel;        /* NULL: not a launch */
  uint32_t id, hostseq;      /* hostseq: host time when it was queued */
  uint32_t *clock;           /* what happens before it, and itself */
  int clocks;
  double time;               /* when it ended */
  double due;                /* late=N: when it ends for the host, or 0 */
  int timed;                 /* does it take time (late=N)? */
  void (*run)(void *arg);
  int (*poll)(void *arg);    /* in place of run: called until it gives 1, as it
                                waits for another process; or NULL */
  _Alignas(16) char arg[];
};
struct CUstream_st {
  Op *first, *end, *last;    /* the queue; the latest operation ever */
  int device, index, queued;
  int polls;                 /* how many of them are of other processes, too */
  unsigned flags;
};

extern Op *emu_op;                     /* the running one, or NULL */
extern uint32_t emu_hostclock[EMU_STREAMS], emu_hostseq;
extern int emu_current;                /* the current device */

int emu_stream_start(void);
/* Returns s, or the default stream if s is NULL; NULL if there is no such
   stream. */
cudaStream_t emu_stream(cudaStream_t s);
/* emu_newop creates an operation with `size' bytes of arg, which the caller
   fills; NULL if out of memory.  emu_submit queues it, to run after `wait' if
   that is not NULL.  The stream owns the operation then; the caller may still
   use it until it runs, or retain it. */
Op *emu_newop(const char *name, void (*run)(void *), size_t size);
void emu_submit(cudaStream_t s, Op *op, Op *wait);
/* emu_newop and emu_submit, with a copy of arg. */
Op *emu_enqueue(cudaStream_t s, const char *name, void (*run)(void *),
                const void *arg, size_t size, Op *wait);
void emu_await(Op *op);                       /* the host waits; NULL: no-op */
void emu_awaitdevice(int device);             /* -1: all devices */
void emu_run_some(void);          /* streams=random: runs some operations */
int emu_ready(Op *op);           /* has it finished?  Makes progress if not */
Op *emu_retain(Op *op);
void emu_release(Op *op);
int emu_streamleaks(void);
int emu_eventleaks(void);                     /* cuda_event.c */
int emu_nccl_leaks(void);                     /* nccl.c */

/*
** block.c, warp.c, launch.c: the running kernel
*/
typedef struct View {        /* who accesses memory now, for race detection */
  uint32_t op, block;        /* op: EMU_HOST, or the id of an operation */
  uint16_t thread, barrier, warp;
} View;
#define EMU_HOST 0xffffffffu
extern View emu_view;
extern int emu_atomics;                       /* > 0: within an atomic */
extern const char *emu_closure;               /* its parameters */
extern size_t emu_closuresize;
extern char *emu_sharedarena;
#define EMU_SHAREDSIZE ((size_t)256 << 10)
extern char *emu_stacks;       /* of threads, which kernels access freely */
extern size_t emu_stackssize;
int emu_shared_start(void);
void emu_shared_reset(size_t dynamic, size_t limit);
extern int emu_peer[EMU_DEVICES][EMU_DEVICES];
/* The limit of dynamic shared memory of a kernel on the current device. */
size_t emu_sharedlimit(const void *kernel);
extern size_t emu_sharedmost;  /* limit of the launch, static and dynamic */

/*
** shadow_check.c: checks an access of n bytes at p, for tsan.c.  aligned: p
** must be a multiple of n.
*/
void emu_check_access(const void *p, size_t n, int write, int aligned);

#endif
