/* SPDX-License-Identifier: MIT */
/*
** conform_fft.cu - holds what the plug-in calls of cuFFT (cufft_abi.h) against
** NVIDIA's header: that this file compiles is the test.  Parameters are as
** many, of the same sizes, and pointers where those are pointers.
*/
#include <type_traits>

#include <cufft.h>

#include "cuda/fourier/cufft_abi.h"

template <class A, class B> constexpr bool alike() {
  return sizeof(A) == sizeof(B) &&
         std::is_pointer<A>::value == std::is_pointer<B>::value;
}

template <class... A, class... B>
constexpr bool fits(int (*)(A...), cufftResult (*)(B...)) {
  static_assert(sizeof...(A) == sizeof...(B), "number of parameters");
  return (alike<A, B>() && ...);
}

#define X(name, symbol, params)                                               \
  static_assert(fits((int(*) params) nullptr, decltype (&::symbol)(nullptr)), \
                #symbol);
FFT_FUNCTIONS(X)
#undef X

#define SAME(ours, theirs) static_assert((int)ours == (int)theirs, #theirs);
SAME(FFT_SUCCESS, CUFFT_SUCCESS)
SAME(FFT_ALLOC_FAILED, CUFFT_ALLOC_FAILED)
SAME(FFT_C2C, CUFFT_C2C)
SAME(FFT_R2C, CUFFT_R2C)
SAME(FFT_C2R, CUFFT_C2R)
SAME(FFT_Z2Z, CUFFT_Z2Z)
SAME(FFT_D2Z, CUFFT_D2Z)
SAME(FFT_Z2D, CUFFT_Z2D)
SAME(FFT_FORWARD, CUFFT_FORWARD)
SAME(FFT_INVERSE, CUFFT_INVERSE)
