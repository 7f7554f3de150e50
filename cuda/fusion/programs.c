/* SPDX-License-Identifier: MIT */
/*
** programs.c - compiles texts in a thread of its own, keeps their code, and
** loads it on devices.
**
** The thread does nothing but compile: the cache on disk, the driver and the
** list of programs belong to the thread that runs the program.  What it shares
** with it, the queue and the state of programs, is under a mutex.
**
** The thread must end before exit() destroys the objects of NVRTC.  Some are
** made at its first use, so that they are destroyed before a handler runs that
** was registered earlier: the first compilation registers one after them.  The
** program does not rely on it, it calls nc_fused_rest.
*/
#define _POSIX_C_SOURCE 200809L
#include "cuda/fusion/programs.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cuda/fusion/code_cache.h"
#include "cuda/fusion/fused_text.h"
#include "cuda/fusion/nvrtc.h"
#include "cuda/runtime/gpu.h"
#include "cuda/runtime/probe.h"

#define BUCKETS 256

typedef enum State { WAITING, COMPILED, READY, FAILED } State;
typedef enum Loaded { UNKNOWN, LOADED, REFUSED } Loaded;

struct FusedProgram {
  FusedProgram *next, *queued;
  int capability;
  State state; /* COMPILED: not in the cache on disk yet */
  int noted;   /* that it has failed */
  char *key;   /* a line about the compiler, then the text */
  const char *text;
  Compiled code;
  struct {
    Loaded loaded;
    Module module;
    Kernel kernel[2];
  } on[MAXDEVICES];
};

static FusedProgram *programs[BUCKETS];
static FusedFigures figures;
static char failure[512];

static struct {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  pthread_t thread;
  pid_t owner;    /* 0: there is no thread */
  int stop, done; /* done: programs that are COMPILED or FAILED and
                                 were not seen yet */
  FusedProgram *first, **end;
} queue = { .mutex = PTHREAD_MUTEX_INITIALIZER,
            .changed = PTHREAD_COND_INITIALIZER,
            .end = &queue.first };

/*
** The thread
*/
static int compile(FusedProgram *p, Compiled *out) {
  static const char *const names[] = { NC_FUSED_ELEMENTS, NULL };
  static const char *const both[] = { NC_FUSED_ELEMENTS, NC_FUSED_VECTORS,
                                      NULL };
  /* what headers only declare for the host */
  static const char *const options[] = { "-default-device", NULL };
  const CompileJob job = { .text = p->text,
                           .file = "fused.cu",
                           .kernel =
                               strstr(p->text, NC_FUSED_VECTORS) ? both : names,
                           .option = options,
                           .capability = p->capability,
                           .own_headers = 1 };
  return nc_compile(&job, out);
}

static void end_at_exit(void) {
  nc_fused_rest();
}

static void *run_thread(void *unused) {
  static int used;
  pthread_mutex_lock(&queue.mutex);
  while (!queue.stop) {
    FusedProgram *p = queue.first;
    Compiled code;
    int ok;
    if (p == NULL) {
      pthread_cond_wait(&queue.changed, &queue.mutex);
      continue;
    }
    pthread_mutex_unlock(&queue.mutex);
    ok = compile(p, &code);
    if (!used) used = atexit(end_at_exit) == 0;
    pthread_mutex_lock(&queue.mutex);
    if ((queue.first = p->queued) == NULL) queue.end = &queue.first;
    p->code = code;
    p->state = ok ? COMPILED : FAILED;
    queue.done++;
    pthread_cond_broadcast(&queue.changed);
  }
  pthread_mutex_unlock(&queue.mutex);
  return unused;
}

/* Keeps what the thread has compiled on disk; notes failures. */
static void collect(void) {
  int done;
  pthread_mutex_lock(&queue.mutex);
  done = queue.done;
  queue.done = 0;
  pthread_mutex_unlock(&queue.mutex);
  for (int b = 0; b < BUCKETS && done > 0; b++)
    for (FusedProgram *p = programs[b]; p; p = p->next) {
      State s;
      pthread_mutex_lock(&queue.mutex);
      s = p->state;
      pthread_mutex_unlock(&queue.mutex);
      if (s == COMPILED) {
        nc_cache_code(p->key, p->code.image, p->code.size);
        p->state = READY;
        figures.compiled++;
        figures.waiting--;
      } else if (s == FAILED && !p->noted) {
        snprintf(failure, sizeof failure, "%s",
                 p->code.log && *p->code.log ? p->code.log : p->code.why);
        p->noted = 1;
        figures.failed++;
        figures.waiting--;
      }
    }
}

void nc_fused_rest(void) {
  if (queue.owner != getpid()) return;
  pthread_mutex_lock(&queue.mutex);
  queue.stop = 1;
  pthread_cond_broadcast(&queue.changed);
  pthread_mutex_unlock(&queue.mutex);
  pthread_join(queue.thread, NULL);
  queue.owner = 0;
  collect();
}

static int start_thread(void) {
  static int at_exit;
  sigset_t before;
  int status;
  if (queue.owner) return queue.owner == getpid();
  if (!at_exit && atexit(end_at_exit) != 0) return 0;
  at_exit = 1;
  queue.stop = 0;
  nc_holdsignals(&before);
  status = pthread_create(&queue.thread, NULL, run_thread, NULL);
  nc_freesignals(&before);
  if (status == 0) queue.owner = getpid();
  return status == 0;
}

static int enqueue(FusedProgram *p) {
  if (!start_thread()) return 0;
  pthread_mutex_lock(&queue.mutex);
  *queue.end = p;
  queue.end = &p->queued;
  pthread_cond_broadcast(&queue.changed);
  pthread_mutex_unlock(&queue.mutex);
  figures.waiting++;
  return 1;
}

/*
** Programs
*/
/* All that the code depends on. */
static char *make_key(const char *text, int capability) {
  const size_t n = strlen(text) + 128;
  char *key = malloc(n);
  if (key)
    snprintf(key, n,
             "sm_%d nvrtc %d headers %016llx nacre " NC_VERSION "%s\n%s",
             capability, nc_nvrtc_version(), nc_headers_hash(),
#ifdef NC_EMULATED
             " emulated",
#else
             "",
#endif
             text);
  return key;
}

static FusedProgram *new_program(char *key, FusedProgram **bucket,
                                 int capability) {
  FusedProgram *p = calloc(1, sizeof *p);
  if (p == NULL) return free(key), NULL;
  p->key = key;
  p->text = strchr(key, '\n') + 1;
  p->capability = capability;
  p->state = READY;
  if (nc_cached_code(key, &p->code.image, &p->code.size)) figures.cached++;
  else {
    p->state = WAITING;
    if (!enqueue(p)) p->state = FAILED, p->noted = 1;
  }
  p->next = *bucket;
  return *bucket = p;
}

FusedProgram *nc_fused_program(const char *text, int capability) {
  FusedProgram **bucket;
  char *key;
  if (!nc_nvrtc_open() || (key = make_key(text, capability)) == NULL)
    return NULL;
  bucket = &programs[nc_hash(0, text, strlen(text)) % BUCKETS];
  for (FusedProgram *p = *bucket; p; p = p->next)
    if (p->capability == capability && strcmp(p->key, key) == 0)
      return free(key), p;
  return new_program(key, bucket, capability);
}

static State state_of(const FusedProgram *p) {
  State s;
  pthread_mutex_lock(&queue.mutex);
  s = p->state;
  pthread_mutex_unlock(&queue.mutex);
  return s;
}

/* Waits until the program is compiled, or the user interrupts. */
static void await(const FusedProgram *p) {
  pthread_mutex_lock(&queue.mutex);
  while (p->state == WAITING && !nc_wantsstop()) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += 20 * 1000 * 1000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&queue.changed, &queue.mutex, &t);
  }
  pthread_mutex_unlock(&queue.mutex);
}

static int is_waiting(void) {
  static int wait = -1;
  const char *text = getenv("NACRE_FUSE");
  if (wait < 0) wait = text && strcmp(text, "wait") == 0;
  return wait;
}

/* Loads the code on d; a failure is noted, but it is not an error. */
static void load(FusedProgram *p, const Device *d) {
  const int i = d->ordinal;
  int r;
  nc_activate(gpuof(d));
  r = nc_load_module(&p->on[i].module, p->code.image);
  if (r == NC_OK)
    r = nc_module_kernel(&p->on[i].kernel[1], p->on[i].module,
                         NC_FUSED_ELEMENTS);
  if (r == NC_OK && strstr(p->text, NC_FUSED_VECTORS))
    r = nc_module_kernel(&p->on[i].kernel[0], p->on[i].module,
                         NC_FUSED_VECTORS);
  p->on[i].loaded = r == NC_OK ? LOADED : REFUSED;
  if (r == NC_OK) return;
  snprintf(failure, sizeof failure, "%s", nc_hostside->lasterror()->text);
  figures.failed++;
}

const Kernel *nc_fused_kernels(FusedProgram *p, const Device *d) {
  const int i = d->ordinal;
  if (p->on[i].loaded == LOADED) return p->on[i].kernel;
  if (p->on[i].loaded == REFUSED) return NULL;
  if (is_waiting()) await(p);
  collect();
  if (state_of(p) != READY) return NULL;
  load(p, d);
  return p->on[i].loaded == LOADED ? p->on[i].kernel : NULL;
}

FusedFigures nc_fused_figures(void) {
  collect();
  return figures;
}

const char *nc_fused_failure(void) {
  return failure[0] ? failure : NULL;
}

void nc_fused_close(void) {
  nc_fused_rest();
  queue.first = NULL;
  queue.end = &queue.first;
  nc_fused_forget();
  for (int b = 0; b < BUCKETS; b++)
    for (FusedProgram *next, *p = programs[b]; p; p = next) {
      next = p->next;
      for (int i = 0; i < nc_gpus; i++) {
        if (!nc_gpu[i].isopen || p->on[i].module == NULL) continue;
        nc_activate(&nc_gpu[i]);
        nc_unload_module(p->on[i].module);
      }
      nc_compiled_free(&p->code);
      free(p->key);
      free(p);
    }
  memset(programs, 0, sizeof programs);
  memset(&figures, 0, sizeof figures);
}
