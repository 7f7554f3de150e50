/* SPDX-License-Identifier: MIT */
/*
** defects.c - runs every seeded defect in several orders of threads and
** streams, each time in a process of its own, and holds what the flavour of
** the emulation said against what it must say.
**
**   defects FLAVOUR [NAME]    NAME: this one only, and show what it said
*/
#define _POSIX_C_SOURCE 200809L
#include "tests/emulation/defects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const modes[] = {
  "order=sequential,streams=eager",        "order=sequential,streams=lazy",
  "order=reversed,streams=lazy",           "order=random,streams=random,seed=3",
  "order=random,streams=lazy,protect=off",
};
#define MODES (sizeof modes / sizeof modes[0])

float *x, *y, *h, *g;
cudaStream_t s, other;

/*
** What defects use
*/
void must(cudaError_t e) {
  if (e == cudaSuccess) return;
  printf("api %s\n", cudaGetErrorName(e));
  exit(0);
}

float *device(size_t n) {
  void *p;
  must(cudaMalloc(&p, n * sizeof(float)));
  return p;
}

static float *locked(size_t n) {
  void *p;
  must(cudaMallocHost(&p, n * sizeof(float)));
  return p;
}

void up(float *to, const float *from, size_t n, cudaStream_t stream) {
  must(cudaMemcpyAsync(to, from, n * sizeof *to, cudaMemcpyHostToDevice,
                       stream));
}

void down(float *to, const float *from, size_t n, cudaStream_t stream) {
  must(cudaMemcpyAsync(to, from, n * sizeof *to, cudaMemcpyDeviceToHost,
                       stream));
}

void clear(float *p, size_t n) {
  memset(p, 0, n * sizeof *p);
}

void fetch(size_t n) {
  down(g, y, n, s);
  must(cudaStreamSynchronize(s));
}

/*
** In the child
*/
static void child(const Defect *d, const char *mode) {
  int right;
  if (emu_set("devices=2,memory=4M") != 0 || emu_set(mode) != 0) exit(1);
  must(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  must(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  x = device(N);
  y = device(N);
  h = locked(N);
  g = locked(N);
  for (int i = 0; i < N; i++) h[i] = (float)i;
  up(x, h, N, s);
  must(cudaStreamSynchronize(s));
  right = d->run();
  for (int i = 0; i < 2; i++) { /* what nobody awaited is judged, too */
    must(cudaSetDevice(i));
    must(cudaDeviceSynchronize());
  }
  puts(right ? "right" : WRONG);
  fflush(stdout);
  _exit(0);
}

/*
** In the parent
*/
static char said[1 << 16];

/* Runs a defect and fills `said'; gives the status of its process. */
static int run(const Defect *d, const char *mode) {
  int ends[2], status;
  size_t n = 0;
  ssize_t got;
  pid_t pid;
  fflush(stdout);
  if (pipe(ends) != 0 || (pid = fork()) < 0) {
    perror("defects");
    exit(1);
  }
  if (pid == 0) {
    dup2(ends[1], 1);
    dup2(ends[1], 2);
    close(ends[0]);
    close(ends[1]);
    child(d, mode);
  }
  close(ends[1]);
  while (n < sizeof said - 1 &&
         (got = read(ends[0], said + n, sizeof said - 1 - n)) > 0)
    n += (size_t)got;
  said[n] = '\0';
  close(ends[0]);
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Was one of the alternatives of `expected' said? */
static int matches(const char *expected) {
  char each[128];
  while (*expected) {
    size_t n = strcspn(expected, "|");
    snprintf(each, sizeof each, "%.*s", (int)n, expected);
    if (strstr(said, each)) return 1;
    expected += n + (expected[n] == '|');
  }
  return 0;
}

static int silent(int status) {
  return status == 0 && strcmp(said, "right\n") == 0;
}

static int fail(const Defect *d, const char *mode, const char *expected) {
  printf("%s (%s): expected: %s; said:\n%s\n", d->name, mode, expected, said);
  return 1;
}

/* The checker must find it in every mode; the sanitizers in one. */
static int judge(const Defect *d, int check) {
  const char *expected = check ? d->check : d->asan;
  int found = 0;
  if (expected && strcmp(expected, MISSED) == 0) expected = NULL;
  for (size_t i = 0; i < MODES; i++) {
    int status = run(d, modes[i]), right;
    if (expected == NULL) {
      if (!silent(status)) return fail(d, modes[i], "nothing");
      continue;
    }
    right = matches(expected);
    found += right;
    if (!right && (check || (!silent(status) && !strstr(said, WRONG))))
      return fail(d, modes[i], expected);
  }
  if (expected && !found) return fail(d, "all modes", expected);
  return 0;
}

static void show(const Defect *d) {
  for (size_t i = 0; i < MODES; i++) {
    int status = run(d, modes[i]);
    printf("---- %s: %d\n%s\n", modes[i], status, said);
  }
}

int main(int argc, char **argv) {
  static const Defect *const all[] = { memory_defects, race_defects,
                                       stream_defects, cub_defects, controls };
  int failures = 0, seeded = 0, silents = 0, check;
  if (argc < 2 || (strcmp(argv[1], "check") && strcmp(argv[1], "asan"))) {
    fprintf(stderr, "usage: defects check|asan [NAME]\n");
    return 2;
  }
  check = strcmp(argv[1], "check") == 0;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    for (const Defect *d = all[i]; d->name; d++) {
      if (argc > 2) {
        if (strcmp(argv[2], d->name) == 0) show(d);
        continue;
      }
      failures += judge(d, check);
      if (all[i] == controls) silents++;
      else seeded++;
    }
  if (argc > 2) return 0;
  printf("%d defects and %d controls in %d modes: %d judged wrongly\n", seeded,
         silents, (int)MODES, failures);
  return failures > 0;
}
