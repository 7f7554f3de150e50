/* SPDX-License-Identifier: MIT */
/* device_assert.cu - what must be true, told later if it is not. */
#include "cuda/runtime/error_flag.h"

NC_KERNEL expect(const uint8_t *x, ErrorFlag *flag, int code, int text) {
  if (*x == 0) flag_assert(flag, code, text);
}

cudaError_t nc_check_device_code(void) {
  struct cudaFuncAttributes a;
  return cudaFuncGetAttributes(&a, (const void *)expect);
}

int nc_cuda_device_assert(const Device *d, const AssertCall *e) {
  const cudaStream_t s = nc_current_stream(d);
  const uint8_t *x = (const uint8_t *)nc_data(e->x);
  nc_record_use(d, x);
  CUDA_TRY(NC_LAUNCH(expect, 1, 1, 0, s, x, nc_error_flag(d), e->code,
                     nc_error_text(e->text)));
  return nc_check_launch(d, NULL); /* the failure is of who expects it */
}
