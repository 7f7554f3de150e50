/* SPDX-License-Identifier: MIT */
/*
** special.h - special functions that neither C nor CUDA has, in double, for
** the rows of ops.def; a part of scalar.h, which includes it.  float32 is
** computed in double, too: so it is right to its last bit or nearly so.
*/
#ifndef special_h
#define special_h

#define NC_PI 3.14159265358979323846

/* c[0] + c[1]*x + ... */
SCALAR double nc_polynomial(double x, const double c[], int n) {
  double y = c[n - 1];
  for (int i = n - 2; i >= 0; i--) y = y * x + c[i];
  return y;
}

/* A sum of Chebyshev polynomials of x/2, by Clenshaw's recurrence. */
SCALAR double nc_chebyshev(double x, const double c[], int n) {
  double b0 = 0, b1 = 0, b2 = 0;
  for (int i = n - 1; i >= 0; i--) {
    b2 = b1;
    b1 = b0;
    b0 = x * b1 - b2 + c[i];
  }
  return (b0 - b2) / 2;
}

/* sin and cos of pi*x; x less a multiple of 2 is exact. */
SCALAR double nc_sinpi(double x) {
  double r = x - 2 * rint(x / 2);
  if (fabs(r) > 0.5) r = copysign(1 - fabs(r), r);
  return r == 0 ? copysign(0.0, x) : sin(NC_PI * r);
}

SCALAR double nc_cospi(double x) {
  double r = fabs(x - 2 * rint(x / 2));
  if (r > 0.75) return -cos(NC_PI * (1 - r));
  return r < 0.25 ? cos(NC_PI * r) : sin(NC_PI * (0.5 - r));
}

/* Between 1 and 2, around its root; above 10, asymptotically. */
SCALAR double nc_digammaup(double x) {
  const double near[] = {
    0.95105587603183284, -0.21181371064073029, 0.060135621060196841,
    -0.018550615381735008, 0.0059367952783017609, -0.0019350666648613071,
    0.00063688803038658166, -0.00021074841138175561, 6.9950188251127936e-05,
    -2.3258242519113285e-05, 7.7412345086363639e-06, -2.5780939540457722e-06,
    8.5890607219306946e-07, -2.8631611668831928e-07, 9.5432982882782746e-08,
    -3.1629111474084543e-08, 1.0527692435026686e-08, -3.7083753242807277e-09,
    1.2469984616707403e-09, -2.7580994814376999e-10, 8.7345284291429526e-11,
    -8.5055076601326096e-11, 2.9186227321682609e-11
  };
  const double far[] = { 1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240,
                         1.0 / 132, -691.0 / 32760, 1.0 / 12 };
  double sum = 0;
  if (x > 10) {
    double s = 1 / (x * x);
    return log(x) - 0.5 / x - s * nc_polynomial(s, far, 7);
  }
  for (; x > 2; x -= 1) sum += 1 / (x - 1);
  for (; x < 1; x += 1) sum -= 1 / x;
  return sum + ((x - 1.4616321449683622) - 9.549995429965697e-17) *
                   nc_polynomial(2 * x - 3, near, 23);
}

SCALAR double nc_digamma(double x) {
  if (x == 0) return copysign((double)INFINITY, -x);
  if (x > 0 || x != x) return nc_digammaup(x);
  if (x == floor(x)) return (double)NAN;
  return nc_digammaup(1 - x) - NC_PI * nc_cospi(x) / nc_sinpi(x);
}

/* Hurwitz's zeta function for q > 0, by Euler and Maclaurin. */
SCALAR double nc_zetaup(double s, double q) {
  /* (2k)! / Bernoulli(2k) */
  const double b[] = { 12, -720, 30240, -1209600, 47900160,
                       -1.8924375803183791606e9, 7.47242496e10,
                       -2.950130727918164224e12, 1.1646782814350067249e14,
                       -4.5979787224074726105e15, 1.8152105401943546773e17,
                       -7.1661652561756670113e18 };
  double sum = pow(q, -s), term = sum, rising = 1, k = 0;
  if (q > 1e8) return (1 / (s - 1) + 0.5 / q) * pow(q, 1 - s);
  for (int i = 0; i < 9 || q <= 9; i++) {
    term = pow(q += 1, -s);
    sum += term;
    if (term <= sum * 1e-17) return sum;
  }
  sum += term * q / (s - 1) - term / 2;
  for (int i = 0; i < 12; i++) {
    double t;
    rising *= s + k;
    term /= q;
    t = rising * term / b[i];
    sum += t;
    if (fabs(t) < fabs(sum) * 1e-17) return sum;
    rising *= s + k + 1;
    term /= q;
    k += 2;
  }
  return sum;
}

/* Below 0 for whole s: the terms on both sides of the pole. */
SCALAR double nc_zeta(double s, double q) {
  double m = ceil(-q), f = q + m, low;
  if (s == 1) return (double)INFINITY;
  if (s < 1 || s != s || q != q) return (double)NAN;
  if (q > 0) return nc_zetaup(s, q);
  if (q == floor(q)) return (double)INFINITY;
  if (s != floor(s)) return (double)NAN;
  low = nc_zetaup(s, 1 - f) - nc_zetaup(s, 1 - f + m);
  return nc_zetaup(s, f) + (s / 2 == floor(s / 2) ? low : -low);
}

/* By the quantiles of the normal distribution: Wichura (1988), AS 241. */
SCALAR double nc_erfinv(double x) {
  const double a[] = {
    3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
    1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
    3.3430575583588128105e4, 2.5090809287301226727e3
  };
  const double b[] = {
    1, 4.2313330701600911252e1, 6.8718700749205790830e2,
    5.3941960214247511077e3, 2.1213794301586595867e4, 3.9307895800092710610e4,
    2.8729085735721942674e4, 5.2264952788528545610e3
  };
  const double c[] = {
    1.42343711074968357734e0, 4.63033784615654529590e0,
    5.76949722146069140550e0, 3.64784832476320460504e0,
    1.27045825245236838258e0, 2.41780725177450611770e-1,
    2.27238449892691845833e-2, 7.74545014278341407640e-4
  };
  const double d[] = {
    1, 2.05319162663775882187e0, 1.67638483018380384940e0,
    6.89767334985100004550e-1, 1.48103976427480074590e-1,
    1.51986665636164571966e-2, 5.47593808499534494600e-4,
    1.05075007164441684324e-9
  };
  const double e[] = {
    6.65790464350110377720e0, 5.46378491116411436990e0,
    1.78482653991729133580e0, 2.96560571828504891230e-1,
    2.65321895265761230930e-2, 1.24266094738807843860e-3,
    2.71155556874348757815e-5, 2.01033439929228813265e-7
  };
  const double f[] = {
    1, 5.99832206555887937690e-1, 1.36929880922735805310e-1,
    1.48753612908506148525e-2, 7.86869131145613259100e-4,
    1.84631831751005468180e-5, 1.42151175831644588870e-7,
    2.04426310338993978564e-15
  };
  const double root2 = 1.41421356237309504880;
  double r = 0.180625 - x / 2 * (x / 2), y;
  if (fabs(x) <= 0.85)
    return x / 2 * nc_polynomial(r, a, 8) / nc_polynomial(r, b, 8) / root2;
  if (!(fabs(x) <= 1)) return (double)NAN;
  r = sqrt(-log((1 - fabs(x)) / 2));
  if (r <= 5) {
    r -= 1.6;
    y = nc_polynomial(r, c, 8) / nc_polynomial(r, d, 8);
  } else if (r < 40) {
    r -= 5;
    y = nc_polynomial(r, e, 8) / nc_polynomial(r, f, 8);
  } else
    y = (double)INFINITY;
  return copysign(y / root2, x);
}

/* Modified Bessel functions of the first kind, times exp(-|x|). */
SCALAR double nc_i0e(double x) {
  const double near[] = {
    0.67679527440947607, -0.3046826723431984, 0.17162090152220877,
    -0.094901097048047639, 0.049305284239670712, -0.023737414805899471,
    0.010546460394594998, -0.0043243099950505759, 0.0016394756169413357,
    -0.00057637557453858236, 0.00018850288509584165, -5.754195010082104e-05,
    1.6448448070728896e-05, -4.4167383584587505e-06, 1.1173875391201037e-06,
    -2.6707938539406119e-07, 6.0469950225419186e-08, -1.300025009986248e-08,
    2.6598237246823866e-09, -5.1897956016352627e-10, 9.675809035373237e-11,
    -1.7268262914415559e-11, 2.9550526631296399e-12, -4.856446783111929e-13,
    7.6761854986049361e-14, -1.1685332877993451e-14, 1.7153912855551331e-15,
    -2.4312798465479549e-16, 3.3307945188222384e-17, -4.4153416464793395e-18
  };
  const double far[] = {
    0.80449041101410879, 0.0033691164782556943, 6.8897583469168245e-05,
    2.8913705208347567e-06, 2.0489185894690638e-07, 2.266668990498178e-08,
    3.3962320257083865e-09, 4.9406023882249701e-10, 1.1889147107846439e-11,
    -3.1499165279632416e-11, -1.3215811840447713e-11, -1.7941785315068062e-12,
    7.180124451383666e-13, 3.8527783827421426e-13, 1.54008621752141e-14,
    -4.1505693472872222e-14, -9.5548466988283073e-15, 3.8116806693526224e-15,
    1.7725601330565263e-15, -3.425485619677219e-16, -2.8276239805165836e-16,
    3.4612228676974612e-17, 4.4656214202967598e-17, -4.8305044859441819e-18,
    -7.2331804878747538e-18, 9.9214754121736987e-19, 1.193650890845982e-18
  };
  x = fabs(x);
  if (x <= 8) return nc_chebyshev(x / 2 - 2, near, 30);
  return nc_chebyshev(32 / x - 2, far, 27) / sqrt(x);
}

SCALAR double nc_i1e(double x) {
  const double near[] = {
    0.25258718644363365, -0.17641651835783406, 0.10264365868984709,
    -0.052945981208094989, 0.024726449030626516, -0.010564084894626197,
    0.0041564229443128882, -0.0015135724506312532, 0.00051228595616857576,
    -0.00016176081582589674, 4.7815651075500542e-05, -1.3273163656039436e-05,
    3.4702513081376785e-06, -8.5687202646954547e-07, 2.0032947535521353e-07,
    -4.4450591287963281e-08, 9.3815373864957726e-09, -1.8872497517228294e-09,
    3.6255902815521172e-10, -6.6634897235020271e-11, 1.1736186298890901e-11,
    -1.9839743977649436e-12, 3.2237933659455748e-13, -5.0421855047279118e-14,
    7.6006842947354077e-15, -1.1055969477353862e-15, 1.5536319577362005e-16,
    -2.111421214358166e-17, 2.7779141127610464e-18
  };
  const double far[] = {
    0.77857623501828011, -0.0097610974913614687, -0.00011058893876262371,
    -3.8825648088776906e-06, -2.5122362378702088e-07, -2.6314688468895196e-08,
    -3.835380385964237e-09, -5.5897434621965838e-10, -1.8974958123505413e-11,
    3.2526035830154884e-11, 1.4125807436613782e-11, 2.0356285441470896e-12,
    -7.1985517762459084e-13, -4.0835511110921974e-13, -2.1015418427726643e-14,
    4.272440016711951e-14, 1.0420276984128802e-14, -3.8144030724370075e-15,
    -1.8803547755107825e-15, 3.3082023109209285e-16, 2.9626289976459501e-16,
    -3.2095259219934238e-17, -4.6503053684893586e-17, 4.4143483230717077e-18,
    7.5172963108421052e-18, -9.3141788673268842e-19, -1.242193275194891e-18
  };
  double z = fabs(x);
  if (z <= 8) return x * nc_chebyshev(z / 2 - 2, near, 29);
  return copysign(nc_chebyshev(32 / z - 2, far, 27) / sqrt(z), x);
}

/* The exponential is split: it overflows before the product does. */
SCALAR double nc_i0(double x) {
  double e = exp(fabs(x) / 2);
  return e > 1e300 ? (double)INFINITY : e * nc_i0e(x) * e;
}

SCALAR double nc_i1(double x) {
  double e = exp(fabs(x) / 2);
  return e > 1e300 ? copysign((double)INFINITY, x) : e * nc_i1e(x) * e;
}

#endif
