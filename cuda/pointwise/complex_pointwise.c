/* SPDX-License-Identifier: MIT */
/*
** complex_pointwise.c - the request run over complex numbers.  Where an
** operation does the same to both parts (copies, sums), it runs as one of real
** numbers over twice as many elements.  Else the kernel of complex_pointwise.cu
** computes in the common type; operands of a third type are converted in
** scratch memory first.
*/
#include "cuda/pointwise/pointwise.h"
#include "cuda/pointwise/launch.h"
#include "cuda/reduce/reduce.h"
#include "core/ops.h"
#include "core/pointwise/parts_iter.h"

#include <string.h>

static int is_complex(DType t) {
  return t == DT_c64 || t == DT_c128;
}

/*
** Copies of one complex type to the same or another
*/
/* Runs k, a copy, once for each index of its last dimension. */
static int copy_slices(const Device *d, const TensorIter *k) {
  const int last = k->nd - 1;
  TensorIter slice = *k;
  slice.nd = last;
  slice.n = k->n / k->size[last];
  for (int64_t i = 0; i < k->size[last]; i++) {
    TRY(nc_cuda_run(d, &slice));
    for (int j = 0; j < 2; j++)
      slice.p[j] =
          (char *)slice.p[j] + k->step[j][last] * nc_dtypesize(k->type[j]);
  }
  return NC_OK;
}

/* Copies the parts; elements of one type as bits. */
static int copy(const Device *d, const TensorIter *k) {
  const int same = k->type[0] == k->type[1];
  TensorIter parts;
  if (same && k->type[0] == DT_c64) {
    parts = *k;
    parts.type[0] = parts.type[1] = parts.common_dtype = DT_i64;
  } else if (!nc_parts_iter(&parts, k,
                            same ? DT_i64 : nc_part_dtype(k->type[1])))
    return copy_slices(d, k);
  return nc_cuda_run(d, &parts);
}

/*
** Pointwise operations
*/
/* Is operand j a condition, or the result of a test? */
static int is_truth(const TensorIter *k, int j) {
  const OpKind kind = nc_opinfo[k->op].kind;
  if (k->grad_index > 0) return j == 2 && kind == CHOOSE_OP;
  if (j == 0) return kind == TEST_OP || kind == COMPARE_OP;
  return j == 1 && kind == CHOOSE_OP;
}

/* The type in which the kernel reads operand j. */
static DType kernel_type(const TensorIter *k, int j) {
  if (is_truth(k, j)) return k->type[j];
  return is_complex(k->type[j]) ? k->common_dtype
                                : nc_part_dtype(k->common_dtype);
}

static int launch(const Device *d, const TensorIter *k) {
  const DType c = k->common_dtype;
  cudaStream_t stream = nc_current_stream(d);
  ComplexMap m;
  memset(&m, 0, sizeof m);
  m.n = (uint32_t)k->n;
  m.type = (int32_t)k->type[0];
  m.conjugated = k->grad_index > 0 && is_complex(k->type[1]);
  for (int i = 0; i < 2; i++) m.par[i] = k->par[i];
  for (int j = 0; j < k->nargs; j++) {
    m.p[j] = k->p[j];
    m.form[j] = is_truth(k, j)    ? FORM_TRUTH
                : k->type[j] == c ? FORM_COMPLEX
                                  : FORM_REAL;
    nc_record_use(d, k->p[j]);
    if (k->p[j] != NULL) continue;
    m.number[j][0] = nc_tofloat(k->number[j]);
    m.number[j][1] = nc_imag(k->number[j]);
  }
  nc_makeoffsets(&m.at, k->nd, k->size, k->nargs, k->step);
  return nc_check_op_launch(d, k,
                            (c == DT_c128 ? nc_complex_c128 : nc_complex_c64)(
                                k->op, k->grad_index, &m, stream));
}

/* Runs one chunk. */
static int run(const Device *d, const TensorIter *k) {
  DType want[NC_MAXIN];
  for (int j = 1; j < k->nargs; j++) want[j] = kernel_type(k, j);
  return nc_with_operands(d, k, want, launch);
}

/*
** Reductions
*/
static int fold(const Device *d, const TensorIter *k) {
  const int inner = k->nd - k->nfold;
  ComplexFold f;
  memset(&f, 0, sizeof f);
  f.x = k->p[1];
  f.y = k->p[0];
  f.wide = k->type[0] == DT_c128;
  f.way = k->op == OP_prod  ? FOLD_PRODUCT
          : k->op == OP_sum ? FOLD_SUM
                            : FOLD_MEAN;
  f.results = (uint32_t)k->n;
  f.count = 1;
  for (int i = inner; i < k->nd; i++) {
    f.size[i - inner] = k->size[i];
    f.step[i - inner] = k->step[1][i];
    f.count *= k->size[i];
  }
  f.nfold = k->nfold;
  while (2 << f.shift <= NC_REDUCEBLOCK && (int64_t)8 << f.shift <= f.count)
    f.shift++;
  nc_record_use(d, k->p[0]);
  nc_record_use(d, k->p[1]);
  nc_makeoffsets(&f.kept, inner, k->size, 2, k->step);
  return nc_check_op_launch(d, k, nc_complex_folds(&f, nc_current_stream(d)));
}

static int reduce(const Device *d, const TensorIter *k) {
  TensorIter parts;
  if (k->op != OP_prod && nc_parts_iter(&parts, k, nc_part_dtype(k->type[1])))
    return nc_runreduce(d, &parts);
  return nc_in_chunks(d, k, k->nd - k->nfold, fold);
}

int nc_run_complex(const Device *d, const TensorIter *k) {
  if (nc_opinfo[k->op].kind == REDUCE_OP && k->grad_index == 0)
    return reduce(d, k);
  if (k->op == OP_clone && k->grad_index == 0 && k->p[1] != NULL &&
      is_complex(k->type[0]) && is_complex(k->type[1]))
    return copy(d, k);
  return nc_in_chunks(d, k, k->nd, run);
}
