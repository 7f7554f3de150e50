/* SPDX-License-Identifier: MIT */
/*
** settings.c - settings (NACRE_EMULATION), counters, and the entry and exit of
** API functions: they initialize the emulator on the first call, make the Nth
** call fail, and record errors.
*/
#define _DEFAULT_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/emulation/internal.h"
#include "cuda/emulation/shadow.h"

Settings emu_settings = {
#define X(name, value, fixed) .name = value,
  EMU_SETTINGS(X)
#undef X
};
Counters emu_counts;
int emu_quiet, emu_inkernel, emu_inexact;
static int started, depth, broken, forked;
static cudaError_t last, sticky;

/*
** Settings
*/
static const struct {
  const char *name;
  long long *value;
  int fixed;
} settings[] = {
#define X(name, value, fixed) { #name, &emu_settings.name, fixed },
  EMU_SETTINGS(X)
#undef X
};
#define SETTINGS ((int)(sizeof settings / sizeof settings[0]))

/* Settings whose values are words. */
static const struct {
  const char *setting, *name;
  int value;
} words[] = {
  { "order", "sequential", EMU_SEQUENTIAL },
  { "order", "random", EMU_RANDOM },
  { "order", "reversed", EMU_REVERSED },
  { "streams", "eager", EMU_EAGER },
  { "streams", "lazy", EMU_LAZY },
  { "streams", "random", EMU_ANYTIME },
  { "protect", "auto", EMU_AUTO },
  { "protect", "off", EMU_OFF },
  { "protect", "mprotect", EMU_MPROTECT },
  { "protect", "pkeys", EMU_PKEYS },
};
#define WORDS ((int)(sizeof words / sizeof words[0]))

static uint64_t state;

uint32_t emu_random(uint32_t n) { /* Marsaglia's xorshift, 2003 */
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (uint32_t)((state >> 16) % n);
}

static void reseed(void) {
  state =
      88172645463325252u ^ (uint64_t)emu_settings.seed * 0x9E3779B97F4A7C15u;
}

/* Parses a value; returns 0 if it is invalid for this setting. */
static int parse(const char *setting, const char *text, long long *value) {
  char *end;
  int named = 0;
  for (int i = 0; i < WORDS; i++) {
    if (strcmp(words[i].setting, setting) != 0) continue;
    named = 1;
    if (strcmp(words[i].name, text) != 0) continue;
    *value = words[i].value;
    return 1;
  }
  if (named) return 0;
  *value = strtoll(text, &end, 0);
  if (end == text || *value < 0) return 0;
  if (*end == 'K') *value <<= 10, end++;
  else if (*end == 'M') *value <<= 20, end++;
  else if (*end == 'G') *value <<= 30, end++;
  return *end == '\0';
}

static const char *check_range(const char *name, long long value) {
  if (strcmp(name, "devices") == 0 && value > EMU_DEVICES) return "too many";
  if (strcmp(name, "memory") == 0 && (value < 1 << 20 || value > 1LL << 40))
    return "1M to 1024G are possible";
  return NULL;
}

static int set_one(const char *name, const char *text) {
  long long value;
  const char *why;
  int i = 0;
  while (i < SETTINGS && strcmp(settings[i].name, name) != 0) i++;
  if (i == SETTINGS) why = "no such setting";
  else if (!parse(name, text, &value)) why = "no such value";
  else if (settings[i].fixed && started) why = "a device was used already";
  else why = check_range(name, value);
  if (why) {
    fprintf(stderr, "emulated CUDA: %s=%s: %s\n", name, text, why);
    return -1;
  }
  *settings[i].value = value;
  if (strcmp(name, "seed") == 0) reseed();
  if (strcmp(name, "failat") == 0 && value)
    emu_settings.failat += emu_counts.calls;
  return 0;
}

int emu_set(const char *text) {
  int status = 0;
  emu_quiet++;
  while (*text && status == 0) {
    char name[32], value[32];
    int n = 0;
    if (sscanf(text, " %31[a-z]=%31[^, ]%n", name, value, &n) != 2) {
      fprintf(stderr, "emulated CUDA: what is \"%s\"?\n", text);
      status = -1;
      break;
    }
    status = set_one(name, value);
    text += n;
    text += strspn(text, ", ");
  }
  emu_quiet--;
  return status;
}

long long emu_count(const char *name) {
  static const struct {
    const char *name;
    const long long *value;
  } counts[] = {
#define X(name) { #name, &emu_counts.name },
    EMU_COUNTERS(X)
#undef X
  };
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
    if (strcmp(counts[i].name, name) == 0) return *counts[i].value;
  if (strcmp(name, "live") == 0) {
    long long live = 0;
    for (int d = 0; d < emu_settings.devices; d++)
      live += (long long)emu_arena[d].used;
    return live;
  }
  return -1;
}

int emu_leaks(void) {
  int n;
  emu_quiet++;
  n = emu_memoryleaks() + emu_streamleaks() + emu_eventleaks() +
      emu_nccl_leaks();
  emu_quiet--;
  return n;
}

double emu_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/*
** API functions
*/
/* Initializes the emulator; -1 after a message on stderr. */
static int initialize(void) {
  const char *wish = getenv("NACRE_EMULATION");
  if (wish && emu_set(wish) != 0) return -1;
  if (state == 0) reseed();
  if (emu_arena_start() != 0 || emu_shared_start() != 0 ||
      emu_shadow_start() != 0 || emu_stream_start() != 0) {
    fprintf(stderr, "emulated CUDA: the host has too little memory for it\n");
    return -1;
  }
  return 0;
}

/* After a fork, CUDA cannot be used in the child process. */
static void leftbehind(void) {
  forked = 1;
}

void emu_start(void) {
  if (started) return;
  pthread_atfork(NULL, NULL, leftbehind);
  broken = initialize() != 0;
  started = 1;
}

/* Is the error sticky: does a real device fail every later call? */
static int is_sticky(cudaError_t e) {
  return e == cudaErrorIllegalAddress || e == cudaErrorLaunchFailure ||
         e == cudaErrorLaunchTimeout || e == cudaErrorAssert ||
         e == cudaErrorMisalignedAddress || e == cudaErrorECCUncorrectable;
}

cudaError_t emu_enter(void) {
  emu_quiet++;
  emu_start();
  depth++;
  if (broken || forked) return cudaErrorInitializationError;
  if (emu_op)
    emu_report("call from a stream", "a function or kernel that a stream "
                                     "runs calls CUDA's API");
  emu_counts.calls++;
  if (emu_settings.failat && emu_counts.calls == emu_settings.failat) {
    cudaError_t e = (cudaError_t)emu_settings.failcode;
    if (is_sticky(e)) sticky = e;
    return e;
  }
  return sticky;
}

cudaError_t emu_leave(cudaError_t e) {
  if (e != cudaSuccess) last = e;
  if (--depth == 0) emu_closeall();
  emu_quiet--;
  return e;
}

cudaError_t emu_lasterror(int clear) {
  cudaError_t e = last;
  if (clear) last = sticky;
  return e;
}

void emu_clear_sticky(void) {
  sticky = last = cudaSuccess;
}
