/* SPDX-License-Identifier: MIT */
/* library.c - opens shared libraries at first use; see core/library.h. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/tensor.h"
#include "core/library.h"

int nc_symbol(void *f, void *handle, const char *name) {
  void *p = dlsym(handle, name);
  memcpy(f, &p, sizeof p); /* ISO C has no cast from void * */
  return p != NULL;
}

static char reason[256]; /* why an existing library was not opened, or "" */

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

static const Library *binding; /* by nc_library */

/* Finds the functions of the library, and asks whether it is the right one. */
static int bind_functions(void *handle) {
  const Library *l = binding;
  char name[80], *field = l->table;
  for (int i = 0; l->functions[i]; i++, field += sizeof(void *)) {
    snprintf(name, sizeof name, "%s%s", l->prefix, l->functions[i]);
    if (!nc_symbol(field, handle, name)) return 0;
  }
  return l->accepts == NULL || l->accepts(handle);
}

const char *nc_libraryname(Library *l) {
  return nc_library(l) == NC_OK ? l->name : NULL;
}

int nc_library(Library *l) {
  const char *file = getenv(l->variable);
  const int has_file = file && *file;
  const char *const one[] = { file, NULL };
  if (l->tried) *reason = '\0'; /* it belongs to another library */
  else {
    binding = l;
    l->name = nc_openfirst(has_file ? one : l->names, bind_functions);
  }
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
