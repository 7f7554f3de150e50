/* SPDX-License-Identifier: MIT */
/* device_assert.cu - what must be true, told later if it is not. */
#include "cuda/runtime/error_flag.h"

NC_KERNEL expect(const uint8_t *x, Flag *flag, int code, int text) {
  if (*x == 0) nottrue(flag, code, text);
}

cudaError_t nc_anykernel(void) {
  struct cudaFuncAttributes a;
  return cudaFuncGetAttributes(&a, (const void *)expect);
}

int nc_cuda_device_assert(const Device *d, const AssertCall *e) {
  const cudaStream_t s = nc_current(d);
  const uint8_t *x = (const uint8_t *)nc_data(e->x);
  nc_touch(d, x);
  CUDA_TRY(
      NC_LAUNCH(expect, 1, 1, 0, s, x, nc_flag(d), e->code, nc_text(e->text)));
  return nc_launched(d, NULL); /* the failure is of who expects it */
}
