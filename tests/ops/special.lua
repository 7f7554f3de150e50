-- SPDX-License-Identifier: MIT
-- Special functions are compared with values that were computed to thirty
-- digits; gamma functions with parameters; activations that check arguments.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local is, shape, fails = C.is, C.shape, C.fails
local inf, nan = math.huge, 0 / 0
local T = nacre.tensor

local known = {
  lgamma = {
    {0.1, 2.2527126517342059},
    {0.5, 0.57236494292470009},
    {1.25, -0.098271836421813161},
    {1.99, -0.0041955290887916687},
    {2.5, 0.28468287047291916},
    {7.3, 7.1478925230222487},
    {100.5, 361.43554046777762},
    {-0.5, 1.2655121234846454},
    {-2.3, 0.36956666345500804},
    {-9.7, -13.046545354948776},
  },
  digamma = {
    {0.1, -10.423754940411076},
    {0.5, -1.9635100260214235},
    {1.4, -0.061384544585116237},
    {1.46, -0.0015805619870834521},
    {1.5, 0.036489973978576521},
    {2.5, 0.70315664064524319},
    {9.9, 2.2411803166063814},
    {10.1, 2.2622143570941481},
    {1000.5, 6.9077553206487964},
    {-0.5, 0.036489973978576521},
    {-3.3, 3.6203534605921258},
  },
  erfinv = {
    {-0.999999, -3.4589107372754988},
    {-0.9, -1.1630871536766742},
    {-0.5, -0.47693627620446987},
    {1e-09, 8.8622692545275807e-10},
    {0.1, 0.088855990494257692},
    {0.85, 1.0179024648320276},
    {0.86, 1.0435418436397588},
    {0.999, 2.3267537655135245},
  },
  i0 = {
    {-9, 1093.5883545113747},
    {-1, 1.2660658777520083},
    {0.5, 1.0634833707413235},
    {7.9, 389.406283282158},
    {8.1, 469.50060671012147},
    {50, 2.9325537838493363e+20},
  },
  i1 = {
    {-9, -1030.9147225169564},
    {-1, -0.56515910399248503},
    {0.5, 0.25789430539089632},
    {7.9, 363.85394408450839},
    {8.1, 439.48430891035846},
    {50, 2.9030785901035568e+20},
  },
  i0e = {
    {-9, 0.13495952458172301},
    {0.5, 0.64503527044915007},
    {700, 0.015081295651531358},
  },
  i1e = {
    {-9, -0.12722498393589121},
    {0.5, 0.1564208031848717},
    {700, 0.015070519444716847},
  },
  sinc = {
    {0.5, 0.63661977236758134},
    {-1.25, -0.18006326323142121},
    {3.75, -0.060021087743807071},
  },
  bessel_j0 = {
    {0.5, 0.9384698072408129},
    {-3, -0.26005195490193345},
    {7.9, 0.19436184484127825},
    {8.1, 0.14751745404437766},
    {29.5, -0.1331478582983982},
    {1000, 0.024786686152420176},
  },
  bessel_j1 = {
    {0.5, 0.2422684576748739},
    {-3, -0.3390589585259365},
    {7.9, 0.2191793999217512},
    {8.1, 0.24760776698159287},
    {29.5, -0.0643043780991924},
    {1000, 0.004728311907089524},
  },
  bessel_y0 = {
    {1e-05, -7.40316028370197},
    {0.5, -0.44451873350670656},
    {3, 0.3768500100127904},
    {7.9, 0.20652094814437577},
    {8.1, 0.23809132870223482},
    {29.5, -0.06203938540000604},
    {1000, 0.0047159179776228135},
  },
  bessel_y1 = {
    {1e-05, -63661.97727536548},
    {0.5, -1.471472392670243},
    {3, 0.3246744247918},
    {7.9, -0.18172107728057313},
    {8.1, -0.13314879595249593},
    {29.5, 0.13211573506102567},
    {1000, -0.024784331292351778},
  },
  modified_bessel_k0 = {
    {1e-05, 11.628856980944363},
    {0.5, 0.9244190712276659},
    {1.9, 0.1288459792760475},
    {2.1, 0.10078374088996693},
    {30, 2.1324774964630563e-14},
    {700, 4.669776431685377e-306},
  },
  modified_bessel_k1 = {
    {1e-05, 99999.99993935571},
    {0.5, 1.656441120003301},
    {1.9, 0.15966015303266762},
    {2.1, 0.12274641153350789},
    {30, 2.1677320018915495e-14},
    {700, 4.6731107967079664e-306},
  },
  scaled_modified_bessel_k0 = {
    {0.5, 1.5241093857739094},
    {2.1, 0.8230171525316621},
    {30, 0.22788666561625373},
    {10000000000, 1.2533141372998339e-05},
  },
  scaled_modified_bessel_k1 = {
    {0.5, 2.731009708211786},
    {2.1, 1.0023680527405792},
    {30, 0.2316541293777118},
    {10000000000, 1.2533141373624996e-05},
  },
  airy_ai = {
    {-30, -0.08796818845684216},
    {-3.1, -0.4043822223909783},
    {-2.9, -0.341905095672983},
    {0, 0.3550280538878172},
    {0.9, 0.15188680364054435},
    {1.1, 0.12004942735539766},
    {5, 0.00010834442813607442},
    {100, 2.6344821520881846e-291},
  },
  erfcx = {
    {-5, 144009798674.66104},
    {-0.5, 1.952360489182557},
    {0.5, 0.6156903441929259},
    {3, 0.17900115118138996},
    {30, 0.01879588886141675},
    {1e+20, 5.6418958354775626e-21},
  },
  ndtr = {
    {-5, 2.866515718791939e-07},
    {-0.5, 0.3085375387259869},
    {0.5, 0.6914624612740131},
    {3, 0.9986501019683699},
  },
  log_ndtr = {
    {-10000000000, -5e+19},
    {-37, -689.0305855768906},
    {-5, -15.064998393988725},
    {-0.5, -1.1759117615936185},
    {0.5, -0.3689464152886564},
    {3, -0.0013508099647481938},
  },
  ndtri = {
    {1e-300, -37.0470962993612},
    {1e-10, -6.361340902404057},
    {0.07, -1.4757910281791706},
    {0.08, -1.4050715603096327},
    {0.3, -0.5244005127080408},
    {0.95, 1.6448536269514722},
  },
  entr = {
    {1e-300, 6.9077552789821376e-298},
    {0.5, 0.34657359027997264},
    {2.5, -2.2907268296853878},
  },
  spherical_bessel_j0 = {
    {1e-09, 1.0},
    {0.5, 0.958851077208406},
    {10, -0.05440211108893698},
  },
}

-- what is computed from a sine and a cosine: around its roots
local waves = {bessel_j0 = true, bessel_j1 = true, bessel_y0 = true,
               bessel_y1 = true, airy_ai = true, spherical_bessel_j0 = true}

local function near(got, want, what, absolute)
  assert(math.abs(got - want) <= 4e-15 * math.abs(want) + (absolute or 0),
         ("%s is %.17g, not %.17g"):format(what, got, want))
end

-- In float32: 4 ulp, or on a device the 8 of core/pointwise/special.inc; CUDA's
-- lgamma counts in ulp of 1 where it has roots below 0.
local device = nacre.get_default_device() ~= "cpu"
local single_off = device and 1e-6 or 5e-7

for name, list in pairs(known) do
  for _, pair in ipairs(list) do
    local x, want = pair[1], pair[2]
    local what = ("%s(%s)"):format(name, x)
    near(T({x}, {dtype = "float64"})[name](T({x}, {dtype = "float64"}))
         [1], want, what, waves[name] and 2e-15)
    local single = T({x}, {dtype = "float32"})
    local exact = single:to("float64")
    local absolute = device and name == "lgamma" and x < -2.26 and 1e-6 or
                     waves[name] and (device and 2e-5 or 1e-6) or 1e-38
    assert(single[name](single):to("float64"):allclose(
      exact[name](exact), single_off, absolute), what .. " in float32")
  end
end

-- Of many at once, which vector code computes: against float64, also around
-- the roots and poles, and where a formula takes the place of another. On
-- processors without AVX2, and on devices, lgamma is that of a library.
local function steps(around, width)
  return nacre.linspace(around - width, around + width, 999,
                        {dtype = "float64"}):float()
end
local everywhere = nacre.cat {
  steps(0, 12), steps(0, 1e-3), steps(1, 1e-5), steps(2, 1e-5),
  steps(0.5, 1e-5), steps(2.5, 1e-5), steps(3, 1e-5), steps(8, 1e-5),
  steps(1.4616321, 1e-5), steps(-2.4570247, 1e-5), steps(60, 20),
  steps(-1e4, 1e3), steps(1e30, 9e29),
}
for name, off in pairs {lgamma = 4e-7, digamma = 1.2e-7, i0 = 1.2e-7,
                        i1 = 1.2e-7, i0e = 1.2e-7, i1e = 1.2e-7} do
  local x = everywhere
  local got, want = x[name](x), x:double()[name](x:double()):float()
  -- a device's digamma below 0 is a difference of numbers of about ten
  local absolute = device and (name == "digamma" and 8e-6 or 1e-6) or 1e-38
  off = device and single_off or off
  assert(got:allclose(want, off, absolute, true),
         ("%s: wrong by %s"):format(name, (got - want):abs():max()))
end
for name, ends in pairs {
  lgamma = {inf, inf, inf, inf, inf, inf, nan},
  digamma = {-inf, inf, nan, nan, inf, nan, nan},
  i0 = {1, 1, 1.2660658777520083, inf, inf, inf, nan},
} do
  local x = T {0, -0.0, -1, -3e38, inf, -inf, nan}:float()
  local many = x:tile {9}
  assert(many[name](many):allclose(T(ends):float():tile {9}, 2e-7, 0, true),
         name)
end

for _, v in ipairs {
  {2, 1, 1.6449340668482264},
  {2, 0.5, 4.9348022005446793},
  {1.5, 3.2, 1.2121121796418684},
  {7, 2, 0.0083492773819228268},
  {3, 40.5, 0.00031245118966461645},
  {7, -10.5, 9.2741408342912962e-08},
  {2, -1e-10, 99999999999999992715.0},
  {2, 1e-10 - 3, 99999983451927853975.0},
  {3, -1e-17, -1e51},
} do
  near(nacre.zeta(v[1], T({v[2]}, {dtype = "float64"}))[1], v[3], "zeta")
end

for _, v in ipairs {
  {0.5, 0.3, 0.5614219739190002, 0.4385780260809999},
  {1e-10, 0.3, 0.9999999999094323, 9.056766516920478e-11},
  {0.01, 0.9, 0.9973736567479489, 0.0026263432520511505},
  {1, 2, 0.8646647167633873, 0.1353352832366127},
  {3, 7, 0.9703638361194782, 0.029636163880521777},
  {50, 40, 0.07033506665939496, 0.9296649333406051},
  {150, 149, 0.4782302571374064, 0.5217697428625936},
  {700, 750, 0.9684962790106076, 0.03150372098939239},
  {2.5, 100, 1, 2.8406228986415315e-41},
  {10000, 10100, 0.8413487504471796, 0.15865124955282037},
  {30000, 30500, 0.9979656764870863, 0.002034323512913683},
  {0, 2, 1, 0}, {2, 0, 0, 1}, {2, inf, 1, 0}, {inf, 2, 0, 1},
} do
  local a = T({v[1]}, {dtype = "float64"})
  local x = T({v[2]}, {dtype = "float64"})
  near(nacre.gammainc(a, x)[1], v[3], "gammainc", 1e-300)
  near(nacre.gammaincc(a, x)[1], v[4], "gammaincc of " .. v[1], v[4] * 8e-15)
end
assert(nacre.gammainc(T {-1, 1, 0, inf, nan}:float(),
                      T {1, -1, 0, inf, 1}:float()):isnan():all():item())

-- polynomials, by their values at 0.3 of degree 5, and all degrees at once
for name, want in pairs {
  chebyshev_polynomial_t = 0.99888, chebyshev_polynomial_u = 1.01376,
  hermite_polynomial_h = 31.75776, hermite_polynomial_he = 4.23243,
  legendre_polynomial_p = 0.34538625,
} do
  local f, x = nacre.special[name], T({0.3}, {dtype = "float64"})
  near(f(x, 5)[1], want, name, 1e-14)
  local all = f(x, nacre.arange(-1, 6))
  assert(all:size(1) == 7 and all[1] == 0 and all[2] == 1)
  near(all[7], f(x, 5)[1], name)
end
fails("can be at most 10000", nacre.special.legendre_polynomial_p, T {0.5}, 1e5)
fails("must be a tensor", nacre.special.legendre_polynomial_p, 0.5, 2)
assert(rawequal(nacre.special.expit, nacre.sigmoid))

for _, v in ipairs {
  {0, 2.5, 0.70315664064524319},
  {1, 0.3, 12.245364546107731},
  {1, 2.5, 0.49035775610023486},
  {2, 1.5, -0.82879664423432},
  {3, 4.5, 0.030322508542366587},
  {5, 0.75, 678.75334287457971},
} do
  local x = T({v[2]}, {dtype = "float64"})
  near(nacre.polygamma(v[1], x)[1], v[3], "polygamma " .. v[1])
  assert(x:polygamma(v[1]) == nacre.polygamma(v[1], x))
end
is(nacre.zeta(255, T {-10.5, -10.75, -10.25, -1}), "{0.0,inf,-inf,inf}")
fails("needs an integer of 0 or more and a tensor", nacre.polygamma, -1,
      T {1.0})
near(T({5.0}, {dtype = "float64"}):mvlgamma(1)[1], math.log(24), "mvlgamma")
fails("p is 0", nacre.mvlgamma, T {5.0}, 0)

-- ---- gelu in float32, whose erf is not exact to the last bit

do
  local x = nacre.linspace(-8, 8, 200001)
  local function off(f)
    return (f(x):double() - f(x:double())):abs():max():item()
  end
  local function gradient(v)
    v = v:clone():requires_grad_()
    return (nacre.autograd.grad(v:gelu():sum(), {v}))
  end
  assert(off(function(v) return v:gelu() end) < 1.25e-6)
  assert(off(gradient) < 3e-7)
  local v = T {-20, -5.7, -5.5, 5.7, 20}:float()
  near(v:gelu()[1], 0, "gelu(-20)")
  assert(v:gelu()[5] == 20 and v:gelu():abs():le(v:abs()):all():item())
end

-- ---- ends of the ranges

is(T({-1.0, 1}):erfinv(), "{-inf,inf}")
is(T({0.0, -1, inf}):lgamma(), "{inf,inf,inf}")
is(T({0.0, -0.0, inf}):digamma(), "{-inf,inf,inf}")
assert(T({-2.0}):digamma()[1] ~= T({-2.0}):digamma()[1])
is(T({0.0, 1, 0.5}):logit(), "{-inf,inf,0.0}")
is(T({0.0, 1}):logit(0.5), "{0.0,0.0}")
is(T({inf, -inf}):i0(), "{inf,inf}")

-- ---- numbers

is(T({nan, inf, -inf, 1}):nan_to_num(2, 3, 4), "{2.0,3.0,4.0,1.0}")
assert(T({inf}):nan_to_num()[1] == 0x1.fffffep127)
assert(T({-inf}, {dtype = "float16"}):nan_to_num()[1] == -65504)
is(T({1, 2}):nan_to_num(9), "{1,2}")
local own = T {nan}
own:nan_to_num_(5)
is(own, "{5.0}")
fails("needs integers", nacre.gcd, T {1.0}, 2)
local one = T({1.0}, {dtype = "float64"})
assert(one:nextafter(one * 2)[1] == 1 + 0x1p-52)
assert(T({1.0}):nextafter(T {0.0})[1] == 1 - 0x1p-24)
-- of halves, by their bits: the next after every number, both ways
for _, dtype in ipairs {"float16", "bfloat16"} do
  local most = dtype == "float16" and 65504 or 0x1.fep127
  local least = dtype == "float16" and 0x1p-24 or 0x1p-133
  local function up(v, towards)
    local y = T({v}, {dtype = dtype}):nextafter(T({towards}, {dtype = dtype}))
    assert(y.dtype == dtype)
    return y[1]
  end
  assert(up(0, 1) == least and up(-0.0, 1) == least and up(0, -1) == -least)
  assert(up(least, -1) == 0 and 1 / up(-least, 1) == -inf)
  assert(up(most, inf) == inf and up(inf, 0) == most and up(-inf, 0) == -most)
  assert(up(3, 3) == 3 and 1 / up(-0.0, 0) == inf)
  assert(up(nan, 1) ~= up(nan, 1) and up(1, nan) ~= up(1, nan))
  local x = nacre.randn(500):to(dtype)
  local y = x:nextafter(nacre.full_like(x, inf))
  assert(y:gt(x):all():item() and
         y:nextafter(nacre.full_like(x, -inf)):equal(x))
  local between = (x:float() + y:float()) / 2     -- rounds to one of the two
  between = between:to(dtype)
  assert(between:eq(x):logical_or(between:eq(y)):all():item())
  local z = x:view(5, 100):nextafter(T({0.0}, {dtype = dtype}))
  assert(z:abs():lt(x:view(5, 100):abs()):all():item())
  x:nextafter_(nacre.full_like(x, inf))
  assert(x:equal(y))
end
is(T({2.5, -1.25}):round {decimals = 1}, "{2.5,-1.2000000476837}")
is(T({1250.0, 1350}):round {decimals = -2}, "{1200.0,1400.0}")

-- ---- activations

fails("dim 1 cannot be halved, it has 3 elements", nacre.glu, T {1.0, 2, 3})
fails("3 weights, but dim 2 has 2 elements", nacre.prelu, nacre.ones(2, 2),
      T {1.0, 2, 3})
fails("value is missing", nacre.threshold, T {1.0}, 2)
fails("min_val is 1, above max_val -1", nacre.hardtanh, T {1.0}, 1, -1)
fails("lambd is -1, but must not be", nacre.softshrink, T {1.0}, -1)
print("special: passed")
