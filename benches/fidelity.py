#!/usr/bin/env python3
"""How often the lab's verdict is wrong: cases with injected stalls of known size, each beside undisturbed ones.

    benches/fidelity.py [--bdp PROGRAM] [--rounds N] [--seed N] [--only NAME,...] --output FILE
    benches/fidelity.py --table FILE... [--quiet-file FILE]

A case is disturbed by real-time processes that take a processor away for a known time at a known interval, by ordinary
busy loops, or not at all. Its true error is its goodput against the median of the undisturbed cases of the same cell,
those of --quiet-file where it is given. `missed` are accepted cases that are off by more than 5 %; `false alarms` are
refused ones that are off by less. Needs root.
"""

import argparse
import gzip
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from intervals import interval

CASE = """title = "{name}"
idle = "500ms"
{links}
[[flow]]
from = "near"
to = "far"
{flow}
"""


def link(settings, ends='"near", "far"'):
    return f"[[link]]\nbetween = [{ends}]\n{settings}\n"


def cell(links, flow, seconds=2.5, omit=0.5, congestion="reno"):
    return links, f'duration = "{seconds}s"\nomit = "{omit}s"\ncongestion = "{congestion}"\n{flow}'


FAST = link('rate = "1G"\ndelay = "1.275ms"\nlimit = "1000p"')
HOPS = "[hosts.router]\nrouter = true\n" + link('rate = "1G"\ndelay = "2ms"', '"near", "router"') + link('rate = "300M"\ndelay = "3ms"', '"router", "far"')
CELLS = {
    "2.55ms-8K": cell(FAST, 'window = "8K"'),
    "2.55ms-64K": cell(FAST, 'window = "64K"'),
    "2.55ms-256K": cell(FAST, 'window = "256K"'),
    "2.55ms-1M": cell(FAST, 'window = "1M"'),
    "10ms-10x32K": cell(link('rate = "1G"\ndelay = "5ms"'), 'window = "32K"\nstreams = 10'),
    "41ms-30K": cell(link('rate = "1G"\ndelay = "20.5ms"'), 'window = "30K"'),
    "41ms-1M": cell(link('rate = "1G"\ndelay = "20.5ms"'), 'window = "1M"', 4, 1.5),
    "20ms-queue": cell(link('rate = "50M"\ndelay = "10ms"\nlimit = "100p"'), "", 4, 1, "cubic"),
    "20ms-loss": cell(link('rate = "100M"\ndelay = "10ms"\nforward.loss = { every = 1500 }'), "", 13, 3),
    "20ms-udp": (link('rate = "100M"\ndelay = "10ms"'), 'duration = "2.5s"\nomit = "0.5s"\nprotocol = "udp"\nrate = "50M"'),
    # Paths that no bound was chosen on.
    "6ms-100K": cell(link('rate = "300M"\ndelay = "3ms"'), 'window = "100K"', congestion="cubic"),
    "10ms-hops-128K": cell(HOPS, 'window = "128K"', congestion="cubic"),
    "80ms-400K": cell(link('rate = "200M"\ndelay = "40ms"'), 'window = "400K"', 4, 1.5, "cubic"),
    "15ms-bbr": cell(link('rate = "80M"\ndelay = "7.5ms"\nlimit = "250p"'), "", 4, 1.5, "bbr"),
}

# name: processors (d driver, h hosts) taken, milliseconds taken, interval; or ordinary busy loops.
STALLS = [
    (where, taken, interval)
    for where in ("d", "h", "dh")
    for taken, interval in ((0.3, 10), (1, 100), (2, 20), (5, 100), (5, 500), (20, 200), (20, 1000), (60, 500), (150, 1000))
]
LOOPS = [("loops", 1, 0), ("loops", 2, 0), ("loops", 4, 0)]


def thief(processor, taken_ms, interval_ms, offset_s):
    """Takes a processor for `taken_ms` at about every `interval_ms`, in real time, until killed."""
    child = os.fork()
    if child:
        return child
    os.sched_setaffinity(0, {processor})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    rng = random.Random(offset_s)
    time.sleep(offset_s)
    while True:
        end = time.monotonic() + taken_ms / 1e3
        while time.monotonic() < end:
            pass
        # The mean is what was asked for; the phase is not that of any flow.
        time.sleep(max(0.0002, (interval_ms - taken_ms) / 1e3 * rng.uniform(0.5, 1.5)))


def busy_loop():
    """An ordinary program of another session, which the scheduler gives as much as the whole session of bdp."""
    child = os.fork()
    if child:
        return child
    os.setsid()
    if nice := weight():
        with open("/proc/self/autogroup", "w") as file:
            file.write(nice)
    while True:
        pass


def weight():
    """The nice value of this session, so that a busy loop counts as much as it."""
    try:
        return open("/proc/self/autogroup").read().split()[-1]
    except OSError:
        return None


def disturb(disturbance):
    if disturbance is None:
        return []
    where, taken, interval = disturbance
    if where == "loops":
        return [busy_loop() for _ in range(taken)]
    processors = sorted(os.sched_getaffinity(0))
    chosen = {"d": processors[-1:], "h": processors[:-1], "dh": processors}[where]
    offset = random.uniform(0, interval / 1e3)
    # The same offset and seed on all of them: a machine that stands still does so as a whole.
    return [thief(p, taken, interval, offset) for p in chosen]


def label(disturbance):
    if disturbance is None:
        return "none"
    where, taken, interval = disturbance
    return f"{taken} loops" if where == "loops" else f"{where} {taken}/{interval} ms"


def run(bdp, name, folder):
    links, flow = CELLS[name]
    path = os.path.join(folder, "cell.toml")
    with open(path, "w") as file:
        file.write(CASE.format(name=name, links=links, flow=flow))
    command = [bdp, "lab", "run", path, "--attempts", "1", "--json", "--store", os.path.join(folder, "store.sqlite")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    try:
        return json.loads(done.stdout)["cases"][-1]
    except (ValueError, KeyError, IndexError):
        return {"error": done.stderr[-400:]}


def one(bdp, name, disturbance, folder):
    children = disturb(disturbance)
    try:
        if children:
            time.sleep(0.1)
        case = run(bdp, name, folder)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    fidelity = case.get("fidelity", {})
    return {
        "cell": name,
        "disturbance": label(disturbance),
        "goodput_bps": case.get("goodput_bps"),
        "expected_bps": case.get("expected_bps"),
        "valid": case.get("valid"),
        "error": case.get("error"),
        "fidelity": fidelity,
        "flow": [{k: v for k, v in f.items() if not isinstance(v, list)} for f in case.get("flows", [])],
    }


def collect(options):
    rng = random.Random(options.seed)
    names = options.only.split(",") if options.only else list(CELLS)
    with tempfile.TemporaryDirectory() as folder, open(options.output, "a") as output:
        for _ in range(options.rounds):
            work = []
            for name in names:
                disturbed = rng.sample(STALLS, options.stalls) + rng.sample(LOOPS, 1)
                work += [(name, None)] * options.quiet + [(name, d) for d in disturbed]
            rng.shuffle(work)
            for name, disturbance in work:
                row = one(options.bdp, name, disturbance, folder)
                output.write(json.dumps(row) + "\n")
                output.flush()
                print(name, label(disturbance), row["goodput_bps"], row["valid"], row["fidelity"].get("broken"), row["error"] or "", flush=True)


def table(paths, quiet):
    lines = lambda path: gzip.open(path, "rt") if path.endswith(".gz") else open(path)
    read = lambda path: [row for row in map(json.loads, lines(path)) if row["goodput_bps"] is not None]
    rows = [row for path in paths for row in read(path)]
    undisturbed = [row for row in (read(quiet) if quiet else rows) if row["disturbance"] == "none"]
    cells = {row["cell"] for row in rows}
    truth = {
        name: statistics.median(r["goodput_bps"] for r in undisturbed if r["cell"] == name)
        for name in cells
    }
    is_good = lambda row: abs(row["goodput_bps"] / truth[row["cell"]] - 1) <= 0.05
    groups = [(name, [row for row in rows if row["cell"] == name]) for name in CELLS if name in cells]
    groups += [("undisturbed", [row for row in rows if row["disturbance"] == "none"])]
    groups += [("disturbed", [row for row in rows if row["disturbance"] != "none"]), ("all", rows)]
    print(f"{'cell':14} {'cases':>5} {'accepted':>8} {'missed':>6} {'good':>5} {'false alarms':>12}")
    for name, group in groups:
        accepted = [row for row in group if row["valid"]]
        missed = sum(not is_good(row) for row in accepted)
        good = [row for row in group if is_good(row)]
        alarms = sum(not row["valid"] for row in good)
        print(f"{name:14} {len(group):5} {len(accepted):8} {missed:6} {len(good):5} {alarms:12}   "
              f"missed {share(missed, len(accepted))}, false alarms {share(alarms, len(good))}")


def share(part, whole):
    """A share in per cent with its exact 95 % interval."""
    if not whole:
        return "-"
    least, most = interval(part, whole)
    return f"{100 * part / whole:.1f} % ({100 * least:.1f} to {100 * most:.1f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bdp", default="target/bdp")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--stalls", type=int, default=6)
    parser.add_argument("--quiet", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only")
    parser.add_argument("--output")
    parser.add_argument("--table", nargs="+")
    parser.add_argument("--quiet-file")
    options = parser.parse_args()
    if options.table:
        return table(options.table, options.quiet_file)
    if not options.output:
        parser.error("--output or --table")
    collect(options)


if __name__ == "__main__":
    sys.exit(main())
