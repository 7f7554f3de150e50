/* SPDX-License-Identifier: MIT */
/*
** plugin.c - finds a plug-in and its entry.  The program neither links nor
** needs what plug-ins use: each is a shared library beside it, opened when it
** is first asked for.
*/
#define _XOPEN_SOURCE 700 /* readlink */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/plugin.h"
#include "core/tensor.h"

/* Sets path to the folder of the program. */
static int program_folder(char path[NC_MAXPATH]) {
  ssize_t n = readlink("/proc/self/exe", path, NC_MAXPATH - 1);
  char *slash;
  if (n <= 0) return nc_fail(NC_EDEVICE, "/proc/self/exe cannot be read");
  path[n] = '\0';
  if ((slash = strrchr(path, '/')) == NULL)
    return nc_fail(NC_EDEVICE, "no folder");
  *slash = '\0';
  return NC_OK;
}

int nc_find_plugin(char path[NC_MAXPATH], const char *what, const char *file) {
  static const char *const where[] = { "", "/../lib/nacre" };
  char folder[NC_MAXPATH];
  TRY(program_folder(folder));
  for (size_t i = 0; i < sizeof where / sizeof *where; i++) {
    int n = snprintf(path, NC_MAXPATH, "%s%s/%s", folder, where[i], file);
    if (n < NC_MAXPATH && access(path, F_OK) == 0) return NC_OK;
  }
  return nc_fail(NC_EDEVICE, "this build has no %s plug-in (%s/%s is missing)",
                 what, folder, file);
}

int nc_given_plugin(char path[NC_MAXPATH], const char *given) {
  snprintf(path, NC_MAXPATH, "%s", given);
  if (access(path, F_OK) == 0) return NC_OK;
  return nc_fail(NC_EDEVICE, "%s is missing", path);
}

int nc_plugin_entry(void *entry, const char *path, const char *symbol) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL)
    return nc_fail(NC_EDEVICE, "its plug-in cannot be loaded: %s", dlerror());
  if (nc_symbol(entry, library, symbol)) return NC_OK;
  dlclose(library);
  return nc_fail(NC_EDEVICE, "%s is not a plug-in of this program", path);
}
