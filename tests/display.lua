-- SPDX-License-Identifier: MIT
--
-- How values are shown: each rule of the display against golden text.

local display = require "nacre.display"

local checks, failures = 0, 0
local device = nacre.get_default_device()

-- Where the text says cpu, the default device may be another.
local function same(name, got, want)
  checks = checks + 1
  if type(want) == "string" then
    want = want:gsub("%f[%w]cpu%f[%W]", device)
  end
  if got == want then return end
  failures = failures + 1
  io.stderr:write(("FAIL %s\n-- wanted\n%s\n-- got\n%s\n"):format(
    name, want, tostring(got)))
end

local function check(name, value, opts, want)
  same(name, display.show(value, opts), want)
end

-- n numbers between -4 and 4 that every machine computes alike.
local function V(n) return (nacre.arange(n) * 7919 % 1009 - 504) / 128 end

local big = V(1000000):view(1000, 1000)

local m = nacre.tensor {
  {-50, -13, 24, -40, -3}, {34, 0/0, 7, 44, -20},
  {17, -47, -10, 1/0, -37}, {-1/0, 37, -27, 10, 47}} / 64

local X = nacre.tensor({
  {1, 433618.5, 5.9205e-07, 0.5735}, {2, 922981.25, 1.7148e-07, 0.0210},
  {3, 629878.75, 4.4806e-07, 0.8119}, {4, 234131.5, 2.9987e-07, 0.7419},
  {5, 700378.25, 7.1388e-08, 0.9184}, {6, 88053.125, 7.6712e-07, 0.5779}},
  {dtype = "float64"})

check("a matrix that does not fit", big, {}, [=[
float32[1000x1000] cpu  3.8 MiB
  -3.9375   2.7500   1.5547   0.3594  ...   3.7188   2.5234   1.3281   0.1328
  -1.0625  -2.2578  -3.4531   3.2344  ...  -1.2891  -2.4844  -3.6797   3.0078
   1.8125   0.6172  -0.5781  -1.7734  ...   1.5859   0.3906  -0.8047  -2.0000
  -3.1953   3.4922   2.2969   1.1016  ...  -3.4219   3.2656   2.0703   0.8750
  -0.3203  -1.5156  -2.7109  -3.9062  ...  -0.5469  -1.7422  -2.9375   3.7500
      ...      ...      ...      ...  ...      ...      ...      ...      ...
   3.1094   1.9141   0.7188  -0.4766  ...   2.8828   1.6875   0.4922  -0.7031
  -1.8984  -3.0938   3.5938   2.3984  ...  -2.1250  -3.3203   3.3672   2.1719
   0.9766  -0.2188  -1.4141  -2.6094  ...   0.7500  -0.4453  -1.6406  -2.8359
   3.8516   2.6562   1.4609   0.2656  ...   3.6250   2.4297   1.2344   0.0391
  -1.1562  -2.3516  -3.5469   3.1406  ...  -1.3828  -2.5781  -3.7734   2.9141
min -3.938  max 3.938  mean 1.906e-06  std 2.276  ████████████]=])

check("in 48 columns", big, {width = 48}, [=[
float32[1000x1000] cpu  3.8 MiB
  -3.9375   2.7500  ...   1.3281   0.1328
  -1.0625  -2.2578  ...  -3.6797   3.0078
   1.8125   0.6172  ...  -0.8047  -2.0000
  -3.1953   3.4922  ...   2.0703   0.8750
  -0.3203  -1.5156  ...  -2.9375   3.7500
      ...      ...  ...      ...      ...
   3.1094   1.9141  ...   0.4922  -0.7031
  -1.8984  -3.0938  ...   3.3672   2.1719
   0.9766  -0.2188  ...  -1.6406  -2.8359
   3.8516   2.6562  ...   1.2344   0.0391
  -1.1562  -2.3516  ...  -3.7734   2.9141
min -3.938  max 3.938  mean 1.906e-06  std 2.276]=])

check("without UTF-8", big, {utf8 = false}, [=[
float32[1000x1000] cpu  3.8 MiB
  -3.9375   2.7500   1.5547   0.3594  ...   3.7188   2.5234   1.3281   0.1328
  -1.0625  -2.2578  -3.4531   3.2344  ...  -1.2891  -2.4844  -3.6797   3.0078
   1.8125   0.6172  -0.5781  -1.7734  ...   1.5859   0.3906  -0.8047  -2.0000
  -3.1953   3.4922   2.2969   1.1016  ...  -3.4219   3.2656   2.0703   0.8750
  -0.3203  -1.5156  -2.7109  -3.9062  ...  -0.5469  -1.7422  -2.9375   3.7500
      ...      ...      ...      ...  ...      ...      ...      ...      ...
   3.1094   1.9141   0.7188  -0.4766  ...   2.8828   1.6875   0.4922  -0.7031
  -1.8984  -3.0938   3.5938   2.3984  ...  -2.1250  -3.3203   3.3672   2.1719
   0.9766  -0.2188  -1.4141  -2.6094  ...   0.7500  -0.4453  -1.6406  -2.8359
   3.8516   2.6562   1.4609   0.2656  ...   3.6250   2.4297   1.2344   0.0391
  -1.1562  -2.3516  -3.5469   3.1406  ...  -1.3828  -2.5781  -3.7734   2.9141
min -3.938  max 3.938  mean 1.906e-06  std 2.276]=])

check("without statistics", big, {stats = false}, [=[
float32[1000x1000] cpu  3.8 MiB
  -3.9375   2.7500   1.5547   0.3594  ...   3.7188   2.5234   1.3281   0.1328
  -1.0625  -2.2578  -3.4531   3.2344  ...  -1.2891  -2.4844  -3.6797   3.0078
   1.8125   0.6172  -0.5781  -1.7734  ...   1.5859   0.3906  -0.8047  -2.0000
  -3.1953   3.4922   2.2969   1.1016  ...  -3.4219   3.2656   2.0703   0.8750
  -0.3203  -1.5156  -2.7109  -3.9062  ...  -0.5469  -1.7422  -2.9375   3.7500
      ...      ...      ...      ...  ...      ...      ...      ...      ...
   3.1094   1.9141   0.7188  -0.4766  ...   2.8828   1.6875   0.4922  -0.7031
  -1.8984  -3.0938   3.5938   2.3984  ...  -2.1250  -3.3203   3.3672   2.1719
   0.9766  -0.2188  -1.4141  -2.6094  ...   0.7500  -0.4453  -1.6406  -2.8359
   3.8516   2.6562   1.4609   0.2656  ...   3.6250   2.4297   1.2344   0.0391
  -1.1562  -2.3516  -3.5469   3.1406  ...  -1.3828  -2.5781  -3.7734   2.9141]=])

check("in 132 columns", big, {width = 132}, [=[
float32[1000x1000] cpu  3.8 MiB
  -3.9375   2.7500   1.5547   0.3594  -0.8359  -2.0312  -3.2266  ...  -1.7734  -2.9688   3.7188   2.5234   1.3281   0.1328
  -1.0625  -2.2578  -3.4531   3.2344   2.0391   0.8438  -0.3516  ...   1.1016  -0.0938  -1.2891  -2.4844  -3.6797   3.0078
   1.8125   0.6172  -0.5781  -1.7734  -2.9688   3.7188   2.5234  ...  -3.9062   2.7812   1.5859   0.3906  -0.8047  -2.0000
  -3.1953   3.4922   2.2969   1.1016  -0.0938  -1.2891  -2.4844  ...  -1.0312  -2.2266  -3.4219   3.2656   2.0703   0.8750
  -0.3203  -1.5156  -2.7109  -3.9062   2.7812   1.5859   0.3906  ...   1.8438   0.6484  -0.5469  -1.7422  -2.9375   3.7500
      ...      ...      ...      ...      ...      ...      ...  ...      ...      ...      ...      ...      ...      ...
   3.1094   1.9141   0.7188  -0.4766  -1.6719  -2.8672   3.8203  ...  -2.6094  -3.8047   2.8828   1.6875   0.4922  -0.7031
  -1.8984  -3.0938   3.5938   2.3984   1.2031   0.0078  -1.1875  ...   0.2656  -0.9297  -2.1250  -3.3203   3.3672   2.1719
   0.9766  -0.2188  -1.4141  -2.6094  -3.8047   2.8828   1.6875  ...   3.1406   1.9453   0.7500  -0.4453  -1.6406  -2.8359
   3.8516   2.6562   1.4609   0.2656  -0.9297  -2.1250  -3.3203  ...  -1.8672  -3.0625   3.6250   2.4297   1.2344   0.0391
  -1.1562  -2.3516  -3.5469   3.1406   1.9453   0.7500  -0.4453  ...   1.0078  -0.1875  -1.3828  -2.5781  -3.7734   2.9141
min -3.938  max 3.938  mean 1.906e-06  std 2.276  ████████████]=])

check("with precision 6", big, {precision = 6, stats = false}, [=[
float32[1000x1000] cpu  3.8 MiB
  -3.937500   2.750000   1.554688  ...   2.523438   1.328125   0.132812
  -1.062500  -2.257812  -3.453125  ...  -2.484375  -3.679688   3.007812
   1.812500   0.617188  -0.578125  ...   0.390625  -0.804688  -2.000000
  -3.195312   3.492188   2.296875  ...   3.265625   2.070312   0.875000
  -0.320312  -1.515625  -2.710938  ...  -1.742188  -2.937500   3.750000
        ...        ...        ...  ...        ...        ...        ...
   3.109375   1.914062   0.718750  ...   1.687500   0.492188  -0.703125
  -1.898438  -3.093750   3.593750  ...  -3.320312   3.367188   2.171875
   0.976562  -0.218750  -1.414062  ...  -0.445312  -1.640625  -2.835938
   3.851562   2.656250   1.460938  ...   2.429688   1.234375   0.039062
  -1.156250  -2.351562  -3.546875  ...  -2.578125  -3.773438   2.914062]=])

check("transposed, a view", big:t(), {nameof = function() return "big" end}, [=[
float32[1000x1000] cpu  3.8 MiB  view of big, strides 1,1000
  -3.9375  -1.0625   1.8125  -3.1953  ...  -1.8984   0.9766   3.8516  -1.1562
   2.7500  -2.2578   0.6172   3.4922  ...  -3.0938  -0.2188   2.6562  -2.3516
   1.5547  -3.4531  -0.5781   2.2969  ...   3.5938  -1.4141   1.4609  -3.5469
   0.3594   3.2344  -1.7734   1.1016  ...   2.3984  -2.6094   0.2656   3.1406
  -0.8359   2.0391  -2.9688  -0.0938  ...   1.2031  -3.8047  -0.9297   1.9453
      ...      ...      ...      ...  ...      ...      ...      ...      ...
  -2.9688  -0.0938   2.7812  -2.2266  ...  -0.9297   1.9453  -3.0625  -0.1875
   3.7188  -1.2891   1.5859  -3.4219  ...  -2.1250   0.7500   3.6250  -1.3828
   2.5234  -2.4844   0.3906   3.2656  ...  -3.3203  -0.4453   2.4297  -2.5781
   1.3281  -3.6797  -0.8047   2.0703  ...   3.3672  -1.6406   1.2344  -3.7734
   0.1328   3.0078  -2.0000   0.8750  ...   2.1719  -2.8359   0.0391   2.9141
min -3.938  max 3.938  mean 1.906e-06  std 2.276  ████████████]=])

check("a small matrix", V(12):view(3, 4), {}, [=[
float32[3x4] cpu  48 B
  -3.9375   2.7500   1.5547   0.3594
  -0.8359  -2.0312  -3.2266   3.4609
   2.2656   1.0703  -0.1250  -1.3203]=])

check("tiny beside large", nacre.tensor{0.25, 0, 3e-6, -1.5, 123.456}, {}, [=[
float32[5] cpu  20 B
    0.2500         0     3e-06   -1.5000  123.4560]=])

check("integers among floats", nacre.eye(4), {}, [=[
float32[4x4] cpu  64 B
  1.0  0.0  0.0  0.0
  0.0  1.0  0.0  0.0
  0.0  0.0  1.0  0.0
  0.0  0.0  0.0  1.0]=])

check("a vector of integers", nacre.arange(1, 31), {}, [=[
int64[30] cpu  240 B
[ 1]   1   2   3   4   5   6   7   8   9  10  11  12  13  14  15  16  17  18  19
[20]  20  21  22  23  24  25  26  27  28  29  30
min 1  max 30  mean 15.5]=])

check("a vector of floats", V(30), {}, [=[
float32[30] cpu  120 B
[ 1]  -3.9375   2.7500   1.5547   0.3594  -0.8359  -2.0312  -3.2266   3.4609
[ 9]   2.2656   1.0703  -0.1250  -1.3203  -2.5156  -3.7109   2.9766   1.7812
[17]   0.5859  -0.6094  -1.8047  -3.0000   3.6875   2.4922   1.2969   0.1016
[25]  -1.0938  -2.2891  -3.4844   3.2031   2.0078   0.8125
min -3.938  max 3.688  mean 0.01406  std 2.317  █▆▆▆█▃██▆███]=])

check("a long vector", V(1000000), {}, [=[
float32[1000000] cpu  3.8 MiB
[      1]  -3.9375   2.7500   1.5547   0.3594  -0.8359  -2.0312  -3.2266
      ...
[ 999994]   2.2031   1.0078  -0.1875  -1.3828  -2.5781  -3.7734   2.9141
min -3.938  max 3.938  mean 1.906e-06  std 2.276  ████████████]=])

check("neighbours that differ", nacre.arange(0, 1001, {dtype = "float64"}) / 1e6, {}, [=[
float64[1001] cpu  7.8 KiB
[   1]           0  1.0000e-06  2.0000e-06  3.0000e-06  4.0000e-06  5.0000e-06
   ...
[ 996]    0.000995    0.000996    0.000997    0.000998    0.000999    0.001000
min 0  max 0.001  mean 0.0005  std 0.000289  ████████████]=])

check("digits grow", nacre.tensor({1.00001, 1.00002, 1.5}, {dtype = "float64"}), {}, [=[
float64[3] cpu  24 B
  1.00001  1.00002  1.50000]=])

check("many magnitudes", nacre.tensor{1, 1e-5, 1e5}, {}, [=[
float32[3] cpu  12 B
  1.0000e+00  1.0000e-05  1.0000e+05]=])

check("nan in a small matrix", nacre.tensor{{1, 1e-5}, {1e5, 0/0}}, {}, [=[
float32[2x2] cpu  16 B
       1.0  1.0000e-05
  100000.0         nan
! 1 nan of 4 (25%), first at [2,2]]=])

check("columns have their own formats", X, {}, [=[
float64[6x4] cpu  192 B
  1.0  4.3362e+05  5.9205e-07  0.5735
  2.0  9.2298e+05  1.7148e-07  0.0210
  3.0  6.2988e+05  4.4806e-07  0.8119
  4.0  2.3413e+05  2.9987e-07  0.7419
  5.0  7.0038e+05  7.1388e-08  0.9184
  6.0  8.8053e+04  7.6712e-07  0.5779
min 7.139e-08  max 9.23e+05  mean 1.254e+05  std 2.592e+05  █▁▁▁▁▁▁▁▁▁▁▁]=])

check("columns of one order have one format", nacre.tensor {
  {1, 0.5, 0}, {2, 0.25, 0}}, {}, [=[
float32[2x3] cpu  24 B
  1.0000  0.5000    0
  2.0000  0.2500    0]=])
check("a row has one format", nacre.tensor {{5866112, 417220.5, -0.5}}, {},
  [=[
float32[1x3] cpu  12 B
  5.8661e+06  4.1722e+05  -5.0000e-01]=])
check("large numbers are whole by chance", nacre.tensor {
  {5866112, 4172200.5, 0}, {-3, 1000000.5, 0}}, {}, [=[
float32[2x3] cpu  24 B
   5.8661e+06  4.1722e+06    0
  -3.0000e+00  1.0000e+06    0]=])
check("beside small ones, too", nacre.tensor {
  {5866112, 0.5}, {-3, 0.25}}, {}, [=[
float32[2x2] cpu  16 B
   5.8661e+06  0.5000
  -3.0000e+00  0.2500]=])
check("whole numbers all over", nacre.tensor {{5866112.0, 1}, {3, 0}}, {}, [=[
float32[2x2] cpu  16 B
  5866112.0  1.0
        3.0  0.0]=])
check("the ends of a vector have one format",
      nacre.cat {nacre.full({60}, 2500.5), nacre.full({60}, 200000.0)},
      {width = 40}, [=[
float32[120] cpu  480 B
[  1]  2.5005e+03  2.5005e+03
  ...
[119]  2.0000e+05  2.0000e+05
min 2500  max 200000  mean 1.013e+05]=])

check("slices", V(64*3*24*24):view(64, 3, 24, 24), {}, [=[
float32[64x3x24x24] cpu  432.0 KiB
[1,1,:,:]
  -3.9375   2.7500   1.5547   0.3594  ...   3.6875   2.4922   1.2969   0.1016
  -1.0938  -2.2891  -3.4844   3.2031  ...  -1.3516  -2.5469  -3.7422   2.9453
   1.7500   0.5547  -0.6406  -1.8359  ...   1.4922   0.2969  -0.8984  -2.0938
      ...      ...      ...      ...  ...      ...      ...      ...      ...
   0.6016  -0.5938  -1.7891  -2.9844  ...   0.3438  -0.8516  -2.0469  -3.2422
   3.4453   2.2500   1.0547  -0.1406  ...   3.1875   1.9922   0.7969  -0.3984
  -1.5938  -2.7891   3.8984   2.7031  ...  -1.8516  -3.0469   3.6406   2.4453
... 190 more 24x24 slices ...
[64,3,:,:]
   1.5234   0.3281  -0.8672  -2.0625  ...   1.2656   0.0703  -1.1250  -2.3203
  -3.5156   3.1719   1.9766   0.7812  ...  -3.7734   2.9141   1.7188   0.5234
  -0.6719  -1.8672  -3.0625   3.6250  ...  -0.9297  -2.1250  -3.3203   3.3672
      ...      ...      ...      ...  ...      ...      ...      ...      ...
  -1.8203  -3.0156   3.6719   2.4766  ...  -2.0781  -3.2734   3.4141   2.2188
   1.0234  -0.1719  -1.3672  -2.5625  ...   0.7656  -0.4297  -1.6250  -2.8203
   3.8672   2.6719   1.4766   0.2812  ...   3.6094   2.4141   1.2188   0.0234
min -3.938  max 3.938  mean 5.771e-05  std 2.276  ████████████]=])

check("two small slices", V(12):view(2, 2, 3), {}, [=[
float32[2x2x3] cpu  48 B
[1,:,:]
  -3.9375   2.7500   1.5547
   0.3594  -0.8359  -2.0312
[2,:,:]
  -3.2266   3.4609   2.2656
   1.0703  -0.1250  -1.3203]=])

check("three large slices", (nacre.arange(3*48*64) * 7919 % 256):to("uint8"):view(3, 48, 64), {}, [=[
uint8[3x48x64] cpu  9.0 KiB
[1,:,:]
    0  239  222  205  188  171  154  ...   55   38   21    4  243  226  209
  192  175  158  141  124  107   90  ...  247  230  213  196  179  162  145
  ...  ...  ...  ...  ...  ...  ...  ...  ...  ...  ...  ...  ...  ...  ...
  128  111   94   77   60   43   26  ...  183  166  149  132  115   98   81
   64   47   30   13  252  235  218  ...  119  102   85   68   51   34   17
[2,:,:]
    0  239  222  205  188  171  154  ...   55   38   21    4  243  226  209
  192  175  158  141  124  107   90  ...  247  230  213  196  179  162  145
  ...  ...  ...  ...  ...  ...  ...  ...  ...  ...  ...  ...  ...  ...  ...
  128  111   94   77   60   43   26  ...  183  166  149  132  115   98   81
   64   47   30   13  252  235  218  ...  119  102   85   68   51   34   17
[3,:,:]
    0  239  222  205  188  171  154  ...   55   38   21    4  243  226  209
  192  175  158  141  124  107   90  ...  247  230  213  196  179  162  145
  ...  ...  ...  ...  ...  ...  ...  ...  ...  ...  ...  ...  ...  ...  ...
  128  111   94   77   60   43   26  ...  183  166  149  132  115   98   81
   64   47   30   13  252  235  218  ...  119  102   85   68   51   34   17
min 0  max 255  mean 127.5]=])

check("two slices of many rows", V(2*9*3):view(2, 9, 3), {}, [=[
float32[2x9x3] cpu  216 B
[1,:,:]
  -3.9375   2.7500   1.5547
   0.3594  -0.8359  -2.0312
  -3.2266   3.4609   2.2656
      ...      ...      ...
  -1.8047  -3.0000   3.6875
   2.4922   1.2969   0.1016
  -1.0938  -2.2891  -3.4844
[2,:,:]
   3.2031   2.0078   0.8125
  -0.3828  -1.5781  -2.7734
   3.9141   2.7188   1.5234
      ...      ...      ...
  -2.5469  -3.7422   2.9453
   1.7500   0.5547  -0.6406
  -1.8359  -3.0312   3.6562
min -3.938  max 3.914  mean 0.005353  std 2.32  ▇██▇▇██▅█▇██]=])

check("nan and infinities", m, {}, [=[
float32[4x5] cpu  80 B
  -0.7812  -0.2031   0.3750  -0.6250  -0.0469
   0.5312      nan   0.1094   0.6875  -0.3125
   0.2656  -0.7344  -0.1562      inf  -0.5781
     -inf   0.5781  -0.4219   0.1562   0.7344
min -0.7812  max 0.7344  mean -0.02482  std 0.4901
! 1 nan, 1 inf, 1 -inf of 20 (15%), first at [2,2]]=])

check("booleans", big:gt(0), {}, [=[
bool[1000x1000] cpu  976.6 KiB
  false   true   true   true  false  ...  false   true   true   true   true
  false  false  false   true   true  ...  false  false  false  false   true
   true   true  false  false  false  ...   true   true   true  false  false
  false   true   true   true  false  ...  false  false   true   true   true
  false  false  false  false   true  ...   true  false  false  false   true
    ...    ...    ...    ...    ...  ...    ...    ...    ...    ...    ...
   true   true   true  false  false  ...  false   true   true   true  false
  false  false   true   true   true  ...  false  false  false   true   true
   true  false  false  false  false  ...   true   true  false  false  false
   true   true   true   true  false  ...  false   true   true   true   true
  false  false  false   true   true  ...  false  false  false  false   true
true 499505  false 500495  (50% true)]=])

check("zeros", nacre.zeros(1000, 1000), {}, [=[
float32[1000x1000] cpu  3.8 MiB  all 0]=])

check("a constant", nacre.full({11, 11}, 0.1), {}, [=[
float32[11x11] cpu  484 B  all 0.1]=])

check("a small constant", nacre.full({5, 5}, 2.5), {}, [=[
float32[5x5] cpu  100 B
  2.5000  2.5000  2.5000  2.5000  2.5000
  2.5000  2.5000  2.5000  2.5000  2.5000
  2.5000  2.5000  2.5000  2.5000  2.5000
  2.5000  2.5000  2.5000  2.5000  2.5000
  2.5000  2.5000  2.5000  2.5000  2.5000
all 2.5]=])

check("empty", nacre.zeros(0, 3), {}, [=[
float32[0x3] cpu  0 B (empty)]=])

check("a float without dimensions", nacre.tensor(3.14159265), {}, [=[
3.1416  float32[] cpu]=])

check("an integer without dimensions", nacre.tensor(-7), {}, [=[
-7  int64[] cpu]=])

check("a boolean without dimensions", nacre.tensor(true), {}, [=[
true  bool[] cpu]=])

check("a tiny number without dimensions", nacre.tensor(1e-5), {}, [=[
1.0000e-05  float32[] cpu]=])

check("mostly zeros", V(400):view(20, 20):relu(), {}, [=[
float32[20x20] cpu  1.6 KiB
       0  2.7500  1.5547  0.3594       0  ...  0.5859       0       0       0
  3.6875  2.4922  1.2969  0.1016       0  ...  0.3281       0       0       0
  3.4297  2.2344  1.0391       0       0  ...  0.0703       0       0       0
  3.1719  1.9766  0.7812       0       0  ...       0       0       0       0
  2.9141  1.7188  0.5234       0       0  ...       0       0       0  3.8516
  2.6562  1.4609  0.2656       0       0  ...       0       0       0  3.5938
  2.3984  1.2031  0.0078       0       0  ...       0       0       0  3.3359
  2.1406  0.9453       0       0       0  ...       0       0       0  3.0781
  1.8828  0.6875       0       0       0  ...       0       0       0  2.8203
  1.6250  0.4297       0       0       0  ...       0       0  3.7578  2.5625
  1.3672  0.1719       0       0       0  ...       0       0  3.5000  2.3047
  1.1094       0       0       0       0  ...       0       0  3.2422  2.0469
  0.8516       0       0       0       0  ...       0       0  2.9844  1.7891
  0.5938       0       0       0  3.6953  ...       0  3.9219  2.7266  1.5312
  0.3359       0       0       0  3.4375  ...       0  3.6641  2.4688  1.2734
  0.0781       0       0       0  3.1797  ...       0  3.4062  2.2109  1.0156
       0       0       0       0  2.9219  ...       0  3.1484  1.9531  0.7578
       0       0       0  3.8594  2.6641  ...       0  2.8906  1.6953  0.5000
       0       0       0  3.6016  2.4062  ...  3.8281  2.6328  1.4375  0.2422
       0       0       0  3.3438  2.1484  ...  3.5703  2.3750  1.1797       0
min 0  max 3.922  mean 0.9922  std 1.275  zero 49.5%  █▂▂▂▁▂▂▁▂▂▂▂]=])

check("twenty rows", V(40):view(20, 2), {}, [=[
float32[20x2] cpu  160 B
  -3.9375   2.7500
   1.5547   0.3594
  -0.8359  -2.0312
  -3.2266   3.4609
   2.2656   1.0703
  -0.1250  -1.3203
  -2.5156  -3.7109
   2.9766   1.7812
   0.5859  -0.6094
  -1.8047  -3.0000
   3.6875   2.4922
   1.2969   0.1016
  -1.0938  -2.2891
  -3.4844   3.2031
   2.0078   0.8125
  -0.3828  -1.5781
  -2.7734   3.9141
   2.7188   1.5234
   0.3281  -0.8672
  -2.0625  -3.2578
min -3.938  max 3.914  mean -0.05039  std 2.302  ▆██▅█▆█▅█▆█▆]=])

check("twenty-one rows", V(42):view(21, 2), {}, [=[
float32[21x2] cpu  168 B
  -3.9375   2.7500
   1.5547   0.3594
  -0.8359  -2.0312
  -3.2266   3.4609
   2.2656   1.0703
      ...      ...
  -2.7734   3.9141
   2.7188   1.5234
   0.3281  -0.8672
  -2.0625  -3.2578
   3.4297   2.2344
min -3.938  max 3.914  mean 0.08687  std 2.333  ▆██▅█▆█▅████]=])

check("float16", V(6):to("float16"), {}, [=[
float16[6] cpu  12 B
  -3.9375   2.7500   1.5547   0.3594  -0.8359  -2.0312]=])

check("below a power of ten", nacre.tensor{99999.5, 1.5}, {}, [=[
float32[2] cpu  8 B
  99999.5000      1.5000]=])

check("large numbers", nacre.tensor{100000.5, 1.5}, {}, [=[
float32[2] cpu  8 B
  1.0000e+05  1.5000e+00]=])

check("small numbers", nacre.tensor({0.0015, 0.0002}, {dtype = "float64"}), {}, [=[
float64[2] cpu  16 B
  0.0015  0.0002]=])

check("smaller numbers", nacre.tensor({0.0009, 0.0002}, {dtype = "float64"}), {}, [=[
float64[2] cpu  16 B
  9.0000e-04  2.0000e-04]=])

check("small neighbours of a large number", nacre.tensor({1000.5, 0.12341, 0.12342}, {dtype = "float64"}), {}, [=[
float64[3] cpu  24 B
  1000.5000     0.1234     0.1234]=])

check("a hundred", nacre.arange(100), {}, [=[
int64[100] cpu  800 B
[  1]   0   1   2   3   4   5   6   7   8   9  10  11  12  13  14  15  16  17
[ 19]  18  19  20  21  22  23  24  25  26  27  28  29  30  31  32  33  34  35
[ 37]  36  37  38  39  40  41  42  43  44  45  46  47  48  49  50  51  52  53
[ 55]  54  55  56  57  58  59  60  61  62  63  64  65  66  67  68  69  70  71
[ 73]  72  73  74  75  76  77  78  79  80  81  82  83  84  85  86  87  88  89
[ 91]  90  91  92  93  94  95  96  97  98  99
min 0  max 99  mean 49.5]=])

check("more than a hundred", nacre.arange(101), {}, [=[
int64[101] cpu  808 B
[  1]    0    1    2    3    4    5    6    7    8    9   10   11   12   13
  ...
[ 88]   87   88   89   90   91   92   93   94   95   96   97   98   99  100
min 0  max 100  mean 50]=])

check("bars round halves to even", nacre.cat {nacre.zeros(14), nacre.ones(1) * 5.5, nacre.ones(13) * 12}, {stats = true}, [=[
float32[28] cpu  112 B
[ 1]        0        0        0        0        0        0        0        0
[ 9]        0        0        0        0        0        0   5.5000  12.0000
[17]  12.0000  12.0000  12.0000  12.0000  12.0000  12.0000  12.0000  12.0000
[25]  12.0000  12.0000  12.0000  12.0000
min 0  max 12  mean 5.768  std 5.888  zero 50%  █▁▁▁▁▁▁▁▁▁▁▇]=])

check("one element", nacre.ones(1), {}, [=[
float32[1] cpu  4 B
  1.0]=])

--
-- Beyond the samples
--
check("integers are exact",
      nacre.tensor {9007199254740993, math.mininteger}, {}, [[
int64[2] cpu  16 B
      9007199254740993  -9223372036854775808]])

check("a large integer everywhere", nacre.full({101}, 12345678901), {},
      "int64[101] cpu  808 B  all 12345678901")

check("bfloat16 has fewer digits",
      nacre.tensor({1.765625, 0.25, 1/3}, {dtype = "bfloat16"}), {}, [[
bfloat16[3] cpu  6 B
  1.766  0.250  0.334]])

check("what does not fit is left out, never cut", V(99):view(9, 11),
      {width = 24}, [[
float32[9x11] cpu  396 B
  -3.9375  ...
  -1.3203  ...
   1.2969  ...
   3.9141  ...
  -1.3516  ...
   1.2656  ...
   3.8828  ...
  -1.3828  ...
   1.2344  ...
min -3.938  max 3.914]])

check("a column that is too wide is shown", nacre.full({2, 3}, 1e-30),
      {width = 10}, [[
float32[2x3] cpu  24 B
  1.0000e-30  ...
  1.0000e-30  ...]])

check("infinities alone", nacre.full({25}, 1/0), {}, [=[
float32[25] cpu  100 B
[ 1]  inf  inf  inf  inf  inf  inf  inf  inf  inf  inf  inf  inf  inf  inf  inf
[16]  inf  inf  inf  inf  inf  inf  inf  inf  inf  inf
all inf
! 25 inf of 25 (100%), first at [1]]=])

check("an expanded tensor takes the memory of one",
      nacre.ones(1):expand(1 << 40, 2):narrow(1, 1, 2), {}, [[
float32[2x2] cpu  4 B  strides 0,0
  1.0  1.0
  1.0  1.0]])

local red = display.show(m, {color = true})
same("nan is red", select(2, red:gsub("\27%[31mnan\27%[0m", "")), 1)
same("infinities are red", select(2, red:gsub("\27%[31m%-?inf\27%[0m", "")), 2)
same("the line on them is red", red:find("\n\27[31m! 1 nan", 1, true) ~= nil,
     true)
same("nothing else is coloured",
     red:gsub("\27%[%d+m", ""), display.show(m, {}))

-- A sample is said to be one, and a large tensor takes no time: about 20 ms,
-- a sanitizer's ten times that.
local huge = nacre.zeros(1):expand(1 << 20, 1 << 20)
local begin = nacre.clock()
local text = display.show(huge, {})
same("a huge tensor takes no time", nacre.clock() - begin < 0.5, true)
same("a sample says so", text:match "min[^\n]*$",
     "min ~0  max ~0  mean ~0  std ~0  (sampled: nan not counted)  zero ~100%")

-- No tensor takes more than 25 lines, or lines that are too long.
local function lines(s) return select(2, s:gsub("\n", "")) + 1 end
local most, longest = 0, 0
for _, size in ipairs {{30, 3}, {3, 8, 8}, {4, 8, 8}, {4, 100, 100}, {2, 8, 9},
                       {2, 2, 5, 5}, {1, 7, 7}, {5, 7, 7}, {100}, {2, 100}} do
  local n = 1
  for _, s in ipairs(size) do n = n * s end
  local t = V(n) * 1e-7
  t:narrow(1, 1, 1):fill_(0/0)
  for width = 24, 104, 16 do
    local shown = display.show(t:view(size), {width = width, utf8 = false})
    most = math.max(most, lines(shown))
    for l in shown:gmatch "[^\n]+" do
      if not l:find "^!" and not l:find("] " .. device, 1, true) then
        longest = math.max(longest, #l - width)
      end
    end
  end
end
local one = nacre.zeros(10000)
one[5] = 1
same("one that is not zero", display.show(one):match "zero %S+",
     "zero >99.9%")
same("one that is false", display.show(one:eq(0)):match "%b()",
     "(>99.9% true)")
same("at most 25 lines", most <= 25, true)
same("never wider than the terminal", longest <= 0, true)

-- print and tostring: 80 columns, no statistics.
same("tostring", display.tostring(V(30)), display.show(V(30), {stats = false}))
same("in one line", display.summary(V(30)),
     "float32[30] cpu  min -3.938  max 3.688  mean 0.01406  std 2.317")
same("in one line without dimensions", display.brief(nacre.tensor(2.5)),
     "2.5000  float32[] cpu")

-- The variable that a view looks into.
local base = nacre.zeros(3, 4)
local scope = {base = base, part = base:narrow(1, 1, 2), other = m}
same("the base of a part", display.baseof(scope.part, scope), "base")
same("the base of a transpose", display.baseof(base:t(), scope), "base")
same("a base has none", display.baseof(base, scope), nil)

--
-- Other values
--
check("a string", "a\tb\n\"\\\27[31m", {}, [["a\tb\n\"\\\x1B[31m"]])
check("UTF-8 stays", "\u{e9}", {}, '"\u{e9}"')
check("without UTF-8 it is escaped", "\u{e9}", {utf8 = false}, [["\xC3\xA9"]])
check("what is no UTF-8 is escaped", "\xff", {}, [["\xFF"]])
check("a long string is cut", ("x"):rep(3000), {},
      '"' .. ("x"):rep(2000) .. '"... (3000 bytes)')
check("nil", nil, {}, "nil")
check("a boolean", true, {}, "true")
check("a float", 2.0, {}, "2.0")
check("an empty table", {}, {}, "{}")
check("tables are sorted", {3, 1, b = 2, a = "x", [2.5] = true, ["end"] = 0},
      {}, [[{3, 1, [2.5] = true, a = "x", b = 2, ["end"] = 0}]])
check("tables inside tables", {{{{1}}}}, {}, "{{{{...}}}}")
local cycle = {}
cycle[1] = cycle
check("a cycle", cycle, {}, "{<cycle>}")
local many = {}
for i = 1, 33 do many[i] = 0 end
check("thirty items", many, {width = 200},
      "{" .. ("0, "):rep(30) .. "... 3 more}")
check("tensors inside", {m, x = nacre.tensor(1)}, {},
      "{float32[4x5] cpu, x = 1  int64[] cpu}")
check("one item a line if it does not fit", {"aaaaaaaa", "bbbbbbbb"},
      {width = 20}, '{\n  "aaaaaaaa",\n  "bbbbbbbb"\n}')
check("an object with __tostring",
      setmetatable({}, {__tostring = function() return "object" end}), {},
      "object")
check("an object whose __tostring fails",
      setmetatable({}, {__tostring = function() error "no" end}), {},
      "table (its __tostring fails)")

if failures > 0 then
  io.stderr:write(("%d of %d checks failed\n"):format(failures, checks))
  os.exit(1)
end
print(("display: %d checks"):format(checks))
