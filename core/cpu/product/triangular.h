/* SPDX-License-Identifier: MIT */
/*
** triangular.h - LU factors, their inverse and triangular systems over
** products, with the arguments of LAPACK's functions (lapack.h).
*/
#ifndef core_cpu_product_triangular_h
#define core_cpu_product_triangular_h

#include "core/cpu/product/lapack.h"

/* Replaces getrf, getrs, getri and trsm by ours; the last is for an alpha of
   1. */
void nc_replace_lapack(Lapack *l, DType type);

#endif
