# SPDX-License-Identifier: MIT
"""nacre.distributions against torch.distributions: densities and their
gradients, moments, distribution functions, entropies, divergences, shapes.
Run by: distributions_torch.py NACRE [--seed N]"""
import argparse
import itertools
import math
import random
import subprocess
import sys

import torch
import torch.distributions as D

torch.set_default_dtype(torch.float64)

HEAD = """
nacre.set_default_dtype "float64"
local D = nacre.distributions
local T = D.transforms
local function show(f)
  local ok, y = pcall(f)
  if not ok then
    print("error: " .. tostring(y):gsub("\\n.*", ""))
  else
    y = nacre.is_tensor(y) and y:detach():double():flatten():tolist() or y
    for i, v in ipairs(y) do y[i] = ("%.17g"):format(v) end
    print(table.concat(y, " "))
  end
end
"""
REAL, POSITIVE, UNIT = (-2, 2), (0.2, 4), (0.05, 0.95)

# class: its parameters, and where its values are
ONE = {
    "Normal": ({"loc": REAL, "scale": POSITIVE}, REAL),
    "Laplace": ({"loc": REAL, "scale": POSITIVE}, REAL),
    "Cauchy": ({"loc": REAL, "scale": POSITIVE}, REAL),
    "Gumbel": ({"loc": REAL, "scale": POSITIVE}, REAL),
    "StudentT": ({"df": (0.5, 6), "loc": REAL, "scale": POSITIVE}, REAL),
    "Uniform": ({"low": (-2, 0), "high": (0.5, 2)}, (0, 0.4)),
    "VonMises": ({"loc": REAL, "concentration": POSITIVE}, REAL),
    "Exponential": ({"rate": POSITIVE}, POSITIVE),
    "Gamma": ({"concentration": POSITIVE, "rate": POSITIVE}, POSITIVE),
    "Chi2": ({"df": POSITIVE}, POSITIVE),
    "InverseGamma": ({"concentration": (0.5, 6), "rate": POSITIVE}, POSITIVE),
    "Beta": ({"concentration1": POSITIVE, "concentration0": POSITIVE}, UNIT),
    "HalfNormal": ({"scale": POSITIVE}, POSITIVE),
    "HalfCauchy": ({"scale": POSITIVE}, POSITIVE),
    "LogNormal": ({"loc": REAL, "scale": POSITIVE}, POSITIVE),
    "Pareto": ({"scale": (0.2, 1), "alpha": POSITIVE}, (1, 5)),
    "Weibull": ({"scale": POSITIVE, "concentration": (1, 4)}, POSITIVE),
    "Bernoulli": ({"probs": UNIT}, "01"),
    "Geometric": ({"probs": UNIT}, "count"),
    "Binomial": ({"total_count": "n", "probs": UNIT}, "count"),
    "NegativeBinomial": ({"total_count": "n", "probs": UNIT}, "count"),
    "Poisson": ({"rate": POSITIVE}, "count"),
    "RelaxedBernoulli": ({"temperature": POSITIVE, "probs": UNIT}, UNIT),
}
LOGITS = ["Bernoulli", "Geometric", "Binomial", "NegativeBinomial",
          "RelaxedBernoulli"]
VECTOR = ["Categorical", "OneHotCategorical", "Multinomial", "Dirichlet",
          "RelaxedOneHotCategorical", "MultivariateNormal"]


def draw(r, of, shape):
    size = math.prod(shape)
    if of == "n":
        list_ = [float(r.randint(3, 9)) for _ in range(size)]
    elif of in ("01", "count"):
        list_ = [float(r.randint(0, 1 if of == "01" else 3))
                 for _ in range(size)]
    else:
        list_ = [r.uniform(*of) for _ in range(size)]
    return torch.tensor(list_).view(shape)


def text(t):
    flat = "nacre.tensor({" + ", ".join(repr(v) for v in
                                        t.detach().flatten().tolist()) + "}"
    whole = ', {dtype = "int64"})' if t.dtype == torch.int64 else ")"
    shape = ", ".join(map(str, t.shape))
    return flat + whole + f":view({{{shape}}})"


class Cases:
    def __init__(self):
        self.lines, self.want, self.label = [HEAD], [], []

    def add(self, code, want):
        """`want' gives a tensor, or raises an error: then so must the code"""
        try:
            value = want()
            value = [float(v) for v in value.detach().double().flatten()]
        except (NotImplementedError, AttributeError):
            return                            # that PyTorch does not have
        except (ValueError, RuntimeError):
            value = None
        self.lines.append(f"show(function() return {code} end)")
        self.want.append(value)
        self.label.append(code)

    def run(self, nacre):
        out = subprocess.run([nacre, "-"], input="\n".join(self.lines),
                             capture_output=True, text=True)
        got = out.stdout.split("\n")[:-1]
        if len(got) != len(self.want):
            print(out.stderr)
            sys.exit(f"{len(got)} lines, not {len(self.want)}")
        return sum(not same(*case) for case in zip(self.label, got, self.want))


def close(a, b, tolerance):
    return a == b or a != a and b != b or \
        abs(a - b) <= tolerance * max(1, abs(a), abs(b))


def same(label, got, want):
    if want is None or got.startswith("error"):
        fine = want is None and got.startswith("error")
    else:
        values = [float(v) for v in got.split()]
        # PyTorch's Bessel functions have seven digits
        tolerance = 3e-6 if "VonMises" in label else 1e-9
        fine = len(values) == len(want) and all(
            close(a, b, tolerance) for a, b in zip(values, want))
    if not fine:
        print(f"{label}\n  {got[:300]}\n  {str(want)[:300]}")
    return fine


def both(name, params):
    """A distribution in both languages"""
    code = ", ".join(f"{key} = {text(v)}" for key, v in params.items())
    return f"D.{name}{{{code}}}", getattr(D, name)(**params)


FIELDS = ["mean", "variance", "stddev", "mode"]


def facts(cases, code, d, x):
    cases.add(f"({code}):log_prob({text(x)})", lambda: d.log_prob(x))
    cases.add(f"({code}):entropy()", lambda: d.entropy())
    for field in FIELDS:
        cases.add(f"({code}).{field}", lambda f=field: getattr(d, f))
    for field in ("batch_shape", "event_shape"):
        cases.add(f"({code}).{field}",
                  lambda f=field: torch.tensor(list(getattr(d, f))))


def probabilities(cases, r, code, d, x):
    if type(d).__name__ in ("Gamma", "Chi2", "InverseGamma", "Beta"):
        return                                # gammainc is not there
    cases.add(f"({code}):cdf({text(x)})", lambda: d.cdf(x))
    p = draw(r, UNIT, x.shape)
    cases.add(f"({code}):icdf({text(p)})", lambda: d.icdf(p))


def gradients(cases, name, params, x):
    """of log_prob and entropy, for all parameters"""
    for key in params:
        given = {k: v.clone() for k, v in params.items()}
        given[key].requires_grad_()
        def want(what, given=given, key=key):
            d = getattr(D, name)(**given)
            y = d.log_prob(x) if what == "log_prob" else d.entropy()
            return torch.autograd.grad(y.sum(), given[key])[0]
        code = ", ".join(f"{k} = {'p' if k == key else text(v)}"
                         for k, v in params.items())
        for what, args in (("log_prob", text(x)), ("entropy", "")):
            cases.add(f"(function() local p = {text(params[key])}"
                      f":requires_grad_(); return nacre.autograd.grad("
                      f"D.{name}{{{code}}}:{what}({args}):sum(), p) end)()",
                      lambda what=what, want=want: want(what))


def ones(cases, r):
    for name, (kinds, values) in ONE.items():
        if not hasattr(D, name):
            continue                          # in this PyTorch
        for shape in ([], [3], [2, 3]):
            params = {k: draw(r, of, shape) for k, of in kinds.items()}
            x = draw(r, values, shape if r.random() < 0.5 else [2] + shape)
            code, d = both(name, params)
            facts(cases, code, d, x)
            probabilities(cases, r, code, d, x)
            continuous = {k: v for k, v in params.items() if k != "total_count"}
            if len(continuous) == len(params):
                gradients(cases, name, params, x)
            cases.add(f"({code}):expand({{4, {str(shape)[1:-1]}}}):log_prob("
                      f"{text(x)})" if shape else f"({code}):expand(4).mean",
                      lambda: d.expand([4] + shape).log_prob(x) if shape else
                      d.expand([4]).mean)
        if name in LOGITS:
            params = {k: draw(r, of, [3]) for k, of in kinds.items()
                      if k != "probs"}
            params["logits"] = draw(r, REAL, [3])
            code, d = both(name, params)
            facts(cases, code, d, draw(r, values, [3]))
            cases.add(f"({code}).probs", lambda: d.probs)
    for name in ("Bernoulli", "Binomial"):
        params = {"probs": draw(r, UNIT, [2])}
        if name == "Binomial":
            params["total_count"] = torch.tensor([5.0, 5.0])
        code, d = both(name, params)
        for expand in (True, False):
            cases.add(f"({code}):enumerate_support({str(expand).lower()})",
                      lambda e=expand: d.enumerate_support(e))


def from_1(t):
    return t + 1


def categories(cases, r):
    for batch in ([], [2], [2, 3]):
        for key in ("probs", "logits"):
            k = r.randint(2, 5)
            p = draw(r, (0.1, 1) if key == "probs" else REAL, batch + [k])
            at = torch.tensor([r.randrange(k) for _ in range(
                math.prod(batch))]).view(batch)
            code, d = both("Categorical", {key: p})
            cases.add(f"({code}):log_prob({text(from_1(at))})",
                      lambda: d.log_prob(at))
            cases.add(f"({code}):entropy()", lambda: d.entropy())
            cases.add(f"({code}).mode", lambda: from_1(d.mode))
            cases.add(f"({code}):enumerate_support()",
                      lambda: from_1(d.enumerate_support()))
            for other in ("probs", "logits"):
                cases.add(f"({code}).{other}", lambda o=other: getattr(d, o))
            code, d = both("OneHotCategorical", {key: p})
            x = torch.nn.functional.one_hot(at, k).double()
            facts(cases, code, d, x)
            cases.add(f"({code}):enumerate_support()",
                      lambda: d.enumerate_support())
            n = r.randint(1, 6)
            d = D.Multinomial(n, **{key: p})
            code = f"D.Multinomial({n}, {{{key} = {text(p)}}})"
            facts(cases, code, d, d.sample())
            T = draw(r, POSITIVE, [])
            code, d = both("RelaxedOneHotCategorical",
                           {"temperature": T, key: p})
            facts(cases, code, d, draw(r, (0.1, 1), batch + [k]).softmax(-1))


def vectors(cases, r):
    for batch in ([], [3], [2, 2]):
        n = r.randint(2, 4)
        a = draw(r, POSITIVE, batch + [n])
        x = draw(r, (0.1, 1), batch + [n])
        x = x / x.sum(-1, keepdim=True)
        code, d = both("Dirichlet", {"concentration": a})
        facts(cases, code, d, x)
        gradients(cases, "Dirichlet", {"concentration": a}, x)
        A = draw(r, REAL, batch + [n, n])
        cov = A @ A.mT + torch.eye(n)
        loc, x = draw(r, REAL, batch + [n]), draw(r, REAL, batch + [n])
        for key, M in (("covariance_matrix", cov),
                       ("precision_matrix", cov),
                       ("scale_tril", torch.linalg.cholesky(cov))):
            code, d = both("MultivariateNormal", {"loc": loc, key: M})
            facts(cases, code, d, x)
            for field in ("covariance_matrix", "precision_matrix",
                          "scale_tril"):
                cases.add(f"({code}).{field}", lambda f=field: getattr(d, f))
        # one matrix for all
        code, d = both("MultivariateNormal",
                       {"loc": loc, "covariance_matrix": torch.eye(n)})
        facts(cases, code, d, x)
        code, d = both("Normal", {"loc": loc, "scale": torch.ones_like(loc)})
        for k in range(len(batch) + 2):
            facts(cases, f"D.Independent({code}, {k})", D.Independent(d, k), x)
    for shape in ([3], [2, 3]):
        mix = draw(r, (0.1, 1), shape)
        a, da = both("Categorical", {"probs": mix})
        b, db = both("Normal", {"loc": draw(r, REAL, shape),
                                "scale": draw(r, POSITIVE, shape)})
        x = draw(r, REAL, shape[:-1])
        m = D.MixtureSameFamily(da, db)
        code = f"D.MixtureSameFamily({a}, {b})"
        facts(cases, code, m, x)
        cases.add(f"({code}):cdf({text(x)})", lambda: m.cdf(x))


def transformed(cases, r):
    t = {"T.ExpTransform()": D.ExpTransform(),
         "T.SigmoidTransform()": D.SigmoidTransform(),
         "T.TanhTransform()": D.TanhTransform(),
         "T.SoftplusTransform()": D.SoftplusTransform(),
         "T.AffineTransform(1.5, -2)": D.AffineTransform(1.5, -2),
         "T.AffineTransform(0.5, 2)": D.AffineTransform(0.5, 2),
         "T.StickBreakingTransform()": D.StickBreakingTransform(),
         "T.ComposeTransform{T.AffineTransform(1, 3), T.TanhTransform()}":
         D.ComposeTransform([D.AffineTransform(1, 3), D.TanhTransform()]),
         "T.ComposeTransform{T.AffineTransform(1, 3), "
         "T.StickBreakingTransform()}":
         D.ComposeTransform([D.AffineTransform(1, 3),
                             D.StickBreakingTransform()])}
    for code, f in t.items():
        for shape in ([3], [2, 3]):
            x = draw(r, (-1, 1), shape)
            y = f(x)
            cases.add(f"{code}({text(x)})", lambda: y)
            cases.add(f"{code}:inv({text(y)})", lambda: f.inv(y))
            cases.add(f"{code}:log_abs_det_jacobian({text(x)}, {text(y)})",
                      lambda: f.log_abs_det_jacobian(x, y))
            base, d = both("Normal", {"loc": draw(r, REAL, shape),
                                      "scale": draw(r, POSITIVE, shape)})
            whole = D.TransformedDistribution(d, f)
            of = f"D.TransformedDistribution({base}, {code})"
            cases.add(f"{of}:log_prob({text(y)})", lambda: whole.log_prob(y))
            for field in ("batch_shape", "event_shape"):
                cases.add(f"{of}.{field}", lambda field=field: torch.tensor(
                    list(getattr(whole, field))))
            if "Stick" not in code:
                cases.add(f"{of}:cdf({text(y)})", lambda: whole.cdf(y))
                p = draw(r, UNIT, shape)
                cases.add(f"{of}:icdf({text(p)})", lambda: whole.icdf(p))
    base, d = both("Gamma", {"concentration": draw(r, POSITIVE, [2]),
                             "rate": draw(r, POSITIVE, [2])})
    f = D.PowerTransform(torch.tensor(-0.5))
    y = draw(r, POSITIVE, [2])
    cases.add(f"D.TransformedDistribution({base}, {{T.PowerTransform(-0.5)}})"
              f":log_prob({text(y)})",
              lambda: D.TransformedDistribution(d, [f]).log_prob(y))


def divergences(cases, r):
    for p, q in itertools.product(ONE, ONE):
        if p in ("Binomial", "NegativeBinomial") or (p, q) not in KNOWN:
            continue
        for shape in ([], [3]):
            a, da = both(p, {k: draw(r, of, shape)
                             for k, of in ONE[p][0].items()})
            b, db = both(q, {k: draw(r, of, shape)
                             for k, of in ONE[q][0].items()})
            cases.add(f"D.kl_divergence({a}, {b})",
                      lambda: D.kl_divergence(da, db))
    n = torch.tensor([4.0, 7.0])
    pair = [both("Binomial", {"total_count": n, "probs": draw(r, UNIT, [2])})
            for _ in range(2)]
    vector = [both("MultivariateNormal", {
        "loc": draw(r, REAL, [2, 3]), "scale_tril": torch.linalg.cholesky(
            (lambda A: A @ A.mT + torch.eye(3))(draw(r, REAL, [3, 3])))})
        for _ in range(2)]
    for (a, da), (b, db) in (pair, vector, *(
            [both(name, {key: draw(r, (0.1, 2), [2, 4])}) for _ in range(2)]
            for name, key in (("Categorical", "probs"),
                              ("OneHotCategorical", "logits"),
                              ("Dirichlet", "concentration"))),
            [both("Gamma", {"concentration": draw(r, POSITIVE, [3]),
                            "rate": draw(r, POSITIVE, [3])})
             for _ in range(2)]):
        cases.add(f"D.kl_divergence({a}, {b})", lambda: D.kl_divergence(da, db))
        if da.batch_shape and "Binomial" not in a:
            cases.add(f"D.kl_divergence(D.Independent({a}, 1), "
                      f"D.Independent({b}, 1))", lambda: D.kl_divergence(
                          D.Independent(da, 1), D.Independent(db, 1)))


KNOWN = {(name, name) for name in ONE} - {
    (name, name) for name in ("StudentT", "VonMises", "InverseGamma", "Weibull",
                              "HalfCauchy", "RelaxedBernoulli", "Chi2")} | {
    ("Laplace", "Normal"), ("Normal", "Laplace"), ("Uniform", "Normal"),
    ("Exponential", "Normal"), ("Exponential", "Gamma"),
    ("Gamma", "Exponential"), ("Gamma", "Normal"), ("Bernoulli", "Poisson"),
    ("Chi2", "Chi2"), ("Chi2", "Gamma"), ("Gamma", "Chi2")}


def refusals(cases):
    """parameters and values that no distribution has"""
    t = torch.tensor
    for code, f in (
            ("D.Normal(0, -1)", lambda: D.Normal(0, -1)),
            ("D.Normal(0/0, 1)", lambda: D.Normal(math.nan, 1)),
            ("D.Beta(1, 0)", lambda: D.Beta(1.0, 0.0)),
            ("D.Bernoulli(1.5)", lambda: D.Bernoulli(1.5)),
            ("D.Bernoulli()", lambda: D.Bernoulli()),
            ("D.Bernoulli(0.5, 0.5)", lambda: D.Bernoulli(0.5, 0.5)),
            ("D.Uniform(1, 0)", lambda: D.Uniform(1.0, 0.0)),
            ("D.Exponential(1):log_prob(-1)",
             lambda: D.Exponential(1.0).log_prob(t(-1.0))),
            ("D.Poisson(1):log_prob(0.5)",
             lambda: D.Poisson(1.0).log_prob(t(0.5))),
            ("D.Normal(nacre.zeros(2), nacre.ones(3))",
             lambda: D.Normal(torch.zeros(2), torch.ones(3))),
            ("D.Normal(nacre.zeros(2), 1):log_prob(nacre.zeros(3))",
             lambda: D.Normal(torch.zeros(2), 1.0).log_prob(torch.zeros(3))),
            ("D.Dirichlet(nacre.ones(3)):log_prob(nacre.ones(3))",
             lambda: D.Dirichlet(torch.ones(3)).log_prob(torch.ones(3)))):
        cases.add(code, f)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("nacre")
    p.add_argument("--seed", type=int, default=1)
    o = p.parse_args()
    torch.manual_seed(o.seed)
    r, cases = random.Random(o.seed), Cases()
    for kind in (ones, categories, vectors, transformed, divergences):
        kind(cases, r)
    refusals(cases)
    wrong = cases.run(o.nacre)
    print(f"distributions_torch: {len(cases.want)} cases, {wrong} differ")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
