/* SPDX-License-Identifier: MIT */
/*
** mapping.h - files as memory: tensors whose elements are pages of a file,
** which the system reads when they are first touched.
**
** A page that is written becomes a copy of this process; the file stays.  If
** the file becomes shorter, its lost pages are zero, and whoever reads a tensor
** of it fails: the handler of SIGBUS notes what was lost, on any thread, and
** nc_check_lost tells.  The system does not report the page in which the file
** now ends: its rest reads as zeros without an error, if no later page is read.
*/
#ifndef core_base_mapping_h
#define core_base_mapping_h

#include <stdatomic.h>
#include <sys/stat.h>

#include "core/tensor.h"
#include "core/files.h"

typedef struct Mapping Mapping;

/* Maps `size' bytes, at least one, of the open file fd.  `path' is for
   messages. */
int nc_new_mapping(Mapping **m, int fd, int64_t size, const char *path);
int nc_is_mapped(const struct stat *s);     /* is this file? */
void nc_retain_mapping(Mapping *m);
void nc_release_mapping(Mapping *m);        /* m may be NULL */

/* *t = a dense tensor at byte `at' of the mapping, which must be aligned and
   followed by the bytes of the tensor. */
int nc_new_mapped(Tensor **t, Mapping *m, int64_t at, DType type, int nd,
                  const int64_t size[]);

/* The same at p, for which tensor.c makes the structs. */
int nc_new_in(Tensor **t, Mapping *m, void *p, DType type, int nd,
              const int64_t size[]);

/* How many mappings have lost pages. */
extern atomic_int nc_lost_mappings;

/* Touches the pages of t first, for a system call that failed to read them. */
int nc_check_pages(const Tensor *t);

/* As nc_fail_lost, of files.h. */
static inline int nc_check_lost(const Tensor *t) {
  return nc_lost_mappings ? nc_fail_lost(t) : NC_OK;
}

/* The same of n operands, after a call of status r. */
int nc_check_lost_operands(int r, const Arg in[], int n);
/* And of the lists of tensors among them; those of a Call, which sets all. */
int nc_check_lost_lists(int r, const Arg in[], int n);

#endif
