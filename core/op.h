/* SPDX-License-Identifier: MIT */
/* op.h - what apply.c shares with the families. */
#ifndef core_op_h
#define core_op_h

#include "core/tensor.h"

/* Runs a row over operands that broadcast to the shape of y, whose memory
   is one of theirs or apart from all of them. */
int nc_runpointwise(Tensor *y, Op op, DType work, const Arg in[], int n,
              const double par[2]);

/* The same for gradient number `part' (from 1): in[] is g and the operands
   that its text names, in the order a b c y. */
int nc_rungradient(Tensor *y, Op op, int part, DType work, const Arg in[],
                   int n, const double par[2]);

/* The error that v is no element of type t.  And: is v one, without wrapping
   as what nc_checkfits lets pass? */
int nc_error_doesnotfit(Scalar v, DType t);
int nc_checkholds(int64_t v, DType t);

/* The type in which a row works on n operands, if it takes them, and that
   type holds the numbers among them. */
int nc_computetype(DType *work, Op op, const Arg in[], int n);

/* A number as an element of the type that a row works in: it wraps, or is
   rounded, as the elements are. */
Scalar nc_tocomputetype(Scalar s, DType work);

/* Can a result of one type be written into another, as PyTorch has it? */
int nc_castable(DType from, DType to);

/* May a result of this type and shape be written to out?  If so it will be:
   this is the place that counts the versions of a storage. */
int nc_checkout(const Tensor *out, DType result, int nd,
                const int64_t size[]);

/* Counts a request that wrote to y, of status r, which it gives back: who was
   short of memory later must not repeat it. */
static inline int nc_countwrite(const Tensor *y, int r) {
  y->data->writes += r == NC_OK;
  return r;
}

/* Does out lie on device d, where its result comes to be? */
int nc_checkoutdevice(const Tensor *out, const Device *d);

/* Do the bytes of two tensors meet, without being the same elements? */
int nc_overlaps(const Tensor *a, const Tensor *b);

/* Fails with NC_EINDEX: index `given' is 0 or outside dimension d (0-based),
   which has this size, of a tensor of nd dimensions. */
int nc_outside(int64_t given, int64_t size, int d, int nd);

/* *at = index `given' of dimension d of t (from 1, or negative from the end),
   counted from 0.  Fails as nc_outside. */
int nc_position(int64_t *at, int64_t given, const Tensor *t, int d);

/* The device of the operands; 0-d ones on the host count as numbers. */
int nc_samedevice(const Device **d, const Arg in[], int n);
int nc_onedevice(const Device **d, const Arg in[], int n);  /* they do not */

/* The one policy for what device d cannot do: a family's function that finds
   its request missing (NULL) in d returns this; the operands go to the host,
   the results come back.  Results of failure are the caller's to release. */
int nc_byhost(Call *c, const Device *d);

/* The shape of x folded along dims. */
void nc_reducedshape(const Tensor *x, unsigned dims, int keepdim, int *nd,
                     int64_t size[]);

#endif
