/* SPDX-License-Identifier: MIT */
/* raw.c - elements alone, without a header. */
#include "core/io/rowmajor.h"

int nc_sourcesize(int64_t *n, const Source *from) {
  Reader r;
  TRY(nc_openfrom(&r, from));
  *n = r.size;
  nc_closeread(&r);
  return NC_OK;
}

int nc_loadraw(Tensor **t, const Source *from, const RawFormat *f, int nd,
               const int64_t size[]) {
  Reader r;
  int status;
  *t = NULL;
  TRY(nc_openfrom(&r, from));
  status = nc_seekread(&r, f->offset < r.size ? f->offset : r.size);
  if (status == NC_OK) status = nc_newread(t, &r, f->dtype, nd, size, f->swap);
  if (status == NC_OK) nc_count(0, nc_numel(*t) * nc_dtypesize(f->dtype));
  nc_closeread(&r);
  return status;
}

int nc_saveraw(const Sink *to, Tensor *t, int swap) {
  return nc_savewith(to, NULL, 0, t, swap);
}
