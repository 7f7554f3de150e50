#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs PyTorch's own samples through Nacre.

  opinfo_torch.py path/to/nacre [--seed N] [--cases N] [--only NAME]
                  [--dtypes LIST] [--references] [--strided] [--second]
                  [--device NAME] [--verbose]

PyTorch tests its operations with a database of sample calls, OpInfo: operands,
arguments and calls that must fail. Each sample is written in Lua, as a
function, a method, in place or into out=, of a dtype that both have, and is
compared as diff_torch.py does: error or none, dtype, shape, values, gradients.
--cases bounds how many are drawn of all there are; 0 takes every one. With
--strided operands lie in other ways, and some have nan and infinities. With
--second gradients are those of the gradients.
Differences that have a reason stand in opinfo_torch_known.txt. Without torch or
its testing internals the test is skipped (77).
"""
import os
import re
import subprocess
import sys
import tempfile
import types
import warnings
from string import ascii_lowercase

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

import diff_torch as d                                    # noqa: E402

import numpy as np                                        # noqa: E402
import torch                                              # noqa: E402

# The database is imported by tests that print what they expect; we do not.
sys.modules.setdefault("expecttest", types.SimpleNamespace(
    TestCase=__import__("unittest").TestCase, ACCEPT=False))
try:
    from torch.testing._internal.common_methods_invocations import op_db
except ImportError as missing:
    print(f"opinfo_torch: no database of samples ({missing}), skipped")
    sys.exit(77)

# What Nacre calls otherwise.
NAMES = {"repeat": "tile", "narrow_copy": "narrow",
         "_segment_reduce": "segment_reduce"}
# Lua's order of arguments where it is not that of the sample.
ORDER = {"where": [1, 0, 2], "nn.functional.embedding": [1, 0],
         "nn.functional.embedding_bag": [1, 0],
         "einsum": [1, 0]}
OPERATORS = {"__radd__": "+", "__rand__": "&", "__rdiv__": "/",
             "__rmod__": "%", "__rmul__": "*", "__ror__": "|",
             "__rpow__": "^", "__rsub__": "-", "__rxor__": "~"}
# Values are drawn or left as they were: only dtype and shape are compared.
DRAWN = re.compile(r"^(empty|new_empty|empty_like|rand|randn|rand_like|"
                   r"randint|randn_like|randint_like|normal|bernoulli|"
                   r"multinomial|nn\.functional\.(dropout.*|rrelu|gumbel_softmax|"
                   r".*alpha_dropout))$")
# Parameters that are tensors of positions, and results that are.
POSITIONS = {
    "gather": ["index"], "scatter": ["index"], "scatter_add": ["index"],
    "scatter_reduce": ["index"], "index_select": ["index"],
    "index_add": ["index"], "index_copy": ["index"], "index_fill": ["index"],
    "index_reduce": ["index"], "index_put": ["indices"], "take": ["index"],
    "put": ["index"], "take_along_dim": ["indices"],
    "searchsorted": ["sorter"], "nn.functional.embedding": ["input"],
    "nn.functional.one_hot": ["tensor"],
    "tensor_split": ["indices_or_sections"], "narrow": ["start"],
    "nn.functional.cross_entropy": ["target"],
    "nn.functional.nll_loss": ["target"],
    "nn.functional.multi_margin_loss": ["target"],
    "nn.functional.multilabel_margin_loss": ["target"],
    "nn.functional.max_unpool1d": ["indices"],
    "nn.functional.max_unpool2d": ["indices"],
    "nn.functional.max_unpool3d": ["indices"],
    "nn.functional.embedding_bag": ["input", "offsets"],
    "nn.functional.ctc_loss": ["targets"], "unravel_index": ["indices"],
    "segment_reduce": ["offsets"],
}
FOUND = {
    "argmax": [0], "argmin": [0], "argsort": [0], "argwhere": [0],
    "nonzero": [0], "sort": [1], "topk": [1], "kthvalue": [1], "mode": [1],
    "median": [1], "nanmedian": [1], "max": [1], "min": [1], "cummax": [1],
    "cummin": [1], "searchsorted": [0], "bucketize": [0], "tril_indices": [0],
    "triu_indices": [0], "nn.functional.max_pool1d": [1],
    "nn.functional.max_pool2d": [1], "nn.functional.max_pool3d": [1],
    "nn.functional.adaptive_max_pool1d": [1],
    "nn.functional.adaptive_max_pool2d": [1],
    "nn.functional.adaptive_max_pool3d": [1],
    "unravel_index": list(range(8)),
}
# Where nan and infinities are not compared: what iterates until it converges,
# layers, and where PyTorch leaves open what becomes of them.
FINITE = re.compile(r"^nn|linalg|lu|svd|qr|eig|cholesky|geqrf|pinverse|"
                    r"triangular|lobpcg|cdist|multinomial|logdet|matrix_exp|"
                    r"unique|histc|cov|norm|lerp|trap|fft|stft")
LAID = ("view", "view_as", "as_strided", "resize_as_")  # ask for their layout
DIMS = re.compile(r"^(dims?|dim0|dim1|dim2|start_dim|end_dim|dimension|axis|"
                  r"source|destination|ignore_index|padding_idx|blank)$")
# Steps of the dtype that a result may be off, relative to its largest; a half
# is computed in float32 and rounded, here once and there more often.
ROUNDED, HALVES_ROUNDED = 512, 8
INTERNAL = re.compile(r"attempt to|bad argument|expected, got|stack overflow|"
                      r"nil value|assertion")


class Untold(Exception):
    """This sample cannot be written in Lua."""


class Slot:
    """The place of a tensor in the arguments."""
    def __init__(self, number, shifted):
        self.number, self.shifted = number, shifted


# ---- what Nacre has


class Signature:
    def __init__(self, line):
        self.name, self.type, params, self.inplace, self.method, self.out = \
            line.split("\t")
        self.params = [p.split(":") for p in params.split(",") if p]

    def param(self, k):
        return self.params[k] if k < len(self.params) else ("", "any")

    def named(self, name):
        for p in self.params:
            if p[0] == name:
                return p
        return name, "any"


SIGNATURES = """
local function get(t, key)      -- nil where there is none
  local ok, v = pcall(function() return t[key] end)
  return ok and v or nil
end
for name in io.lines() do
  local i, names = nacre._info(name), {}
  if i then
    for k, p in ipairs(i.params or {}) do names[k] = p.name .. ":" .. p.type end
    local short = name:match "[^.]+$"
    local t = nacre.zeros(1)
    local f = nacre
    for word in name:gmatch "[^.]+" do f = f and get(f, word) end
    print(name, type(f), table.concat(names, ","),
          tostring(get(t, short .. "_") ~= nil), tostring(i.method),
          i.out ~= false and name ~= "equal" and "out" or "")
  end
end
"""


def lua_name(op):
    name = op.name.replace("special.", "")
    return NAMES.get(name, name)


def short(name):
    """Many functions of nn.functional are Nacre's own."""
    return name.replace("nn.functional.", "")


def signatures(nacre):
    names = {name for op in op_db for name in (lua_name(op), op.name)}
    names = sorted(names | {short(name) for name in names})
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as f:
        f.write(SIGNATURES)
        f.flush()
        done = subprocess.run([nacre, f.name], input="\n".join(names) + "\n",
                              stdout=subprocess.PIPE, text=True, check=True)
    found = [Signature(line) for line in done.stdout.splitlines()]
    return {s.name: s for s in found}


# ---- writing a sample in Lua


def up(v):
    """A dimension or a position, or a list of them, as Lua counts."""
    if isinstance(v, bool) or not isinstance(v, (int, list, tuple)):
        return v
    if isinstance(v, int):
        return v + 1 if v >= 0 else v
    return [up(x) for x in v]


def shift(t, by):
    """Positions in a tensor from 0 to from 1, or back."""
    if t.dtype in (torch.bool, torch.uint8) or d.has_gradient(t):
        return t
    return torch.where(t >= (0 if by > 0 else 1), t + by, t)


class Writer:
    """The arguments of one sample: Lua's text, tensors, Python's values."""
    def __init__(self, signature):
        self.signature, self.tensors, self.slots = signature, [], []

    def tensor(self, t, shifted):
        if (t.layout != torch.strided or t.is_quantized or t.dim() > 8 or
                t.is_complex() and d.name(t.dtype) not in d.PARTS):
            raise Untold("of a kind that Nacre does not have")
        if t.is_complex():              # PyTorch may conjugate it later
            t = t.resolve_conj()
        if t.device.type != "cpu":      # some samples are of any device
            raise Untold("of another device")
        self.tensors.append(shift(t.detach(), 1) if shifted else t.detach())
        self.slots.append(shifted)
        return Slot(len(self.tensors) - 1, shifted)

    def value(self, v, param):
        """(Lua's text, Python's value with slots for tensors)"""
        name, kind = param
        positions = POSITIONS.get(self.signature.name, [])
        if isinstance(v, torch.Tensor):
            slot = self.tensor(v, name in positions and not
                               (name == "indices_or_sections" and v.dim() == 0))
            return ascii_lowercase[slot.number], slot
        if isinstance(v, torch.dtype):
            if not hasattr(torch, d.name(v)) or \
                    d.name(v) not in d.ALL + list(d.PARTS):
                raise Untold("of a dtype that Nacre does not have")
            return d.lua(d.name(v)), v
        if isinstance(v, (list, tuple)) and not isinstance(v, torch.Size) and \
                any(isinstance(x, torch.Tensor) for x in v):
            both = [self.value(x, param) for x in v]
            return ("{%s}" % ", ".join(text for text, _ in both),
                    type(v)(kept for _, kept in both)
                    if type(v) in (list, tuple) else [k for _, k in both])
        if isinstance(v, complex):
            return f"nacre.complex({d.lua(v.real)}, {d.lua(v.imag)})", v
        if callable(v) or isinstance(v, dict):
            raise Untold("of a kind that Nacre does not have")
        if not isinstance(v, (int, float, str, list, tuple, type(None))):
            raise Untold(f"a {type(v).__name__}")
        counted = kind in ("dim", "dims", "index", "dimortensor") or \
            DIMS.match(name) and self.signature.name != "tile"
        if name == "indices_or_sections" or self.signature.name == "tensordot":
            counted = isinstance(v, (list, tuple))
        if self.signature.name in ("slice", "slice_scatter") and name == "end":
            counted = False
        return d.lua(up(v) if counted else v), v


# Choices that are Nacre's only ones, and are not written.
ASSUMED = {"driver": ("gels", "gelsy", "gelsd", "gelss", None),
           "pivot": (True,), "sparse": (False,)}
IGNORED = ("device", "layout", "requires_grad", "memory_format", "pin_memory",
           "non_blocking")


def restore(v, given):
    """Python's value with the tensors in their slots."""
    if isinstance(v, Slot):
        t = given[v.number]
        return shift(t, -1) if v.shifted else t
    if isinstance(v, list):
        return [restore(x, given) for x in v]
    if isinstance(v, tuple) and type(v) is tuple:
        return tuple(restore(x, given) for x in v)
    return v


def call(name, how, texts, named):
    if how == "operator":
        return f"({texts[1]}) {OPERATORS[name]} {texts[0]}"
    options = ["%s = %s" % (("[%r]" % k) if k == "end" else k, v)
               for k, v in named.items()]
    rest = texts if how == "function" else texts[1:]
    if options:
        rest = rest + ["{ %s }" % ", ".join(options)]
    if how == "function":
        return f"nacre.{name}({', '.join(rest)})"
    if how == "inplace":
        return f"{texts[0]}:clone():{name}_({', '.join(rest)})"
    return f"{texts[0]}:{name}({', '.join(rest)})"


def outcome(name, y, kwargs):
    """A list of tensors, positions as Lua counts them."""
    found = FOUND.get(name, [])
    if name == "nonzero":
        found = range(9)
    if name.startswith("unique") and kwargs.get("return_inverse"):
        found = [1]
    if isinstance(y, torch.Tensor) or not isinstance(y, (tuple, list)):
        y = [y]
    y = [t if isinstance(t, torch.Tensor) else torch.tensor(t) for t in y]
    return [t + 1 if k in found else t for k, t in enumerate(y)]


def case_of(op, sample, how, signature, fails=None):
    w = Writer(signature)
    name = signature.name
    every = (sample.input,) + tuple(sample.args)
    order = ORDER.get(op.name, [])[:len(every)] or range(len(every))
    places = {k: i for i, k in enumerate(order)}
    both = [w.value(v, signature.param(places.get(k, k)))
            for k, v in enumerate(every)]
    named = {k: w.value(v, signature.named(k))
             for k, v in sample.kwargs.items()
             if k not in IGNORED and v not in ASSUMED.get(k, ())}
    given_input, given = both[0][1], [kept for _, kept in both[1:]]
    kept_named = {k: kept for k, (_, kept) in named.items()}
    kept_named.update({k: v for k, v in sample.kwargs.items()
                       if k not in named})
    if len(w.tensors) > 26:
        raise Untold("of too many tensors")
    if sample.kwargs.get("dropout_p"):
        raise Untold("of what is drawn")
    f = op.inplace_variant if how == "inplace" else op.op

    def want(*tensors):
        first = restore(given_input, tensors)
        if how == "inplace":
            first = first.clone()
        y = f(first, *restore(tuple(given), tensors),
              **{k: restore(v, tensors) for k, v in kept_named.items()})
        y = outcome(name, y, sample.kwargs)
        return [torch.ones_like(t) for t in y] if DRAWN.match(op.name) else y

    texts = [both[k][0] for k in order]
    if (op.name, op.variant_test_name) == ("linalg.pinv", "singular"):
        texts = ["%s:matmul(%s.mT)" % tuple(texts)]     # of their product
    if name == "einsum":
        texts = [texts[0], texts[1][1:-1]]
    texts_named = {k: text for k, (text, _) in named.items()}
    if how == "out":
        texts_named["out"] = OUT
    text = call(op.name if how == "operator" else name,
                "function" if how == "out" else how, texts, texts_named)
    if DRAWN.match(op.name):
        text = f"nacre.ones_like({text})"
    halves = any(t.dtype in d.HALVES for t in w.tensors)
    case = d.Case(text, w.tensors, want, HALVES_ROUNDED if halves else ROUNDED,
                  norm=True)
    case.operation = op.name
    case.laid = [laid(t) for t in w.tensors]
    case.fails, case.how = fails, how
    return case


OUT = "OUT"


def give_out(case):
    """Memory for the result of a call with out=, which PyTorch told."""
    y = case.result
    if isinstance(y, Exception) or len(y[0]) != 1:
        case.text = case.text.replace(", { out = OUT }", "").replace(
            ", out = OUT }", " }").replace("{ out = OUT }", "")
    else:
        y = y[0][0]
        case.text = case.text.replace(OUT, 'nacre.empty(%s, { dtype = "%s" })'
                                      % (d.lua(list(y.shape)), d.name(y.dtype)))


def laid(t):
    """(memory, Lua function) with the strides of the sample."""
    if t.is_contiguous() or t.numel() == 0 or min(t.stride()) < 0:
        return t.contiguous(), None
    reach = sum((n - 1) * s for n, s in zip(t.shape, t.stride())) + 1
    memory = t.as_strided([reach], [1]).clone()
    return memory, ("return t:as_strided(%s, %s, 0)" % (
        d.lua(list(t.shape)), d.lua(list(t.stride()))))


def manners(op, signature, sample):
    """In which ways the call can be written."""
    if op.name in OPERATORS:
        return ["operator"]
    ways = ["function"] if signature.type == "function" else []
    one = isinstance(sample.input, torch.Tensor)
    if one and op.name not in ORDER and signature.method == "true":
        ways.append("method")
    if one and op.inplace_variant and signature.inplace == "true":
        ways.append("inplace")
    if op.supports_out and signature.out and signature.type == "function" \
            and "out" not in sample.kwargs:
        ways.append("out")
    return ways or ["method"]


# ---- the samples

DTYPES = ["float32", "int64", "bool", "float16", "uint8", "int32",
          "bfloat16", "int8", "int16", "complex64", "complex128"]


def size(sample):
    total = 0
    for v in [sample.input, *sample.args, *sample.kwargs.values()]:
        for t in v if isinstance(v, (list, tuple)) else [v]:
            total += t.numel() if isinstance(t, torch.Tensor) else 0
    return total


def samples(op, dtypes, references):
    """(sample, dtype, must fail) of one operation"""
    for dtype in dtypes:
        kind = getattr(torch, dtype)
        if not op.supports_dtype(kind, "cpu"):
            continue
        made = op.reference_inputs if references else op.sample_inputs
        for sample in made("cpu", kind):
            if size(sample) <= 5000:
                yield sample, dtype, None
    if op.error_inputs_func is not None:
        for wrong in op.error_inputs("cpu"):
            yield wrong.sample_input, "error", str(wrong.error_regex)


def dtypes(args, rng, op):
    """Gradients are compared in float64; one other a run does, of ten."""
    if args.dtypes:
        return args.dtypes.split(",")
    taken = [t for t in DTYPES if op.supports_dtype(getattr(torch, t), "cpu")]
    return ["float64"] + ([taken[rng.choice(len(taken))]] if taken else [])


def strange(draw, t):
    """t, now and then with nan, infinities and zeros among its elements."""
    if t.is_floating_point() and t.numel() and draw.flag(0.15):
        t = t.contiguous().clone()
        for v in draw.rng.choice([np.nan, np.inf, -np.inf, -0.0, 0.0],
                                 draw.integer(1, 3)):
            t.view(-1)[draw.integer(0, t.numel() - 1)] = v
    return t


def gather(args, rng, table):
    cases, untold = [], 0
    for op in op_db:
        if op.name in ("zero_", "resize_"):     # change what they are given
            continue
        signature = table.get(lua_name(op)) or \
            table.get(short(lua_name(op))) or table.get(op.name)
        if op.name in OPERATORS:
            signature = Signature("\t".join([op.name, "", "", "", "", ""]))
        if signature is None or args.only and not re.search(args.only, op.name):
            continue
        try:
            taken = list(samples(op, dtypes(args, rng, op), args.references))
        except Exception as e:              # needs what is not installed
            print(op.name, "samples:", str(e)[:100])
            continue
        for sample, dtype, fails in taken:
            ways = manners(op, signature, sample)
            if args.cases:
                ways = [ways[rng.choice(len(ways))]]
            for how in ways:
                try:
                    case = case_of(op, sample, how, signature, fails)
                except Untold:
                    untold += 1
                    continue
                case.dtype = dtype
                cases.append(case)
    if 0 < args.cases < len(cases):
        cases = [cases[i] for i in
                 sorted(rng.permutation(len(cases))[:args.cases])]
    draw = d.Draw(rng)
    for case in cases:
        if args.strided and case.operation not in LAID:
            if not FINITE.search(case.operation):
                case.inputs = [strange(draw, t) for t in case.inputs]
            case.laid = [draw.layout(t) for t in case.inputs]
        case.grad = case.dtype in ("float64", "complex128") and \
            not DRAWN.match(case.operation) and case.how != "out" and \
            any(d.has_gradient(t) for t in case.inputs) and \
            all(bool(torch.isfinite(t).all()) for t in case.inputs)
        case.second = args.second and case.grad
        case.result = reference(case)
        if case.grad and isinstance(case.result, Exception):
            case.grad = case.second = False
            case.result = reference(case)
        if case.how == "out":
            give_out(case)
    return [case for case in cases if not case.fails or
            isinstance(case.result, Exception)], untold


def reference(case):
    try:
        return d.reference(case)
    except Exception as e:              # of a kind no user's call should raise
        return e


def judge(case, line, i, folder):
    """Text of what is wrong, or None."""
    why = d.differs(case, line, i, folder)
    if why is None and not line.startswith("ok") and INTERNAL.search(line):
        return f"no error of ours: {line}"
    return why


def main():
    parser = d.arguments(3000)
    parser.add_argument("--dtypes", help="instead of float64 and a random one")
    parser.add_argument("--references", action="store_true")
    parser.add_argument("--strided", action="store_true",
                        help="other layouts; nan and infinities")
    parser.add_argument("--second", action="store_true",
                        help="compare second derivatives")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    cases, untold = gather(args, rng, signatures(args.nacre))
    excused = d.compare("opinfo_torch", args, cases, judge)
    print(f"opinfo_torch: {len(cases)} samples agree with PyTorch "
          f"{torch.__version__} ({excused} differ for a known reason, {untold} "
          "are of what Nacre does not have)")


if __name__ == "__main__":
    main()
