/* SPDX-License-Identifier: MIT */
/* named_functions.h - functions of an emulated library by their names, as dlsym
   finds those of the real one. */
#ifndef cuda_emulation_libraries_named_functions_h
#define cuda_emulation_libraries_named_functions_h

#include <string.h>

#include "cuda/emulation/emulation.h"

typedef struct NamedFunction {
  const char *name;
  EmuFunction f;
} NamedFunction;

#define NAMED(name, f)  { name, (EmuFunction)f }
#define OWN_NAME(f)     NAMED(#f, f)

/* NULL: the table, which a NULL ends, has none of that name. */
static inline EmuFunction emu_named(const NamedFunction *table,
                                    const char *name) {
  for (; table->name; table++)
    if (strcmp(table->name, name) == 0) return table->f;
  return NULL;
}

#endif
