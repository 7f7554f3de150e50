/* SPDX-License-Identifier: MIT */
/*
** report.c - reports an error in the emulated program and ends the process.
*/
#define _DEFAULT_SOURCE
#include <execinfo.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "cuda/emulation/internal.h"

static const char *states[] = { "live", "FREED" };

/* Describes p if it is in arena a, which `owner' names; else returns 0. */
static int inarena(char *text, size_t room, const char *owner, Arena *a,
                   const char *p) {
  Allocation *allocation;
  if (p < a->base || p >= a->base + a->size) return 0;
  allocation = emu_allocation_at(a, p);
  if (allocation == NULL) {
    snprintf(text, room, "%s, never allocated", owner);
  } else {
    size_t at = (size_t)(p - allocation->p);
    int inside = at < allocation->n;
    snprintf(text, room, "%s, %zu bytes %s %s allocation %d of %zu bytes",
             owner, inside ? at : at - allocation->n,
             inside ? "into" : "after the end of", states[allocation->state],
             allocation->id, allocation->n);
  }
  return 1;
}

const char *emu_where(const void *address) {
  static char text[256];
  const char *p = address;
  char owner[32];
  if (p >= emu_sharedarena && p < emu_sharedarena + EMU_SHAREDSIZE) {
    snprintf(text, sizeof text, "shared memory of the block, at %ld",
             (long)(p - emu_sharedarena));
    return text;
  }
  for (int d = 0; d < emu_settings.devices; d++) {
    snprintf(owner, sizeof owner, "device %d", d);
    if (inarena(text, sizeof text, owner, &emu_arena[d], p)) return text;
  }
  if (inarena(text, sizeof text, "page-locked memory", EMU_PINNED, p))
    return text;
  return "memory of the host";
}

void emu_context(void) {
  const EmuPlace *at = &emu_place;
  if (emu_inkernel)
    fprintf(stderr,
            "EMU:   in kernel %s, block (%u,%u,%u), thread (%u,%u,%u), "
            "operation %u of stream %d\n",
            emu_kernel, at->block.x, at->block.y, at->block.z, at->thread.x,
            at->thread.y, at->thread.z, (unsigned)emu_op->id,
            emu_op->stream->index);
  else if (emu_op)
    fprintf(stderr, "EMU:   in operation %u of stream %d: %s\n",
            (unsigned)emu_op->id, emu_op->stream->index, emu_op->name);
  else fprintf(stderr, "EMU:   in code of the host\n");
}

void emu_report(const char *kind, const char *format, ...) {
  void *trace[32];
  va_list args;
  emu_quiet++;
  emu_counts.reports++;
  fflush(stdout);
  fprintf(stderr, "EMU: ERROR: %s: ", kind);
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fputc('\n', stderr);
  emu_context();
  fflush(stderr);
  backtrace_symbols_fd(trace, backtrace(trace, 32), 2);
  _exit(EMU_EXIT);
}

void emu_report_no_peer(const void *p) {
  emu_report("peer access",
             "a kernel of device %d touches %p, %s, without "
             "access to that device",
             emu_op->device, p, emu_where(p));
}
