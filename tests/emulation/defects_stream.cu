/* SPDX-License-Identifier: MIT */
/*
** defects_stream.cu - defects of order among streams and the host: nobody
** waited, or for the wrong thing, or too late.
*/
#include <stdlib.h>

#include "cuda/emulation/libraries/nccl.h"
#include "tests/emulation/defects.h"

static void fillall(float value) {
  LAUNCH(fill<float>, 4, 256, 0, s, y, value, N);
}

static int host_does_not_wait(void) {
  fillall(3);
  down(g, y, 256, s);
  return g[0] == 3;
}

static int no_event(void) {
  fillall(3);
  down(g, y, N, other);
  must(cudaStreamSynchronize(other));
  return g[N - 1] == 3;
}

static int source_overwritten(void) {
  up(y, h, N, s);
  for (int i = 0; i < N; i++) h[i] = -1;
  must(cudaStreamSynchronize(s));
  fetch(N);
  return g[5] == 5;
}

static int source_overwritten_by_memset(void) {
  up(y, h, N, s);
  clear(h, N);
  must(cudaStreamSynchronize(s));
  fetch(N);
  return g[5] == 5;
}

static int record_after_wait(void) {
  cudaEvent_t e;
  must(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
  fillall(3);
  must(cudaStreamWaitEvent(other, e, 0));
  must(cudaEventRecord(e, s));
  down(g, y, N, other);
  must(cudaStreamSynchronize(other));
  return g[N - 1] == 3;
}

/* An allocator gives `other' a block that s may still read. */
static int cache_ignores_stream(void) {
  float *z = device(N);
  up(y, h, N, s);
  must(cudaStreamSynchronize(s));
  LAUNCH(copy<float>, 1, 256, 0, s, z, y, 256);
  NC_MEM_POISON(s, y, N * sizeof *y);
  NC_MEM_UNPOISON(other, y, N * sizeof *y);
  LAUNCH(fill<float>, 1, 256, 0, other, y, 7.0f, 256);
  must(cudaStreamSynchronize(other));
  down(g, z, 256, s);
  must(cudaStreamSynchronize(s));
  return g[9] == 9;
}

/* From pageable memory even cudaMemcpy may return before the bytes are on the
   device, and streams that do not block do not wait for it. */
static int pageable_copy_then_stream(void) {
  float *v = (float *)malloc(N * sizeof *v);
  for (int i = 0; i < N; i++) v[i] = 4;
  must(cudaMemcpy(x, v, N * sizeof *v, cudaMemcpyHostToDevice));
  LAUNCH(copy<float>, 1, 256, 0, s, y, x, 256);
  fetch(256);
  return g[9] == 4;
}

/* Of a communicator with one rank: NCCL reads what s has not written yet. */
static int collective_without_event(void) {
  ncclConfig_t config = {};
  ncclUniqueId id;
  ncclComm_t c;
  config.size = sizeof config;
  config.magic = 0xcafebeef;
  fillall(3);
  if (ncclGetUniqueId(&id) != ncclSuccess ||
      ncclCommInitRankConfig(&c, 1, id, 0, &config) != ncclInProgress ||
      ncclAllReduce(y, x, N, ncclFloat32, ncclSum, c, other) != ncclSuccess)
    return 1;
  down(g, x, N, other);
  must(cudaStreamSynchronize(other));
  return g[N - 1] == 3;
}

NC_KERNEL query(int) {
  cudaStreamQuery(NULL);
}

static int call_in_kernel(void) {
  LAUNCH(query, 1, 1, 0, s, 0);
  must(cudaStreamSynchronize(s));
  return 1;
}

#define STREAMS "race between streams"
extern const Defect stream_defects[] = {
  { "host does not wait", host_does_not_wait, "race of host and stream",
    WRONG },
  { "no event between streams", no_event, STREAMS, WRONG },
  { "source overwritten early", source_overwritten, "race of host and stream",
    WRONG },
  { "source overwritten by memset", source_overwritten_by_memset,
    "race of host and stream", WRONG },
  { "event recorded after the wait", record_after_wait, STREAMS, WRONG },
  { "cached block on another stream", cache_ignores_stream,
    STREAMS "|invalid device access", WRONG "|AddressSanitizer" },
  { "collective without an event", collective_without_event, STREAMS, WRONG },
  { "call of CUDA in a kernel", call_in_kernel, "call from a stream",
    "call from a stream" },
  { "pageable copy, then a stream", pageable_copy_then_stream, STREAMS, WRONG },
  { NULL, NULL, NULL, NULL }
};
