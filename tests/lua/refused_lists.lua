-- SPDX-License-Identifier: MIT
-- Lists, lengths and counts that cannot be meant are refused by a sentence that
-- names them.
local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local fails = dofile(here .. "../lib/common.lua").fails
local nn, data = nacre.nn, nacre.utils.data
local rnn = nn.utils.rnn

-- as many layers as no memory holds
for _, name in ipairs {"RNN", "LSTM", "GRU"} do
  fails("num_layers is 9007199254740992", nn[name], 2, 2, 2^53)
  fails("num_layers is 65537", nn[name], 2, 2, 65537)
end
for _, name in ipairs {"TransformerEncoder", "TransformerDecoder"} do
  fails("num_layers is 9007199254740992", nn[name], nn.Linear(2, 2), 2^53)
end

-- lengths
local x = nacre.ones(2, 3)
local given = {nacre.tensor(3), nacre.ones(2), nacre.ones(2, 2):long(),
               nacre.tensor {}, {1.5}, "2", nacre.tensor {true, false}}
for i = 1, 7 do
  local text = i == 5 and "element 1 of lengths is 1.5, not an integer" or
               "lengths must be a vector or a list of integers"
  fails(text, rnn.unpad_sequence, x, given[i])
  fails(text, rnn.pack_padded_sequence, x, given[i])
end
assert(#rnn.unpad_sequence(x, nacre.tensor {1, 2, 1}) == 3)
assert(#rnn.unpad_sequence(x, {1, 2, 1}) == 3)

-- samples by number
local set = data.TensorDataset(nacre.ones(3, 2))
for _, indices in ipairs {nacre.tensor {true, false}, nacre.ones(2),
                          nacre.ones(2, 2):long(), nacre.tensor(1)} do
  fails("indices must be a list or a vector of integers", data.Subset, set,
        indices)
end
fails("indices must be a list or a vector", data.Subset, set, 1)
fails("sample 1.5: indices are integers", data.Subset, set, {1, 1.5})
assert(#data.Subset(set, {}) == 0 and #data.Subset(set, {3, 1}) == 2)

-- batches of samples that have nothing in common
fails("sample 2 of the batch is a number, but the first is a table",
      data.default_collate, {{x = 1}, 2})
fails("sample 3 of the batch is a userdata, but the first is a table",
      data.default_collate, {{1}, {2}, nacre.ones(1)})
fails("has no 'x'", data.default_collate, {{x = 1}, {y = 2}})
