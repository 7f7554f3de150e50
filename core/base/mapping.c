/* SPDX-License-Identifier: MIT */
/* mapping.c - files as memory; see mapping.h. */
#define _GNU_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE */
#include "core/base/mapping.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct Mapping {
  _Atomic(Mapping *) next; /* of all mappings; the handler follows it */
  int refs;
  atomic_int lost; /* several threads may set it at once */
  char *p;
  int64_t size;
  dev_t device; /* which file it is */
  ino_t file;
  char path[200]; /* its end */
};

atomic_int nc_lost_mappings;

static _Atomic(Mapping *) mappings;
static struct sigaction before;
static long page;

/* SIGBUS handler: maps zero pages over the truncated part of the file, so that
   the running operation can finish and then report the error. */
static void on_sigbus(int sig, siginfo_t *info, void *context) {
  char *at = info->si_addr;
  const int saved = errno;
  for (Mapping *m = mappings; m; m = m->next) {
    if (at < m->p || at >= m->p + m->size) continue;
    char *from = m->p + (at - m->p) / page * page;
    if (mmap(from, (size_t)(m->p + m->size - from), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
             0) == MAP_FAILED)
      break;
    if (!atomic_exchange(&m->lost, 1)) nc_lost_mappings++;
    errno = saved;
    return;
  }
  if (before.sa_flags & SA_SIGINFO) before.sa_sigaction(sig, info, context);
  else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
    before.sa_handler(sig);
  else signal(sig, SIG_DFL); /* the access is repeated, and ends the process */
}

static void install_handler(void) {
  struct sigaction action = { .sa_sigaction = on_sigbus,
                              .sa_flags = SA_SIGINFO | SA_NODEFER };
  if (page) return;
  page = sysconf(_SC_PAGESIZE);
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, &before);
}

static int fail_map(const char *path) {
  char shown[200];
  const char *why = strerror(errno);
  return nc_fail(NC_EFILE, "%s: cannot be mapped: %s",
                 nc_printable(shown, sizeof shown, path, strlen(path)), why);
}

int nc_new_mapping(Mapping **out, int fd, int64_t size, const char *path) {
  struct stat s;
  void *block, *p;
  *out = NULL;
  if (fstat(fd, &s) != 0) return fail_map(path);
  TRY(nc_hostalloc(&block, sizeof(Mapping)));
  p = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_NORESERVE, fd, 0);
  if (p == MAP_FAILED) {
    nc_hostfree(block, sizeof(Mapping));
    return fail_map(path);
  }
  install_handler();
  Mapping *m = memset(block, 0, sizeof *m);
  const size_t n = strlen(path), skip = n > 190 ? n - 190 : 0;
  snprintf(m->path, sizeof m->path, "%s%s", skip ? "..." : "", path + skip);
  m->refs = 1;
  m->p = p;
  m->size = size;
  m->device = s.st_dev;
  m->file = s.st_ino;
  m->next = mappings;
  mappings = m;
  return *out = m, NC_OK;
}

int nc_is_mapped(const struct stat *s) {
  for (const Mapping *m = mappings; m; m = m->next)
    if (m->device == s->st_dev && m->file == s->st_ino) return 1;
  return 0;
}

void nc_retain_mapping(Mapping *m) {
  m->refs++;
}

void nc_release_mapping(Mapping *m) {
  if (m == NULL || --m->refs > 0) return;
  _Atomic(Mapping *) *at = &mappings;
  while (*at != m) at = &(*at)->next;
  *at = m->next;
  munmap(m->p, (size_t)m->size);
  if (m->lost) nc_lost_mappings--;
  nc_hostfree(m, sizeof *m);
}

int nc_new_mapped(Tensor **t, Mapping *m, int64_t at, DType type, int nd,
                  const int64_t size[]) {
  return nc_new_in(t, m, m->p + at, type, nd, size);
}

int nc_fail_lost(const Tensor *t) {
  char shown[200];
  const Mapping *m = t ? t->data->map : NULL;
  if (m == NULL || !m->lost) return NC_OK;
  nc_printable(shown, sizeof shown, m->path, strlen(m->path));
  nc_fail(NC_EFILE, "%s: the file became shorter while it was mapped", shown);
  nc_hint("load it without mmap");
  return NC_EFILE;
}

int nc_check_pages(const Tensor *t) {
  const volatile char *p = nc_data(t);
  const int64_t n = nc_numel(t) * nc_dtypesize(t->dtype);
  if (t->data->map && nc_isdense(t) && n > 0) (void)p[n - 1];
  return nc_fail_lost(t);
}

int nc_check_lost_operands(int r, const Arg in[], int n) {
  for (int i = 0; r == NC_OK && nc_lost_mappings && i < n; i++)
    r = nc_fail_lost(in[i].t);
  return r;
}

int nc_check_lost_lists(int r, const Arg in[], int n) {
  for (int i = 0; r == NC_OK && nc_lost_mappings && i < n; i++)
    for (int k = 0; r == NC_OK && in[i].tensors && k < in[i].n; k++)
      r = nc_fail_lost(in[i].tensors[k]);
  return r;
}
