-- SPDX-License-Identifier: MIT
--
-- foreign_blocks.lua - lines of Python, as they are pasted, as one of Lua; what
-- that line does when it is run.

local blocks = require "nacre.foreign_blocks"

local function line(text)
  return (blocks.line(text) or "nothing"):gsub(", counted from 1$", "")
end

local function is(got, want, text)
  if got ~= want then
    error(("%s\n  is  %s\n  not %s"):format(text, got, want), 2)
  end
end

-- The line of a text, and the value of a variable after it.
local function runs(text, name, want)
  local code = line(text)
  local f = load(code, "=", "t") or error(text .. "\n  is " .. code, 2)
  f()
  is(tostring(_G[name]), tostring(want), code)
end

runs([[
total = 0
for i in range(4):
    # a comment
    if i % 2 == 0:
        total += 10
    elif i > 2:
        pass
    else:
        total += 1
total += 100]], "total", 121)

runs([[
class Stack:
    """Numbers."""
    def __init__(self, first=7):
        self.items = [first]
    def push(self, x):
        self.items.append(x)
    def top(self):
        return self.items[1]
s = Stack()
s.push(9)
top = s.top()]], "top", 9)

runs([[
import torch.nn as nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(
            4,
            2)

    def forward(self, x):
        x = F.relu(self.fc(x))
        return x
size = list(Net()(torch.ones(3, 4)).shape)[1] ]], "size", 2)

runs([[
try:
    raise ValueError("bad")
except ValueError as e:
    caught = len(str(e)) > 2]], "caught", true)

runs([[
def f(xs):
    out = []
    for x in xs:
        while x > 2:
            x -= 1
        out.append(x)
    return sum(out)
n = f([1, 5, 2])]], "n", 5)

runs([[
with torch.no_grad():
    for k in range(2):
        y = torch.ones(2).sum(dim=0)
done = y.item()]], "done", 2.0)

runs("names = [\n  'a',  # first\n  'b',\n]\nlast = names[-1]", "last", "b")

runs([[
odd = []
for i in range(1, 6):
    if i % 2 == 0:
        continue
    odd.append(i)
count = 0
while count < 9:
    count += 2
    if count > 3: continue
    odd.append(count)
odd = ",".join(str(v) for v in odd)]], "odd", "1,3,5,2")

runs([[
@torch.no_grad()
def twice(x):
    y = x * 2
    return y
@torch.inference_mode()
def both(v):
    if v.requires_grad:
        return twice(v)
    return 0
w = torch.ones(2, requires_grad=True)
answer = both(w).requires_grad or both(w).sum().item()]], "answer", 4.0)

runs([[
class Half:
    @torch.no_grad()
    def of(self, x):
        return x / 2
h = Half().of(7)]], "h", 3.5)

runs([[
class Point:
    made = 0
    def __init__(self, x, y):
        self.x, self.y = x, y
    def __repr__(self):
        return f"Point({self.x}, {self.y})"
    def __add__(self, other):
        return Point(self.x + other.x, self.y + other.y)
    def __eq__(self, other):
        return self.x == other.x and self.y == other.y
p = Point(1, 2) + Point(3, 4)
shown = str(p) if p == Point(4, 6) else "no"
shown = shown + " " + str(Point.made)]], "shown", "Point(4, 6) 0")

runs([[
class Base:
    def __init__(self, name):
        self.name = name
    def call(self):
        return self.name
class Loud(Base):
    def __init__(self, name, mark=4):
        super().__init__(name)
        self.mark = mark
    def call(self):
        return super().call() + self.mark
called = Loud(5).call() * Base(2).call()]], "called", 18)

runs([[
found = []
stack = [3, 2]
while stack:
    found.append(stack.pop())
if not stack:
    found.append(len(found))
found = ",".join(str(v) for v in found)]], "found", "2,3,2")

is(line "@cache\ndef f(x):\n    return x", "nothing", "another decorator")

-- no lines of Python, or what is not understood
is(line "for i = 1, 3 do\n  x = = i\nend", "nothing", "Lua")
is(line "if x:\n      y()\n   z()", "nothing", "indents")
is(line "", "nothing", "nothing")
