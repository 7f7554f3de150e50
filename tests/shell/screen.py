# SPDX-License-Identifier: MIT
#
# screen.py - what stands on a terminal: cells with their attributes, the
# cursor, and the rows that have left at the top. As much of a terminal as the
# program uses.

import re
import unicodedata

TOKEN = re.compile("\x1b\\[([0-9;?]*)([@-~])|\x1b\\]([^\x07]*)\x07"
                   "|\x1b([=>()].?)|([^\x1b])", re.S)
PART = re.compile("\x1b(\\[[0-9;?]*|\\][^\x07]*|)$")
BLANK = (" ", "")


def width(c):
    if unicodedata.category(c) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(c) in "WF" else 1


def changed(look, codes):
    """The attributes, sorted codes of SGR, after more of them."""
    now = {int(code) for code in look.split(";") if code}
    for code in (int(code or 0) for code in codes.split(";")):
        if code == 0:
            now.clear()
        else:
            colours = range(code // 10 * 10, code // 10 * 10 + 10)
            now = {c for c in now if code < 30 or c not in colours} | {code}
    return ";".join(str(code) for code in sorted(now))


class Screen:
    def __init__(self, rows=24, columns=80):
        self.rows, self.columns = rows, columns
        self.grid = [self.blank() for _ in range(rows)]
        self.wraps = [False] * rows  # does the row go on in the next one?
        self.past, self.past_wraps = [], []
        self.y = self.x = 0
        self.full = False   # the last column is written, the cursor there
        self.look = ""
        self.kept = None    # this screen while the other one is shown
        self.modes = set()
        self.rest = ""      # of a sequence that is not complete

    def blank(self):
        return [BLANK] * self.columns

    # ---- what is there

    def line(self, y):
        return "".join(c for c, _ in self.grid[y]).rstrip()

    def text(self):
        """The rows, without blank ones at the end."""
        return "\n".join(self.line(y)
                         for y in range(self.rows)).rstrip("\n")

    def look_at(self, y, x):
        return self.grid[y][x][1]

    @property
    def cursor(self):
        return self.y, self.x

    def place(self):
        """The cursor's row, counted from the first that ever was."""
        return len(self.past) + self.y

    def since(self, row, upto=None):
        """The text from such a row on, before another; what the terminal
        wrapped is one line."""
        rows = self.past + self.grid
        wraps = self.past_wraps + self.wraps
        out = ""
        for n in range(row, len(rows) if upto is None else upto):
            line = "".join(c for c, _ in rows[n])
            out += line if wraps[n] else line.rstrip() + "\n"
        return out.rstrip("\n") + "\n" if upto is None else out

    # ---- what comes

    def feed(self, text):
        text = self.rest + text
        part = PART.search(text)
        self.rest = part.group() if part else ""
        if self.rest:
            text = text[:-len(self.rest)]
        for token in TOKEN.finditer(text):
            numbers, letter, _, _, c = token.groups()
            if letter:
                self.sequence(numbers, letter)
            elif c:
                self.character(c)
        return self

    def character(self, c):
        if c == "\r":
            self.x, self.full = 0, False
        elif c == "\n":
            self.down()
        elif c == "\b":
            self.x, self.full = max(0, self.x - 1), False
        elif c == "\t":
            self.tab()
        elif c >= " ":
            self.put(c)

    def tab(self):
        """Stays a tab where nothing was written."""
        end = min(self.columns - 1, self.x // 8 * 8 + 8)
        row = self.grid[self.y]
        if all(cell == BLANK for cell in row[self.x:end]):
            row[self.x:end] = [("\t", "")] + [("", "")] * (end - self.x - 1)
        self.x = end

    def down(self):
        self.full = False
        if self.y < self.rows - 1:
            self.y += 1
            return
        self.past.append(self.grid.pop(0))
        self.past_wraps.append(self.wraps.pop(0))
        self.grid.append(self.blank())
        self.wraps.append(False)

    def put(self, c):
        wide = width(c)
        if wide == 0:
            at = self.x if self.full else self.x - 1
            at -= self.grid[self.y][at][0] == ""
            before, look = self.grid[self.y][at]
            self.grid[self.y][at] = (before + c, look)
            return
        if self.full or self.x + wide > self.columns:
            self.wraps[self.y] = True
            self.down()
            self.x = 0
        row = self.grid[self.y]
        if row[self.x][0] == "" and self.x > 0:
            row[self.x - 1] = BLANK     # half of a wide character
        end = self.x + wide
        if end < self.columns and row[end][0] == "":
            row[end] = BLANK
        row[self.x] = (c, self.look)
        if wide == 2:
            row[self.x + 1] = ("", self.look)
        self.full = end == self.columns
        self.x = min(end, self.columns - 1)

    def sequence(self, numbers, letter):
        n = int(numbers) if numbers.isdigit() else 1
        row = self.grid[self.y]
        if letter == "m":
            self.look = changed(self.look, numbers)
        elif letter in "hl":
            (self.modes.add if letter == "h" else
             self.modes.discard)(numbers)
            if numbers == "?1049":
                self.other(letter == "h")
        elif letter == "A":
            self.y = max(0, self.y - n)
        elif letter == "B":
            self.y = min(self.rows - 1, self.y + n)
        elif letter == "C":
            self.x = min(self.columns - 1, self.x + n)
        elif letter == "D":
            self.x = max(0, self.x - n)
        elif letter == "G":
            self.x = min(self.columns, n) - 1
        elif letter == "H":
            y, x = (numbers + ";").split(";")[:2]
            self.y, self.x = int(y or 1) - 1, int(x or 1) - 1
        elif letter == "@":
            row[self.x:] = ([BLANK] * n + row[self.x:])[:len(row) - self.x]
        elif letter == "P":
            row[self.x:] = row[self.x + n:] + [BLANK] * min(
                n, len(row) - self.x)
        elif letter == "K":
            row[self.x:] = [BLANK] * (self.columns - self.x)
            self.wraps[self.y] = False
        elif letter == "J":
            self.erase(numbers)
        if letter not in "mhl":
            self.full = False

    def other(self, shown):
        """The other screen, or this one as it was."""
        if shown:
            self.kept = self.grid, self.wraps, self.y, self.x
            self.grid = [self.blank() for _ in range(self.rows)]
            self.wraps = [False] * self.rows
        elif self.kept:
            self.grid, self.wraps, self.y, self.x = self.kept
            self.kept = None

    def erase(self, what):
        first = 0 if what == "2" else self.y
        for y in range(first, self.rows):
            start = self.x if y == self.y and what != "2" else 0
            self.grid[y][start:] = [BLANK] * (self.columns - start)
            self.wraps[y] = False
        if first > 0 and self.x == 0:
            self.wraps[first - 1] = False

    def resize(self, rows, columns):
        """As terminals do that do not wrap anew."""
        while len(self.grid) > rows:
            if self.y < len(self.grid) - 1:
                self.grid.pop()
                self.wraps.pop()
            else:
                self.past.append(self.grid.pop(0))
                self.past_wraps.append(self.wraps.pop(0))
                self.y -= 1
        self.rows, self.columns = rows, columns
        self.grid = [(row + [BLANK] * columns)[:columns] for row in self.grid]
        while len(self.grid) < rows:
            self.grid.append(self.blank())
            self.wraps.append(False)
        self.x, self.full = min(self.x, columns - 1), False
