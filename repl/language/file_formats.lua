-- SPDX-License-Identifier: MIT
--
-- file_formats.lua - the formats of files of tensors, as the core lists them.

local nacre = package.loaded.nacre

local file_formats = {}

-- The format that the name of a file ends in, or nil: name, one, text, image,
-- metadata. Behind the ending may be .gz, if `packed' is not false.
function file_formats.of(path, packed)
  path = path:lower()
  if packed ~= false then path = path:gsub("%.gz$", "") end
  local extension = path:match "%.([^./]+)$"
  for _, format in ipairs(nacre._formats()) do
    if format.extension == extension then return format end
  end
end

-- ".npy, .csv, .tsv and .txt", those of one tensor, or those of several.
function file_formats.listed(one)
  local names = {}
  for _, format in ipairs(nacre._formats()) do
    if format.one == one and format.extension == format.name then
      names[#names + 1] = "." .. format.name
    end
  end
  local last = table.remove(names)
  return ("%s and %s"):format(table.concat(names, ", "), last)
end

return file_formats
