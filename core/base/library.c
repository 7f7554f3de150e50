/* SPDX-License-Identifier: MIT */
/* library.c - opens shared libraries at first use; see core/library.h. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "core/tensor.h"

int nc_symbol(void *f, void *handle, const char *name) {
  void *p = dlsym(handle, name);
  memcpy(f, &p, sizeof p); /* ISO C has no cast from void * */
  return p != NULL;
}

static char reason[256]; /* why a library that is there was not opened, or "" */

static void note_reason(void) {
  const char *text = dlerror();
  if (*reason || text == NULL || strstr(text, "No such file")) return;
  nc_printable(reason, sizeof reason, text, strlen(text));
}

static const char *open_first(const char *const names[], int visibility,
                              int (*bind)(void *handle)) {
  *reason = '\0';
  for (; *names; names++) {
    void *handle = dlopen(*names, RTLD_NOW | visibility);
    if (handle == NULL) {
      note_reason();
      continue;
    }
    if (bind(handle)) return *names;
    dlclose(handle);
  }
  return NULL;
}

const char *nc_openfirst(const char *const names[], int (*bind)(void *handle)) {
  return open_first(names, RTLD_LOCAL, bind);
}

const char *nc_openglobal(const char *const names[],
                          int (*bind)(void *handle)) {
  return open_first(names, RTLD_GLOBAL, bind);
}

int nc_library(Library *l) {
  const char *file = getenv(l->variable);
  const int has_file = file && *file;
  const char *const one[] = { file, NULL };
  if (l->tried) *reason = '\0'; /* it is another library's */
  else l->name = nc_openfirst(has_file ? one : l->names, l->bind);
  l->tried = 1;
  if (l->name != NULL) return NC_OK;
  if (*reason) {
    l->tried = 0; /* memory may be there the next time */
    return nc_fail(NC_EFILE, "%s, which could not be opened: %s", l->missing,
                   reason);
  }
  nc_fail(NC_EFILE, "%s, which was not found%s%s%s%s", l->missing,
          has_file ? ": " : "", has_file ? l->variable : "",
          has_file ? " is " : "", has_file ? file : "");
  nc_hint("%s", l->hint);
  return NC_EFILE;
}
