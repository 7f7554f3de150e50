-- SPDX-License-Identifier: MIT
-- Cases for grad_operators.lua: picking, writing to positions, shapes.

return function(case, x, method, list, all)
  local function at(...) return nacre.tensor({...}) end
  -- The in-place form, on what was computed and is used again.
  local function into(name, ...)
    local args = table.pack(...)
    return function(t, u)
      local y, given = t * t, {table.unpack(args, 1, args.n)}
      for i = 1, args.n do
        if given[i] == "other" then given[i] = u end
      end
      y[name](y, table.unpack(given, 1, args.n))
      return y * t
    end
  end
  -- Both forms; "other" stands for the second tensor.
  local function both(name, args, ...)
    local inputs = {...}
    case(name, function(t, u)
      local given = {table.unpack(args)}
      for i, v in ipairs(given) do if v == "other" then given[i] = u end end
      return t[name](t, table.unpack(given))
    end, table.unpack(inputs))
    case(name .. "_", into(name .. "_", table.unpack(args)),
         table.unpack(inputs))
  end

  case("index_select", method("index_select", 2, at(3, 1, 3)), x(2, 3))
  case("index_select", method("index_select", 1, at(1)), x())
  both("index_add", {1, at(3, 1, 3), "other"}, x(3, 2), x(3, 2))
  both("index_add", {1, at(2), "other", {alpha = 3}}, x(3, 2), x(1, 2))
  both("index_copy", {2, at(3, 1), "other"}, x(2, 3), x(2, 2))
  for _, how in ipairs {"prod", "mean", "amax", "amin"} do
    both("index_reduce", {1, at(3, 1, 3), "other", how}, x(3, 2), x(3, 2))
    both("index_reduce", {2, at(2), "other", how, {include_self = false}},
         x(2, 3), x(2, 1))
  end
  both("index_fill", {2, at(3, 1), 4}, x(2, 3))
  both("index_put", {{at(1, 2), at(2, 2)}, "other"}, x(2, 3), x(2))
  both("index_put", {{at(1, 1)}, "other", true}, x(2, 3), x(3))
  local index = at({1, 2, 1}, {2, 2, 1})
  case("gather", method("gather", 1, index), x(2, 3))
  case("gather", method("gather", 2, at({3}, {1})), x(2, 3))
  case("gather", method("gather", 1, nacre.tensor(1)), x())
  case("take_along_dim", method("take_along_dim", at({2, 3}), 2), x(2, 3))
  case("take_along_dim", method("take_along_dim", at(5, 1, 5)), x(2, 3))
  local apart = at({1, 3}, {3, 2})
  both("scatter", {2, apart, "other"}, x(2, 3), x(2, 2))
  both("scatter", {2, apart, 3}, x(2, 3))
  both("scatter", {1, index, "other", {reduce = "add"}}, x(2, 3), x(2, 3))
  both("scatter", {1, index, "other", {reduce = "multiply"}}, x(2, 3),
       x(2, 3))
  both("scatter_add", {1, index, "other"}, x(3, 4), x(2, 5))
  for _, how in ipairs {"sum", "prod", "mean", "amax", "amin"} do
    both("scatter_reduce", {1, index, "other", how}, x(3, 4), x(2, 4))
    both("scatter_reduce", {1, index, "other", how, {include_self = false}},
         x(2, 3), x(2, 3))
    case("_scatter", method("scatter_reduce", 1, index, x(2, 3):detach(), how),
         x(2, 3))
  end
  case("take", method("take", at({6, 1}, {1, -1})), x(2, 3))
  both("put", {at(6, 1), "other"}, x(2, 3), x(2))
  both("put", {at(2, 2), "other", true}, x(2, 3), x(2))
  local mask = nacre.tensor({true, false, true})
  both("masked_fill", {mask, 2}, x(2, 3))
  both("masked_fill", {mask, "other"}, x(2, 3), x())
  case("masked_select", method("masked_select", mask), x(2, 3))
  both("masked_scatter", {mask, "other"}, x(2, 3), x(5))

  case("swapdims", method("swapdims", 1, -1), x(2, 3, 2))
  case("swapaxes", method("swapaxes", 1, 2), x(2, 3))
  case("moveaxis", method("moveaxis", 1, 3), x(2, 3, 2))
  case("ravel", method("ravel"), x(2, 3))
  case("adjoint", method("adjoint"), x(2, 2, 3))
  for n = 1, 3 do
    local name = ("atleast_%dd"):format(n)
    case(name, method(name), x())
    case(name, method(name), x(3))
    case(name, method(name), x(2, 3))
  end
  case("unfold", method("unfold", 2, 3, 1), x(2, 6))
  case("unfold", method("unfold", 1, 2, 3), x(7))
  case("unfold", function(t) return t:unfold(1, 3, 1):unfold(1, 2, 1) end, x(5))
  case("as_strided", method("as_strided", {2, 3}, {1, 1}), x(6))
  case("as_strided", method("as_strided", {2, 2}, {0, 2}, 1), x(6))
  case("tensor_split", all("tensor_split", 3, 2), x(2, 5))
  case("tensor_split", all("tensor_split", {2, 4}), x(5))
  case("hsplit", all("hsplit", 2), x(3, 4))
  case("vsplit", all("vsplit", {2}), x(3, 2))
  case("dsplit", all("dsplit", 2), x(1, 2, 2))

  case("flip", method("flip", 1, 3), x(2, 3, 2))
  case("fliplr", method("fliplr"), x(2, 3))
  case("flipud", method("flipud"), x(3))
  case("rot90", method("rot90"), x(2, 3))
  case("rot90", method("rot90", 2), x(2, 3))
  case("roll", method("roll", 2), x(2, 3))
  case("roll", method("roll", {1, -1}, {1, 2}), x(2, 3))
  case("tril", method("tril", -1), x(3, 3))
  case("triu", method("triu", 1), x(2, 3, 3))
  case("diag", method("diag", 1), x(3))
  case("diag", method("diag", -1), x(3, 3))
  case("diagflat", method("diagflat"), x(2, 2))
  case("diag_embed", method("diag_embed", 1, 1, 3), x(2, 2))
  case("repeat_interleave", method("repeat_interleave", 2, 2), x(2, 3))
  case("repeat_interleave", method("repeat_interleave", at(2, 0, 1), 1), x(3, 2))
  case("kron", nacre.kron, x(2, 2), x(3))

  case("pad", method("pad", {1, 2, -1 , 1}), x(3, 2))
  for _, mode in ipairs {"reflect", "replicate", "circular"} do
    case("pad", method("pad", {2, 1, 1, 0}, mode), x(2, 3))
  end
  case("select_scatter", function(t, u) return t:select_scatter(u, 2, 1) end,
       x(2, 3), x(2))
  case("slice_scatter", function(t, u) return t:slice_scatter(u, 1, 2, 3) end,
       x(3, 2), x(2, 2))
  case("diagonal_scatter", function(t, u) return t:diagonal_scatter(u, 1) end,
       x(2, 3), x(2))
  case("block_diag", list("block_diag"), x(2, 1), x(2), x())
  case("hstack", list("hstack"), x(2, 1), x(2, 2))
  case("vstack", list("vstack"), x(2), x(2))
  case("row_stack", list("row_stack"), x(2), x(2))
  case("dstack", list("dstack"), x(2), x(2))
  case("column_stack", list("column_stack"), x(2), x(2, 2))
  case("concat", list("concat"), x(2), x(1))
  case("concatenate", list("concatenate", -1), x(2, 1), x(2, 1))
  case("broadcast_tensors", function(t, u)
    return table.unpack(nacre.broadcast_tensors {t, u})
  end, x(2, 1), x(3))
  case("meshgrid", function(t, u)
    return table.unpack(nacre.meshgrid({t, u}, {indexing = "xy"}))
  end, x(2), x(3))
  case("cartesian_prod", list("cartesian_prod"), x(2), x(2))
  case("combinations", method("combinations", 2, true), x(3))
  case("vander", method("vander"), x(3))
end
