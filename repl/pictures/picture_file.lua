-- SPDX-License-Identifier: MIT
--
-- picture_file.lua - writes what :plot, :scatter, :hist and :heat draw to a
-- file: the text of an SVG picture as it is, or drawn by librsvg as a PNG.

local host = require "nacre.host"

local picture_file = {}

local PIXELS <const> = 2      -- of a PNG for each one of the picture

-- The size in pixels for sizes in characters and lines.
function picture_file.size(o)
  return math.max(200, o.width and o.width * 10 or 800),
         math.max(150, o.height and o.height * 24 or 480)
end

local function extension(path)
  return (path:match "%.(%w+)$" or ""):lower()
end

-- What is wrong with a file name; nil if it is the name of a picture.
function picture_file.refused(path)
  local kind = extension(path)
  if kind == "svg" or kind == "png" then return nil end
  return ("a picture is written as .svg or .png, %s is neither"):format(path)
end

-- Writes a picture of that size; nil and why it could not be.
function picture_file.write(path, text, width, height)
  path = require "nacre.file_commands".path(path)
  local ok, why
  if extension(path) == "png" then
    text, why = host.png_of_svg(text, width * PIXELS, height * PIXELS)
    if not text then return nil, why end
  end
  ok, why = host.write_file(path, text)
  if not ok then return nil, "cannot write " .. why end
  io.stdout:write(("%s: %s\n"):format(path,
    require "nacre.units".bytes(#text)))
  return true
end

return picture_file
