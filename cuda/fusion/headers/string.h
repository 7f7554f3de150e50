/* SPDX-License-Identifier: MIT */
/* string.h - for NVRTC, which knows memcpy. */
