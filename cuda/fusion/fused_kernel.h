/* SPDX-License-Identifier: MIT */
/*
** fused_kernel.h - what the text of a fused kernel begins with.  fused_text.c
** writes the text, which NVRTC compiles at run time; the emulated device and
** tests compile it for the host.
**
** The text defines before it includes this file
**   TENSORS   operands and results
**   NUMBERS   numbers, at least 1
**   DRAWS     if it draws random numbers; 2: doubles, too
** and afterwards includes core/pointwise/op_functions.inc for each type that
** it computes in.
*/
#ifndef cuda_fusion_fused_kernel_h
#define cuda_fusion_fused_kernel_h

#include "cuda/element.h"
#include "cuda/fusion/fused_args.h"

struct FusedArgs {
  FusedLayout at;
  uint64_t number[NUMBERS];
  uint32_t step[TENSORS][NC_MAXDIM];
};

/* Number j, of type A. */
template <class A> NC_DEVICE A number(const FusedArgs &a, int j) {
  A v;
  memcpy(&v, &a.number[j], sizeof v);
  return v;
}

#ifdef DRAWS
#include "core/base/philox.h"

/* Random number i of a draw, whose key and first block are numbers j and j+1:
   uniform, of so many bits, or normal. */
NC_DEVICE void draw_words(uint32_t w[4], const FusedArgs &a, int j,
                          uint64_t block) {
  philox_block(w, number<uint64_t>(a, j), number<uint64_t>(a, j + 1) + block,
               0);
}

NC_DEVICE float rand_f32(const FusedArgs &a, int j, uint64_t i, int bits) {
  uint32_t w[4];
  draw_words(w, a, j, i / 4);
  const uint32_t low = i & 1 ? w[1] : w[0], high = i & 1 ? w[3] : w[2];
  return philox_uniform(i & 2 ? high : low, bits);
}

NC_DEVICE float randn_f32(const FusedArgs &a, int j, uint64_t i, int) {
  uint32_t w[4];
  float z[2];
  draw_words(w, a, j, i / 4);
  philox_normal(z, i & 2 ? w[2] : w[0], i & 2 ? w[3] : w[1]);
  return (i & 1 ? z[1] : z[0]) + 0;
}

#if DRAWS > 1 /* doubles are drawn, too */
NC_DEVICE double rand_f64(const FusedArgs &a, int j, uint64_t i, int) {
  uint32_t w[4];
  draw_words(w, a, j, i / 2);
  return philox_uniform2(i & 1 ? w[2] : w[0], i & 1 ? w[3] : w[1]);
}

NC_DEVICE double randn_f64(const FusedArgs &a, int j, uint64_t i, int) {
  uint32_t w[4];
  double z[2];
  draw_words(w, a, j, i / 2);
  philox_normal2(z, w);
  return (i & 1 ? z[1] : z[0]) + 0;
}
#endif
#endif

/* A number as one of type D, rounded or wrapped as elements of D are. */
template <class D, class A> NC_DEVICE Compute<D> to(A v) {
  return load_element(convert_element<D>(v));
}

/* The coordinates of element or vector i of what is computed. */
struct Place {
  uint32_t i, c[NC_MAXDIM];
  NC_MEMBER Place(const FusedArgs &a, uint32_t i_) : i(i_) {
    uint32_t left = i_;
    NC_UNROLL for (int d = 0; d < NC_MAXDIM; d++) {
      if (d >= a.at.nd) break;
      const uint32_t rest = nc_quotient(left, a.at.size[d]);
      c[d] = left - rest * a.at.size[d].d;
      left = rest;
    }
  }
};

/* The offset in tensor j, whose vectors have W elements. */
template <int W>
NC_DEVICE uint64_t offset_of(const FusedArgs &a, int j, const Place &at) {
  uint64_t sum = 0;
  if (a.at.flat >> j & 1)
    return a.at.still >> j & 1 ? 0 : (uint64_t)at.i * W;
  NC_UNROLL for (int d = 0; d < NC_MAXDIM; d++) {
    if (d >= a.at.nd) break;
    sum += (uint64_t)at.c[d] * a.step[j][d];
  }
  return sum;
}

/* Loads a vector of W elements of tensor j. */
template <int W, class S>
NC_DEVICE void load_tensor(Compute<S> v[], const S *p, const FusedArgs &a,
                           int j, const Place &at) {
  const S *const x = p + offset_of<W>(a, j, at);
  if (W == 1 || (a.at.still >> j & 1)) {
    const Compute<S> one = load_element(*x);
    NC_UNROLL for (int e = 0; e < W; e++) v[e] = one;
  } else {
    uint32_t w[16];
    w[0] = 0;
    load_words(w, (const char *)x, W * (int)sizeof(S));
    NC_UNROLL for (int e = 0; e < W; e++)
      v[e] = load_element(element_of<S>(w, e));
  }
}

template <int W, class S>
NC_DEVICE void store_tensor(S *p, const FusedArgs &a, int j, const Place &at,
                            const Compute<S> v[]) {
  S *const y = p + offset_of<W>(a, j, at);
  if (W == 1) *y = store_element<S>(v[0]);
  else {
    uint32_t w[16];
    NC_UNROLL for (int k = 0; k < 16; k++) w[k] = 0;
    NC_UNROLL for (int e = 0; e < W; e++)
      set_element(w, e, store_element<S>(v[e]));
    store_words(y, w, W * (int)sizeof(S));
  }
}

/* Folds the numbers of the T threads of a line, for all of them; a block has
   `lines' lines, and all of its threads call this. */
template <int T, int lines, class A, A (*fold)(A, A)>
NC_DEVICE A fold_line(A v) {
  NC_UNROLL for (int m = 16; m > 0; m /= 2)
    v = fold(v, __shfl_xor_sync(0xffffffffu, v, m));
  if (T > 32) {
    NC_SHARED(A, part, T * lines / 32);
    const int first = (int)threadIdx.x / T * (T / 32);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = part[first];
    NC_UNROLL for (int w = 1; w < T / 32; w++) v = fold(v, part[first + w]);
    __syncthreads();
  }
  return v;
}

#endif
