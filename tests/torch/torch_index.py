# SPDX-License-Identifier: MIT
"""Reading and writing t[...]: calls for diff_torch.py."""
from diff_torch import Case, Redraw, operation


@operation(3)
def basic_index(r):
    """t[...] by numbers and ranges, in both ways to write them."""
    x = r.tensor(shape=r.shape(most=4, least=1, empty=0))
    key, parts, text = [], [], []
    for n in x.shape[:r.integer(1, x.dim())]:
        way = r.integer(0, 3)
        first = r.integer(0, n - 1)
        last, step = r.integer(first, n - 1), r.integer(1, 3)
        if way == 0:
            number = first + 1 if r.flag() else first - n
            key.append(first)
            parts.append(str(number))
            text.append(str(number))
        elif way == 1:
            key.append(slice(None))
            parts.append("{}")
            text.append(":")
        else:
            key.append(slice(first, last + 1, step))
            parts.append(f"{{{first + 1}, {last + 1}, {step}}}")
            text.append(f"{first + 1}:{last - n}:{step}")
    if len(key) == x.dim() and all(isinstance(k, int) for k in key):
        raise Redraw                    # it gives a number
    lua = "{%s}" % ", ".join(parts) if r.flag() else '"%s"' % ", ".join(text)
    return Case(f"a[{lua}]", [x], lambda a: a[tuple(key)], times=0)


SET = "(function(t, key, v) t = t:clone() t[key] = v return t end)"


def assigned(t, key, value):
    t = t.clone()
    t[key] = value
    return t


@operation(3)
def advanced_index(r):
    """t[...] by tensors of positions and masks, read and assigned to."""
    x = r.tensor(shape=r.shape(most=3, least=2, empty=0))
    n, m = x.shape[:2]
    count = r.integer(0 if r.flag(0.1) else 1, 5)
    i, j = (r.tensor("int64", [count], low=0, high=size - 1)
            for size in (n, m))
    if r.flag(0.3):
        i = i - n                       # counted from the end
    at = "b" if count and i[0] < 0 else "b + 1"
    mask = r.tensor("bool", x.shape[:r.integer(1, x.dim())])
    text, others, want = r.choice([
        ("a[b]", [mask], lambda a, b: a[b]),
        (SET + "(a, b, 1)", [mask], lambda a, b: assigned(a, b, 1)),
        (f"a[{at}]", [i], lambda a, b: a[b]),
        (f"a[{{{{}}, c + 1}}]", [i, j], lambda a, b, c: a[:, c]),
        (f"a[{{{at}, c + 1}}]", [i, j], lambda a, b, c: a[b, c]),
        (SET + f"(a, {at}, 1)", [i], lambda a, b: assigned(a, b, 1)),
    ])
    return Case(text, [x, *others], want, times=0)
