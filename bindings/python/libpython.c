/* SPDX-License-Identifier: MIT */
/* libpython.c - opens Python's shared library; see libpython.h. */
#include "bindings/python/libpython.h"
#include "core/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bindings/python/find_python.h"
#include "core/tensor.h"

Python nl_py;

static struct {
  int tried;
  const char *name; /* of the library that is open, or NULL */
  FoundPython found;
} library;

static int bind_symbols(void *handle) {
  int major = 0, minor = 0;
#define X(result, name, parameters) nc_symbol(&nl_py.name, handle, #name) &&
  if (!(PYTHON_FUNCTIONS(X) 1)) return 0;
#undef X
#define X(name) nc_symbol(&nl_py.name, handle, #name) &&
  if (!(PYTHON_OBJECTS(X) 1)) return 0;
#undef X
#define X(name) nc_symbol(&nl_py.name, handle, "PyExc_" #name) &&
  if (!(PYTHON_EXCEPTIONS(X) 1)) return 0;
#undef X
  sscanf(nl_py.Py_GetVersion(), "%d.%d", &major, &minor);
  return major == 3 && minor >= 8;
}

/* Fails with what the loader says of a library that is there; 0 if nothing. */
static int fail_loading(const FoundPython *f) {
  char shown[256];
  for (int i = 0; f->library[i]; i++) {
    void *handle = dlopen(f->library[i], RTLD_NOW);
    const char *why = handle ? NULL : dlerror();
    if (handle) dlclose(handle);
    if (!why || strstr(why, "No such file")) continue;
    return nc_fail(NC_EFILE, "the library of Python could not be opened: %s",
                   nc_printable(shown, sizeof shown, why, strlen(why)));
  }
  return 0;
}

static int fail_open(void) {
  const FoundPython *f = &library.found;
  if (f->status == PYTHON_FOUND && fail_loading(f)) return NC_EFILE;
  if (f->status == PYTHON_TOO_OLD)
    nc_fail(NC_EFILE, "%s is Python %s, but 3.8 or later is needed", f->program,
            f->version);
  else if (f->status == PYTHON_FOUND && f->version[0])
    nc_fail(NC_EFILE,
            "Python %s of %s has no shared library that can be "
            "opened",
            f->version, f->program);
  else if (f->status == PYTHON_UNUSABLE)
    nc_fail(NC_EFILE, "%s is %s, which is not a Python that can be opened",
            f->chosen_by, f->choice);
  else if (f->status == PYTHON_REFUSED)
    nc_fail(NC_EFILE, "%s is none", f->chosen_by);
  else nc_fail(NC_EFILE, "Python was not found");
  nc_hint("install it (Debian: libpython%s), or name another Python in "
          "NACRE_PYTHON",
          f->version[0] && f->status == PYTHON_FOUND ? f->version : "3-dev");
  return NC_EFILE;
}

int nl_open_libpython(const char *choice) {
  FoundPython *f = &library.found;
  if (!library.tried) {
    nl_find_python(f, choice);
    if (f->status == PYTHON_FOUND)
      library.name = nc_openglobal(f->library, bind_symbols);
    if (!library.name && f->status == PYTHON_FOUND && !f->version[0])
      f->status = f->chosen_by ? PYTHON_UNUSABLE : PYTHON_ABSENT;
  }
  /* without Python another one may be chosen */
  library.tried = library.name != NULL;
  return library.name ? NC_OK : fail_open();
}

const char *nl_libpython(void) {
  return library.name;
}

const char *nl_python_program(void) {
  return library.found.program[0] ? library.found.program : NULL;
}
