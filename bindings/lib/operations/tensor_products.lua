-- SPDX-License-Identifier: MIT
-- tensor_products.lua - products of tensors that are computed as matrix
-- products: tensordot, einsum, addmv and the like, chains of matrices.

local all = ...
all.require "nacre.checks"
local define, fail, lowered = all.define, all.fail, all.lowered

-- ---- dimensions

-- The positions of dimensions of t, where negative ones count from the end, and
-- the set of them. Fails for 0, for one out of range and for a repeated one.
local function dimsof(op, t, dims)
  local out, seen, nd = {}, {}, t:dim()
  for i, d in ipairs(type(dims) == "table" and dims or {dims}) do
    if not math.tointeger(d) then
      fail(op, ("a dimension is an integer, not a %s"):format(type(d)))
    end
    local at = d < 0 and d + nd + 1 or d
    if d == 0 or at < 1 or at > nd then
      fail(op, d == 0 and "dimensions count from 1, not 0" or
           ("no dimension %d in a tensor of %d"):format(d, nd), nil, "self", t)
    end
    if seen[at] then
      fail(op, ("dimension %d is given twice"):format(d), nil, "self", t)
    end
    seen[at] = true
    out[i] = at
  end
  return out, seen
end
all.dimsof = dimsof

-- The product of sizes[from..to].
local function product(sizes, from, to)
  local n = 1
  for i = from or 1, to or #sizes do n = n * sizes[i] end
  return n
end
all.product = product

-- ---- tensordot: self becomes a matrix [kept x summed], other [summed x kept]

-- The two lists of dimensions to sum.
local function dims_to_sum(op, dims, self, other)
  if type(dims) == "number" then
    local a, b = {}, {}
    if dims < 0 or dims > self:dim() or dims > other:dim() then
      fail(op, ("dims is %d, for tensors of %d and %d dimensions")
               :format(dims, self:dim(), other:dim()),
           nil, "self", self, "other", other)
    end
    for i = 1, dims do
      a[i], b[i] = self:dim() - dims + i, i
    end
    return a, b
  end
  if type(dims) ~= "table" or #dims ~= 2 then
    fail(op, "dims must be a number or a list of two lists")
  end
  return dims[1], dims[2]
end

-- The shape of the result is the kept dimensions of self, then those of other.
-- A summed dimension of size 1 is broadcast. Fails if summed sizes differ.
define("tensordot", "self, other, dims:any=2",
       "the product summed over the last dims dimensions of self and the first "
       .. "of other, or over those in {of self, of other}",
function(self, other, dims)
  local op = "tensordot"
  local a, b = dims_to_sum(op, dims, self, other)
  local ina, inb
  a, ina = dimsof(op, self, a)
  b, inb = dimsof(op, other, b)
  if #a ~= #b then
    fail(op, ("%d dimensions of self for %d of other"):format(#a, #b))
  end
  local k, keep, size, first, second = 1, {}, {}, {}, {}
  for i = 1, #a do
    local n, m = self:size(a[i]), other:size(b[i])
    if n ~= m and (n == 1 or m == 1) then   -- a dimension of size 1 is expanded
      local t, d = n == 1 and self or other, n == 1 and a[i] or b[i]
      local size = t:size()
      size[d] = math.max(n, m)
      if n == 1 then self = t:expand(size) else other = t:expand(size) end
    elseif n ~= m then
      fail(op, ("size %d of dimension %d of {self} does not match size %d of "
        .. "dimension %d of {other}")
               :format(self:size(a[i]), a[i], other:size(b[i]), b[i]),
           nil, "self", self, "other", other)
    end
    k = k * self:size(a[i])
  end
  for d = 1, self:dim() do
    if not ina[d] then
      first[#first + 1] = d
      size[#size + 1] = self:size(d)
    end
  end
  local m = product(size)
  for _, d in ipairs(a) do first[#first + 1] = d end
  for _, d in ipairs(b) do second[#second + 1] = d end
  for d = 1, other:dim() do
    if not inb[d] then
      second[#second + 1] = d
      keep[#keep + 1] = other:size(d)
    end
  end
  for _, n in ipairs(keep) do size[#size + 1] = n end
  return self:permute(first):reshape(m, k)
         :mm(other:permute(second):reshape(k, product(keep))):reshape(size)
end)

-- ---- einsum

-- Parses the subscripts of one term: "ab...c" as a list of labels. "..."
-- becomes labels "...n" to "...1", aligned at the last dimension; n is the
-- number of dimensions of the operand (nd) without a letter, or `most' for the
-- output.
local function labels(op, text, nd, most)
  local list, i, letters = {}, 1, 0
  local _, dots = text:gsub("%.%.%.", "")
  if dots > 1 then fail(op, ("'%s' has ... more than once"):format(text)) end
  for _ in text:gmatch "%a" do letters = letters + 1 end
  while i <= #text do
    local c = text:sub(i, i)
    if c:match "%a" then
      list[#list + 1] = c
      i = i + 1
    elseif text:sub(i, i + 2) == "..." then
      local n = nd and nd - letters or most
      for k = n, 1, -1 do list[#list + 1] = "..." .. k end
      i = i + 3
    else
      fail(op, ("'%s' is not a subscript: use letters and ..."):format(c))
    end
  end
  return list, dots > 0
end

-- Replaces two dimensions of t with the same label by their diagonal.
local function take_diagonals(op, t, list)
  local at, i = {}, 1
  while i <= #list do
    local j = at[list[i]]
    if not j then
      at[list[i]] = i
      i = i + 1
    else
      if t:size(i) ~= t:size(j) then
        fail(op, ("subscript %s stands for sizes %d and %d of one operand")
                 :format(list[i], t:size(j), t:size(i)), nil, "operand", t)
      end
      local label = list[i]
      t = t:diagonal(0, j, i)
      table.remove(list, i)
      table.remove(list, j)
      list[#list + 1] = label
      at, i = {}, 1
    end
  end
  return t, list
end

-- label -> position
local function positions(list)
  local s = {}
  for i, l in ipairs(list) do s[l] = i end
  return s
end

-- Sums the dimensions of t whose labels are not needed.
local function sum_unneeded(t, list, needed)
  local dims, rest = {}, {}
  for i, l in ipairs(list) do
    if needed[l] then rest[#rest + 1] = l else dims[#dims + 1] = i end
  end
  if #dims > 0 then t = t:sum(dims) end
  return t, rest
end

-- Permutes t to the order of labels in `want'; a missing one becomes a
-- dimension of size 1.
local function permute_to(t, list, want)
  local at, perm, n = positions(list), {}, #list
  for i, l in ipairs(want) do
    if not at[l] then
      t = t:unsqueeze(-1)
      n = n + 1
      at[l] = n
    end
    perm[i] = at[l]
  end
  return #perm > 0 and t:permute(perm) or t
end

local function sizes(t, from, to)
  local out = {}
  for d = from, to do out[#out + 1] = t:size(d) end
  return out
end

-- The concatenation of lists.
local function concat(...)
  local out = {}
  for _, list in ipairs {...} do
    for _, v in ipairs(list) do out[#out + 1] = v end
  end
  return out
end

-- Multiplies two operands, and sums the labels that neither the other operands
-- nor the output need: one batched matrix product [both x m x sum] [both x sum
-- x n], or an elementwise product if there is nothing to sum. Returns the
-- product and its labels.
local function contract(a, la, b, lb, needed)
  local ina, inb = positions(la), positions(lb)
  local function later(other)
    return setmetatable({}, {__index = function(_, l)
      return needed[l] or other[l]
    end})
  end
  a, la = sum_unneeded(a, la, later(inb))
  b, lb = sum_unneeded(b, lb, later(ina))
  ina, inb = positions(la), positions(lb)
  local both, sum, m, n = {}, {}, {}, {}
  for _, l in ipairs(la) do
    local list = not inb[l] and m or needed[l] and both or sum
    list[#list + 1] = l
  end
  for _, l in ipairs(lb) do
    if not ina[l] then n[#n + 1] = l end
  end
  if #sum == 0 then
    local order = concat(both, m, n)
    return permute_to(a, la, order) * permute_to(b, lb, order), order
  end
  a = permute_to(a, la, concat(both, m, sum))
  b = permute_to(b, lb, concat(both, sum, n))
  local nb, nm, ns, nn = #both, #m, #sum, #n
  local full = {}                           -- sizes of 1 broadcast
  for i = 1, nb do full[i] = a:size(i) == 1 and b:size(i) or a:size(i) end
  local sm, sn = sizes(a, nb + 1, nb + nm), sizes(b, nb + ns + 1, nb + ns + nn)
  local summed = sizes(b, nb + 1, nb + ns)
  local k, count = product(summed), product(full)
  a = a:expand(concat(full, sm, summed)):reshape(count, product(sm), k)
  b = b:expand(concat(full, summed, sn)):reshape(count, k, product(sn))
  return a:bmm(b):reshape(concat(full, sm, sn)), concat(both, m, n)
end

-- The output of an equation without "->": the labels that occur once, sorted.
local function implied_output(terms, most)
  local count, out = {}, {}
  for _, list in ipairs(terms) do
    for _, l in ipairs(list) do count[l] = (count[l] or 0) + 1 end
  end
  for k = most, 1, -1 do out[#out + 1] = "..." .. k end
  local letters = {}
  for l, n in pairs(count) do
    if n == 1 and #l == 1 then letters[#letters + 1] = l end
  end
  table.sort(letters)
  return concat(out, letters)
end

-- label -> size. Fails if the sizes of a label differ and none is 1.
local function checksizes(op, operands, terms)
  local size = {}
  for i, list in ipairs(terms) do
    for d, l in ipairs(list) do
      local n, have = operands[i]:size(d), size[l] or 1
      if n ~= have and n ~= 1 and have ~= 1 then
        fail(op, ("subscript %s stands for size %d in operand %d and %d before")
                 :format(l, n, i, have), nil, "operand", operands[i])
      end
      size[l] = math.max(n == 0 and 0 or n, n == 0 and 0 or have)
    end
  end
  return size
end

-- The labels of each operand, and the largest number of dimensions that "..."
-- stands for.
local function termsof(op, left, operands)
  local texts, terms, most = {}, {}, 0
  for text in (left .. ","):gmatch "([^,]*)," do texts[#texts + 1] = text end
  if #texts ~= #operands then
    fail(op, ("the equation has %d operand%s, %d %s given")
             :format(#texts, #texts == 1 and "" or "s", #operands,
                     #operands == 1 and "is" or "are"))
  end
  for i, text in ipairs(texts) do
    local t = operands[i]
    local list, dots = labels(op, text, t:dim())
    if #list ~= t:dim() then
      fail(op, ("'%s' has %d subscripts for the %d dimensions of operand %d")
               :format(text, #list, t:dim(), i), nil, "operand", t)
    end
    if dots then
      local letters = select(2, text:gsub("%a", ""))
      most = math.max(most, t:dim() - letters)
    end
    terms[i] = list
  end
  return terms, most
end

-- The set of output labels. Fails for a repeated or unknown label.
local function checkoutput(op, output, size)
  local seen = {}
  for _, l in ipairs(output) do
    if seen[l] then
      fail(op, ("the output has subscript %s twice"):format(l))
    end
    if not size[l] and #l == 1 then
      fail(op, ("the output has subscript %s, which no operand has"):format(l))
    end
    seen[l] = true
  end
  return seen
end

-- The pair of operands whose product has the fewest elements.
local function cheapest_pair(terms, size)
  local best, bi, bj
  for i = 1, #terms do
    for j = i + 1, #terms do
      local n, seen = 1, {}
      for _, l in ipairs(concat(terms[i], terms[j])) do
        if not seen[l] then n = n * size[l] end
        seen[l] = true
      end
      if not best or n < best then best, bi, bj = n, i, j end
    end
  end
  return bi, bj
end

-- Fails unless all operands have the same dtype.
local function checkdtypes(op, operands)
  local first = operands[1]
  for i, t in ipairs(operands) do
    if t.dtype ~= first.dtype then
      fail(op, ("dtypes differ: {operand 1} is %s, {operand %d} is %s")
               :format(first.dtype, i, t.dtype), nil,
           "operand 1", first, "operand " .. i, t)
    end
  end
end

-- Removes dimensions of size 1 that are summed: the other operands, which have
-- more elements there, are then summed before they are multiplied.
local function drop_single(t, list, in_output)
  local dims, rest = {}, {}
  for d, l in ipairs(list) do
    if in_output[l] or t:size(d) ~= 1 then rest[#rest + 1] = l
    else dims[#dims + 1] = d end
  end
  return #dims > 0 and t:squeeze(dims) or t, rest
end

-- Contracts two operands at a time, greedily the pair with the smallest
-- product. The shape of the result is given by the output labels.
define("einsum",
       "equation:text, operands:any, b:any=nil, c:any=nil, d:any=nil, "
       .. "e:any=nil, f:any=nil, g:any=nil",
       "sums of products by Einstein's convention: einsum(\"ij,jk->ik\", a, "
       .. "b), operands in a list or one by one",
function(equation, first, ...)
  local op = "einsum"
  local given, operands, terms = {}, {}, nil
  local list = nacre.is_tensor(first) and {first, ...} or first
  if type(list) ~= "table" or #list == 0 then
    fail(op, "operands must be tensors")
  end
  for i, t in ipairs(list) do
    if not nacre.is_tensor(t) then
      fail(op, ("operand %d is a %s, not a tensor"):format(i, type(t)))
    end
    given[i] = #list > 1 and lowered(t) or t
    operands[i] = given[i]
  end
  local text = equation:gsub("%s", "")
  local left, right = text:match "^(.-)%->(.*)$"
  local most
  terms, most = termsof(op, left or text, operands)
  local output = right and labels(op, right, nil, most) or
                 implied_output(terms, most)
  for i, list in ipairs(terms) do
    operands[i], terms[i] = take_diagonals(op, operands[i], list)
  end
  local size = checksizes(op, operands, terms)
  checkdtypes(op, given)
  local in_output = checkoutput(op, output, size)
  for i = 1, #operands > 1 and #operands or 0 do
    operands[i], terms[i] = drop_single(operands[i], terms[i], in_output)
  end
  while #operands > 1 do
    local i, j = cheapest_pair(terms, size)
    local needed = setmetatable({}, {__index = in_output})
    for k, list in ipairs(terms) do
      if k ~= i and k ~= j then
        for _, l in ipairs(list) do needed[l] = true end
      end
    end
    operands[i], terms[i] = contract(operands[i], terms[i], operands[j],
                                     terms[j], needed)
    table.remove(operands, j)
    table.remove(terms, j)
  end
  local y, list = sum_unneeded(operands[1], terms[1], in_output)
  return permute_to(y, list, output)
end)

-- ---- an outer product added to a tensor

-- Whether t broadcasts to [n x m].
local function broadcasts(t, n, m)
  local nd = t:dim()
  local rows = nd > 1 and t:size(-2) or 1
  local columns = nd > 0 and t:size(-1) or 1
  return nd <= 2 and (rows == 1 or rows == n) and (columns == 1 or columns == m)
end

-- A matrix product of inner size 1, except for bool, which has none.
define("addr", "self:inplace, vec1, vec2, *, beta:num=1, alpha:num=1",
       "beta*self + alpha*(outer product of vec1 and vec2); beta=0 ignores "
       .. "self",
function(self, a, b, beta, alpha)
  local op = "addr"
  self, a, b = lowered(self), lowered(a), lowered(b)
  if a:dim() ~= 1 then all.check_dims(op, a, "vec1", 1) end
  if b:dim() ~= 1 then all.check_dims(op, b, "vec2", 1) end
  local dtype = a.dtype
  if b.dtype ~= dtype then dtype = nacre.promote_types(dtype, b.dtype) end
  if self.dtype ~= dtype then
    fail(op, ("dtypes differ: {self} is %s, the product %s"):format(self.dtype,
                                                                  dtype),
         nil, "self", self)
  end
  if not broadcasts(self, a:numel(), b:numel()) then
    fail(op, ("{self} does not broadcast to the product [%dx%d]")
             :format(a:numel(), b:numel()), nil, "self", self)
  end
  if dtype == "bool" then
    local y = alpha ~= 0 and a:outer(b) or nacre.zeros_like(a:outer(b))
    return beta ~= 0 and y:logical_or(self) or y
  end
  if beta == 1 and alpha == 1 and rawequal(all.widen(a), a) then
    return self + a:outer(b)
  end
  if a.dtype ~= dtype then a = a:to(dtype) end
  if b.dtype ~= dtype then b = b:to(dtype) end
  return self:addmm(a:unsqueeze(2), b:unsqueeze(1),
                    {beta = beta, alpha = alpha})
end)

define("ger", "self, vec2", "outer product of two vectors",
       function(a, b) return a:outer(b) end)

define("vdot", "self, other",
       "inner product of two vectors, the first conjugated",
function(a, b)
  return (a:is_complex() and a:conj() or a):dot(b)
end)

-- [... x k] and [... x k] give the leading dimensions of both. Fails if the
-- last sizes differ. A 0-d operand multiplies elementwise.
define("inner", "self, other",
       "products summed over the last dimension of both",
function(a, b)
  if a:dim() == 0 or b:dim() == 0 then return a * b end
  if a:size(-1) ~= b:size(-1) then
    fail("inner",
         ("the last sizes differ: %d and %d"):format(a:size(-1), b:size(-1)),
         nil, "self", a, "other", b)
  end
  return a:tensordot(b, {{-1}, {-1}})
end)

-- The shapes broadcast. Fails if dim has another size than 3.
define("cross", "self, other, dim:dim=nil",
       "cross product along a dimension of size 3, by default the first one",
function(a, b, dim)
  local nd = math.max(a:dim(), b:dim())
  for d = 1, dim and 0 or a:dim() do
    if a:size(d) == 3 then dim = d; break end
  end
  if not dim then
    fail("cross", "no dimension has size 3", nil, "self", a, "other", b)
  end
  local x, y = table.unpack(nacre.broadcast_tensors {a, b})
  local d = dimsof("cross", x, dim)[1]
  for _, t in ipairs {a, b} do
    local n = t:dim() < x:dim() and t:dim() - nd + d < 1 and 1
              or t:size(t:dim() - nd + d)
    if n ~= 3 then
      fail("cross", ("dimension %d has size %d, not 3"):format(dim, n),
           nil, "self", a, "other", b)
    end
  end
  a, b = x, y
  local function at(t, i) return t:narrow(d, i, 1) end
  return nacre.cat({at(a, 2) * at(b, 3) - at(a, 3) * at(b, 2),
                    at(a, 3) * at(b, 1) - at(a, 1) * at(b, 3),
                    at(a, 1) * at(b, 2) - at(a, 2) * at(b, 1)}, d)
end)

-- ---- chains of matrices: the order with the fewest multiplications, by
-- dynamic programming (Godbole 1973)

-- The first tensor may be a row vector and the last one a column vector. Fails
-- for fewer than two tensors and for sizes that do not match.
local function chain(op, list)
  local n = type(list) == "table" and #list or 0
  for i = 1, n do                 -- ipairs would stop at nil
    if not nacre.is_tensor(list[i]) then fail(op, "takes tensors only") end
  end
  if n < 2 then fail(op, ("needs at least two tensors, not %d"):format(n)) end
  local row, column = list[1]:dim() == 1, list[n]:dim() == 1
  local m, size = {}, {}
  for i, t in ipairs(list) do
    if i == 1 and row then t = t:unsqueeze(1) end
    if i == n and column then t = t:unsqueeze(2) end
    if t:dim() ~= 2 then
      fail(op, ("tensor %d has %d dimensions, not 2"):format(i, t:dim()), nil,
           "tensor", t)
    end
    if i > 1 and size[i] ~= t:size(1) then
      fail(op, ("tensor %d has %d rows for the %d columns before"):format(
           i, t:size(1), size[i]), nil, "tensor", t)
    end
    m[i], size[i], size[i + 1] = t, t:size(1), t:size(2)
  end
  local cost, cut = {}, {}
  for i = 1, n do cost[i], cut[i] = {[i] = 0}, {} end
  for len = 2, n do
    for i = 1, n - len + 1 do
      local j = i + len - 1
      for k = i, j - 1 do
        local c = cost[i][k] + cost[k + 1][j] + size[i] * size[k +
            1] * size[j + 1]
        if not cost[i][j] or c < cost[i][j] then
          cost[i][j], cut[i][j] = c, k
        end
      end
    end
  end
  local function multiply(i, j)
    if i == j then return m[i] end
    return multiply(i, cut[i][j]):mm(multiply(cut[i][j] + 1, j))
  end
  local y = multiply(1, n)
  if column then y = y:select(2, 1) end
  if row then y = y:select(1, 1) end
  return y
end
all.chain = chain

define("chain_matmul",
       "matrices:any, b:any=nil, c:any=nil, d:any=nil, e:any=nil, f:any=nil, "
       .. "g:any=nil",
       "product of several matrices, in the cheapest order",
function(first, ...)
  return chain("chain_matmul", nacre.is_tensor(first) and {first,
                                                           ...} or first)
end)
