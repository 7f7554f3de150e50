/* SPDX-License-Identifier: MIT */
/*
** network_calls.h - calls of the requests class_loss and recurrent; a part of
** devices.h, which includes it.
*/
#ifndef core_network_calls_h
#define core_network_calls_h

#include <stdint.h>

typedef struct Tensor Tensor;

typedef enum ClassReduction {
  CLASS_NONE, CLASS_MEAN, CLASS_SUM
} ClassReduction;

/* The loss of the rows of x [n x classes], dense, float32 or float64, whose
   classes are target [n], int64, dense, from 1.  Rows of class `ignore' do not
   count.  weight [classes], of the type of x, or NULL.

   With x as logarithms of probabilities (log), or x - lse, lse the logarithm of
   the sum of exp(x) of the row, and s = smoothing, the loss of a row is
     (1 - s) * weight[t] * -x[t] + s / classes * sum of weight[j] * -x[j].
   d == NULL: loss [n], or for the reductions `mean' (by the weights of the
   classes) and `sum' of one element; lse [n]; scale, the factor of the sum, of
   one element.  Else d = the gradient of x by g, the gradient of loss.
   Fails if a class is not from 1 to classes. */
typedef struct ClassLossCall {
  const Tensor *x, *target, *weight, *g;
  Tensor *loss, *lse, *scale, *d;
  int64_t ignore;
  double smoothing;
  ClassReduction reduction;
  int log;
} ClassLossCall;

/* A step of a recurrent layer of n samples and h units, between its states
   `prev' and `next' (core/recurrent_step.inc has the formulas).  It is a step
   of the first `rows' samples, which may be fewer than n and are not 0.  All
   tensors are dense and of one type, float32 or float64: states [steps+1 x n x
   h], and as matrices whose rows from `row' on are this step's, gates [.. x (4
   or 3)*h], and cells, of an LSTM as states, of a GRU [.. x h], the products of
   the state for the new value.

   Forward: sum [rows x gates] is the product of the state by the weights plus,
   of an LSTM, the input, of a GRU the bias; input as gates.
   back: grad [steps x n x h] of the states; dstate [n x h] is the gradient that
   comes from later steps and, of a GRU, becomes the part that skips the
   weights; dcell [n x h] is updated; sets the rows of dinput, as gates, and, of
   a GRU, of dsum, the gradient of sum. */
typedef enum RecurrentKind { RECURRENT_LSTM, RECURRENT_GRU } RecurrentKind;

typedef struct RecurrentCall {
  RecurrentKind kind;
  int back;
  int64_t at, prev, next, row, rows;
  const Tensor *sum, *input, *grad;
  Tensor *states, *cells, *gates, *dstate, *dcell, *dinput, *dsum;
} RecurrentCall;

#endif
