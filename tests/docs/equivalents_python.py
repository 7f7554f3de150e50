#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The tables of docs/guide/from-python.md, from-numpy.md and from-pytorch.md:
the Python cell of a row gives what Nacre's does.
Usage: equivalents_python.py PROGRAM python|numpy|torch"""
import ast
import os
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:                  # enough for the language alone
    np = None

HERE = os.path.dirname(os.path.abspath(__file__))
GUIDES = os.path.join(HERE, '../../docs/guide')

# Rows of from-pytorch.md that have no value to compare: random numbers,
# networks, files, devices, timing.
NO_VALUE = {
    'Training', 'Devices and the rest',
    'torch.randint(0, 10, (2, 3))', 'torch.randperm(5)',
    'torch.manual_seed(1)`, `random.seed(1)',
    'torch.from_numpy(np.load(f))', 'torch.save(d, f)`, `torch.load(f)',
    'x.dtype`, `x.device', 'x[mask] = 0', 'x[0, 1] = 5', 'loss.backward()',
    'p.grad', 'with torch.no_grad(): ...', 'torch.linalg.inv(m)', 'x[0]',
}
# Those whose results are positions, which count from 1 in Nacre; the number of
# the result that holds them.
POSITIONS = {
    'x.nonzero()': 1, 'x.argmax()': 1, 'v.topk(2)': 2,
    'values, indices = x.max(dim=1)': 2, 'v.sort(descending=True)': 2,
}


def rows(text):
    """The section and the cells of the rows that hold code, as
    tests/docs/equivalents.lua counts them."""
    place, section = 0, ''
    for line in text.splitlines():
        place = place + 1 if line.startswith('|') else 0
        section = line[3:] if line.startswith('## ') else section
        if place < 3:
            continue
        cells, cell, quoted = [], '', False
        for c in line:
            quoted ^= c == '`'
            if c == '|' and not quoted:
                cells.append(cell.strip())
                cell = ''
            else:
                cell += c
        if cells[2].startswith('`'):
            yield section, cells[1].strip('`'), cells[2].strip('`')


def text(value):
    """As equivalents.lua writes what is not a tensor."""
    if isinstance(value, (bool, np.bool_) if np else bool):
        return str(bool(value)).lower()
    return str(value)


def numpy_names(guide, _folder):
    names = {'np': np}
    setup = re.search(r'<!-- setup -->\n```python\n(.*?)```', guide, re.S)
    exec(setup.group(1), names)
    return names


def torch_names(_guide, folder):
    """Nacre's own tensors; positions count from 0 in PyTorch."""
    import torch
    names = {'torch': torch, 'F': torch.nn.functional}
    for key in ('x', 'y', 'a', 'b', 'v', 'i', 'mask', 'img', 'w', 'bias',
                'kernel', 'logits', 'target'):
        array = np.load(os.path.join(folder, key + '.npy'))
        names[key] = torch.from_numpy(array)
    names['i'] -= 1
    names['target'] -= 1
    return names


def flat(value):
    """What the cell gives, as a list: several results are a tuple (of numbers
    alone it is a shape), and a table of tensors counts as that many."""
    if isinstance(value, tuple) and not all(type(v) is int for v in value):
        return [v for part in value for v in flat(part)]
    if isinstance(value, list) and value and hasattr(value[0], 'shape'):
        return value
    return [value]


def expected(python, names):
    before, _, last = python.replace('`, `', ', ').rpartition('; ')
    last = re.sub(r'^[\w, ]+ = ', '', last)
    exec(before, names)
    value = eval(last, names)
    several = isinstance(ast.parse(last).body[0].value, ast.Tuple)
    return [v for part in value for v in flat(part)] if several else flat(value)


def same(path, want):
    """Is what Nacre wrote to path the value want?"""
    if os.path.exists(path + '.npy'):
        want = want.detach() if hasattr(want, 'detach') else want
        got, want = np.load(path + '.npy'), np.asarray(want)
        return got.shape == want.shape and \
            np.allclose(got, want, 1e-5, 1e-6), got
    with open(path + '.txt', encoding='utf-8') as f:
        got = f.read()
    if isinstance(want, float):
        return abs(float(got) - want) <= 1e-6 * abs(want), got
    return got == text(want), got


def differences(folder, k, python, names):
    """The results of row k that are not as expected."""
    wants = expected(python, names)
    if POSITIONS.get(python):
        wants[POSITIONS[python] - 1] = wants[POSITIONS[python] - 1] + 1
    for j, want in enumerate(wants, 1):
        ok, got = same(os.path.join(folder, f'{k}.{j}'), want)
        if not ok:
            yield j, want, got
    if os.path.exists(os.path.join(folder, f'{k}.{len(wants) + 1}.npy')):
        yield len(wants) + 1, None, 'one result more'


def main():
    program, library = os.path.abspath(sys.argv[1]), sys.argv[2]
    page, least, names_of = {
        'python': ('from-python.md', 15, lambda guide, folder: {}),
        'numpy': ('from-numpy.md', 80, numpy_names),
        'torch': ('from-pytorch.md', 70, torch_names)}[library]
    with open(os.path.join(GUIDES, page), encoding='utf-8') as f:
        guide = f.read()
    compared, wrong, left = 0, 0, set(NO_VALUE)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, os.path.join(HERE, 'equivalents.lua'), page,
                        folder], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL)
        for k, (section, python, lua) in enumerate(rows(guide), 1):
            if library == 'torch' and NO_VALUE & {section, python}:
                left -= {section, python}
                continue
            if library == 'python' and section == 'Statements':
                continue
            compared += 1
            names = names_of(guide, folder)
            for j, want, got in differences(folder, k, python, names):
                wrong += 1
                print(f'{python}  {lua}, result {j}\n{want!r}\n{got!r}')
    print(compared, 'rows compared,', wrong, 'results differ')
    if library == 'torch' and left:
        print('no such row:', sorted(left))
        wrong += 1
    return wrong > 0 or compared < least


sys.exit(main())
