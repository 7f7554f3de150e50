/* SPDX-License-Identifier: MIT */
/*
** operation_index.c - from a name to its row in the core's tables of
** operations: a hash table, made at the first use.
*/

#include <pthread.h>
#include <string.h>

#include "core/tensor.h"
#include "core/operators.h"
#include "core/ops.h"

/* A row of nc_opinfo, or of nc_operators at OP_COUNT + its number; -1 where
   the slot is empty. At most half of the slots are taken. */
#define SLOTS 2048
static short slot[SLOTS];
static pthread_once_t once = PTHREAD_ONCE_INIT;
_Static_assert(2 * (OP_COUNT + OPERATOR_COUNT) <= SLOTS, "SLOTS is too small");

static const char *name_of(int row) {
  return row < OP_COUNT ? nc_opinfo[row].name
                        : nc_operators[row - OP_COUNT].name;
}

/* The first slot in which the first n bytes of `name' may be (FNV-1a). */
static unsigned first_slot(const char *name, size_t n) {
  unsigned h = 2166136261u;
  for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)name[i]) * 16777619u;
  return h % SLOTS;
}

static void fill(void) {
  memset(slot, 0xff, sizeof slot);
  for (int row = 0; row < OP_COUNT + OPERATOR_COUNT; row++) {
    unsigned i = first_slot(name_of(row), strlen(name_of(row)));
    while (slot[i] >= 0) i = (i + 1) % SLOTS;
    slot[i] = (short)row;
  }
}

/* The row in from..to-1 that has this name, or -1: a name may be in both
   tables. */
static int find(const char *name, size_t n, int from, int to) {
  pthread_once(&once, fill);
  for (unsigned i = first_slot(name, n); slot[i] >= 0; i = (i + 1) % SLOTS) {
    const char *entry = name_of(slot[i]);
    if (slot[i] >= from && slot[i] < to && strncmp(entry, name, n) == 0 &&
        entry[n] == '\0')
      return slot[i] - from;
  }
  return -1;
}

int nc_find_pointwise(const char *name, size_t n) {
  return find(name, n, 0, OP_COUNT);
}

int nc_find_operator(const char *name, size_t n) {
  return find(name, n, OP_COUNT, OP_COUNT + OPERATOR_COUNT);
}
