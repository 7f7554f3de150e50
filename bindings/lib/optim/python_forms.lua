-- SPDX-License-Identifier: MIT
-- python_forms.lua - states as PyTorch keeps them: pickle.lua writes, in place
-- of a table that python_forms knows, what its function gives.
local all = ...

-- From a table to a function that gives its form.
all.python_forms = setmetatable({}, {__mode = "k"})

-- Stands for None.
all.python_none = setmetatable({}, {__tostring = function() return "None" end})

-- From a table to what it is in Python, where that is not what its keys say:
-- "list", "tuple", "dict", or "Counter".
all.python_kinds = setmetatable({}, {__mode = "k"})

function all.as_python_kind(kind, t)
  all.python_kinds[t] = kind
  return t
end
