-- SPDX-License-Identifier: MIT
-- nacre.cuda.kernel: kernels of the user's own text. The emulated device needs
-- the folder of the sources in NACRE_NVRTC.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = dofile(here .. "../lib/oracle.lua")
local check = O.check
if not nacre.cuda.is_available() then skip(nacre.cuda.why()) end
if require "nacre.machine".figure "nvrtc" == 0 then
  skip "there is no NVRTC"
end
local kernel = nacre.cuda.kernel

local function fails(what, pattern, f, ...)
  local ok, e = pcall(f, ...)
  check(not ok and tostring(e):find(pattern), "%s: %s", what, tostring(e))
end

local source = [[
// a comment with __global__ void add(int x)
template <class T> __device__ T twice(T x) { return x + x; }

extern "C" __global__ void add(float *y, const float *__restrict__ x,
                               float a /* factor, of x */, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}

__global__ void all_types(double *y, bool b, signed char c, unsigned char d,
                          short e, unsigned short f, int g, unsigned h,
                          long long i, unsigned long long j, float k,
                          const double l) {
  y[0] = b + c + d + e + f + g + h + (double)i + (double)j + k + twice(l);
}

__global__ void reversed(int *y) {
  __shared__ int part[64];
  part[threadIdx.x] = y[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = part[blockDim.x - 1 - threadIdx.x];
}

__global__ void places(long long *y) {
  int i = (blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x * blockDim.y +
          threadIdx.y * blockDim.x + threadIdx.x;
  y[i] = N * i;
}

template <class T> __global__ void filled(T *y, int n) {
  for (int i = 0; i < n; i++) y[i] = 7;
}
]]

local add = kernel(source, "add", {"-DN=10"})
local x, y = nacre.arange(100):float():cuda(), nacre.ones(100):cuda()
add(1, 128, y, x, 0.5, 100)
check(y:cpu():equal(nacre.arange(100):float() * 0.5 + 1), "add")
add({4, 1}, {32, 1, 1}, y, x, -0.5, 100)
check(y:cpu():equal(nacre.ones(100)), "a grid of 4")
check(tostring(add):find "kernel add%(float %*y, const float %*__restrict__ x",
      "its text: %s", tostring(add))

local all = kernel(source, "all_types", "-DN=10")
local d = nacre.zeros(1, {dtype = "float64"}):cuda()
all(1, 1, d, true, -2, 200, -300, 60000, -70000, 4000000000, -2^40 // 1 | 0,
    1 << 40, 0.5, 0.25)
check(d:item() == 1 - 2 + 200 - 300 + 60000 - 70000 + 4000000000 + 1,
      "types: %s", d:item())

local r = nacre.arange(64):int():cuda()
kernel(source, "reversed", {"-DN=1"})(1, 64, r)
check(r:cpu():equal(nacre.arange(64):flip(1):int()), "shared memory")
local p = nacre.zeros(48, {dtype = "int64"}):cuda()
kernel(source, "places", {"-DN=10"})({3, 2}, {4, 2}, p)
check(p:cpu():equal(nacre.arange(48) * 10), "places, an option")
kernel(source, "filled<float>", {"-DN=1"})(1, 1, y, 3)
check(y:cpu():sum():item() == 97 + 21, "a template")

local a = add:attributes(64)
check(a.threads == 64 and a.max_threads > 0 and
      a.blocks_per_multiprocessor > 0, "attributes")

-- ---- what is wrong is said before anything runs

fails("count", "3 arguments for 4 parameters", add, 1, 1, y, x, 1.0)
fails("a number", "must be a tensor", add, 1, 1, y, 3, 1.0, 3)
fails("a tensor", "must be a whole number, not a tensor", add, 1, 1, y, x, 1, x)
fails("a fraction", "must be a whole number", add, 1, 1, y, x, 1.0, 1.5)
fails("the host", "is on the cpu", add, 1, 1, y, x:cpu(), 1.0, 3)
fails("dtype", "points to float32", add, 1, 1, y, x:double(), 1.0, 3)
fails("layout", "row by row", add, 1, 1, y, x:view(10, 10):t(), 1.0, 3)
fails("range", "cannot be 2147483648", add, 1, 1, y, x, 1.0, 1 << 31)
fails("no grid", "grid and the block are missing", add)
fails("grid", "the grid must be an integer", add, 0, 1, y, x, 1.0, 3)
fails("block", "at most 1024", add, 1, {64, 64}, y, x, 1.0, 3)
fails("no kernel", "no kernel 'sub'", kernel, source, "sub")
fails("no text", "source must be a string", kernel, 3)
fails("a struct", "cannot pass a 'dim3'", kernel(
  "__global__ void f(dim3 d) {}", "f"), 1, 1, 3)

-- An error of the compiler has its line, and shows it.
local ok, e = pcall(kernel, [[
__global__ void wrong(float *y) {
  y[0] = missing + 1;
}]], "wrong")
e = tostring(e)
check(not ok and e:find "line 2: .*missing" and e:find "y%[0%] = missing %+ 1;",
      "the line of an error: %s", e)

-- In a fused function it runs by itself, and the function unfused.
local f = nacre.fuse(function(u)
  local v = u * 2
  add(1, 128, v, x, 1.0, 100)
  return v + 1
end)
check(f(nacre.ones(100):cuda()):cpu():equal(nacre.arange(100):float() + 3),
      "in a fused function")

-- A tensor that a gradient needs, and that a kernel writes to, is noticed.
local w = nacre.ones(100):cuda():requires_grad_()
local z = w:exp()
local s = (z * z):sum()
nacre.no_grad(function() add(1, 128, z, x, 1.0, 100) end)
fails("versions", "changed in place", s.backward, s)

O.done "cuda_raw_kernels"
