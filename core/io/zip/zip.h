/* SPDX-License-Identifier: MIT */
/*
** zip.h - zip archives, by libzip, which is opened when it is first needed.
** npz.c and pt.c use it.
**
** Archives are read and written through file.h, as every file is: a save
** replaces the file as a whole, and both can be interrupted.
*/
#ifndef core_io_zip_zip_h
#define core_io_zip_zip_h

#include "core/io/file.h"

/*
** Reading
*/
typedef struct Zip Zip;

int nc_openzip(Zip **z, const Source *from);
void nc_closezip(Zip *z);
int64_t nc_zipsize(const Zip *z);                   /* of the file, in bytes */
int64_t nc_zipmembers(const Zip *z);
const char *nc_zipname(const Zip *z, int64_t i);    /* in UTF-8 */

int64_t nc_findmember(const Zip *z, const char *name);    /* -1: none */

/* Fails unless the local headers of the n members agree with the directory
   (zip_local.c).  data[i] = where the bytes of member i begin.  Moves r. */
int nc_checklocals(Reader *r, int64_t n, int64_t data[]);

/* *t = a tensor of the pages of the file that hold member i; NULL if they are
   not wanted (Source), or it is compressed or not aligned.  Messages call it
   `label'. */
int nc_map_member(Tensor **t, Zip *z, int64_t i, const char *label, DType type,
                  int nd, const int64_t size[]);

/* Makes r read the i-th member; messages call it `label'.  Only one member may
   be open; nc_closemember is called also after a failure. */
int nc_openmember(Reader *r, Zip *z, int64_t i, const char *label);
void nc_closemember(Reader *r);

/* The checksum of bytes whose first ones have `crc' (0: there are none), and of
   these n. */
uint32_t nc_crc32(uint32_t crc, const void *bytes, int64_t n);

/*
** Writing
*/
typedef struct ZipFeed {      /* the source of a member's bytes */
  const char *name;
  int64_t size;
  int aligned;                /* begins at a multiple of 64 bytes, if stored */
  void *source;
  int (*begin)(void *source);
  int (*more)(void *source, void *p, int64_t room, int64_t *n); /* 0: no more */
  void (*end)(void *source);  /* after every begin */
} ZipFeed;

/* level: 0 stores, 1 to 9 deflate. */
int nc_writezip(const Sink *to, const ZipFeed *feeds, int64_t n, int level);

#endif
