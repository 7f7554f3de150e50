/* SPDX-License-Identifier: MIT */
/*
** plugin.c - finds a plug-in and its entry.  The program neither links nor
** needs the libraries that plug-ins use: each plug-in is a shared library next
** to it, opened at its first use.
*/
#define _XOPEN_SOURCE 700 /* access */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/plugin.h"
#include "core/library.h"
#include "core/tensor.h"

/* Where an installation has plug-ins: next to this code, or relative to bin, to
   lib, to a folder of lib, and to lib/lua/5.4. */
static const char *const where[] = { "", "/../lib/nacre", "/nacre", "/../nacre",
                                     "/../../nacre" };

/* Sets path to the folder of the file that holds this code, a program or a
   shared library.  The system knows that folder also when the working folder
   has changed since the file was opened by a relative name, which dladdr would
   give. */
static int own_folder(char path[NC_MAXPATH]) {
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[NC_MAXPATH + 100], *name = NULL;
  const uintptr_t own = (uintptr_t)where;
  uintptr_t from, to;
  if (maps == NULL)
    return nc_fail(NC_EDEVICE, "/proc/self/maps cannot be read");
  while (name == NULL && fgets(line, sizeof line, maps))
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &from, &to) == 2 &&
        from <= own && own < to)
      name = strchr(line, '/');
  fclose(maps);
  if (name == NULL) return nc_fail(NC_EDEVICE, "no folder");
  *strrchr(name, '/') = '\0';
  snprintf(path, NC_MAXPATH, "%.*s", NC_MAXPATH - 1, name);
  return NC_OK;
}

int nc_find_plugin(char path[NC_MAXPATH], const char *what, const char *file) {
  char folder[NC_MAXPATH];
  TRY(own_folder(folder));
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
