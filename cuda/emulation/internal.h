/* SPDX-License-Identifier: MIT */
/*
** internal.h - what the files of the emulator share.  One host thread uses
** it.  Nothing here is instrumented by a sanitizer: what a flavour knows of
** memory it learns through shadow.h.
*/
#ifndef cuda_emulation_internal_h
#define cuda_emulation_internal_h

#include "cuda/emulation/emulation.h"
#include "cuda/emulation/kernel.h"

#define EMU_DEVICES  8      /* at most */
#define EMU_STREAMS  256    /* at one time */
#define EMU_GAP      512    /* bytes between two allocations, at least */
#define EMU_FILLER   0xFB

/*
** settings.c: levers, and what begins and ends every call of the API
*/
enum { EMU_SEQUENTIAL, EMU_REVERSED, EMU_RANDOM };   /* order */
enum { EMU_EAGER, EMU_LAZY, EMU_ANYTIME };           /* streams */
enum { EMU_AUTO, EMU_OFF, EMU_MPROTECT, EMU_PKEYS }; /* protect */

typedef struct Levers {
  long long devices, memory, order, streams, seed, failat, failcode, peer,
      protect, fill, driver, busy, ulps, late;
} Levers;
extern Levers emu_lever;

typedef struct Counts {
  long long launches, blocks, threads, switches, barriers, calls, ops, reports;
} Counts;
extern Counts emu_counts;

extern int emu_quiet;        /* > 0: the emulator itself runs, check nothing */
extern int emu_inkernel;
void emu_start(void);         /* at the first call; later nothing */
cudaError_t emu_enter(void);
cudaError_t emu_leave(cudaError_t e);
/* The body of a function of the API. */
#define API(result) \
  cudaError_t entered = emu_enter(); \
  return emu_leave(entered != cudaSuccess ? entered : (result))
cudaError_t emu_lasterror(int clear);
void emu_unstick(void);
uint32_t emu_random(uint32_t n);   /* 0..n-1 */
double emu_now(void);              /* seconds */

/*
** report.c
*/
void emu_report(const char *kind, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));
void emu_nopeer(const void *p) __attribute__((noreturn));
void emu_context(void);                       /* who was at work, to stderr */
const char *emu_where(const void *p);         /* what lies at p; static */

/*
** arena.c: the memory of the devices and page-locked memory of the host
*/
enum { EMU_LIVE, EMU_LEAVING, EMU_FREED };
typedef struct Piece { char *p; size_t n; int id, state; } Piece;
typedef struct Arena {
  char *base;
  size_t size, high, used;   /* the first `high' bytes may be accessible */
  Piece *piece;              /* by address */
  int pieces, room;
} Arena;
extern Arena emu_arena[EMU_DEVICES + 1];
#define EMU_PINNED (&emu_arena[EMU_DEVICES])
extern char *emu_arenas;     /* all of them: devices, then page-locked */
extern size_t emu_arenasize, emu_devicesize;

int emu_arena_start(void);    /* 0, or -1: no memory */
int emu_deviceof(const void *p);              /* -1: of none */
Piece *emu_piece(Arena *a, const void *p);    /* the last that begins <= p */
Piece *emu_owned(const void *p);              /* the live one around p */
void *emu_take(Arena *a, size_t n);           /* NULL: no room */
void emu_drop(Arena *a, Piece *piece);
void emu_only(unsigned devices);   /* opens these to this thread, no others */
void emu_open(int device);         /* this one, too; -1: nothing */
int emu_isopen(int device);
void emu_closeall(void);

/* Says that the operation at work touches n bytes at p, which must be one
   allocation's. */
void emu_touch(const void *p, size_t n, int write);
int emu_pinned(const void *p, size_t n);      /* memory.c */
int emu_memoryleaks(void);

/*
** stream.c: streams, operations, clocks.  A clock says for every stream how
** many of its operations are known to have ended.
*/
typedef struct Op Op;
struct Op {
  Op *next;                  /* in its stream */
  cudaStream_t stream;
  Op **wait;                 /* operations of other streams to await */
  int waits, refs, done, device;
  const char *name;          /* never freed */
  uint32_t id, hostseq;      /* hostseq: the host's time when it was queued */
  uint32_t *clock;
  int clocks;
  double time;               /* when it ended */
  double due;                /* late=: when it may be known to have ended */
  int timed;                 /* does it take time on the device? */
  void (*run)(void *arg);
  _Alignas(16) char arg[];
};
struct CUstream_st {
  Op *first, *end, *last;    /* queued; the latest ever queued */
  int device, index, priority, queued;
  unsigned flags;
};

extern Op *emu_op;                     /* at work, or NULL */
extern uint32_t emu_hostclock[EMU_STREAMS], emu_hostseq;
extern int emu_current;                /* device */

int emu_stream_start(void);
cudaStream_t emu_stream(cudaStream_t s);      /* NULL: no such stream */
/* An operation with `size' bytes of arg for the caller to fill, or NULL if
   the host has no memory; queues one.
   The caller borrows it from then on; `wait' may be NULL. */
Op *emu_newop(const char *name, void (*run)(void *), size_t size);
void emu_submit(cudaStream_t s, Op *op, Op *wait);
/* Both, with a copy of a small arg. */
Op *emu_enqueue(cudaStream_t s, const char *name, void (*run)(void *),
                const void *arg, size_t size, Op *wait);
void emu_await(Op *op);                       /* by the host; NULL is done */
void emu_awaitdevice(int device);             /* -1: all */
void emu_stepany(void);                       /* streams=random: some work */
int emu_ready(Op *op);                        /* done?  else works on it */
Op *emu_retain(Op *op);
void emu_release(Op *op);
int emu_streamleaks(void);
int emu_eventleaks(void);                     /* event.c */

/*
** block.c, warp.c, launch.c: kernels at work
*/
typedef struct View {        /* of the running thread, for what it touches */
  uint32_t op, block;        /* op: EMU_HOST, or an operation's id */
  uint16_t thread, barrier, warp;
} View;
#define EMU_HOST 0xffffffffu
extern View emu_view;
extern int emu_atomics;                       /* > 0: inside of an atomic */
extern const char *emu_kernel;
extern const char *emu_closure;               /* its parameters */
extern size_t emu_closuresize;
extern char *emu_sharedarena;
#define EMU_SHAREDSIZE ((size_t)256 << 10)
int emu_shared_start(void);
void emu_shared_reset(size_t dynamic, size_t limit);
int emu_published(uint32_t block);   /* by a fence that this block acquired */
void emu_fences_reset(void);
extern int emu_peer[EMU_DEVICES][EMU_DEVICES];
size_t emu_sharedlimit(const void *kernel);   /* dynamic, current device */
extern size_t emu_sharedmost;         /* static and dynamic, of the launch */

#endif
