/* SPDX-License-Identifier: MIT */
/*
** gamma.h - lgamma and digamma in C.  Of a float, where loops become vectors of
** four doubles or more, they have no branches: they compute in double, by
** polynomials that were fitted to thirty digits, so that the result is wrong by
** 0.51 ulp at most.  Two doubles would take longer than the branches.
** scalar.h includes it.
*/
#ifndef core_pointwise_gamma_h
#define core_pointwise_gamma_h

#if defined(NC_VECTOR_MATH) && defined(__AVX2__)
#define PI 3.14159265358979323846

/*
** Of z > 0: (z-2)*Q(z-2) between 1/2 and 5/2, to which what is less is moved by
** lgamma(z) = lgamma(z+1) - log(z); Stirling's series with the coefficients of
** a fit above.  Around the roots 1 and 2 both terms go to 0.  Below 0 by
** reflection.
*/
SCALAR float lgamma_of_f32(float single) {
  static const double q[] = {
    0.4227843350984674, 0.3224670334241131, -0.06735230105333267,
    0.020580808427848166, -0.00738555101739438, 0.002890510325409574,
    -0.001192754271087742, 0.0005096696946223285, -0.00022314915180241202,
    9.94548626571654e-05, -4.4973510999689744e-05, 2.052955658697094e-05,
    -9.220663323909058e-06, 4.271453571823135e-06, -2.554914527462414e-06,
    1.1987899414920579e-06
  };
  static const double far[] = {
    0.08333333333333286, -0.0027777777770592866, 0.0007936506097969796,
    -0.0005952193623743894, 0.0008407456999610022, -0.001884851069791174,
    0.005707551319073343, -0.01881620615979913, 0.05328019262236085,
    -0.1025924160178417, 0.09482108236719575
  };
  static const double sine[] = { /* sin(pi*d)/d, by the powers of d*d */
    3.141592653589793, -5.16771278004997, 2.5501640398773455,
    -0.5992645293207869, 0.08214588661099356, -0.007370430943702136,
    0.0004663027874593273, -2.1915250301851375e-05, 7.94853903737232e-07,
    -2.228371216069697e-08
  };
  const double x = single, z = x < 0 ? 1 - x : x, w = 1 / z, d = x - rint(x);
  double t = z < 1.5 ? z + 1 : z, moved = z < 1.5 ? z : 1, l, y;
  t = z < 0.5 ? z + 2 : t;
  moved = z < 0.5 ? z * (z + 1) : moved;
  l = log(z < 2.5 ? moved : z);
  y = z < 2.5 ? (t - 2) * nc_polynomial(t - 2, q, 16) - l
              : (z - 0.5) * l - z + 0.91893853320467274178 +
                    w * nc_polynomial(w * w, far, 11);
  l = log(fabs(d * nc_polynomial(d * d, sine, 10)) / PI); /* |sin(pi*x)|/pi */
  y = x < 0 ? -l - y : y;
  y = fabs(x) == (double)INFINITY ? (double)INFINITY : y;
  return (float)y;
}

/*
** Of z > 0: between 1 and 2 around the root, up to 3 by digamma(z) =
** digamma(z+1) - 1/z; asymptotically above, with coefficients of a fit.
*/
SCALAR float digamma_of_f32(float single) {
  static const double far[] = {
    0.08333333333313572, -0.008333333104560145, 0.003968209634110145,
    -0.0041633137708839306, 0.007446732368685049, -0.018225712029221276,
    0.043428239861576894, -0.06035628700513252
  };
  const double x = single, z = x < 0 ? 1 - x : x;
  double t = z < 1 ? z + 1 : z, w, moved, y;
  t = z >= 2 ? z - 1 : t;
  w = z < 3 ? t : z;
  w = 1 / (z < 1 ? z : w); /* choices by one condition: for vector code */
  moved = z < 2 ? 0 : w;
  moved = z < 1 ? -w : moved;
  y = z < 3 ? nc_digammanear(t) + moved
            : log(z) - w / 2 - w * w * nc_polynomial(w * w, far, 8);
  y = x < 0 ? y - PI / tan(PI * (x - rint(x))) : y;
  y = x < 0 && x == floor(x) ? (double)NAN : y;
  y = x == 0 ? copysign(INFINITY, -x) : y;
  return (float)y;
}

#undef PI
#else
SCALAR float lgamma_of_f32(float x) { return lgammaf(x); }
SCALAR float digamma_of_f32(float x) { return (float)nc_digamma(x); }
#endif
SCALAR double lgamma_of_f64(double x) { return (lgamma)(x); }
SCALAR double digamma_of_f64(double x) { return nc_digamma(x); }

#endif
