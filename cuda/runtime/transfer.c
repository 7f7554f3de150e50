/* SPDX-License-Identifier: MIT */
/*
** transfer.c - copies between the host and devices, within a device, and
** between devices (Device.copy and Device.tohost of core/devices.h).
**
** A device accesses pinned host memory directly.  Copies of pageable memory are
** staged in pinned buffers: large ones in two halves, of which the device
** copies one while the host copies the other; small ones in a ring of small
** buffers.
** A staged copy to the device returns when its source has been read, but the
** device may still be copying from the buffer.  A copy to the host is complete
** when the function returns, unless NC_NOWAIT was passed for pinned memory.
*/
#include <stdlib.h>
#include <string.h>

#include "cuda/blocks.h"
#include "cuda/runtime/gpu.h"

#define LARGEST (8 * MiB)        /* bytes of a half */
#define LEAST (MiB / 2)          /* of a piece of a large copy */
#define SLOT ((int64_t)64 << 10) /* bytes of a small buffer */
#define SLOTS 16

/* Bytes for each host thread that copies.  The emulation needs a single
   thread. */
#ifdef NC_EMULATED
#define GRAIN INT64_MAX
#else
#define GRAIN MiB
#endif

typedef struct Buffer {
  char *p;
  cudaEvent_t event; /* recorded after the device's copy */
  int busy;          /* event is recorded and not yet waited for */
} Buffer;

struct Staging {
  char *small, *large;
  Buffer slot[SLOTS], half[2];
  int next;
};

/*
** Staging buffers, created when they are first needed
*/
static int newstaging(Gpu *g) {
  struct Staging *s = calloc(1, sizeof *s);
  void *p = NULL;
  int r;
  if (s == NULL) return nc_fail(NC_ENOMEM, "no memory for a copy");
  if ((r = nc_newpages(&p, SLOT * SLOTS, cudaHostAllocDefault)) != NC_OK) {
    free(s);
    return r;
  }
  s->small = p;
  for (int i = 0; i < SLOTS; i++) s->slot[i].p = s->small + SLOT * i;
  g->staging = s;
  return NC_OK;
}

static int create_buffers(Gpu *g, int large) {
  struct Staging *s;
  void *p = NULL;
  if (g->staging == NULL) TRY(newstaging(g));
  s = g->staging;
  if (!large || s->large) return NC_OK;
  TRY(nc_newpages(&p, 2 * LARGEST, cudaHostAllocDefault));
  s->large = p;
  for (int i = 0; i < 2; i++) s->half[i].p = s->large + LARGEST * i;
  return NC_OK;
}

/* Waits until the device no longer uses the buffer. */
static int wait_for_buffer(Gpu *g, Buffer *b) {
  if (!b->busy) return NC_OK;
  TRY(nc_waitforevent(g, b->event));
  nc_putevent(g, b->event, 0);
  b->busy = 0;
  return NC_OK;
}

/* Records an event on s, after which the device no longer uses the buffer.  If
   that fails, waits for the stream. */
static int record_buffer(Gpu *g, Buffer *b, cudaStream_t s) {
  int r = nc_record_event(g, &b->event, s);
  b->busy = r == NC_OK;
  if (r != NC_OK) cudaStreamSynchronize(s);
  return r;
}

static Buffer *nextslot(Gpu *g) {
  struct Staging *s = g->staging;
  s->next = (s->next + 1) % SLOTS;
  return &s->slot[s->next];
}

void nc_closestaging(Gpu *g) {
  struct Staging *s = g->staging;
  if (s == NULL) return;
  for (int i = 0; i < SLOTS; i++) wait_for_buffer(g, &s->slot[i]);
  for (int i = 0; i < 2; i++) wait_for_buffer(g, &s->half[i]);
  cudaFreeHost(s->small);
  if (s->large) cudaFreeHost(s->large);
  free(s);
  g->staging = NULL;
}

/*
** Copies on the host, by several threads if they are large
*/
typedef struct Bytes {
  char *dst;
  const char *src;
} Bytes;

static void move(void *ctx, int64_t begin, int64_t end) {
  const Bytes *b = ctx;
  memcpy(b->dst + begin, b->src + begin, (size_t)(end - begin));
}

static int copy_on_host(char *dst, const char *src, int64_t n) {
  Bytes b = { dst, src };
  if (n <= GRAIN) {
    move(&b, 0, n);
    return NC_OK;
  }
  return nc_hostside->parallel(n, GRAIN, move, &b);
}

/*
** Staged copies
*/
/* Copies n bytes from the host to the device through buffer b. */
static int upload_piece(Gpu *g, Buffer *b, char *dst, const char *src,
                        int64_t n) {
  const cudaStream_t s = nc_current_stream(&g->device);
  TRY(wait_for_buffer(g, b));
  TRY(copy_on_host(b->p, src, n));
  CUDA_TRY(cudaMemcpyAsync(dst, b->p, (size_t)n, cudaMemcpyHostToDevice, s));
  return record_buffer(g, b, s);
}

/* Starts a copy from the device to buffer b; finish_download ends it. */
static int start_download(Gpu *g, Buffer *b, const char *src, int64_t n) {
  const cudaStream_t s = nc_current_stream(&g->device);
  TRY(wait_for_buffer(g, b));
  CUDA_TRY(cudaMemcpyAsync(b->p, src, (size_t)n, cudaMemcpyDeviceToHost, s));
  return record_buffer(g, b, s);
}

/* The size of the pieces of a copy: large enough for full speed, small enough
   that the copies of host and device overlap. */
static int64_t piece_size(int64_t bytes) {
  return min64(max64(bytes / 4, LEAST), LARGEST);
}

static int upload(Gpu *g, char *dst, const char *src, int64_t bytes) {
  const int64_t n = piece_size(bytes);
  int k = 0;
  TRY(create_buffers(g, bytes > SLOT));
  if (bytes <= SLOT) return upload_piece(g, nextslot(g), dst, src, bytes);
  for (int64_t at = 0; at < bytes; at += n, k = !k)
    TRY(upload_piece(g, &g->staging->half[k], dst + at, src + at,
                     min64(n, bytes - at)));
  return NC_OK;
}

static int finish_download(Gpu *g, Buffer *b, char *dst, int64_t n) {
  TRY(wait_for_buffer(g, b));
  return copy_on_host(dst, b->p, n);
}

/* Starts up to two pieces ahead, so that the device copies the next piece while
   the host copies the last one out of its buffer. */
static int download(Gpu *g, char *dst, const char *src, int64_t bytes) {
  const int64_t n = piece_size(bytes);
  int64_t started = 0, got = 0;
  TRY(create_buffers(g, bytes > SLOT));
  if (bytes <= SLOT) {
    Buffer *b = nextslot(g);
    TRY(start_download(g, b, src, bytes));
    return finish_download(g, b, dst, bytes);
  }
  for (; got < bytes; got += n) {
    for (; started < bytes && started < got + 2 * n; started += n)
      TRY(start_download(g, &g->staging->half[started / n % 2], src + started,
                         min64(n, bytes - started)));
    TRY(finish_download(g, &g->staging->half[got / n % 2], dst + got,
                        min64(n, bytes - got)));
  }
  return NC_OK;
}

/*
** Between devices
*/
/* Enables peer access, if the hardware has it; otherwise CUDA copies through
   the host. */
static void enable_peer_access(Gpu *g, const Gpu *other) {
  const uint64_t bit = (uint64_t)1 << other->ordinal;
  if (g->peers & bit) return;
  g->peers |= bit;
  if (nc_cuda_peer(g->ordinal, other->ordinal) &&
      cudaDeviceEnablePeerAccess(other->ordinal, 0) != cudaSuccess)
    cudaGetLastError();
}

/* Copies between devices.  The copy runs on the current stream of g, the
   destination.  Events order it in the current stream of the source as well, so
   that later work there does not overwrite the source too early. */
static int copy_between_devices(Gpu *g, char *dst, const char *src,
                                int64_t bytes, Gpu *from) {
  const cudaStream_t theirs = nc_current_stream(&from->device);
  const cudaStream_t ours = nc_current_stream(&g->device);
  int r;
  TRY(nc_order_streams(from, theirs, g, ours));
  enable_peer_access(g, from);
  CUDA_TRY(cudaMemcpyPeerAsync(dst, g->ordinal, src, from->ordinal,
                               (size_t)bytes, ours));
  r = nc_order_streams(g, ours, from, theirs);
  if (r != NC_OK) cudaStreamSynchronize(ours);
  return r;
}

static int copy_within_device(Gpu *g, char *dst, const char *src,
                              int64_t bytes) {
  CUDA_TRY(cudaMemcpyAsync(dst, src, (size_t)bytes, cudaMemcpyDeviceToDevice,
                           nc_current_stream(&g->device)));
  return nc_check_launch(&g->device, "copy");
}

/*
** Device.copy and Device.tohost
*/
/* Copies from or to pinned memory, which is at `host' (equal to dst or src). */
static int copy_pinned(Gpu *g, void *dst, const void *src, int64_t bytes,
                       const void *host, int how) {
  const cudaStream_t s = nc_current_stream(&g->device);
  nc_pinnedused(g, host);
  CUDA_TRY(cudaMemcpyAsync(
      dst, src, (size_t)bytes,
      host == src ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, s));
  return how & NC_NOWAIT ? nc_check_launch(&g->device, "copy")
                         : nc_waitfor(g, s);
}

int nc_cuda_copy(const Device *d, void *dst, const void *src, int64_t bytes,
                 const Device *from, int how) {
  Gpu *g = gpuof(d);
  TRY(nc_open(g));
  if (bytes <= 0) return NC_OK;
  nc_record_use(d, dst);
  if (from->ordinal >= 0) nc_record_use(from, src);
  if (from == d) return copy_within_device(g, dst, src, bytes);
  if (from->ordinal >= 0)
    return copy_between_devices(g, dst, src, bytes, gpuof(from));
  nc_cuda_counters.copied_in += bytes;
  if (how & NC_PINNED) return copy_pinned(g, dst, src, bytes, src, how);
  return upload(g, dst, src, bytes);
}

int nc_cuda_tohost(const Device *d, void *dst, const void *src, int64_t bytes,
                   int how) {
  Gpu *g = gpuof(d);
  TRY(nc_open(g));
  if (bytes <= 0) return NC_OK;
  nc_record_use(d, src);
  nc_cuda_counters.copied_out += bytes;
  if (how & NC_PINNED) return copy_pinned(g, dst, src, bytes, dst, how);
  return download(g, dst, src, bytes);
}
