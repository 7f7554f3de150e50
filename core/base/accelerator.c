/* SPDX-License-Identifier: MIT */
/*
** accelerator.c - opens the plug-in that drives CUDA devices, at first use.
**
** The result, or the reason why there is no device, is kept until the program
** ends.  NACRE_CUDA in the environment may be "off", "emulated", or the path of
** a plug-in.
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/plugin.h"
#include "core/accelerator.h"
#include "core/tensor.h"
#include "core/transport.h"

static const Accelerator *accelerator;
static int was_tried;
static char reason[sizeof((Error *)0)->text - 32];
static char advice[sizeof((Error *)0)->hint];

/* Sets path to the library that NACRE_CUDA selects. */
/* ./bootstrap run builds the program alone. */
static int find_emulated(char path[NC_MAXPATH]) {
  const int r = nc_find_plugin(path, "CUDA", "libnacre_cuda_emulated.so");
  if (r != NC_OK)
    nc_hint("./bootstrap build, in the folder of the sources, makes it");
  return r;
}

static int find_cuda(char path[NC_MAXPATH]) {
  const char *setting = getenv("NACRE_CUDA");
  if (setting == NULL || *setting == '\0')
    return nc_find_plugin(path, "CUDA", "libnacre_cuda.so");
  if (strcmp(setting, "emulated") == 0) return find_emulated(path);
  if (strcmp(setting, "off") == 0)
    return nc_fail(NC_EDEVICE, "NACRE_CUDA=off turns it off");
  if (strchr(setting, '/') == NULL)
    return nc_fail(NC_EDEVICE,
                   "NACRE_CUDA is '%s', not off, emulated or the path of a "
                   "plug-in",
                   setting);
  return nc_given_plugin(path, setting);
}

static int open_accelerator(void) {
  char path[NC_MAXPATH];
  PluginEntry *entry;
  TRY(find_cuda(path));
  TRY(nc_plugin_entry(&entry, path, NC_PLUGIN));
  return entry(&nc_forplugins, &accelerator);
}

/* Opens it once; the text of a failure becomes the reason. */
static void try_once(void) {
  const int64_t begin = nc_now();
  was_tried = 1;
  if (open_accelerator() != NC_OK) {
    const Error *e = nc_lasterror();
    accelerator = NULL;
    snprintf(reason, sizeof reason, "%.*s", (int)sizeof reason - 1, e->text);
    snprintf(advice, sizeof advice, "%s", e->hint);
  }
  nc_counters.opening += nc_now() - begin;
}

int nc_accelerator(const Accelerator **a) {
  if (!was_tried) try_once();
  *a = accelerator;
  if (accelerator) return NC_OK;
  nc_fail(NC_EDEVICE, "no usable CUDA device: %s", reason);
  if (*advice) nc_hint("%s", advice);
  return NC_EDEVICE;
}

const Accelerator *nc_open_accelerator(void) {
  return accelerator;
}
