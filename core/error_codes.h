/* SPDX-License-Identifier: MIT */
/* error_codes.h - the codes of failures; a part of error.h, apart from it for
   what is compiled without the core: a transport (transport.h). */
#ifndef core_error_codes_h
#define core_error_codes_h

/* clang-format off */
#define NC_ERRORS(X)                       \
  X(ENOMEM,  "out of memory")              \
  X(EDTYPE,  "wrong dtype")                \
  X(ESHAPE,  "shapes do not match")        \
  X(EINDEX,  "index out of range")         \
  X(EVALUE,  "bad value")                  \
  X(EDEVICE, "device failure")             \
  X(EINTR,   "interrupted")                \
  X(EFILE,   "file error")                 \
  X(EPEER,   "another process failed")
/* clang-format on */

#define X(name, text) NC_##name,
enum { NC_OK, NC_ERRORS(X) NC_ERRCOUNT };
#undef X

#define TRY(call)                   \
  do {                              \
    int r_ = (call);                \
    if (r_ != NC_OK) return r_;     \
  } while (0)

#endif
