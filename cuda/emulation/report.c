/* SPDX-License-Identifier: MIT */
/*
** report.c - reports an error in the emulated program and ends the process.
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
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

/* The name of the function at this address of an ELF file, or NULL. */
static const char *symbol_at(const char *file, ElfW(Addr) address) {
  const ElfW(Ehdr) *header = (const void *)file;
  const ElfW(Shdr) *all = (const void *)(file + header->e_shoff);
  for (int i = 0; i < header->e_shnum; i++) {
    const ElfW(Sym) *symbol = (const void *)(file + all[i].sh_offset);
    if (all[i].sh_type != SHT_SYMTAB) continue;
    for (size_t n = all[i].sh_size / sizeof *symbol; n > 0; n--, symbol++)
      if (symbol->st_value == address && (symbol->st_info & 15) == STT_FUNC)
        return file + all[all[i].sh_link].sh_offset + symbol->st_name;
  }
  return NULL;
}

/* Kernels are static, so dladdr does not know their names.  The symbol table of
   the file has them, unless it was stripped; c++filt shows their types. */
const char *emu_op_name(const char *name, const void *kernel) {
  Dl_info unused;
  struct link_map *map;
  struct stat s;
  const char *file, *symbol;
  int fd;
  if (kernel == NULL) return name;
  if (!dladdr1(kernel, &unused, (void **)&map, RTLD_DL_LINKMAP)) return "?";
  fd = open(*map->l_name ? map->l_name : "/proc/self/exe", O_RDONLY);
  if (fd < 0 || fstat(fd, &s) != 0) return "?";
  file = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (file == MAP_FAILED) return "?";
  symbol = symbol_at(file, (ElfW(Addr))kernel - map->l_addr);
  return symbol ? symbol : "?";
}

void emu_context(void) {
  const EmuPlace *at = &emu_place;
  if (emu_inkernel)
    fprintf(stderr,
            "EMU:   in kernel %s, block (%u,%u,%u), thread (%u,%u,%u), "
            "operation %u of stream %d\n",
            emu_op_name(NULL, emu_op->kernel), at->block.x, at->block.y,
            at->block.z, at->thread.x, at->thread.y, at->thread.z,
            (unsigned)emu_op->id, emu_op->stream->index);
  else if (emu_op)
    fprintf(stderr, "EMU:   in operation %u of stream %d: %s\n",
            (unsigned)emu_op->id, emu_op->stream->index,
            emu_op_name(emu_op->name, emu_op->kernel));
  else fprintf(stderr, "EMU:   in code of the host\n");
}

void emu_report(const char *kind, const char *format, ...) {
  void *trace[32];
  va_list args;
  emu_quiet++;
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
