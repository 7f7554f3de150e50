/* SPDX-License-Identifier: MIT */
/*
** device_assert.cu - the request device_assert: checks on the device that a
** scalar is true.  If it is not, the error is asynchronous: the kernel sets the
** error flag, and the next wait reports it.
*/
#include "cuda/runtime/error_flag.h"

NC_KERNEL expect(const uint8_t *x, ErrorFlag *flag, int code, int text) {
  if (*x == 0) flag_assert(flag, code, text);
}

/* Asks CUDA for the attributes of this kernel, to test whether the current
   device can run the plug-in's code. */
cudaError_t nc_check_device_code(void) {
  struct cudaFuncAttributes a;
  return cudaFuncGetAttributes(&a, (const void *)expect);
}

int nc_cuda_device_assert(const Device *d, const AssertCall *e) {
  const cudaStream_t s = nc_current_stream(d);
  const uint8_t *x = (const uint8_t *)nc_used(d, e->x);
  CUDA_TRY(NC_LAUNCH(expect, 1, 1, 0, s, x, nc_error_flag(d), e->code,
                     nc_error_text(e->text)));
  return nc_check_launch(d, NULL); /* an error belongs to the caller's op */
}
