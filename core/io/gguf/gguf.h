/* SPDX-License-Identifier: MIT */
/* gguf.h - what the files of this folder share. */
#ifndef core_io_gguf_gguf_h
#define core_io_gguf_gguf_h

#include "core/io/file.h"
#include "core/io/growing_list.h"

/* The bytes of a header, whose length the file does not say, read in blocks. */
typedef struct GgufInput {
  Reader *r;
  int64_t at, n;              /* of buf: the next byte, the end */
  unsigned char buf[1 << 14];
} GgufInput;

int nc_gguf_take(GgufInput *in, void *p, int64_t n, const char *field);
/* A number of 1 to 8 bytes. */
int nc_gguf_number(GgufInput *in, uint64_t *v, int bytes, const char *field);
/* The same of 8, which counts what takes at least `item' bytes each. */
int nc_gguf_count(GgufInput *in, int64_t *n, int64_t item, const char *field);
int64_t nc_gguf_left(const GgufInput *in);   /* bytes to the end of the file */
int64_t nc_gguf_place(const GgufInput *in);  /* of the next byte in the file */

/* Appends a text and a '\0'; what is not UTF-8, and '\0', as U+FFFD. */
int nc_gguf_text(ByteList *to, GgufInput *in, const char *field);
/* Appends a value of the metadata, of a type that the file names, as text and a
   '\0': a list as JSON. */
enum { GGUF_U32 = 4 };
int nc_gguf_value(ByteList *to, GgufInput *in, uint32_t type);

/* A type of elements, in blocks. */
typedef struct GgufType {
  uint32_t code;
  const char *name;
  DType dtype;                /* of the tensor, DT_NONE: not read */
  int elements, bytes;        /* of a block; 0: not read */
  /* Converts a block to float32; NULL: the elements are as in memory. */
  void (*convert)(float *y, const unsigned char *block);
} GgufType;

const GgufType *nc_gguf_type(uint32_t code); /* NULL: it is not known */

#endif
