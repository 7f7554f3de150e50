/* SPDX-License-Identifier: MIT */
/*
** fuzz_pickle.c - arbitrary bytes as the pickle of a .pt archive, for
** libFuzzer: tests/files/fuzz/run.sh pickle.  Memory is in proportion to the
** bytes, and every number in what is read is one of something that is there.
*/
#include <stdlib.h>
#include <string.h>

#include "core/io/pt/pickle.h"

static void must(int condition) {
  if (!condition) abort();
}

static int64_t count(const Vector *v) {
  return v->n;
}

/* Is v a value that can be followed? */
static void check_value(const Pickle *k, const FileValue *v) {
  const int64_t values = count(&k->value), cells = count(&k->cell);
  switch (v->kind) {
    case NC_V_TEXT:
    case NC_V_BYTES:
      must(v->i >= 0 && v->n >= 0 && v->i + v->n <= k->size);
      break;
    case NC_V_LIST:
    case NC_V_DICT:
      for (int64_t c = v->i, n = 0; c >= 0; n++) {
        must(c < cells && n <= cells);
        must(PICKLE_CELL(k, c)->value < values);
        c = PICKLE_CELL(k, c)->next;
      }
      break;
    case NC_V_TENSOR: must(v->i >= 0 && v->i < count(&k->tensor)); break;
    default: break;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n) {
  const int64_t live = nc_memory.live;
  Pickle k = { .path = "x" };
  nc_memory.peak = live;
  if (nc_readpickle(&k, (const char *)p, (int64_t)n) == NC_OK) {
    must(k.root >= 0 && k.root < count(&k.value));
    for (int64_t i = 0; i < count(&k.value); i++)
      check_value(&k, PICKLE_VALUE(&k, i));
    for (int64_t i = 0; i < count(&k.tensor); i++)
      must(PICKLE_TENSOR(&k, i)->storage < count(&k.storage));
  } else must(strncmp(nc_lasterror()->text, "x: ", 3) == 0);
  must(nc_memory.peak - live <= (1 << 16) + 400 * (int64_t)n);
  nc_freepickle(&k);
  must(nc_memory.live == live);
  return 0;
}
