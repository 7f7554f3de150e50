# SPDX-License-Identifier: MIT
"""What suite.py prints: rows, tables, and what became slower."""
import ctypes
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import threading
import time

from suite_sides import NAMES, OURS, library_version

BYTES = {"bool": 1, "uint8": 1, "int8": 1, "float16": 2, "bfloat16": 2,
         "int16": 2, "float64": 8, "int64": 8, "complex64": 8}


def size(dtype):
    return BYTES.get(dtype, 4)


def least_work(row, n, results, gradient, options):
    """The bytes or the operations without which the row cannot be done."""
    if gradient or row.work is None:
        return {}
    if row.flops(n):
        clipped = options.small and row.on_device()
        return {} if clipped else {"flops": row.flops(n)}
    moved = {name: math.prod(sizes) * size(dtype) for name, _, dtype, _, sizes
             in row.lets(n, options.dtype, options.small)}
    result = sum(y.count * size(y.dtype) for y in results[:1])
    if row.work == "memory":
        total = sum(moved.values()) + result
    else:
        total = sum(moved.get(name, result) for name in row.work.split()[1:])
    if total < 1 << 16:              # the call is what takes time
        return {}
    return {"bytes": total}


class Memory:
    """How long this machine takes to copy blocks by memcpy: the least of all
    times that it was asked, as other programs use the memory, too."""

    def __init__(self, known=None):
        self.known = known or {}       # by bytes and threads, as text

    @staticmethod
    def block(record):
        """Half of the record's bytes are read and half are written."""
        return 1 << max(10, round(math.log2(record["bytes"]) - 1))

    def measure(self, record):
        if "bytes" in record and on_cpu(record):
            half, threads = self.block(record), record["threads"]
            name = f"{half}/{threads}"
            self.known[name] = min(self.known.get(name, math.inf),
                                   self.measured(half, threads))

    def seconds(self, record):
        half = self.block(record)
        return (self.known[f"{half}/{record['threads']}"] *
                record["bytes"] / (2 * half))

    @staticmethod
    def measured(half, threads):
        source = (ctypes.c_char * half).from_buffer(bytearray(b"1" * half))
        target = (ctypes.c_char * half)()
        share = half // threads
        starts = [(ctypes.addressof(target) + i * share,
                   ctypes.addressof(source) + i * share)
                  for i in range(threads)]
        calls = max(1, (1 << 24) // half)

        def move(to, source):
            for _ in range(calls):
                ctypes.memmove(to, source, share)
        now = time.thread_time if threads == 1 else time.perf_counter
        least = math.inf
        for _ in range(7):
            others = [threading.Thread(target=move, args=s)
                      for s in starts[1:]]
            start = now()
            for thread in others:
                thread.start()
            move(*starts[0])
            for thread in others:
                thread.join()
            least = min(least, (now() - start) / calls)
        return least


def clock(record):
    """Older files do not have it."""
    return record.get("clock") or \
        ("processor" if record["threads"] == 1 else "wall")


def rival(record):
    """Whom Nacre is compared with first."""
    names = [name for name in record["times"] if name != "nacre"]
    return next((name for name in names if name not in OURS),
                names[0] if names else None)


def on_cpu(record):
    return clock(record) in ("processor", "wall")


def least(record, side):
    """The least time of a call, in seconds; on a device, the median."""
    return record["times"][side][clock(record)][0 if on_cpu(record) else 1]


def ratio(record, other=None, medians=False):
    """Of the least times, or of the medians."""
    other = other or rival(record)
    if other not in record["times"]:
        return None
    if medians:
        ours, theirs = (record["times"][side][clock(record)][1]
                        for side in ("nacre", other))
        return ours / theirs
    return least(record, "nacre") / least(record, other)


def duration(seconds):
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "us")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3f} us"


def figure(value, form="{:.2f}"):
    return "" if value is None else form.format(value)


def limit(record, fastest, memory):
    """Which part of what the machine can do Nacre reaches."""
    spent = least(record, "nacre")
    if not on_cpu(record):
        return None
    if "bytes" in record:
        return memory.seconds(record) / spent
    if "flops" in record:
        return record["flops"] / spent / fastest[record["threads"]]
    return None


def fastest_products(records):
    """The highest rate of operations of either side, by threads."""
    found = {}
    for r in records:
        if "flops" in r and on_cpu(r):
            rate = r["flops"] / min(least(r, side) for side in r["times"])
            found[r["threads"]] = max(rate, found.get(r["threads"], 0))
    return found


def show(record):
    """A line while it is measured."""
    cells = [f"{record['group']}: {record['name']}",
             *(f"{name} {duration(least(record, name))}"
               for name in record["times"])]
    if rival(record):
        cells.append(f"{ratio(record):.2f}")
    print("  ".join(cells), file=sys.stderr, flush=True)


def average(ratios):
    """The geometric mean."""
    return math.exp(statistics.fmean(math.log(r) for r in ratios))


def table(head, rows):
    """A table of Markdown, all columns but the first to the right."""
    yield "| " + " | ".join(head) + " |"
    yield "|---" + "|---:" * (len(head) - 1) + "|"
    for cells in rows:
        yield "| " + " | ".join(cells) + " |"
    yield ""


def groups(records):
    return list(dict.fromkeys(r["group"] for r in records))


def summary(records):
    """The mean of each group, and how many rows are behind."""
    rows = []
    for group in [*groups(records), None]:
        ratios = [ratio(r) for r in records if group in (None, r["group"])]
        behind = [sum(x > 1 + share for x in ratios)
                  for share in (0.05, 0.1, 0.3)]
        rows.append([group or "all", str(len(ratios)),
                     f"{average(ratios):.2f}",
                     *(f"{k} ({100 * k / len(ratios):.0f} %)"
                       for k in behind)])
    names = list(dict.fromkeys(NAMES[rival(r)] for r in records))
    yield from table(["group", "rows", f"Nacre / {' or '.join(names)}",
                      "behind by 5 %", "by 10 %", "by 30 %"], rows)


def behind(records):
    """The rows that are behind by 30 %, the last first."""
    found = sorted((r for r in records if ratio(r) > 1.3), key=ratio)
    if found:
        yield "Behind by more than 30 %: " + "; ".join(
            f"{r['name']} {ratio(r):.2f}" for r in reversed(found)) + "."
        yield ""


def spread(record):
    low, high = record.get("quartiles", {}).get(rival(record), (None, None))
    return "" if low is None else f"{low:.2f} to {high:.2f}"


def rate(record):
    spent = least(record, "nacre")
    if "flops" in record:
        return f"{record['flops'] / spent / 1e12:.1f} TFLOP/s"
    if "bytes" in record and clock(record) != "host":
        return f"{record['bytes'] / spent / 1e9:.0f} GB/s"
    return ""


def goal(record):
    most = record.get("most")
    return figure(record.get("goal")) + (f", {duration(most)}" if most else "")


def met(record):
    if "goal" not in record or rival(record) is None:
        return ""
    well = ratio(record) <= record["goal"] and \
        least(record, "nacre") <= record.get("most", math.inf)
    return "yes" if well else "**no**"


# Columns that only some rows ask for: what stands in them.
FURTHER = {
    "quartiles": {"quartiles": spread},
    "memory": {"memory": lambda r: figure(r.get("memory"))},
    "rate": {"rate": rate},
    "goal": {"goal": goal, "met": met},
}


def rows_of(records, limits):
    others = [name for name in NAMES if name != "nacre" and
              any(name in r["times"] for r in records)]
    columns = {"row": lambda r: r["name"].replace("|", "\\|")}
    for side in ("nacre", *others):
        columns[NAMES[side]] = lambda r, side=side: (
            duration(least(r, side)) if side in r["times"] else "")
    for side in others:
        columns[f"Nacre / {NAMES[side]}"] = lambda r, side=side: figure(
            ratio(r, side))
    if others:
        columns["of medians"] = lambda r: figure(ratio(r, medians=True))
    for name in dict.fromkeys(n for r in records for n in r.get("shown", ())):
        columns.update(FURTHER[name])
    if any(on_cpu(r) for r in records):
        columns["of the limit"] = lambda r: figure(limit(r, *limits), "{:.0%}")
    yield from table(list(columns), [[cell(r) for cell in columns.values()]
                                     for r in records])


def tables(result):
    """All lines of the report of a run."""
    records = result["records"]
    fastest = fastest_products(records)
    memory = Memory(result["memory"])
    yield from (f"* {line}" for line in result["machine"])
    yield ""
    for threads in dict.fromkeys(r["threads"] for r in records):
        part = [r for r in records if r["threads"] == threads]
        yield f"## {threads} thread{'s' if threads > 1 else ''}"
        yield ""
        beside = [r for r in part if rival(r)]
        if beside:
            yield from summary(beside)
            yield from behind(beside)
        for group in groups(part):
            yield f"### {group}"
            yield ""
            yield from rows_of([r for r in part if r["group"] == group],
                               (fastest, memory))
        if threads in fastest:
            yield (f"The limit of products and convolutions is the fastest "
                   f"row of this run, {fastest[threads] / 1e9:.0f} GFLOP/s; "
                   f"of other rows it is a memcpy of as many bytes, which "
                   f"results that are written past the cache can beat.")
            yield ""
    if result.get("failed"):
        yield from table(["failed"], [[line] for line in result["failed"]])
    if result.get("left"):
        yield "Not measured, the time was over: " + "; ".join(result["left"])
        yield ""


def keep(path, result):
    """Writes a run, a line for each record."""
    def rounded(x):
        if isinstance(x, float):
            return float(f"{x:.4g}")
        if isinstance(x, list):
            return [rounded(y) for y in x]
        if isinstance(x, dict):
            return {k: rounded(y) for k, y in x.items()}
        return x
    lines = [json.dumps(rounded(r)) for r in result["records"]]
    with open(path, "w", encoding="utf-8") as f:
        for part in ("machine", "memory"):
            f.write(f'{"{" if part == "machine" else ""}"{part}": ')
            f.write(json.dumps(rounded(result[part]), indent=1) + ",\n")
        for part in ("left", "failed"):
            f.write(f'"{part}": {json.dumps(result[part])},\n')
        f.write('"records": [\n' + ",\n".join(lines) + "\n]}\n")


def key(record):
    return record["group"], record["name"], record["n"], record["threads"]


def slower(result, path):
    """Rows whose ratio, or whose time without a rival, rose by a tenth."""
    with open(path, encoding="utf-8") as f:
        before = {key(r): r for r in json.load(f)["records"]}
    rows = []
    for r in result["records"]:
        old = before.get(key(r))
        if old is None:
            continue
        change = least(r, "nacre") / least(old, "nacre")
        if rival(r) and rival(r) == rival(old):
            change = ratio(r) / ratio(old)
        rows.append((change, r, old))
    rows.sort(key=lambda found: -found[0])
    yield (f"Since {path}: {sum(c > 1.1 for c, _, _ in rows)} rows slower by "
           f"10 %, {sum(c < 0.9 for c, _, _ in rows)} faster, of {len(rows)}.")
    yield ""
    yield from table(
        ["row", "threads", "before", "now", "change"],
        [[f"{r['group']}: {r['name']}", str(r["threads"]),
          duration(least(old, "nacre")), duration(least(r, "nacre")),
          f"{change:.2f}"]
         for change, r, old in rows if change > 1.1 or change < 0.9])


def growth(records):
    """By which power of n the time grows; where Nacre's is the greater one
    comes first."""
    pairs = {}
    for r in records:
        pairs.setdefault((r["group"], r["name"], r["threads"]), []).append(r)
    rows = []
    for (group, name, threads), found in pairs.items():
        if len(found) == 2:
            powers = [math.log(least(found[1], s) / least(found[0], s), 4)
                      for s in ("nacre", rival(found[0])) if s]
            rows.append((powers[0] - powers[-1], [
                f"{group}: {name}", str(threads),
                *(f"{power:.2f}" for power in powers)]))
    rows.sort(key=lambda found: -found[0])
    sides = ["Nacre", "rival"][:len(rows[0][1]) - 2] if rows else []
    yield from table(["row", "threads", *sides],
                     [cells for _, cells in rows])


def machine_lines(nacre):
    """The lines that say what was measured where."""
    version = subprocess.run([nacre, "--version"], check=True, text=True,
                             capture_output=True).stdout.splitlines()[0]
    model = platform.processor()
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
        model = next((line.split(":")[1].strip() for line in f
                      if line.startswith("model name")), model)
    return [time.strftime("%Y-%m-%d", time.gmtime()), model,
            f"{len(os.sched_getaffinity(0))} processors visible, load "
            f"{os.getloadavg()[0]:.2f}", version]


def machine(options):
    """These and the libraries."""
    return [*machine_lines(options.nacre),
            *(f"{NAMES[name]} {library_version(name)}"
              for name in NAMES if name in options.beside and
              name not in (*OURS, "raw", "compile")),
            *(f"{NAMES[name]}: not here" for name in sorted(options.missing)),
            f"{options.turns or (3 if options.quick else 11)} turns of "
            f"{options.seconds * 1e3:g} ms"]


def report(options, result):
    lines = []
    if options.growth:
        lines += growth(result["records"])
    else:
        lines += tables(result)
    if options.against:
        lines += slower(result, options.against)
    text = "\n".join(lines)
    print(text)
    if options.markdown:
        with open(options.markdown, "w", encoding="utf-8") as f:
            f.write(text)
