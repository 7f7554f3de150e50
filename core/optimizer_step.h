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

/* X(rule, least, most): the formula step_<rule> and how many states it has. */
#define STEP_RULES(X)                                                       \
  X(sgd, 0, 1) X(adam, 2, 3) X(adamax, 2, 2) X(rmsprop, 1, 2)               \
  X(rmsprop_centered, 2, 3) X(adadelta, 2, 2) X(rprop, 2, 2) X(scale, 0, 0)

#define X(rule, least, most) STEP_##rule,
typedef enum StepRule { STEP_RULES(X) STEP_RULES_N } StepRule;
#undef X

/* What a step reads besides the elements, in the order in which bindings give
   them as a tensor of float64 numbers:
     sign     -1 maximizes
     decay    g += decay*p
     shrink   p *= shrink, first
     rate     p -= rate * ...
   sgd: m = momentum*m + intake*g, or g if `first'; nesterov
   adam: the means take in rest1 and rest2 = 1 - beta2 of g and g*g; eps; `root'
   divides the root of the second, which is not read if it is infinite; look:
   the rate of g itself
   rprop: the size of a step is multiplied by down or up, within least and most
   The others have these in the same roles. */
#define STEP_NUMBERS(X)                                                     \
  X(sign) X(decay) X(shrink) X(rate) X(momentum) X(intake) X(first)         \
  X(nesterov) X(rest1) X(beta2) X(rest2) X(eps) X(root) X(look)             \
  X(down) X(up) X(least) X(most)

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

/* p, shrunk, and the gradient with the penalty. */
#define STEP_GRADIENT(T)                                                    \
  T g = k->sign * *grad;                                                    \
  *p *= k->shrink;                                                          \
  if (k->decay != 0) g += k->decay * *p

/* The larger of x and y, nan if one is. */
#define STEP_LARGER(x, y) ((x) > (y) || (x) != (x) ? (x) : (y))

/* step_<rule>_<type>(p, gradient, states, numbers); states that are not there
   are NULL.
     sgd      m: momentum
     adam     m, v: means of g and g*g; top: the largest v so far
     adamax   m: mean of g; u: the largest |g|, which decays
     rmsprop  v, mean: means of g*g and g; m: momentum
     adadelta v, u: means of the squares of g and of the steps
     rprop    before: the gradient; size: of the step
     scale    p *= shrink, and nothing else; it reads no gradient */
#define STEP_FUNCTIONS(T, F)                                                \
  OPTIMIZER_STEP void step_sgd_##F(T *p, const T *grad, T *m, T *none,      \
                                   T *none2, const StepNumbers_##F *k) {    \
    STEP_GRADIENT(T);                                                       \
    (void)none, (void)none2;                                                \
    if (m) {                                                                \
      *m = k->first != 0 ? g : *m * k->momentum + k->intake * g;            \
      g = k->nesterov != 0 ? g + k->momentum * *m : *m;                     \
    }                                                                       \
    *p -= k->rate * g;                                                      \
  }                                                                         \
  OPTIMIZER_STEP void step_adam_##F(T *p, const T *grad, T *m, T *v, T *top,\
                                    const StepNumbers_##F *k) {             \
    STEP_GRADIENT(T);                                                       \
    *m += (g - *m) * k->rest1;                                              \
    *v = *v * k->beta2 + k->rest2 * g * g;                                  \
    T second = *v;                                                          \
    if (top) second = *top = STEP_LARGER(*top, second);                     \
    second = k->root < (T)INFINITY ? STEP_SQRT_##F(second) / k->root : 0;   \
    *p -= (k->rate * *m + k->look * g) / (second + k->eps);                 \
  }                                                                         \
  OPTIMIZER_STEP void step_adamax_##F(T *p, const T *grad, T *m, T *u, T *none,\
                                      const StepNumbers_##F *k) {           \
    STEP_GRADIENT(T);                                                       \
    (void)none;                                                             \
    *m += (g - *m) * k->rest1;                                              \
    const T faded = *u * k->beta2, now = STEP_ABS_##F(g) + k->eps;          \
    *u = STEP_LARGER(faded, now);                                           \
    *p -= k->rate * *m / *u;                                                \
  }                                                                         \
  OPTIMIZER_STEP void step_rmsprop_centered_##F(                            \
      T *p, const T *grad, T *v, T *mean, T *m, const StepNumbers_##F *k) { \
    STEP_GRADIENT(T);                                                       \
    *v = *v * k->beta2 + k->rest2 * g * g;                                  \
    T second = *v;                                                          \
    if (mean) {                                                             \
      *mean += (g - *mean) * k->rest2;                                      \
      second -= *mean * *mean;                                              \
    }                                                                       \
    g /= STEP_SQRT_##F(second) + k->eps;                                    \
    if (m) g = *m = *m * k->momentum + g;                                   \
    *p -= k->rate * g;                                                      \
  }                                                                         \
  OPTIMIZER_STEP void step_rmsprop_##F(T *p, const T *grad, T *v, T *m,     \
                                       T *none, const StepNumbers_##F *k) { \
    step_rmsprop_centered_##F(p, grad, v, none, m, k);                      \
  }                                                                         \
  OPTIMIZER_STEP void step_adadelta_##F(T *p, const T *grad, T *v, T *u,    \
                                        T *none, const StepNumbers_##F *k) {\
    STEP_GRADIENT(T);                                                       \
    (void)none;                                                             \
    *v = *v * k->beta2 + k->rest2 * g * g;                                  \
    g *= STEP_SQRT_##F(*u + k->eps) / STEP_SQRT_##F(*v + k->eps);           \
    *u = *u * k->beta2 + k->rest2 * g * g;                                  \
    *p -= k->rate * g;                                                      \
  }                                                                         \
  OPTIMIZER_STEP void step_rprop_##F(T *p, const T *grad, T *before, T *size,\
                                     T *none, const StepNumbers_##F *k) {   \
    T g = k->sign * *grad, s = *size;                                       \
    const int turns = g * *before < 0;                                      \
    const int grows = g != 0 && *before != 0;                               \
    (void)none;                                                             \
    s *= turns ? k->down : grows ? k->up : 1;                               \
    s = s < k->least ? k->least : s;                                        \
    *size = s = s > k->most ? k->most : s;                                  \
    *before = g = turns ? 0 : g;                                            \
    *p -= g > 0 ? s : g < 0 ? -s : 0;                                       \
  }                                                                         \
  OPTIMIZER_STEP void step_scale_##F(T *p, const T *grad, T *none, T *none2,\
                                     T *none3, const StepNumbers_##F *k) {  \
    (void)grad, (void)none, (void)none2, (void)none3;                       \
    *p *= k->shrink;                                                        \
  }

#define STEP_SQRT_f32(x) sqrtf(x)
#define STEP_SQRT_f64(x) sqrt(x)
#define STEP_ABS_f32(x) fabsf(x)
#define STEP_ABS_f64(x) fabs(x)
STEP_FUNCTIONS(float, f32)
STEP_FUNCTIONS(double, f64)

#endif
