-- SPDX-License-Identifier: MIT
-- recurrent_cells.lua - one step of a recurrent layer: rnn_tanh_cell,
-- rnn_relu_cell, lstm_cell, gru_cell. Gates and their order are PyTorch's.
--
-- input [n x i] or [i], hx [n x h] or [h], w_ih [g*h x i], w_hh [g*h x h], b_ih
-- and b_hh [g*h], where g is the number of gates.
local all = ...
local define, fail = all.define, all.fail

local WEIGHTS = "w_ih:tensor, w_hh:tensor, b_ih:tensor=nil, b_hh:tensor=nil"

-- Fails unless the shapes fit a cell with g gates.
local function check_cell(op, g, x, h, w_ih, w_hh)
  all.check_dims(op, x, "input", 1, 2)
  all.check_dims(op, w_ih, "w_ih", 2)
  all.check_dims(op, w_hh, "w_hh", 2)
  local n = h:dim() > 0 and h:size(-1) or 0
  if h:dim() ~= x:dim() or x:dim() == 2 and x:size(1) ~= h:size(1) then
    fail(op, "{input} and {hx} must have the same samples", nil, "input", x,
         "hx", h)
  end
  if w_ih:size(1) ~= g * n or w_ih:size(2) ~= x:size(-1) then
    fail(op, ("{w_ih} must be [%dx%d]: %d gate%s of {hx}, features of {input}")
             :format(g * n, x:size(-1), g, g == 1 and "" or "s"), nil,
         "input", x, "hx", h, "w_ih", w_ih)
  end
  if w_hh:size(1) ~= g * n or w_hh:size(2) ~= n then
    fail(op, ("{w_hh} must be [%dx%d]"):format(g * n, n), nil, "hx", h, "w_hh",
         w_hh)
  end
end

local function plain(op, activation)
  define(op, "input:tensor, hx:tensor, " .. WEIGHTS,
         ("%s(w_ih input + b_ih + w_hh hx + b_hh)"):format(activation),
  function(x, h, w_ih, w_hh, b_ih, b_hh)
    check_cell(op, 1, x, h, w_ih, w_hh)
    local linear = nacre.nn.functional.linear
    return nacre[activation](linear(x, w_ih, b_ih) + linear(h, w_hh, b_hh))
  end)
end

plain("rnn_tanh_cell", "tanh")
plain("rnn_relu_cell", "relu")

-- Hochreiter and Schmidhuber 1997. The gates are input, forget, cell, output.
define("lstm_cell", "input:tensor, hx:tensors, " .. WEIGHTS .. " -> h, c",
       "the next hidden state and cell of an LSTM from hx = {h, c}",
function(x, hx, w_ih, w_hh, b_ih, b_hh)
  local op = "lstm_cell"
  if #hx ~= 2 then
    fail(op, ("hx has %d tensors, not 2: {h, c}"):format(#hx))
  end
  local h, c = hx[1], hx[2]
  check_cell(op, 4, x, h, w_ih, w_hh)
  if not c:is_same_size(h) then
    fail(op, "{h} and {c} must have one shape", nil, "h", h, "c", c)
  end
  local linear = nacre.nn.functional.linear
  local gates = linear(x, w_ih, b_ih) + linear(h, w_hh, b_hh)
  local i, f, g, o = table.unpack(gates:chunk(4, -1))
  c = f:sigmoid() * c + i:sigmoid() * g:tanh()
  return o:sigmoid() * c:tanh(), c
end)

-- Cho et al. 2014. The gates are reset, update, new.
define("gru_cell", "input:tensor, hx:tensor, " .. WEIGHTS,
       "the next hidden state of a GRU",
function(x, h, w_ih, w_hh, b_ih, b_hh)
  check_cell("gru_cell", 3, x, h, w_ih, w_hh)
  local linear = nacre.nn.functional.linear
  local ri, zi, ni = table.unpack(linear(x, w_ih, b_ih):chunk(3, -1))
  local rh, zh, nh = table.unpack(linear(h, w_hh, b_hh):chunk(3, -1))
  local z = (zi + zh):sigmoid()
  local new = (ni + (ri + rh):sigmoid() * nh):tanh()
  return new + z * (h - new)
end)
