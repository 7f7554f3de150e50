-- SPDX-License-Identifier: MIT
-- What tests of fused functions share, with the checks of an oracle:
--   local fused = dofile(here .. "../lib/fused.lua")(O)

local fused = {}

function fused.softmax(x)
  local e = (x - x:amax(-1, true)):exp()
  return e / e:sum(-1, true)
end

function fused.standardize(x, w, b)
  local d = x - x:mean(-1, true)
  local scale = ((d * d):mean(-1, true) + 1e-5):sqrt()
  return d / scale * w + b, scale, d
end

function fused.logsumexp(x)
  local m = x:amax(-1, true)
  return (x - m):exp():sum(-1, true):log() + m, (x * 2):amin(-1, true)
end

-- An operation of two values, of which it takes as many as it has operands.
function fused.apply(op, y, x)
  local f = nacre[op.name]
  if op.kind == "choose" then return f(x:gt(0), y, x) end
  if op.arity == 1 then return f(y) end
  if op.arity == 2 then return f(y, x) end
  return f(x, y, x)
end

return function(O)
  -- The same value; tensors with their layout, to the last bit.
  function fused.same(a, b)
    if not nacre.is_tensor(a) or not nacre.is_tensor(b) then return a == b end
    return O.same_layout(a, b) and O.bits(a) == O.bits(b)
  end

  -- Does the fused function give what f gives, twice, or the same error? If it
  -- gives something, the fused function too.
  function fused.compare(f, what, ...)
    local g = nacre.fuse(f)
    local want = table.pack(pcall(f, ...))
    for _ = 1, 2 do
      local got = table.pack(pcall(g, ...))
      O.check(want[1] == got[1], "%s: %s, not %s", what, got[2], want[2])
      if not (want[1] and got[1]) then return false end
      O.check(want.n == got.n, "%s: %d results, not %d", what, got.n, want.n)
      for i = 2, want.n do
        O.check(fused.same(got[i], want[i]), "%s: result %d differs", what,
                i - 1)
      end
    end
    return true, g
  end
  return fused
end
