/* SPDX-License-Identifier: MIT */
/*
** plugin.c - opens the plug-in that drives CUDA devices, at first use.
**
** The program neither links nor needs CUDA: the plug-in is a shared library
** beside it, opened when a CUDA device is first asked for.  The result, or the
** reason why there is no device, is kept until the program ends.  NACRE_CUDA in
** the environment may be "off", "emulated", or the path of a plug-in.
*/
#define _XOPEN_SOURCE 700 /* readlink */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/tensor.h"
#include "core/op.h"

#define MAXPATH 4096

static const Accelerator *opened;
static int tried;
static char reason[sizeof((Error *)0)->text - 32];
static char advice[sizeof((Error *)0)->hint];

/*
** What the core passes to a plug-in; it compares ABI and sizes first
*/
const Host nc_forplugins = { .abi = NC_ABI,
                             .host = sizeof(Host),
                             .calls = NC_REQUESTBYTES,
                             .device = sizeof(Device),
                             .accelerator = sizeof(Accelerator),
                             .version = NC_VERSION,
                             .fail = nc_fail,
                             .hint = nc_hint,
                             .ops = OP_COUNT,
                             .op = nc_opinfo,
                             .requests = NC_REQUESTS,
                             .interrupted = &nc_interrupted,
                             .rule = nc_rule,
                             .error_op = nc_error_op,
                             .error_final = nc_error_final,
                             .newtensor = nc_new,
                             .release = nc_release,
                             .newdense = nc_dense,
                             .cast = nc_cast,
                             .outside = nc_outside,
                             .bytestext = nc_bytestext,
                             .parallel = nc_parallel,
                             .partly = nc_error_partial };

/*
** Finding the library
*/
static int because(const char *fmt, ...) NC_PRINTF(1, 2);

/* Stores the reason why no device can be used; returns 0. */
static int because(const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  vsnprintf(reason, sizeof reason, fmt, args);
  va_end(args);
  return 0;
}

/* Sets path to the folder of the program; returns 0 after a failure. */
static int programfolder(char path[MAXPATH]) {
  ssize_t n = readlink("/proc/self/exe", path, MAXPATH - 1);
  char *slash;
  if (n <= 0) return because("/proc/self/exe cannot be read");
  path[n] = '\0';
  if ((slash = strrchr(path, '/')) == NULL) return because("no folder");
  *slash = '\0';
  return 1;
}

/* Searches beside the program, and where an installation has it. */
static int search(char path[MAXPATH], const char *file) {
  static const char *const where[] = { "", "/../lib/nacre" };
  char folder[MAXPATH];
  if (!programfolder(folder)) return 0;
  for (size_t i = 0; i < sizeof where / sizeof *where; i++) {
    int n = snprintf(path, MAXPATH, "%s%s/%s", folder, where[i], file);
    if (n < MAXPATH && access(path, F_OK) == 0) return 1;
  }
  return because("this build has no CUDA plug-in (%s/%s is missing)", folder,
                 file);
}

/* Sets path to the library that NACRE_CUDA selects; 0: there is none. */
static int find(char path[MAXPATH]) {
  const char *wish = getenv("NACRE_CUDA");
  if (wish == NULL || *wish == '\0') return search(path, "libnacre_cuda.so");
  if (strcmp(wish, "emulated") == 0)
    return search(path, "libnacre_cuda_emulated.so");
  if (strcmp(wish, "off") == 0) return because("NACRE_CUDA=off turns it off");
  if (strchr(wish, '/') == NULL)
    return because("NACRE_CUDA is '%s', not off, emulated or the path of a "
                   "plug-in",
                   wish);
  snprintf(path, MAXPATH, "%s", wish);
  return access(path, F_OK) == 0 || because("%s is missing", path);
}

/*
** Opening the library
*/
/* Returns the entry function of the library, or NULL.  The library stays
   open. */
static PluginEntry *entryof(const char *path) {
  PluginEntry *entry;
  void *p, *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    because("its plug-in cannot be loaded: %s", dlerror());
    return NULL;
  }
  p = dlsym(library, NC_PLUGIN);
  if (p == NULL) {
    because("%s is not a plug-in of this program", path);
    dlclose(library);
    return NULL;
  }
  memcpy(&entry, &p, sizeof entry); /* a cast is not ISO C */
  return entry;
}

/* Calls the entry.  A plug-in that refuses has left an error record, whose
   text becomes the reason. */
static int enter(PluginEntry *entry) {
  const Error *e;
  if (entry(&nc_forplugins, &opened) == NC_OK) return 1;
  opened = NULL;
  e = nc_lasterror();
  snprintf(advice, sizeof advice, "%s", e->hint);
  return because("%s", e->text);
}

static int try(void) {
  char path[MAXPATH];
  PluginEntry *entry;
  tried = 1;
  return find(path) && (entry = entryof(path)) != NULL && enter(entry);
}

int nc_accelerator(const Accelerator **a) {
  *a = opened;
  if (opened) return NC_OK;
  if (!tried) {
    const int64_t begin = nc_now();
    const int found = try();
    nc_counters.opening += nc_now() - begin;
    *a = opened;
    if (found) return NC_OK;
  }
  nc_fail(NC_EDEVICE, "no usable CUDA device: %s", reason);
  if (*advice) nc_hint("%s", advice);
  return NC_EDEVICE;
}

const Accelerator *nc_opened(void) {
  return opened;
}
