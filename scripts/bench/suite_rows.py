# SPDX-License-Identifier: MIT
"""What a row of suite.py is. The rows are in rows/, a file for each subject.

A row is an expression of Nacre and the same one of PyTorch, or of another
rival. Where PyTorch's is left out it is Nacre's, with "." for ":" and "torch."
for "nacre.". Operands are "NAME=SIZES", of normal float32 numbers, and after
that

    :DTYPE     that type; of whole numbers from 1 to 50 if it is an integer, of
               false and true if it is bool
    <LIMIT     positions in LIMIT elements, from 1 in Nacre and 0 in PyTorch
    >0         positive numbers, or true
    @KIND      on a device: "image", to PyTorch with its channels last; "pinned"
               and "pageable" are on the host

A size is an expression of n, which --growth makes four times as large.
"""
import dataclasses
import re

ROWS = []                       # of the subjects that were imported
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
RIVALS = ("unfused", "compile", "numpy", "numexpr", "cupy", "raw")
K, M = 1000, 1 << 20


@dataclasses.dataclass
class Row:
    """What is measured, of a size.

    sides: the expression of each side, Nacre's first. setup: statements of
    Nacre, and of the others. work: "memory" if the operands and the result are
    to be moved once and that is the least it takes, "move NAMES" if it is these
    (y is the result), or the number of floating-point operations. results: how
    many of the results are compared; 0 if they are random, and only the mean
    and the deviation agree; None if nothing is compared. positions: they count
    from 1 in Nacre. right: the version of PyTorch from which its results are
    right. turns: of each side, instead of what all rows have.

    timer: "" for the time of this process, "device" for that of a device by its
    events, "host" for what a call takes until it returns, "process" for a
    process that does nothing else, on DEVICE. calls: of a sample of these.
    keeps: the result is an operand. clock: "wall" where the processor's time
    says little. fresh: the sides start anew for each "row" or each "turn".
    files: writes the files that the row loads, into a folder.

    goal: the most that our time is to be of the first rival's. most: the most
    that it is to be in seconds. shown: further columns, of "quartiles",
    "memory", "rate" and "goal".
    """
    group: str
    name: str
    base: str                   # the name without n
    n: int
    operands: str
    sides: dict
    setup: tuple = ("", "")
    gradient: str = ""
    work: object = None
    tolerance: float = 1e-4
    results: object = 1
    positions: bool = False
    right: int = 0
    turns: int = 0
    timer: str = ""
    calls: int = 1
    keeps: bool = False
    clock: str = ""
    fresh: str = ""
    files: object = None
    goal: object = None
    most: object = None
    shown: tuple = ()

    def on_device(self):
        return self.timer != ""

    def lets(self, n, dtype="float32", small=False):
        """Each operand as name, kind, dtype, limit, sizes; small ones on a
        device, which may be emulated."""
        words = [operand(word, n, dtype) for word in self.operands.split()]
        if small and self.on_device():
            matrices = any(len(sizes) > 1 for *_, sizes in words)
            most = 32 if matrices else 1000
            words = [(*rest, min(limit, 32), [min(k, most) for k in sizes])
                     for *rest, limit, sizes in words]
        return words

    def flops(self, n):
        if not self.work or self.work.startswith(("memory", "move")):
            return None
        return eval(self.work, {"n": n})


def operand(word, n, usual):
    name, sizes, dtype, limit = re.fullmatch(
        r"(\w+)=([^:<>@]+)(?::(\w+))?([<>@].+)?", word).groups()
    size = [int(eval(s, {"n": n})) for s in sizes.split(",")]
    kind, top = "normal", 50
    if limit == ">0":
        kind = "positive"
    elif limit and limit[0] == "@":
        kind = limit[1:]
    elif limit:
        kind, top = "position", int(eval(limit[1:], {"n": n}))
        dtype = dtype or "int64"
    elif dtype in INTEGERS:
        kind = "whole"
    elif dtype == "bool":
        kind = "bit"
    return name, kind, dtype or usual, top, size


def short(n):
    for unit, name in ((1 << 20, "M"), (1000000, "M"), (1 << 10, "K"),
                       (1000, "K")):
        if n % unit == 0:
            return f"{n // unit}{name}"
    return str(n)


class Group:
    """Adds rows to the table."""

    def __init__(self, name, **common):
        self.name, self.common = name, common

    def __call__(self, name, n, operands, ours, torch=None, **more):
        """One row for each n, if there are several. The expressions of other
        rivals are named arguments."""
        options = {**self.common, **more}
        usual = options.pop("torch", None)
        torch = usual if torch is None else torch
        if torch is None:
            torch = ours.replace(":", ".").replace("nacre.", "torch.")
        sides = {"nacre": ours, "torch": torch,
                 **{side: options.pop(side, "") for side in RIVALS}}
        sides = {side: text for side, text in sides.items() if text}
        many = n if isinstance(n, tuple) else (n,)
        for size in many:
            title = name if len(many) == 1 else f"{name}, {short(size)}"
            ROWS.append(Row(self.name, title, name, size, operands, sides,
                            **options))


def lines(text):
    """A program of several lines, indented in the table."""
    rows = text.strip("\n").split("\n")
    indent = len(rows[0]) - len(rows[0].lstrip())
    return "\n".join(row[indent:] for row in rows)
