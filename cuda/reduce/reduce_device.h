/* SPDX-License-Identifier: MIT */
/*
** reduce_type.h - the type in which elements of NC_TYPE are folded; part of
** reduce.cu and reduce_strided.cu.
**
** Gives  Value, VALUETYPE  that type and its number
**        TRUTHAPART        are truth values folded in another one?
**        TRUTHS(f)         what folds those
*/
#ifndef cuda_reduce_reduce_type_h
#define cuda_reduce_reduce_type_h

#define BLOCK NC_REDUCEBLOCK
#define CHAIN 8               /* rounds of four until a partial sum is kept:
                                 the fewer, the smaller rounding errors */

#if CODE <= CODE_i64
typedef int64_t Value;
#define VALUETYPE CODE_i64
#define TRUTHAPART 0
#define TRUTHS(f) f
#elif CODE == CODE_f64
typedef double Value;
#define VALUETYPE CODE_f64
#define TRUTHAPART 1
#define TRUTHS(f) f##_truth
#else
typedef float Value;
#define VALUETYPE CODE_f32
#define TRUTHAPART 1
#define TRUTHS(f) f##_truth
#endif

typedef Value Map(Value x, Value p);

NC_DEVICE Value parameterof(const Reduction *f) {
  Value p;
  memcpy(&p, &f->par, sizeof p);
  return p;
}

#endif
