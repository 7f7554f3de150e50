/* SPDX-License-Identifier: MIT */
/*
** large_blocks.c - the list of large blocks of tensors, so that a process
** forked to read a file does not get them.  A block that two processes have is
** copied, page by page, when one of them writes to it.
*/
#define _GNU_SOURCE /* madvise */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/memory.h"

typedef struct LargeBlock {
  void *p;
  int64_t bytes;
} LargeBlock;

static LargeBlock *blocks;
static int64_t used, room;

/* If there is no memory for the list, the block is left out of it. */
void nc_note_large(void *p, int64_t bytes) {
  if (used == room) {
    const int64_t more = 2 * room + 64;
    LargeBlock *list = realloc(blocks, (size_t)more * sizeof *list);
    if (list == NULL) return;
    blocks = list;
    room = more;
  }
  blocks[used++] = (LargeBlock){ p, bytes };
}

void nc_forget_large(const void *p) {
  for (int64_t i = used - 1; i >= 0; i--) {
    if (blocks[i].p != p) continue;
    blocks[i] = blocks[--used];
    return;
  }
}

void nc_hide_large(int hide) {
#if defined(MADV_DONTFORK)
  const int64_t page = sysconf(_SC_PAGESIZE);
  for (int64_t i = 0; i < used; i++)
    madvise(blocks[i].p, (size_t)(blocks[i].bytes / page * page),
            hide ? MADV_DONTFORK : MADV_DOFORK);
#else
  (void)hide;
#endif
}
