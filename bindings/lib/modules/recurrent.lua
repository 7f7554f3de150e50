-- SPDX-License-Identifier: MIT
-- recurrent.lua - RNN, LSTM and GRU of several layers and both directions, and
-- their cells as modules. Names, keys and gates are those of PyTorch.
--
-- out, state = lstm(x, state, {lengths=...}): x is [time x samples x features],
-- [samples x time x features] with batch_first, or [time x features]. The state
-- of an LSTM is {h, c}, of the others h. `lengths' says where sequences end:
-- beyond that the output is 0, and the state is that of the last step, in any
-- order of lengths; x may be a table of pack_padded_sequence instead.
local all = ...
all.require("nacre.module", "nacre.weight_layers")
local fail, layer = all.fail, all.weight_layer
local nn, F = all.space "nn", all.space "nn.functional"
local uniform = all.uniform_parameter

local GATES = {RNN = 1, LSTM = 4, GRU = 3}

local step = {LSTM = all.recurrent_step.lstm, GRU = all.recurrent_step.gru}

function step.RNN(gx, h, _, w, b, nonlinearity)
  local sum = gx + F.linear(h, w, b)
  return nonlinearity == "relu" and sum:relu() or sum:tanh()
end

-- ---- layers

-- Sets the parameters of layer k in one direction.
local function set_weights(self, kind, k, suffix, inputs)
  local gates, bound = GATES[kind] * self.hidden_size,
                       1 / math.sqrt(self.hidden_size)
  local out = (self.proj_size or 0) > 0 and self.proj_size or self.hidden_size
  local function set(name, ...)
    self[("%s_l%d%s"):format(name, k, suffix)] = uniform(bound, ...)
  end
  set("weight_ih", gates, inputs)
  set("weight_hh", gates, out)
  if self.bias then
    set("bias_ih", gates)
    set("bias_hh", gates)
  end
  if out ~= self.hidden_size then set("weight_hr", out, self.hidden_size) end
end

local function check_sizes(kind, self)
  for _, key in ipairs {"input_size", "hidden_size", "num_layers"} do
    if self[key] < 1 then
      fail(kind, ("%s is %d, but must be positive"):format(key, self[key]))
    end
  end
  all.check_layers(kind, "num_layers", self.num_layers)
  if self.proj_size and (self.proj_size < 0 or
                         self.proj_size >= self.hidden_size) then
    fail(kind, ("proj_size is %d, but must be below hidden_size, %d")
               :format(self.proj_size, self.hidden_size))
  end
end

local function set_all_weights(self, kind)
  check_sizes(kind, self)
  local both = self.bidirectional and 2 or 1
  local out = (self.proj_size or 0) > 0 and self.proj_size or self.hidden_size
  for k = 0, self.num_layers - 1 do
    local inputs = k == 0 and self.input_size or both * out
    set_weights(self, kind, k, "", inputs)
    if both == 2 then set_weights(self, kind, k, "_reverse", inputs) end
  end
end

-- One layer in one direction over the steps of x [time x samples x features]:
-- the outputs and the last h and c; `ends' as in recurrent_cells.lua.
local function run_steps(self, kind, x, h, c, weight, ends, backward)
  local steps = F.linear(x, weight "weight_ih", weight "bias_ih"):unbind(1)
  local w, b, project = weight "weight_hh", weight "bias_hh", weight "weight_hr"
  local out, masks = {}, ends and ends:masks()
  for i = 1, #steps do
    local t = backward and #steps + 1 - i or i
    local new, new_c = step[kind](steps[t], h, c, w, b, self.nonlinearity)
    if project then new = F.linear(new, project) end
    out[t] = new
    if masks then
      out[t] = new:masked_fill(masks[t]:logical_not(), 0)
      new = nacre.where(masks[t], new, h)
      new_c = new_c and nacre.where(masks[t], new_c, c)
    end
    h, c = new, new_c
  end
  return nacre.stack(out), h, c
end

-- The same, by one operation where there is one.
local function run(self, kind, x, h, c, name, ends, backward)
  local function weight(key) return self[key .. name] end
  if kind == "RNN" or weight "weight_hr" then
    return run_steps(self, kind, x, h, c, weight, ends, backward)
  end
  return all.recurrent_layer(kind:lower(), backward, ends, x, h, c,
                             weight "weight_ih", weight "weight_hh",
                             weight "bias_ih", weight "bias_hh")
end

-- Fails for an x or lengths that do not fit; returns x as
-- [time x samples x features], and where sequences end if one ends early.
local function read_input(self, kind, x, lengths)
  all.check_dims(kind, x, "input", 2, 3)
  if x:size(-1) ~= self.input_size then
    fail(kind, ("{input} has %d features, the layer takes %d")
               :format(x:size(-1), self.input_size), nil, "input", x)
  end
  if x:dim() == 2 then x = x:unsqueeze(2)
  elseif self.batch_first then x = x:transpose(1, 2) end
  if x:size(1) == 0 then
    fail(kind, "{input} has no steps", nil, "input", x)
  end
  if lengths == nil then return x end
  if nacre.is_tensor(lengths) then lengths = lengths:tolist() end
  if #lengths ~= x:size(2) then
    fail(kind, ("there are %d lengths for %d samples")
               :format(#lengths, x:size(2)))
  end
  local least = x:size(1)
  for i, n in ipairs(lengths) do
    if n < 1 or n > x:size(1) then
      fail(kind, ("length %d is %d, but must be from 1 to %d")
                 :format(i, n, x:size(1)))
    end
    least = math.min(least, n)
  end
  if least == x:size(1) then return x end
  return x, all.sequence_lengths(lengths, x:size(1), x.device)
end

-- The first h and c of all layers, [layers*directions x samples x size]: those
-- given, or zeros.
local function first_state(self, kind, x, state, single)
  local rows = self.num_layers * (self.bidirectional and 2 or 1)
  local out = (self.proj_size or 0) > 0 and self.proj_size or self.hidden_size
  local function read(t, what, size)
    if t == nil then return x:new_zeros(rows, x:size(2), size) end
    if single and t:dim() == 2 then t = t:unsqueeze(2) end
    local want = ("%dx%dx%d"):format(rows, x:size(2), size)
    if t.device ~= x.device then
      fail(kind, ("{%s} is on %s, {input} on %s")
                 :format(what, t.device, x.device), nil, what, t, "input", x)
    end
    if table.concat(t:size(), "x") ~= want then
      fail(kind, ("{%s} is [%s], but an input of this shape needs [%s]")
                 :format(what, table.concat(t:size(), "x"), want), nil, what, t)
    end
    return t
  end
  if kind ~= "LSTM" then
    if state ~= nil and not nacre.is_tensor(state) then
      fail(kind, "the state is a tensor, not a " .. type(state))
    end
    return read(state, "h", out)
  end
  if state ~= nil and (type(state) ~= "table" or #state ~= 2) then
    fail(kind, "the state is a list {h, c}")
  end
  state = state or {}
  return read(state[1], "h", out), read(state[2], "c", self.hidden_size)
end

-- Fails for an h of an LSTM that is not in a list with c, and for options in
-- place of the state.
local function check_state(kind, state)
  if type(state) == "table" and state.lengths then
    fail(kind, "the options come after the state: (x, nil, {lengths = ...})")
  end
  if kind:find "^LSTM" and nacre.is_tensor(state) then
    fail(kind, "the state is a list {h, c}", kind:lower() .. "(x, {h, c})")
  end
end

-- Fails for arguments after the state other than {lengths=...}.
local function check_options(kind, options, ...)
  if nacre.is_tensor(options) or select("#", ...) > 0 then
    fail(kind, "takes x, the state and {lengths = ...}")
  elseif options ~= nil and type(options) ~= "table" then
    fail(kind, "the options are a table {lengths = ...}, not a " ..
               type(options))
  end
  for key in pairs(options or {}) do
    if key ~= "lengths" then
      fail(kind, ("no argument '%s'"):format(tostring(key)),
           {cause = "argument", name = tostring(key),
            hint = "it takes x, state and lengths"})
    end
  end
end

-- All layers; returns the output, and lists of the last h and c.
local function run_layers(self, kind, x, h, c, ends)
  local last_h, last_c, row = {}, {}, 0
  local directions = self.bidirectional and {"", "_reverse"} or {""}
  for k = 0, self.num_layers - 1 do
    local out = {}
    for d, suffix in ipairs(directions) do
      row = row + 1
      out[d], last_h[row], last_c[row] =
        run(self, kind, x, h:select(1, row), c and c:select(1, row),
            ("_l%d%s"):format(k, suffix), ends, d == 2)
    end
    x = #out == 2 and nacre.cat(out, 3) or out[1]
    if self.dropout > 0 and k < self.num_layers - 1 then
      x = F.dropout(x, self.dropout, self.training)
    end
  end
  return x, last_h, last_c
end

local function define(kind, extra, doc)
  local Layer = layer(kind,
    "input_size:int, hidden_size:int, num_layers:int=1, " .. extra ..
    "bias:bool=true, batch_first:bool=false, dropout:num=0, "
    .. "bidirectional:bool=false" ..
    (kind == "LSTM" and ", proj_size:int=0" or ""), doc, nil,
  function(self, ...)
    for i, p in ipairs(self._signature.params) do
      rawset(self, p.name, (select(i, ...)))
    end
    set_all_weights(self, kind)
  end)

  function Layer:forward(x, state, options, ...)
    check_state(kind, state)
    check_options(kind, options, ...)
    local packed = type(x) == "table" and not nacre.is_tensor(x) and x
    local lengths = packed and packed.lengths or options and options.lengths
    local given = packed and packed.data or x
    all.check_tensor(kind, given, "input")
    local single = given:dim() == 2
    local ends
    x, ends = read_input(self, kind, packed and self.batch_first and
                          given:transpose(1, 2) or given, lengths)
    local h, c = first_state(self, kind, x, state, single)
    local out, last_h, last_c = run_layers(self, kind, x, h, c, ends)
    h, c = nacre.stack(last_h), last_c[1] and nacre.stack(last_c)
    if single then
      out, h, c = out:squeeze(2), h:squeeze(2), c and c:squeeze(2)
    elseif packed then out = {data = out, lengths = lengths}
    elseif self.batch_first then out = out:transpose(1, 2) end
    return out, c and {h, c} or h
  end
end

define("RNN", "nonlinearity:tanh|relu=tanh, ",
       "layers of h' = tanh(w_ih x + b_ih + w_hh h + b_hh)")
define("LSTM", "", "layers of long short-term memory; the state is {h, c}")
define("GRU", "", "layers of gated recurrent units")

-- ---- cells

local function define_cell(kind, extra, doc, call)
  local name = kind .. "Cell"
  local Cell = layer(name, "input_size:int, hidden_size:int, bias:bool=true" ..
                     extra, doc, nil,
  function(self, inputs, hidden, bias)
    local gates, bound = GATES[kind] * hidden, 1 / math.sqrt(hidden)
    self.weight_ih = uniform(bound, gates, inputs)
    self.weight_hh = uniform(bound, gates, hidden)
    if bias then
      self.bias_ih = uniform(bound, gates)
      self.bias_hh = uniform(bound, gates)
    end
  end)
  function Cell:forward(x, state, ...)
    all.check_tensor(name, x, "input")
    check_state(name, state)
    if select("#", ...) > 0 then fail(name, "takes x and the state") end
    if state == nil then
      local size = x:size()
      size[#size] = self.hidden_size
      state = x:new_zeros(size)
      if kind == "LSTM" then state = {state, state} end
    end
    return call(self, x, state, self.weight_ih, self.weight_hh,
                rawget(self, "bias_ih"), rawget(self, "bias_hh"))
  end
end

define_cell("RNN", ", nonlinearity:tanh|relu=tanh", "one step of an RNN",
function(self, ...)
  local f = self.nonlinearity == "relu" and nacre.rnn_relu_cell or
            nacre.rnn_tanh_cell
  return f(...)
end)
define_cell("LSTM", "", "one step of an LSTM: h and c",
            function(_, ...) return nacre.lstm_cell(...) end)
define_cell("GRU", "", "one step of a GRU",
            function(_, ...) return nacre.gru_cell(...) end)

-- ---- sequences of several lengths

all.define("nn.utils.rnn.pad_sequence",
  "sequences:tensors, batch_first:bool=false, padding_value:num=0",
  "sequences as one tensor [time x samples x ...], the shorter ones padded",
function(sequences, batch_first, value)
  local time = 0
  for _, s in ipairs(sequences) do time = math.max(time, s:size(1)) end
  local list = {}
  for i, s in ipairs(sequences) do
    local size = s:size()
    size[1] = time - size[1]
    list[i] = nacre.cat {s, s:new_full(size, value)}
  end
  return nacre.stack(list, batch_first and 1 or 2)
end)

all.define("nn.utils.rnn.pack_padded_sequence",
  "input:tensor, lengths:lengths, batch_first:bool=false, "
  .. "enforce_sorted:bool=true -> table",
  "{data=, lengths=}: padded sequences and their lengths, for layers",
function(x, lengths, batch_first)
  if nacre.is_tensor(lengths) then lengths = lengths:tolist() end
  return {data = batch_first and x:transpose(1, 2) or x, lengths = lengths}
end)

-- Fails unless this is what pack_padded_sequence gives.
local function check_packed(op, packed)
  if not nacre.is_tensor(packed.data) or type(packed.lengths) ~= "table" then
    fail(op, "a packed table {data=, lengths=} is expected")
  end
end

all.define("nn.utils.rnn.pad_packed_sequence",
  "sequence:table, batch_first:bool=false, padding_value:num=0, "
  .. "total_length:int=nil -> tensor, lengths",
  "the padded sequences and the lengths of a packed table",
function(packed, batch_first, value, total)
  check_packed("pad_packed_sequence", packed)
  local x, time = packed.data, 0
  for _, n in ipairs(packed.lengths) do time = math.max(time, n) end
  if total and total < time then
    fail("pad_packed_sequence",
         ("total_length is %d, but the longest sequence has %d")
           :format(total, time))
  end
  x = x:narrow(1, 1, time)
  if total and total > time then
    local size = x:size()
    size[1] = total - time
    x, time = nacre.cat {x, x:new_zeros(size)}, total
  end
  -- what is beyond the ends may be anything, also where it is to be 0
  local ends = all.sequence_lengths(packed.lengths, time, x.device)
  local size = {time, #packed.lengths}
  for d = 3, x:dim() do size[d] = 1 end
  local beyond = nacre.stack(ends:masks()):logical_not():reshape(size)
  x = x:masked_fill(beyond, value)
  return batch_first and x:transpose(1, 2) or x,
         nacre.tensor(packed.lengths, {dtype = "int64", device = "cpu"})
end)

-- The first `length' steps of each sequence.
all.define("nn.utils.rnn.unpad_sequence",
  "padded_sequences:tensor, lengths:lengths, batch_first:bool=false -> tensors",
  "the sequences of a padded tensor, each with its own length",
function(x, lengths, batch_first)
  if not batch_first then x = x:transpose(1, 2) end
  local list = {}
  if nacre.is_tensor(lengths) then lengths = lengths:tolist() end
  for i, n in ipairs(lengths) do list[i] = x:select(1, i):narrow(1, 1, n) end
  return list
end)

local rnn = all.space "nn.utils.rnn"

all.define("nn.utils.rnn.pack_sequence",
  "sequences:tensors, enforce_sorted:bool=true -> table",
  "{data=, lengths=}: sequences of several lengths, for layers",
function(sequences)
  local lengths = {}
  for i, s in ipairs(sequences) do lengths[i] = s:size(1) end
  return rnn.pack_padded_sequence(rnn.pad_sequence(sequences), lengths)
end)

all.define("nn.utils.rnn.unpack_sequence", "packed_sequences:table -> tensors",
           "the sequences of a packed table",
function(packed)
  check_packed("unpack_sequence", packed)
  return rnn.unpad_sequence(rnn.pad_packed_sequence(packed))
end)
