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

/* What a step reads besides the elements, in the order in which bindings give
   them as a tensor of float64 numbers:
     sign     -1 maximizes
     decay    g += decay*p
     shrink   p *= shrink, first
     rate     p -= rate * ...
   SGD: m = momentum*m + intake*g, or g if `first'; nesterov
   Adam: the means take in rest1 and rest2 = 1 - beta2 of g and g*g; eps; `root'
   divides the root of the second */
#define STEP_NUMBERS(X)                                                     \
  X(sign) X(decay) X(shrink) X(rate) X(momentum) X(intake) X(first)         \
  X(nesterov) X(rest1) X(beta2) X(rest2) X(eps) X(root)

#define X(number) double number;
typedef struct StepNumbers {
  STEP_NUMBERS(X)
} StepNumbers, StepNumbers_f64;
#undef X
#define X(number) float number;
typedef struct StepNumbers_f32 {
  STEP_NUMBERS(X)
} StepNumbers_f32;
#undef X

static inline StepNumbers_f64 step_numbers_f64(const StepNumbers *k) {
  return *k;
}

static inline StepNumbers_f32 step_numbers_f32(const StepNumbers *k) {
  StepNumbers_f32 f;
#define X(number) f.number = (float)k->number;
  STEP_NUMBERS(X)
#undef X
  return f;
}

/* The gradient with the penalty. */
#define STEP_GRADIENT(T)                                                    \
  T g = k->sign * grad;                                                     \
  if (k->decay != 0) g += k->decay * *p

/* Adam with a step of k->rate; top is NULL, or the largest v so far. */
#define STEP_FUNCTIONS(T, F)                                                \
  OPTIMIZER_STEP void step_sgd_##F(T *p, T grad, T *m,                      \
                                   const StepNumbers_##F *k) {              \
    STEP_GRADIENT(T);                                                       \
    if (m) {                                                                \
      *m = k->first != 0 ? g : *m * k->momentum + k->intake * g;            \
      g = k->nesterov != 0 ? g + k->momentum * *m : *m;                     \
    }                                                                       \
    *p -= k->rate * g;                                                      \
  }                                                                         \
  OPTIMIZER_STEP void step_adam_##F(T *p, T grad, T *m, T *v, T *top,       \
                                    const StepNumbers_##F *k) {             \
    *p *= k->shrink;                                                        \
    STEP_GRADIENT(T);                                                       \
    *m += (g - *m) * k->rest1;                                              \
    *v = *v * k->beta2 + k->rest2 * g * g;                                  \
    T second = *v;                                                          \
    if (top) second = *top = *top > second || *top != *top ? *top : second; \
    *p -= k->rate * *m / (STEP_SQRT_##F(second) / k->root + k->eps);        \
  }

#define STEP_SQRT_f32(x) sqrtf(x)
#define STEP_SQRT_f64(x) sqrt(x)
STEP_FUNCTIONS(float, f32)
STEP_FUNCTIONS(double, f64)

#endif
