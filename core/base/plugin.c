/* SPDX-License-Identifier: MIT */
/*
** plugin.c - opens the plug-in that drives CUDA devices, at first use.
**
** The program neither links nor needs CUDA: the plug-in is a shared library
** beside it, or beside the library that holds this code, opened when a CUDA
** device is first asked for.  The result, or the reason why there is no device,
** is kept until the program ends.  NACRE_CUDA in the environment may be "off",
** "emulated", or the path of a plug-in.
*/
#define _XOPEN_SOURCE 700 /* access */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/tensor.h"
#include "core/op.h"

#define MAXPATH 4096

static const Accelerator *accelerator;
static int was_tried;
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
                             .error_op = nc_error_op,
                             .error_final = nc_error_final,
                             .newtensor = nc_new,
                             .release = nc_release,
                             .newdense = nc_dense,
                             .fail_index_range = nc_fail_index_range,
                             .wrong_class = nc_wrong_class,
                             .bytestext = nc_bytestext,
                             .parallel = nc_parallel,
                             .partly = nc_error_partial };

/*
** Finding the library
*/
static int set_reason(const char *fmt, ...) NC_PRINTF(1, 2);

/* Stores the reason why no device can be used; returns 0. */
static int set_reason(const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  vsnprintf(reason, sizeof reason, fmt, args);
  va_end(args);
  return 0;
}

/* Sets path to the folder of the file that holds this code, a program or a
   shared library; returns 0 after a failure.  The system knows that folder also
   when the working folder has changed since the file was opened by a relative
   name, which dladdr would give. */
static int own_folder(char path[MAXPATH]) {
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[MAXPATH + 100], *slash = NULL;
  const uintptr_t own = (uintptr_t)&nc_forplugins;
  uintptr_t from, to;
  if (maps == NULL) return set_reason("/proc/self/maps cannot be read");
  while (slash == NULL && fgets(line, sizeof line, maps))
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &from, &to) == 2 &&
        from <= own && own < to && (slash = strrchr(line, '/')) != NULL)
      *slash = '\0';
  fclose(maps);
  if (slash == NULL) return set_reason("no folder");
  snprintf(path, MAXPATH, "%s", strchr(line, '/') ? strchr(line, '/') : "");
  return 1;
}

/* Searches beside this code, and where an installation has the plug-in: seen
   from bin, lib, a folder of it, and lib/lua/5.4. */
static int search_beside(char path[MAXPATH], const char *file) {
  static const char *const where[] = { "", "/../lib/nacre", "/nacre",
                                       "/../nacre", "/../../nacre" };
  char folder[MAXPATH];
  if (!own_folder(folder)) return 0;
  for (size_t i = 0; i < sizeof where / sizeof *where; i++) {
    int n = snprintf(path, MAXPATH, "%s%s/%s", folder, where[i], file);
    if (n < MAXPATH && access(path, F_OK) == 0) return 1;
  }
  return set_reason("this build has no CUDA plug-in (%s/%s is missing)", folder,
                    file);
}

/* Sets path to the library that NACRE_CUDA selects; 0: there is none. */
static int find_plugin(char path[MAXPATH]) {
  const char *setting = getenv("NACRE_CUDA");
  if (setting == NULL || *setting == '\0')
    return search_beside(path, "libnacre_cuda.so");
  if (strcmp(setting, "emulated") == 0)
    return search_beside(path, "libnacre_cuda_emulated.so");
  if (strcmp(setting, "off") == 0)
    return set_reason("NACRE_CUDA=off turns it off");
  if (strchr(setting, '/') == NULL)
    return set_reason("NACRE_CUDA is '%s', not off, emulated or the path of a "
                      "plug-in",
                      setting);
  snprintf(path, MAXPATH, "%s", setting);
  return access(path, F_OK) == 0 || set_reason("%s is missing", path);
}

/*
** Opening the library
*/
/* Returns the entry function of the library, or NULL.  The library stays
   open. */
static PluginEntry *load_entry(const char *path) {
  PluginEntry *entry;
  void *p, *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    set_reason("its plug-in cannot be loaded: %s", dlerror());
    return NULL;
  }
  p = dlsym(library, NC_PLUGIN);
  if (p == NULL) {
    set_reason("%s is not a plug-in of this program", path);
    dlclose(library);
    return NULL;
  }
  memcpy(&entry, &p, sizeof entry); /* a cast is not ISO C */
  return entry;
}

/* Calls the entry.  A plug-in that refuses has left an error record, whose
   text becomes the reason. */
static int call_entry(PluginEntry *entry) {
  const Error *e;
  if (entry(&nc_forplugins, &accelerator) == NC_OK) return 1;
  accelerator = NULL;
  e = nc_lasterror();
  snprintf(advice, sizeof advice, "%s", e->hint);
  return set_reason("%s", e->text);
}

static int open_plugin(void) {
  char path[MAXPATH];
  PluginEntry *entry;
  was_tried = 1;
  return find_plugin(path) && (entry = load_entry(path)) != NULL &&
         call_entry(entry);
}

int nc_accelerator(const Accelerator **a) {
  *a = accelerator;
  if (accelerator) return NC_OK;
  if (!was_tried) {
    const int64_t begin = nc_now();
    const int found = open_plugin();
    nc_counters.opening += nc_now() - begin;
    *a = accelerator;
    if (found) return NC_OK;
  }
  nc_fail(NC_EDEVICE, "no usable CUDA device: %s", reason);
  if (*advice) nc_hint("%s", advice);
  return NC_EDEVICE;
}

const Accelerator *nc_open_accelerator(void) {
  return accelerator;
}
