/* SPDX-License-Identifier: MIT */
/*
** nvrtc.h - NVIDIA's compiler for CUDA C++ at run time.  Any thread may
** compile; only the one that runs the program opens the library.
*/
#ifndef cuda_fusion_nvrtc_h
#define cuda_fusion_nvrtc_h

#include <stddef.h>

#define NC_MAXKERNELS 4

/* What is compiled. */
typedef struct CompileJob {
  const char *text, *file;    /* file: its name in messages */
  const char *const *kernel;  /* names as in the text; NULL at the end */
  const char *const *option;  /* more options; NULL at the end, or none */
  int capability;             /* of the device: 90 */
  int own_headers;            /* may it include those of Nacre's kernels? */
} CompileJob;

/* The result; release it with nc_compiled_free. */
typedef struct Compiled {
  char *image;                /* for the driver: a cubin, or PTX */
  size_t size;
  char *ptx;                  /* NULL if there is none */
  char *log;                  /* errors and warnings; NULL: none */
  char *name[NC_MAXKERNELS];  /* of the kernels in the image */
  char why[128];              /* it failed for another reason than the text */
} Compiled;

/* Opens the library; is it there?  NACRE_NVRTC is its path, or "none". */
int nc_nvrtc_open(void);
const char *nc_nvrtc_info(void);              /* a line about it */
int nc_nvrtc_version(void);                   /* 13000 is 13.0 */

/* Returns whether it succeeded. */
int nc_compile(const CompileJob *job, Compiled *out);
void nc_compiled_free(Compiled *c);

/* A hash of the headers that own_headers means. */
unsigned long long nc_headers_hash(void);
unsigned long long nc_hash(unsigned long long h, const void *p, size_t n);

#endif
