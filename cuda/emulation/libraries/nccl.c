/* SPDX-License-Identifier: MIT */
/*
** nccl.c - NCCL for the emulated device: communicators, and the functions that
** queue operations of streams (nccl_exchange.c).  Communicators do not block,
** as config.blocking = 0 asks for.  Every other call gives ncclInProgress, and
** the operation is in its stream only after ncclCommGetAsyncError was asked, as
** it may be with the real library.
*/
#define _GNU_SOURCE
#include "cuda/emulation/libraries/nccl.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda/emulation/libraries/nccl_comm.h"
#include "cuda/emulation/libraries/named_functions.h"

#define VERSION 22809
#define MAGIC 0xcafebeefu

static int live;  /* communicators */
static int depth; /* of ncclGroupStart */
static Group *group;
static cudaStream_t groupstream;

static ncclResult_t entered(void) {
  return emu_enter() == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

/* NCCL(f, (parameters), (their names)) { ... } defines function f. */
#define NCCL(f, parameters, names)          \
  static ncclResult_t do_##f parameters;    \
  ncclResult_t f parameters {               \
    ncclResult_t r = entered();             \
    if (r == ncclSuccess) r = do_##f names; \
    emu_leave(cudaSuccess);                 \
    return r;                               \
  }                                         \
  static ncclResult_t do_##f parameters

/*
** Communicators
*/
ncclResult_t ncclGetVersion(int *version) {
  *version = VERSION;
  return ncclSuccess;
}

/* The id is the path of a new file. */
NCCL(ncclGetUniqueId, (ncclUniqueId * id), (id)) {
  static int number;
  const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  int fd, r;
  memset(id, 0, sizeof *id);
  snprintf(id->internal, sizeof id->internal, "%s/nacre-nccl-%ld-%d-%.0f",
           folder, (long)getpid(), number++, emu_now() * 1e9);
  fd = open(id->internal, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) return ncclSystemError;
  r = ftruncate(fd, sizeof(Shared));
  close(fd);
  return r == 0 ? ncclSuccess : ncclSystemError;
}

/* Maps the file of the communicator; that of a part is made by who comes
   first. */
static int map_shared(ncclComm_t c, int ispart) {
  const int fd = open(
      c->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (ispart ? O_CREAT : 0), 0600);
  void *p;
  if (fd < 0) return 0;
  if (ispart && ftruncate(fd, sizeof(Shared)) != 0) {
    close(fd);
    return 0;
  }
  p = mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (p == MAP_FAILED) return 0;
  c->s = p;
  return 1;
}

static void check_config(const ncclConfig_t *config) {
  if (config == NULL || config->magic != MAGIC || config->blocking != 0 ||
      config->size != sizeof *config)
    emu_report("NCCL", "only communicators with config.blocking = 0");
}

/* *out = a new communicator, whose other ranks come to the same path. */
static ncclResult_t join(ncclComm_t *out, int n, int rank, int device,
                         const char *path, int ispart) {
  ncclComm_t c;
  if (n < 1 || n > NCCL_RANKS || rank < 0 || rank >= n)
    return ncclInvalidArgument;
  c = calloc(1, sizeof *c);
  if (c == NULL) return ncclSystemError;
  c->rank = rank;
  c->n = n;
  c->device = device;
  c->refs = 1;
  snprintf(c->path, sizeof c->path, "%s", path);
  if (!map_shared(c, ispart)) {
    free(c);
    return ncclSystemError;
  }
  *out = c;
  live++;
  c->s->slot[rank].device = c->device;
  if (atomic_fetch_add(&c->s->here, 1) + 1 == n) unlink(c->path);
  return ncclInProgress;
}

NCCL(ncclCommInitRankConfig,
     (ncclComm_t * comm, int nranks, ncclUniqueId id, int rank,
      ncclConfig_t *config),
     (comm, nranks, id, rank, config)) {
  check_config(config);
  if (comm == NULL) return ncclInvalidArgument;
  *comm = NULL;
  id.internal[sizeof id.internal - 1] = '\0';
  return join(comm, nranks, rank, emu_current, id.internal, 0);
}

/* All meet at the first id; the others must be ids, too. */
NCCL(ncclCommInitRankScalable,
     (ncclComm_t * newcomm, int nranks, int myrank, int nId,
      ncclUniqueId *commIds, ncclConfig_t *config),
     (newcomm, nranks, myrank, nId, commIds, config)) {
  check_config(config);
  if (newcomm == NULL || commIds == NULL || nId < 1 || nId > nranks)
    return ncclInvalidArgument;
  *newcomm = NULL;
  for (int i = 1; myrank == 0 && i < nId; i++)
    if (unlink(commIds[i].internal) != 0) return ncclInvalidArgument;
  return join(newcomm, nranks, myrank, emu_current, commIds[0].internal, 0);
}

/* Do two ranks use one device?  Then NCCL refuses. */
static int is_shared_device(ncclComm_t c) {
  for (int i = 0; i < c->n; i++)
    for (int j = 0; j < i; j++)
      if (c->s->slot[i].device == c->s->slot[j].device) return 1;
  return 0;
}

static void submit_held(ncclComm_t c) {
  Op *op = c->held;
  c->held = NULL;
  if (op) emu_submit(c->stream, op, NULL);
}

static ncclResult_t state_of(ncclComm_t c) {
  if (c->aborted) return ncclSuccess;
  if (atomic_load(&c->s->aborted)) return ncclRemoteError;
  if (c->part || atomic_load(&c->s->here) < c->n) return ncclInProgress;
  if (is_shared_device(c)) return ncclInvalidUsage;
  return c->held || (c->finalized && c->refs > 1) ? ncclInProgress
                                                  : ncclSuccess;
}

/*
** Parts of a communicator
*/
NCCL(ncclCommSplit,
     (ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
      ncclConfig_t *config),
     (comm, color, key, newcomm, config)) {
  Slot *own;
  check_config(config);
  if (comm == NULL || newcomm == NULL || comm->finalized || comm->aborted ||
      state_of(comm) != ncclSuccess)
    return ncclInvalidArgument;
  if (comm->refs > 1)
    emu_report("NCCL", "a communicator is split that has work under way");
  own = &comm->s->slot[comm->rank];
  own->color[comm->splits % 2] = color;
  own->key[comm->splits % 2] = key;
  *newcomm = NULL;
  comm->part = newcomm;
  atomic_store(&own->splits, comm->splits + 1);
  return ncclInProgress;
}

/* When all ranks have asked for the split: those of one color join. */
static ncclResult_t go_on_splitting(ncclComm_t c) {
  const Slot *all = c->s->slot, *own = &all[c->rank];
  const unsigned k = c->splits % 2;
  ncclComm_t *out = c->part;
  char path[NCCL_UNIQUE_ID_BYTES + 32];
  int n = 0, rank = 0;
  for (int r = 0; r < c->n; r++)
    if (atomic_load(&all[r].splits) <= c->splits) return ncclSuccess;
  for (int r = 0; r < c->n; r++) {
    if (all[r].color[k] != own->color[k]) continue;
    n++;
    rank += all[r].key[k] < own->key[k] ||
            (all[r].key[k] == own->key[k] && r < c->rank);
  }
  c->part = NULL;
  snprintf(path, sizeof path, "%s-%u-%d", c->path, c->splits++, own->color[k]);
  if (own->color[k] < 0) return ncclSuccess;
  if (strlen(path) >= sizeof c->path) return ncclSystemError;
  return join(out, n, rank, c->device, path, 1) == ncclInProgress
             ? ncclSuccess
             : ncclSystemError;
}

NCCL(ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t *error),
     (comm, error)) {
  if (comm == NULL || error == NULL) return ncclInvalidArgument;
  submit_held(comm);
  if (comm->finalized) emu_progress();
  if (comm->part && go_on_splitting(comm) != ncclSuccess)
    return ncclSystemError;
  *error = state_of(comm);
  return ncclSuccess;
}

void emu_nccl_release(ncclComm_t c) {
  if (--c->refs > 0) return;
  munmap(c->s, sizeof *c->s);
  free(c);
}

NCCL(ncclCommFinalize, (ncclComm_t comm), (comm)) {
  if (comm == NULL || state_of(comm) != ncclSuccess) return ncclInvalidArgument;
  comm->finalized = 1;
  return ncclInProgress;
}

NCCL(ncclCommDestroy, (ncclComm_t comm), (comm)) {
  if (comm == NULL) return ncclSuccess;
  if (!comm->finalized || comm->refs > 1)
    emu_report("NCCL", "a communicator is destroyed that was not finalized");
  live--;
  emu_nccl_release(comm);
  return ncclSuccess;
}

/* What it has under way ends where it is. */
NCCL(ncclCommAbort, (ncclComm_t comm), (comm)) {
  if (comm == NULL) return ncclSuccess;
  comm->aborted = 1;
  submit_held(comm);
  atomic_store(&comm->s->aborted, 1);
  if (atomic_load(&comm->s->here) < comm->n) unlink(comm->path);
  live--;
  emu_nccl_release(comm);
  return ncclSuccess;
}

int emu_nccl_leaks(void) {
  if (live) fprintf(stderr, "EMU: leak: %d communicators\n", live);
  return live;
}

/*
** Operations
*/
/* Can a stream take an operation of the communicator now? */
static ncclResult_t check_call(ncclComm_t c, cudaStream_t *stream) {
  *stream = emu_stream(*stream);
  if (c == NULL || *stream == NULL || (*stream)->device != c->device ||
      c->finalized || c->aborted)
    return ncclInvalidArgument;
  return state_of(c) == ncclInProgress ? ncclInvalidArgument : state_of(c);
}

/* Queues the operation, now or when the state is asked for. */
static ncclResult_t queue(ncclComm_t c, cudaStream_t s, Op *op) {
  c->refs++;
  if (++c->calls % 2 == 1) {
    emu_submit(s, op, NULL);
    return ncclSuccess;
  }
  c->held = op;
  c->stream = s;
  return ncclInProgress;
}

static ncclResult_t start(const Exchange *e, cudaStream_t s) {
  Op *op;
  const ncclResult_t r = check_call(e->c, &s);
  if (r != ncclSuccess) return r;
  if (e->root < 0 || e->root >= e->c->n || (unsigned)e->type > ncclBfloat16 ||
      (unsigned)e->op > ncclMin)
    return ncclInvalidArgument;
  if (e->count == 0) return ncclSuccess;
  op = emu_newop("NCCL operation", NULL, sizeof *e);
  if (op == NULL) return ncclSystemError;
  memcpy(op->arg, e, sizeof *e);
  op->poll = emu_nccl_exchange;
  return queue(e->c, s, op);
}

NCCL(ncclAllReduce,
     (const void *in, void *out, size_t count, ncclDataType_t type,
      ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream),
     (in, out, count, type, op, comm, stream)) {
  const Exchange e = { comm, EX_ALL_REDUCE, in, out, count, type, op, 0, 0, 0 };
  return start(&e, stream);
}

NCCL(ncclReduce,
     (const void *in, void *out, size_t count, ncclDataType_t type,
      ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream),
     (in, out, count, type, op, root, comm, stream)) {
  const Exchange e = { comm, EX_REDUCE, in, out, count, type, op, root, 0, 0 };
  return start(&e, stream);
}

NCCL(ncclBroadcast,
     (const void *in, void *out, size_t count, ncclDataType_t type, int root,
      ncclComm_t comm, cudaStream_t stream),
     (in, out, count, type, root, comm, stream)) {
  const Exchange e = { comm, EX_BROADCAST, in,   out, count,
                       type, ncclSum,      root, 0,   0 };
  return start(&e, stream);
}

NCCL(ncclAllGather,
     (const void *in, void *out, size_t count, ncclDataType_t type,
      ncclComm_t comm, cudaStream_t stream),
     (in, out, count, type, comm, stream)) {
  const Exchange e = { comm, EX_ALL_GATHER, in, out, count,
                       type, ncclSum,       0,  0,   0 };
  return start(&e, stream);
}

NCCL(ncclReduceScatter,
     (const void *in, void *out, size_t count, ncclDataType_t type,
      ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream),
     (in, out, count, type, op, comm, stream)) {
  const Exchange e = { comm, EX_REDUCE_SCATTER, in, out, count, type, op, 0, 0,
                       0 };
  return start(&e, stream);
}

/*
** Groups of sends and receives
*/
ncclResult_t ncclGroupStart(void) {
  depth++;
  return ncclSuccess;
}

static ncclResult_t add_transfer(ncclComm_t c, cudaStream_t s, Transfer t) {
  const ncclResult_t r = check_call(c, &s);
  const int n = group ? group->n : 0;
  Group *more;
  if (r != ncclSuccess) return r;
  if (depth == 0 || (group && (group->c != c || groupstream != s)))
    emu_report("NCCL", "sends and receives only in a group of one "
                       "communicator and one stream");
  if (t.peer < 0 || t.peer >= c->n) return ncclInvalidArgument;
  more = realloc(group, sizeof *more + sizeof t * (size_t)(n + 1));
  if (more == NULL) return ncclSystemError;
  group = more;
  group->c = c;
  group->t[n] = t;
  group->n = n + 1;
  groupstream = s;
  return ncclSuccess;
}

NCCL(ncclSend,
     (const void *in, size_t count, ncclDataType_t type, int peer,
      ncclComm_t comm, cudaStream_t stream),
     (in, count, type, peer, comm, stream)) {
  return add_transfer(comm, stream,
                      (Transfer){ (char *)(uintptr_t)in,
                                  count * emu_nccl_size(type), 0, peer, 1 });
}

NCCL(ncclRecv,
     (void *out, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
      cudaStream_t stream),
     (out, count, type, peer, comm, stream)) {
  return add_transfer(
      comm, stream, (Transfer){ out, count * emu_nccl_size(type), 0, peer, 0 });
}

static ncclResult_t queue_group(Group *g) {
  const size_t size = sizeof *g + sizeof g->t[0] * (size_t)g->n;
  Op *op = emu_newop("NCCL send and receive", NULL, size);
  if (op == NULL) return ncclSystemError;
  memcpy(op->arg, g, size);
  op->poll = emu_nccl_group;
  return queue(g->c, groupstream, op);
}

NCCL(ncclGroupEnd, (void), ()) {
  ncclResult_t r = ncclSuccess;
  if (depth == 0) return ncclInvalidUsage;
  if (--depth > 0 || group == NULL) return ncclSuccess;
  r = queue_group(group);
  free(group);
  group = NULL;
  return r;
}

/*
** Names
*/
const char *ncclGetErrorString(ncclResult_t result) {
  static const char *const texts[] = { "no error",
                                       "unhandled cuda error",
                                       "unhandled system error",
                                       "internal error",
                                       "invalid argument",
                                       "invalid usage",
                                       "remote process exited or there was a "
                                       "network error",
                                       "NCCL operation in progress" };
  return (unsigned)result < 8 ? texts[result] : "unknown result code";
}

const char *ncclGetLastError(ncclComm_t comm) {
  (void)comm;
  return "";
}

EmuFunction emu_nccl(const char *symbol) {
  static const NamedFunction table[] = {
    OWN_NAME(ncclGetVersion),
    OWN_NAME(ncclGetUniqueId),
    OWN_NAME(ncclCommInitRankConfig),
    OWN_NAME(ncclCommInitRankScalable),
    OWN_NAME(ncclCommSplit),
    OWN_NAME(ncclCommGetAsyncError),
    OWN_NAME(ncclCommFinalize),
    OWN_NAME(ncclCommDestroy),
    OWN_NAME(ncclCommAbort),
    OWN_NAME(ncclGetErrorString),
    OWN_NAME(ncclGetLastError),
    OWN_NAME(ncclGroupStart),
    OWN_NAME(ncclGroupEnd),
    OWN_NAME(ncclAllReduce),
    OWN_NAME(ncclReduce),
    OWN_NAME(ncclBroadcast),
    OWN_NAME(ncclAllGather),
    OWN_NAME(ncclReduceScatter),
    OWN_NAME(ncclSend),
    OWN_NAME(ncclRecv),
    { NULL, NULL },
  };
  return emu_named(table, symbol);
}
