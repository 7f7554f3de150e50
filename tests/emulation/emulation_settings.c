/* SPDX-License-Identifier: MIT */
/*
** emulation_settings.c - the settings of the emulated device do what they say:
** orders, failures, limits of memory, errors of functions, counters, the search
** for leaks.
*/
#define _POSIX_C_SOURCE 200809L
#include "tests/emulation/emulation_settings.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/emulation/checks.h"

static cudaStream_t newstream(void) {
  cudaStream_t s = NULL;
  MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  return s;
}

static void *device(size_t n) {
  void *p = NULL;
  MUST(cudaMalloc(&p, n));
  return p;
}

/*
** Words
*/
static void before_the_first_call(void) {
  CHECK(emu_set("devices=2,memory=4M") == 0);
  CHECK(emu_set("devices=9") == -1);
  CHECK(emu_set("memory=12") == -1);
  CHECK(emu_set("memory=4X") == -1);
  CHECK(emu_set("order=sideways") == -1);
  CHECK(emu_set("colour=red") == -1);
  CHECK(emu_set("nonsense") == -1);
  CHECK(emu_set("") == 0);
  CHECK(emu_count("nonsense") == -1);
}

static void after_the_first_call(void) {
  int n = 0;
  MUST(cudaGetDeviceCount(&n));
  CHECK(n == 2);
  CHECK(emu_set("devices=1") == -1);
  CHECK(emu_set("memory=8M") == -1);
  CHECK(emu_set("order=reversed, streams=lazy") == 0);
}

/*
** Orders
*/
#define BLOCKS 3
#define THREADS 40
#define ALL (BLOCKS * THREADS)

static void ranked(const char *settings, unsigned *rank) {
  cudaStream_t s = newstream();
  unsigned *order = device(ALL * sizeof *order), *counter = device(4);
  CHECK(emu_set(settings) == 0);
  MUST(run_order(order, counter, BLOCKS, THREADS, s));
  MUST(cudaStreamSynchronize(s));
  MUST(cudaMemcpy(rank, order, ALL * sizeof *rank, cudaMemcpyDeviceToHost));
  MUST(cudaFree(order));
  MUST(cudaFree(counter));
  MUST(cudaStreamDestroy(s));
}

static void orders(void) {
  unsigned a[ALL], b[ALL], seen[ALL] = { 0 };
  int straight = 1, reversed = 1, all = 1;
  ranked("order=sequential", a);
  for (int i = 0; i < ALL; i++) straight &= a[i] == (unsigned)i;
  CHECK(straight);
  ranked("order=reversed", a);
  for (int i = 0; i < ALL; i++) reversed &= a[i] == (unsigned)(ALL - 1 - i);
  CHECK(reversed);
  ranked("order=random,seed=7", a);
  ranked("order=random,seed=7", b);
  CHECK(memcmp(a, b, sizeof a) == 0);
  ranked("order=random,seed=8", b);
  CHECK(memcmp(a, b, sizeof a) != 0);
  for (int i = 0; i < ALL; i++) seen[a[i]] = 1;
  for (int i = 0; i < ALL; i++) all &= (int)seen[i];
  CHECK(all);
  CHECK(emu_set("order=sequential") == 0);
}

/* Who does not wait costs no switch: two for a launch, however large. */
static void switches(void) {
  unsigned rank[ALL];
  long long before = emu_count("switches");
  ranked("order=sequential", rank);
  CHECK(emu_count("switches") - before == 2);
}

static void streams(void) {
  cudaStream_t s = newstream();
  int *x = device(4), *by = device(4);
  long long before = emu_count("launches");
  MUST(cudaMemset(x, 0, 4));
  MUST(cudaMemset(by, 0, 4));
  MUST(cudaDeviceSynchronize());
  CHECK(emu_set("streams=eager") == 0);
  MUST(run_increment(x, by, s));
  CHECK(emu_count("launches") == before + 1);
  CHECK(emu_set("streams=lazy") == 0);
  MUST(run_increment(x, by, s));
  CHECK(emu_count("launches") == before + 1);
  MUST(cudaStreamSynchronize(s));
  CHECK(emu_count("launches") == before + 2);
  for (int i = 0; i < 3000; i++) MUST(run_increment(x, by, s));
  CHECK(emu_count("launches") >= before + 2 + 1900); /* a queue has an end */
  MUST(cudaStreamDestroy(s));
  CHECK(emu_count("launches") == before + 3002);
  MUST(cudaFree(x));
  MUST(cudaFree(by));
}

/*
** Failures
*/

/* Some of everything; gives the first error, and frees what it has. */
static cudaError_t scenario(void) {
  int *x = NULL, *host = NULL, one = 1;
  cudaStream_t s = NULL;
  cudaEvent_t e = NULL;
  cudaError_t r;
  r = cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
  if (r == cudaSuccess) r = cudaMalloc((void **)&x, 2 * sizeof *x);
  if (r == cudaSuccess) r = cudaMallocHost((void **)&host, sizeof *host);
  if (r == cudaSuccess)
    r = cudaEventCreateWithFlags(&e, cudaEventDisableTiming);
  if (r == cudaSuccess) r = cudaMemsetAsync(x, 0, sizeof *x, s);
  if (r == cudaSuccess)
    r = cudaMemcpyAsync(x + 1, &one, sizeof one, cudaMemcpyHostToDevice, s);
  if (r == cudaSuccess) r = run_increment(x, x + 1, s);
  if (r == cudaSuccess)
    r = cudaMemcpyAsync(host, x, sizeof *x, cudaMemcpyDeviceToHost, s);
  if (r == cudaSuccess) r = cudaEventRecord(e, s);
  if (r == cudaSuccess) r = cudaStreamSynchronize(s);
  if (r == cudaSuccess) CHECK(*host == 1);
  emu_set("failat=0");
  if (e) MUST(cudaEventDestroy(e));
  if (s) MUST(cudaStreamDestroy(s));
  MUST(cudaFree(x));
  MUST(cudaFreeHost(host));
  return r;
}

static void each_call_fails(void) {
  const cudaError_t code = cudaErrorLaunchOutOfResources;
  cudaError_t e = cudaSuccess;
  int n = 0;
  CHECK(emu_set("failcode=701") == 0);
  do {
    char setting[32];
    snprintf(setting, sizeof setting, "failat=%d", ++n);
    CHECK(emu_set(setting) == 0);
    e = scenario();
    CHECK(e == code || e == cudaSuccess);
    CHECK(cudaGetLastError() == e);
    CHECK(emu_leaks() == 0);
  } while (e != cudaSuccess && n < 100);
  CHECK(n == 11); /* ten calls, each failed once */
}

/* After a fault in a kernel a device answers nothing more. */
static void a_fault_sticks(void) {
  int d;
  CHECK(emu_set("failcode=700,failat=1") == 0);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  CHECK(cudaGetDevice(&d) == cudaErrorIllegalAddress);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
  MUST(cudaDeviceReset());
  MUST(cudaGetDevice(&d));
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(emu_set("failcode=2,failat=0") == 0);
}

/*
** Memory
*/
static void a_device_fills_up(void) {
  void *p[64];
  size_t free_, total;
  int n = 0;
  const long long live = emu_count("live");
  while (n < 64 && cudaMalloc(&p[n], 300000) == cudaSuccess) n++;
  CHECK(n >= 12 && n < 14); /* of 4 MiB */
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation && p[n] == NULL);
  CHECK(emu_count("live") == live + n * 300000);
  MUST(cudaMemGetInfo(&free_, &total));
  CHECK(total == 4 << 20 && free_ == total - (size_t)emu_count("live"));
  MUST(cudaFree(p[3]));
  MUST(cudaMalloc(&p[3], 300000));
  for (int i = 0; i < n; i++) {
    MUST(cudaMemset(p[i], i, 300000));
    MUST(cudaFree(p[i]));
  }
  CHECK(emu_count("live") == live);
  CHECK(cudaFree(p[0]) == cudaErrorInvalidValue); /* twice */
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  MUST(cudaMalloc(&p[0], 4000000));
  MUST(cudaFree(p[0]));
}

static void what_leaks_is_found(void) {
  cudaStream_t s;
  cudaEvent_t e;
  void *host;
  void *p = device(100);
  CHECK(emu_leaks() == 1);
  s = newstream();
  MUST(cudaEventCreateWithFlags(&e, 0));
  MUST(cudaMallocHost(&host, 8));
  CHECK(emu_leaks() == 4);
  CHECK(emu_set("streams=lazy") == 0);
  MUST(cudaMemsetAsync(p, 0, 100, s));
  CHECK(emu_leaks() == 5); /* nobody waited for it */
  MUST(cudaFreeHost(host));
  MUST(cudaFree(p));
  MUST(cudaStreamDestroy(s));
  MUST(cudaEventDestroy(e));
  CHECK(emu_leaks() == 0);
  (void)cudaGetLastError();
}

/*
** Several devices
*/
static void peers(void) {
  int can = -1, *x, *there;
  cudaStream_t s = newstream();
  CHECK(emu_set("peer=0") == 0);
  MUST(cudaDeviceCanAccessPeer(&can, 0, 1));
  CHECK(can == 0);
  CHECK(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessUnsupported);
  CHECK(emu_set("peer=1") == 0);
  MUST(cudaDeviceCanAccessPeer(&can, 0, 1));
  CHECK(can == 1);
  MUST(cudaDeviceEnablePeerAccess(1, 0));
  CHECK(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessAlreadyEnabled);
  x = device(4);
  MUST(cudaMemset(x, 0, 4));
  MUST(cudaSetDevice(1));
  there = device(4);
  MUST(cudaMemset(there, 1, 4));
  MUST(cudaDeviceSynchronize());
  MUST(cudaSetDevice(0));
  MUST(cudaDeviceSynchronize());
  MUST(run_increment(x, there, s));
  MUST(cudaStreamSynchronize(s));
  MUST(cudaMemcpy(&can, x, 4, cudaMemcpyDeviceToHost));
  CHECK(can == 0x01010101);
  MUST(cudaFree(x));
  MUST(cudaFree(there));
  MUST(cudaStreamDestroy(s));
}

/*
** Errors of functions
*/
enum {
#define FUNCTION(f, ...) F_##f,
#define FUNCTION2(f, ...) F_##f,
#include "cuda/emulation/maths.def"
  FUNCTIONS
};

static const struct {
  int single, wide;
} bound[FUNCTIONS] = {
#define FUNCTION(f, single, wide, ...) { single, wide },
#define FUNCTION2(f, single, wide, ...) { single, wide },
#include "cuda/emulation/maths.def"
};

#define ARGUMENTS 200

typedef struct Maths {
  float single[FUNCTIONS * ARGUMENTS];
  double wide[FUNCTIONS * ARGUMENTS];
} Maths;

/* Numbers that a float holds: 0, infinity, nan, then some of all sizes. */
static double argument(int i) {
  static const double special[] = { 0, -0.0, INFINITY, -INFINITY, NAN, 1, 2 };
  const double size = (double)(float)exp(i * 0.06 - 9);
  if (i < (int)(sizeof special / sizeof special[0])) return special[i];
  return i % 2 ? -size : size;
}

static void maths(const char *setting, Maths *m) {
  cudaStream_t s = newstream();
  double x[ARGUMENTS], *there = device(sizeof x);
  double *wide = device(sizeof m->wide);
  float *single = device(sizeof m->single);
  for (int i = 0; i < ARGUMENTS; i++) x[i] = argument(i);
  CHECK(emu_set(setting) == 0);
  MUST(cudaMemcpy(there, x, sizeof x, cudaMemcpyHostToDevice));
  MUST(cudaDeviceSynchronize());
  MUST(run_maths(single, wide, there, ARGUMENTS, s));
  MUST(cudaStreamSynchronize(s));
  MUST(cudaMemcpy(m->single, single, sizeof m->single, cudaMemcpyDeviceToHost));
  MUST(cudaMemcpy(m->wide, wide, sizeof m->wide, cudaMemcpyDeviceToHost));
  MUST(cudaFree(there));
  MUST(cudaFree(single));
  MUST(cudaFree(wide));
  MUST(cudaStreamDestroy(s));
}

/* By how many units in the last place x differs from what is right: at most
   half a unit more than from that rounded.  Both infinite or nan is none, as
   what is known to the sign of a zero. */
static double off(double x, long double right, int digits, int lowest) {
  int e;
  if (isnan(right) || isinf(x))
    return isnan(right) ? (isnan(x) ? 0 : 1e9)
           : fabsl(right) >= (digits == 24 ? FLT_MAX : DBL_MAX) &&
                   (x > 0) == (right > 0)
               ? 0
               : 1e9;
  if (right == 0) return x == 0 && !signbit(x) == !signbit(right) ? 0 : 1e9;
  frexpl(right, &e);
  if (e < lowest) e = lowest;
  return (double)(fabsl(x - right) / ldexpl(1, e - digits));
}

static int nearroots(int f, double x) {
  return f == F_lgamma && x < -2.2 && x > -24;
}

static void errors_of_functions(void) {
  static Maths exact, a, b, other;
  maths("ulps=0", &exact);
  maths("ulps=1", &a);
  maths("ulps=1,order=reversed", &b);
  maths("ulps=2,order=sequential", &other);
  CHECK(memcmp(&a, &b, sizeof a) == 0);
  for (int f = 0; f < FUNCTIONS; f++) {
    int singles = 0, wides = 0, others = 0;
    for (int i = 0; i < ARGUMENTS; i++) {
      const int at = f * ARGUMENTS + i;
      const double x = argument(i);
      const long double right = by_far(f, x);
      CHECK(off(exact.wide[at], by_host(f, x), 53, -1021) == 0);
      if (nearroots(f, x)) continue;
      CHECK(off(a.single[at], right, 24, -125) <= bound[f].single + 0.51);
      CHECK(off(a.wide[at], right, 53, -1021) <= bound[f].wide + 0.51);
      singles += a.single[at] != (float)right && right == right;
      wides += a.wide[at] != (double)right && right == right;
      others += a.wide[at] != other.wide[at] && right == right;
    }
    CHECK(singles > 9 && wides > 9 && others > 9);
  }
  CHECK(emu_set("ulps=0") == 0);
}

/* A child of a process that used CUDA cannot use it. */
static void in_a_child(void) {
  int n = 0, status = 1;
  pid_t child;
  fflush(stdout);
  if ((child = fork()) == 0)
    _exit(cudaGetDeviceCount(&n) != cudaErrorInitializationError ||
          cudaDeviceSynchronize() != cudaErrorInitializationError);
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
  MUST(cudaGetDeviceCount(&n));
}

int main(void) {
  before_the_first_call();
  after_the_first_call();
  orders();
  switches();
  streams();
  each_call_fails();
  a_fault_sticks();
  a_device_fills_up();
  what_leaks_is_found();
  peers();
  errors_of_functions();
  in_a_child();
  CHECK(emu_leaks() == 0);
  return failures > 0;
}
