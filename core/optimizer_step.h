/* SPDX-License-Identifier: MIT */
/*
** optimizer_step.h - one step of an optimizer for one element, in float and
** double; C and CUDA.  The formulas are those of bindings/lib/optim, the Lua
** text of the algorithms, which is the reference of their tests.
*/
#ifndef core_optimizer_step_h
#define core_optimizer_step_h

#include <math.h>

#ifdef __CUDACC__
#define OPTIMIZER_STEP static inline __host__ __device__
#else
#define OPTIMIZER_STEP static inline
#endif

typedef enum StepRule { STEP_SGD, STEP_ADAM, STEP_RULES } StepRule;

/* What a step reads besides the elements.  Bindings fill it from a tensor of
   float64 numbers in this order. */
typedef struct StepNumbers {
  double sign;                /* -1 maximizes */
  double decay;               /* g += decay*p */
  double shrink;              /* p *= shrink, first */
  double rate;                /* p -= rate * ... */
  double momentum, intake;    /* SGD: m = momentum*m + intake*g */
  double first, nesterov;     /* SGD: does m begin as g? */
  double beta1, beta2, eps;   /* Adam and its moving means; */
  double root;                /* divides the root of the second */
} StepNumbers;

/* The gradient with the penalty. */
#define STEP_GRADIENT(T)                                                    \
  T g = (T)k->sign * grad;                                                  \
  if (k->decay != 0) g += (T)k->decay * *p

/* Adam with a step of k->rate; top is NULL, or the largest v so far. */
#define STEP_FUNCTIONS(T, F)                                                \
  OPTIMIZER_STEP void step_sgd_##F(T *p, T grad, T *m,                      \
                                   const StepNumbers *k) {                  \
    STEP_GRADIENT(T);                                                       \
    if (m) {                                                                \
      *m = k->first != 0 ? g : *m * (T)k->momentum + (T)k->intake * g;      \
      g = k->nesterov != 0 ? g + (T)k->momentum * *m : *m;                  \
    }                                                                       \
    *p -= (T)k->rate * g;                                                   \
  }                                                                         \
  OPTIMIZER_STEP void step_adam_##F(T *p, T grad, T *m, T *v, T *top,       \
                                    const StepNumbers *k) {                 \
    *p *= (T)k->shrink;                                                     \
    STEP_GRADIENT(T);                                                       \
    *m += (g - *m) * (T)(1 - k->beta1);                                     \
    *v = *v * (T)k->beta2 + (T)(1 - k->beta2) * g * g;                      \
    T second = *v;                                                          \
    if (top) second = *top = *top > second || *top != *top ? *top : second; \
    *p -= (T)k->rate * *m /                                                 \
          (STEP_SQRT_##F(second) / (T)k->root + (T)k->eps);                 \
  }

#define STEP_SQRT_f32(x) sqrtf(x)
#define STEP_SQRT_f64(x) sqrt(x)
STEP_FUNCTIONS(float, f32)
STEP_FUNCTIONS(double, f64)

#endif
