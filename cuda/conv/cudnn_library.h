/* SPDX-License-Identifier: MIT */
/*
** cudnn_library.h - cuDNN, opened when the first convolution needs it that is
** large and of a type for which tensor cores are used.  Only conv.c uses it.
*/
#ifndef cuda_conv_cudnn_library_h
#define cuda_conv_cudnn_library_h

#include "cuda/cuda.h"

/* On the current stream of d.  *done = 0: cuDNN is not there, or the
   convolution is not for it, or it failed; the result is to be computed
   otherwise. */
int nc_cudnn_conv(const Device *d, const ConvCall *c, int *done);

/* "cuDNN 9.19.0 (path)", or the reason why cuDNN is not available. */
const char *nc_cudnn_info(void);
void nc_cudnn_close(void); /* destroys all handles */

#endif
