-- SPDX-License-Identifier: MIT
-- What has the weight 0 is not read: elements outside of the windows of
-- adaptive pooling, and neighbours of weight 0 in interpolation. inf and nan
-- reach only the results that they belong to, and so do gradients.
-- Run by: nacre tests/nn/unread_neighbours.lua, and with a device

local F = nacre.nn.functional
local devices = {"cpu"}
if nacre.cuda.is_available() then devices[2] = "cuda" end
nacre.manual_seed(6)

local function same(a, b) return a == b or a ~= a and b ~= b end

local function check(what, got, want)
  got = got:double():flatten():tolist()
  for i = 1, math.max(#got, #want) do
    assert(same(got[i], want[i]), ("%s: %s, not %s"):format(
      what, table.concat(got, " "), table.concat(want, " ")))
  end
end

-- The mean of each window of a plane, by loops.
local function window_means(x, h, w)
  local rows, columns, list = x:size(1), x:size(2), {}
  for i = 0, h - 1 do
    for j = 0, w - 1 do
      local part = x[{{i * rows // h + 1, -(-(i + 1) * rows // h)},
                      {j * columns // w + 1, -(-(j + 1) * columns // w)}}]
      list[#list + 1] = part:mean(2):mean():item()
    end
  end
  return list
end

local inf, nan = math.huge, 0 / 0

for _, device in ipairs(devices) do
  for _, dtype in ipairs {"float64", "float32", "float16", "bfloat16"} do
    local o = {dtype = dtype, device = device}
    local name = device .. ", " .. dtype
    local x = nacre.tensor({{{1.0, 2, 3, 4, inf}}}, o)
    check(name, F.adaptive_avg_pool1d(x, 2), {2, inf})
    check(name, F.interpolate(x, {size = 2, mode = "area"}), {2, inf})
    x = nacre.tensor({{{nan, 2, 3, 4, 5, 6, -inf}}}, o)
    check(name, F.adaptive_avg_pool1d(x, 3), {nan, 4, -inf})
    check(name, F.adaptive_avg_pool1d(x, 7),
          {nan, 2, 3, 4, 5, 6, -inf})
    check(name, F.adaptive_avg_pool1d(x, 14),
          {nan, nan, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, -inf, -inf})
    -- linear: the middle of the results lies on elements
    x = nacre.tensor({{{1.0, inf, 3}}}, o)
    local linear = {size = 3, mode = "linear"}
    check(name, F.interpolate(x, linear), {1, inf, 3})
    check(name, F.interpolate(x, {size = 5, mode = "linear",
                                  align_corners = true}), {1, inf, inf, inf, 3})
    x = nacre.tensor({{{1.0, nan, 3, 4}}}, o)
    check(name, F.interpolate(x, {size = 4, mode = "linear"}), {1, nan, 3, 4})
    check(name, F.interpolate(x, {size = 7, mode = "linear",
                                  align_corners = true}),
          {1, nan, nan, nan, 3, 3.5, 4})
    x = x:reshape(1, 1, 2, 2)
    check(name, F.interpolate(x, {size = 2, mode = "bilinear"}), {1, nan, 3, 4})
    check(name, F.interpolate(x, {size = 2, mode = "bicubic"}), {1, nan, 3, 4})
    check(name, F.interpolate(x, {size = 3, mode = "bicubic",
                                  align_corners = true})[{1, 1, 3}],
          {3, 3.5, 4})
    check(name, F.interpolate(x:reshape(1, 1, 1, 2, 2),
                              {size = {1, 2, 2}, mode = "trilinear"}),
          {1, nan, 3, 4})
  end

  -- planes and volumes against loops; finite ones too
  for _, bad in ipairs {1, inf, nan} do
    local plane = nacre.randint(-8, 9, {11, 13}):double()
    plane[3][4], plane[11][1] = bad, -bad
    local x = plane:to(device)
    for _, size in ipairs {{4, 5}, {11, 3}, {5, 13}, {1, 2}, {16, 20}} do
      local got = F.adaptive_avg_pool2d(x:reshape(1, 1, 11, 13), size)
      local want = window_means(plane, size[1], size[2])
      got = got:flatten():tolist()
      for i = 1, #want do
        assert(same(got[i], want[i]) or math.abs(got[i] - want[i]) < 1e-12,
               ("%dx%d: %g, not %g"):format(size[1], size[2], got[i], want[i]))
      end
      local deep = nacre.stack({x, x, x}):reshape(1, 1, 3, 11, 13)
      local cubes = F.adaptive_avg_pool3d(deep, {2, size[1], size[2]})
      cubes = cubes[{1, 1, 1}]:flatten():tolist()
      for i = 1, #want do
        assert(same(cubes[i], want[i]) or math.abs(cubes[i] - want[i]) < 1e-12)
      end
    end
  end

  -- gradients
  local x = nacre.tensor({{{1.0, 2, 3, 4, inf}}}, {device = device})
            :requires_grad_()
  F.adaptive_avg_pool1d(x, 2)[{1, 1, 1}]:backward()
  check("gradient of means", x.grad / x.grad[{1, 1, 1}], {1, 1, 1, 0, 0})
  x.grad = nil
  F.interpolate(x, {size = 9, mode = "linear", align_corners = true})[{1, 1, 7}]
    :backward()
  check("gradient of linear", x.grad, {0, 0, 0, 1, 0})
  local d = nacre.randn(1, 2, 7, 5, {dtype = "float64", device = device})
            :requires_grad_()
  assert(nacre.autograd.gradcheck(function(t)
    return F.adaptive_avg_pool2d(t, {3, 4})
  end, {d}))
  for _, mode in ipairs {"bilinear", "bicubic"} do
    assert(nacre.autograd.gradcheck(function(t)
      return F.interpolate(t, {size = {13, 5}, mode = mode,
                               align_corners = true})
    end, {d}))
  end
end
