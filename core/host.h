/* SPDX-License-Identifier: MIT */
/*
** host.h - what a plug-in gets from the core.  accelerator.h is what the core
** gets from it.
*/
#ifndef core_host_h
#define core_host_h

#include "core/tensor.h"

struct Team; /* transport.h */
struct Coll;

/* What comes first stays: by it a plug-in of another build finds out that it is
   one, and says so. */
typedef struct Host {
  int abi;                    /* NC_ABI */
  size_t host, calls, device, accelerator; /* sizes of structures */
  const char *version;
  int (*fail)(int code, const char *fmt, ...);
  void (*hint)(const char *fmt, ...);
  int ops;                    /* OP_COUNT, and what they are */
  const OpInfo *op;
  const char *requests;       /* NC_REQUESTS */
  volatile sig_atomic_t *interrupted;
  void (*error_op)(const char *op);
  void (*error_final)(void);
  int (*newtensor)(Tensor **t, const Device *d, DType type, int nd,
                   const int64_t size[]);
  void (*release)(Tensor *t);
  int (*newdense)(Tensor **y, Tensor *x);   /* nc_dense */
  /* fails as nc_position does for a wrong index of dimension d of nd */
  int (*fail_index_range)(int64_t index, int64_t size, int d, int nd);
  int (*wrong_class)(int64_t given, int64_t classes); /* nc_wrong_class */
  char *(*bytestext)(char *buf, double bytes);  /* nc_bytestext */
  int (*parallel)(int64_t n, int64_t grain,     /* nc_parallel */
                  void (*fn)(void *ctx, int64_t begin, int64_t end),
                  void *ctx);
  void (*partly)(void);       /* nc_error_partial */
  int (*writefile)(const char *path, const void *p, int64_t n);
  const Error *(*lasterror)(void);
  /* The host waits for this operation since `waited' seconds: fails if another
     rank failed, or the time is over (Transport.watch). */
  int (*watch)(struct Team *t, const struct Coll *c, double waited);
  void (*lose)(struct Team *t);       /* Transport.lose */
} Host;

#endif
