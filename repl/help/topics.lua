-- SPDX-License-Identifier: MIT
--
-- topics.lua - ?name for topics that are not functions (broadcasting,
-- autograd, ...): a summary and the page of the guide that explains it.

local file_formats = require "nacre.file_formats"
local nacre = package.loaded.nacre

local topics = {}

-- Each row: the name, a summary, the page and the heading in the guide.
topics.list = {
  {"dtype", "The type of the elements: " ..
   table.concat(nacre._dtypes(), ", ") .. ". {dtype=\"int64\"} " ..
   "creates a tensor of that dtype, t:to \"float64\" converts.",
   "docs/guide/first-steps.md", "Dtypes"},
  {"device", "The device that holds the elements: \"cpu\" or \"cuda:0\". " ..
   "t:cuda(), t:cpu() and t:to \"cuda:0\" copy; :dev lists the devices and " ..
   "shows where new tensors are created.",
   "docs/guide/devices-and-timing.md", "Devices and timing"},
  {"grad", "The gradient that backward() has accumulated for a tensor that " ..
   "requires_grad; t.grad = nil resets it.",
   "docs/guide/autograd.md", "Gradients"},
  {"requires_grad", "Operations on a tensor that requires_grad are recorded, " ..
   "so that backward() can compute its gradient: {requires_grad=true} when " ..
   "it is created, t:requires_grad_() later.",
   "docs/guide/autograd.md", "Gradients"},
  {"indexing", "Indices count from 1, or from the end with -1. t[2] is a " ..
   "row, t[{2,3}] an element, t[{{2,3}}] or t[\"2:3\"] a range with both " ..
   "ends, t[t:gt(0)] the elements where a mask is true.",
   "docs/guide/indexing.md", "Indexing"},
  {"view", "Numbers and ranges as indices give a view, which shares its " ..
   "elements with the tensor; t:clone() is a copy.",
   "docs/guide/indexing.md", "Views and copies"},
  {"broadcasting", "Shapes are aligned at their last dims. Sizes must be " ..
   "equal, 1 or missing; 1 and missing dims are repeated to match the other, " ..
   "so [3x1] and [4] give [3x4]. t:expand(...) broadcasts one tensor.",
   "docs/guide/first-steps.md", "Arithmetic"},
  {"strides", "The distance in memory, in elements, between neighbours along " ..
   "each dimension: t:stride(). Views have other strides than a new tensor; " ..
   "t:contiguous() is a copy in row-major order where they differ.",
   "docs/guide/indexing.md", "Views and copies"},
  {"limits", "A tensor has at most 8 dimensions. There are no complex and " ..
   "no sparse tensors.",
   "docs/guide/limits.md", "What is missing"},
  {"threads", "Operations on the CPU use as many threads as there are " ..
   "processors: --threads N, :set threads N and nacre.set_num_threads(N) " ..
   "change that.",
   "docs/guide/performance.md", "Threads"},
  {"tf32", "nacre.backends.cuda.matmul.allow_tf32 = true lets products of " ..
   "float32 on a GPU use TF32: faster, with 11 significant bits. It is " ..
   "false by default, as in PyTorch.",
   "docs/guide/performance.md", "TF32 and other precision"},
  {"errors", "An error is a table with code, op, message, file, line and " ..
   "the operands; pcall returns it, tostring(e) is its text, and :debug " ..
   "opens the stack of the last one.",
   "docs/guide/errors.md", "Codes"},
  {"keys", "Tab completes, twice lists; Up and Down search the history; " ..
   "Alt-Enter adds a line to a block; Ctrl-X Ctrl-E opens the block in an " ..
   "editor; F1 or Alt-H explains the name at the cursor; Ctrl-C " ..
   "interrupts; Ctrl-D leaves.",
   "docs/guide/settings.md", "Keys"},
  {"environment", "NACRE_CUDA=off starts without CUDA, NACRE_CUDA=emulated " ..
   "with a device emulated on the CPU; NACRE_DEVICE=cuda creates new tensors " ..
   "on a GPU. man nacre lists all variables, and the files.",
   "docs/guide/settings.md", "Environment variables"},
  {"class", "A network is a class: Net = nacre.nn.Module \"Net\". " ..
   "Net:init(...) makes its layers, self.fc = nacre.nn.Linear(4, 3), and " ..
   "Net:forward(x) uses them, self.fc(x). net = Net() is a network, net(x) " ..
   "calls forward.",
   "docs/guide/learning.md", "A network"},
  {"files", "nacre.save(path, t) and nacre.load(path) choose the format by " ..
   "the name: " .. file_formats.listed(true) .. " hold one tensor, " ..
   file_formats.listed(false) .. " a table of them.",
   "docs/guide/files.md", "Files"},
}

-- Synonyms.
local words = {
  dtypes = "dtype", devices = "device", gradient = "grad",
  gradients = "grad", index = "indexing", indices = "indexing",
  slice = "indexing", slicing = "indexing", views = "view",
  broadcast = "broadcasting", stride = "strides", complex = "limits",
  sparse = "limits", dimensions = "limits", allow_tf32 = "tf32",
  forward = "class", init = "class", __init__ = "class", self = "class",
  def = "class", error = "errors",
  key = "keys", shortcuts = "keys", num_threads = "threads",
}

for _, format in ipairs(nacre._formats()) do
  words[format.extension] = "files"
end

-- The row of a name, or nil.
function topics.find(name)
  name = words[name] or name:find "^NACRE_%u" and "environment" or name
  for _, row in ipairs(topics.list) do
    if row[1] == name then return row end
  end
end

return topics
