/* SPDX-License-Identifier: MIT */
/*
** nccl.c - the emulated NCCL with two ranks in one process, each on a device of
** its own: folds of every type, blocks, messages of several pieces, and what it
** refuses.  tests/distributed has it between processes.
*/
#include <string.h>

#include "cuda/emulation/libraries/nccl.h"
#include "tests/emulation/checks.h"

enum { RANKS = 2, N = 50000, ROOM = N * 8 * RANKS };

static cudaStream_t stream[RANKS];
static ncclComm_t comm[RANKS];
static char *in[RANKS], *out[RANKS]; /* on the devices */
static char host[ROOM];

static void select(int r) {
  MUST(cudaSetDevice(r));
}

static ncclResult_t state(int r) {
  ncclResult_t s = ncclInternalError;
  CHECK(ncclCommGetAsyncError(comm[r], &s) == ncclSuccess);
  return s;
}

/* The call was taken, now or when the state is asked for. */
static void taken(int r, ncclResult_t result) {
  CHECK(result == ncclSuccess || result == ncclInProgress);
  if (result == ncclInProgress) CHECK(state(r) == ncclSuccess);
}

static void wait_for_all(void) {
  for (int done = 0, r = 0; r < RANKS; r += done) {
    emu_progress(); /* of the other device, too */
    select(r);
    done = cudaStreamQuery(stream[r]) == cudaSuccess;
  }
}

static ncclComm_t connect(int n, int rank, const ncclUniqueId *id) {
  ncclConfig_t config = { .size = sizeof config,
                          .magic = 0xcafebeef,
                          .version = 21703 };
  ncclComm_t c = NULL;
  CHECK(ncclCommInitRankConfig(&c, n, *id, rank, &config) == ncclInProgress);
  return c;
}

static void start(void) {
  ncclUniqueId id;
  CHECK(ncclGetUniqueId(&id) == ncclSuccess);
  for (int r = 0; r < RANKS; r++) {
    void *p, *q;
    select(r);
    MUST(cudaStreamCreateWithFlags(&stream[r], cudaStreamNonBlocking));
    MUST(cudaMalloc(&p, ROOM));
    MUST(cudaMalloc(&q, ROOM));
    in[r] = p;
    out[r] = q;
    comm[r] = connect(RANKS, r, &id);
    CHECK(state(0) == (r + 1 < RANKS ? ncclInProgress : ncclSuccess));
    CHECK(r > 0 || ncclBroadcast(p, q, 1, ncclInt8, 0, comm[0], stream[0]) ==
                       ncclInvalidArgument);
  }
}

static void up(int r, size_t bytes) {
  select(r);
  MUST(cudaMemcpyAsync(in[r], host, bytes, cudaMemcpyHostToDevice, stream[r]));
}

static void down(int r, size_t bytes) {
  select(r);
  MUST(cudaMemcpyAsync(host, out[r], bytes, cudaMemcpyDeviceToHost, stream[r]));
  MUST(cudaStreamSynchronize(stream[r]));
}

/* Element i of rank r is -1, 0, 1 or 2, and what two of them fold to. */
static int value(int r, int i) {
  return (i + 2 * r) % 4 - 1;
}

static int folded(int i, ncclRedOp_t op) {
  const int a = value(0, i), b = value(1, i);
  switch (op) {
    case ncclSum: return a + b;
    case ncclProd: return a * b;
    case ncclMax: return a > b ? a : b;
    default: return a < b ? a : b;
  }
}

#define FOLDS(T, type)                                                         \
  for (int op = ncclSum; op <= ncclMin; op++) {                                \
    T *p = (T *)host;                                                          \
    for (int r = 0; r < RANKS; r++) {                                          \
      for (int i = 0; i < N; i++) p[i] = (T)value(r, i);                       \
      up(r, N * sizeof(T));                                                    \
      taken(r, ncclAllReduce(in[r], out[r], N, type, (ncclRedOp_t)op, comm[r], \
                             stream[r]));                                      \
    }                                                                          \
    wait_for_all();                                                            \
    for (int r = 0; r < RANKS; r++) {                                          \
      int wrong = 0;                                                           \
      down(r, N * sizeof(T));                                                  \
      for (int i = 0; i < N; i++)                                              \
        wrong += p[i] != (T)folded(i, (ncclRedOp_t)op);                        \
      CHECK(wrong == 0);                                                       \
    }                                                                          \
  }

static void folds(void) {
  FOLDS(int8_t, ncclInt8)
  FOLDS(int32_t, ncclInt32)
  FOLDS(int64_t, ncclInt64)
  FOLDS(float, ncclFloat32)
  FOLDS(double, ncclFloat64)
}

/* 1.0 and 2.0 as halves. */
static void halves(ncclDataType_t type, uint16_t one, uint16_t two) {
  uint16_t *p = (uint16_t *)host;
  for (int r = 0; r < RANKS; r++) {
    for (int i = 0; i < N; i++) p[i] = one;
    up(r, N * 2);
    taken(r,
          ncclAllReduce(in[r], out[r], N, type, ncclSum, comm[r], stream[r]));
  }
  wait_for_all();
  down(1, N * 2);
  CHECK(p[0] == two && p[N - 1] == two);
}

static void fill_bytes(int r, size_t n) {
  for (size_t i = 0; i < n; i++) host[i] = (char)(i % 50 + (size_t)r * 50);
  up(r, n);
}

/* Gathers blocks of several rounds; scatters sums. */
static void blocks(void) {
  const size_t n = 100001;
  for (int r = 0; r < RANKS; r++) {
    fill_bytes(r, 2 * n);
    taken(r, ncclAllGather(in[r], out[r], n, ncclInt8, comm[r], stream[r]));
  }
  wait_for_all();
  down(0, 2 * n);
  CHECK(host[n - 1] == (char)((n - 1) % 50) && host[n] == 50 &&
        host[2 * n - 1] == (char)((n - 1) % 50 + 50));
  for (int r = 0; r < RANKS; r++)
    taken(r, ncclReduceScatter(in[r], out[r], n, ncclInt8, ncclSum, comm[r],
                               stream[r]));
  wait_for_all();
  down(1, n);
  CHECK(host[0] == (char)(2 * (n % 50) + 50) &&
        host[n - 1] == (char)(2 * ((2 * n - 1) % 50) + 50));
}

/* Both send to each other, more than is on its way at once. */
static void messages(void) {
  const size_t n = 40000;
  for (int r = 0; r < RANKS; r++) {
    fill_bytes(r, n);
    CHECK(ncclGroupStart() == ncclSuccess);
    CHECK(ncclSend(in[r], n, ncclInt8, 1 - r, comm[r], stream[r]) ==
          ncclSuccess);
    CHECK(ncclRecv(out[r], n, ncclInt8, 1 - r, comm[r], stream[r]) ==
          ncclSuccess);
    taken(r, ncclGroupEnd());
  }
  wait_for_all();
  down(0, n);
  CHECK(host[0] == 50 && host[n - 1] == (char)((n - 1) % 50 + 50));
}

static void refusals(void) {
  ncclUniqueId id;
  ncclComm_t c[2];
  ncclResult_t s;
  CHECK(ncclAllReduce(in[0], out[0], 1, ncclBfloat16 + 1, ncclSum, comm[0],
                      stream[0]) == ncclInvalidArgument);
  CHECK(ncclBroadcast(in[0], out[0], 1, ncclInt8, RANKS, comm[0], stream[0]) ==
        ncclInvalidArgument);
  CHECK(ncclBroadcast(in[0], out[0], 1, ncclInt8, 0, comm[0], stream[1]) ==
        ncclInvalidArgument);
  CHECK(ncclGroupEnd() == ncclInvalidUsage);
  CHECK(emu_nccl("ncclNothing") == NULL && emu_nccl("ncclSend") != NULL);
  select(2);
  CHECK(ncclGetUniqueId(&id) == ncclSuccess);
  for (int r = 0; r < 2; r++) c[r] = connect(2, r, &id);
  CHECK(ncclCommGetAsyncError(c[0], &s) == ncclSuccess);
  CHECK(s == ncclInvalidUsage); /* two ranks on one device */
  for (int r = 0; r < 2; r++) CHECK(ncclCommAbort(c[r]) == ncclSuccess);
}

/* Rank 0 waits for rank 1, which gives up: NCCL tells rank 0, whose operation
   ends when it aborts, too. */
static void aborted(void) {
  select(0);
  taken(0,
        ncclAllReduce(in[0], out[0], N, ncclInt8, ncclSum, comm[0], stream[0]));
  CHECK(cudaStreamQuery(stream[0]) == cudaErrorNotReady);
  CHECK(state(0) == ncclSuccess);
  CHECK(ncclCommAbort(comm[1]) == ncclSuccess);
  CHECK(state(0) == ncclRemoteError);
  CHECK(cudaStreamQuery(stream[0]) == cudaErrorNotReady);
  CHECK(ncclCommAbort(comm[0]) == ncclSuccess);
  MUST(cudaStreamSynchronize(stream[0]));
}

static void farewell(void);

/* Parts have the ranks in the order of their keys; without a color there is
   none. */
static void parts(void) {
  ncclConfig_t config = { .size = sizeof config, .magic = 0xcafebeef };
  ncclComm_t part[RANKS] = { NULL }, whole[RANKS];
  for (int r = 0; r < RANKS; r++)
    CHECK(ncclCommSplit(comm[r], NCCL_SPLIT_NOCOLOR, 0, &part[r], &config) ==
          ncclInProgress);
  for (int r = 0; r < RANKS; r++) CHECK(state(r) == ncclSuccess && !part[r]);
  CHECK(ncclCommSplit(comm[0], 3, 0, &part[0], &config) == ncclInProgress);
  CHECK(state(0) == ncclInProgress && part[0] == NULL);
  CHECK(ncclCommSplit(comm[0], 3, 0, &part[0], &config) == ncclInvalidArgument);
  CHECK(ncclCommSplit(comm[1], 3, -1, &part[1], &config) == ncclInProgress);
  for (int r = 0; r < RANKS; r++) {
    CHECK(state(r) == ncclSuccess && part[r] != NULL);
    whole[r] = comm[r];
    comm[r] = part[r];
  }
  for (int r = 0; r < RANKS; r++) {
    select(r);
    MUST(cudaMemset(in[r], r + 1, 4));
    MUST(cudaDeviceSynchronize());
    taken(r, ncclBroadcast(in[r], out[r], 4, ncclInt8, 0, comm[r], stream[r]));
  }
  wait_for_all();
  MUST(cudaMemcpy(host, out[0], 1, cudaMemcpyDeviceToHost));
  CHECK(host[0] == 2); /* from rank 1, which is 0 there */
  farewell();
  memcpy(comm, whole, sizeof comm);
}

/* Several ids for one communicator. */
static void roots(void) {
  ncclConfig_t config = { .size = sizeof config, .magic = 0xcafebeef };
  ncclUniqueId id[RANKS];
  ncclComm_t c[RANKS], before[RANKS];
  memcpy(before, comm, sizeof comm);
  for (int i = 0; i < RANKS; i++) CHECK(ncclGetUniqueId(&id[i]) == ncclSuccess);
  for (int r = 0; r < RANKS; r++) {
    select(r);
    CHECK(ncclCommInitRankScalable(&c[r], RANKS, r, RANKS, id, &config) ==
          ncclInProgress);
  }
  memcpy(comm, c, sizeof comm);
  farewell();
  memcpy(comm, before, sizeof comm);
  CHECK(ncclCommInitRankScalable(&c[0], RANKS, 0, RANKS, id, &config) ==
        ncclInvalidArgument); /* they were used */
}

static void farewell(void) {
  for (int r = 0; r < RANKS; r++) {
    select(r);
    CHECK(ncclCommFinalize(comm[r]) == ncclInProgress);
    CHECK(state(r) == ncclSuccess && ncclCommDestroy(comm[r]) == ncclSuccess);
  }
}

static void end(void) {
  for (int r = 0; r < RANKS; r++) {
    select(r);
    cudaFree(in[r]);
    cudaFree(out[r]);
    cudaStreamDestroy(stream[r]);
  }
  CHECK(emu_leaks() == 0);
}

int main(void) {
  int v = 0;
  CHECK(ncclGetVersion(&v) == ncclSuccess && v >= 21703);
  CHECK(strcmp(ncclGetErrorString(ncclSuccess), "no error") == 0);
  start();
  folds();
  halves(ncclFloat16, 0x3c00, 0x4000);
  halves(ncclBfloat16, 0x3f80, 0x4000);
  blocks();
  messages();
  refusals();
  parts();
  roots();
  farewell();
  end();
  start();
  aborted();
  end();
  return failures > 0;
}
