"""Twelve paths of the lab taken as real ones: each is measured, its twin is made of the measurement alone, and both are compared.

BDP names the program. BENCH_SEED changes rates, round trips, queues and losses by up to a factor; 0 (default) has the paths as they stand here. BENCH_PATHS
names those to run. BENCH_KEEP keeps stores and scenarios in a folder. BENCH_BAR is how many must repeat."""

import json
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

BDP = os.environ.get("BDP", "target/debug/bdp")
SEED = int(os.environ.get("BENCH_SEED", "0"))
RUNS = os.environ.get("BENCH_RUNS", "3")
JOBS = int(os.environ.get("BENCH_JOBS", "2"))
# What a parameter is multiplied or divided by at the most.
FACTOR = 1.6


class Vary:
    """Parameters of a path: as they stand, or by a seed."""

    def __init__(self, name):
        self.draws = random.Random(f"{SEED} {name}") if SEED else None

    def __call__(self, value):
        if self.draws is None:
            return value
        return value * FACTOR ** self.draws.uniform(-1, 1)


def link(forward, reverse=None, hosts="", options=""):
    ways = "".join(f"\n[link.{name}]\n{text}\n" for name, text in (("forward", forward), ("reverse", reverse or forward)))
    return f'title = "A path"\n{hosts}\n[[link]]\nbetween = ["near", "far"]\n{options}{ways}'


def rate(mbps):
    return f'"{mbps:.3f}M"'


def ms(value):
    return f'"{value:.3f}ms"'


def plain(mbps, delay, packets, more=""):
    return f"rate = {rate(mbps)}\ndelay = {ms(delay)}\nlimit = {max(2, round(packets))}\n{more}"


def receive_window(v):
    buffer = round(128 * v(1))
    return link(plain(v(200), v(15), 400), hosts=f'[hosts.far]\nreceive_buffer = "{buffer}K"\n'), "to", []


def send_buffer(v):
    buffer = round(256 * v(1))
    return link(plain(v(200), v(20), 400), hosts=f'[hosts.near]\nsend_buffer = "{buffer}K"\n'), "to", []


def long_queue(v):
    return link(plain(v(16), v(12), v(300)), plain(v(40), v(12), 200)), "to", []


def short_queue(v):
    return link(plain(v(50), v(10), v(16))), "to", []


def random_loss(v):
    return link(plain(v(100), v(15), 500, f"loss = {v(0.001):.6f}\n"), plain(100, v(15), 500)), "to", []


def bursty_loss(v):
    loss = f"loss = {{ to_bad = {v(0.0006):.7f}, to_good = {1 / v(4):.4f} }}\n"
    return link(plain(v(100), v(15), 500, loss), plain(100, v(15), 500)), "to", []


def policer(v):
    police = f'policer = {{ rate = {rate(v(20))}, burst = "{round(64 * v(1))}K" }}\n'
    return link(plain(200, v(12), 500, police), plain(200, v(12), 500)), "to", []


def jitter(v):
    text = f"jitter = {{ normal = {ms(v(3))}, correlation_time = {ms(v(60))} }}\n"
    return link(plain(v(30), v(15), v(120), text), plain(v(30), v(15), v(120), text)), "to", []


def satellite(v):
    return link(plain(v(12), v(270), v(700)), plain(v(4), v(270), 200)), "to", []


def rate_step(v):
    at = v(5)
    steps = f"rate = {{ steps = [[0, {rate(v(30))}], [\"{at + 2:.3f}s\", {rate(v(10))}]] }}\n"
    forward = f"delay = {ms(v(15))}\nlimit = {round(v(100))}\n{steps}"
    return link(forward, plain(30, v(15), 100)), "to", []


def fq_codel(v):
    return link(plain(v(25), v(15), 10240, 'queue = "fq_codel"\n')), "to", []


def asymmetric(v):
    return link(plain(v(3), v(12), v(60)), plain(v(40), v(12), v(150))), None, ["--bidir"]


PATHS = {
    "receive window": receive_window,
    "send buffer": send_buffer,
    "long queue": long_queue,
    "short queue": short_queue,
    "random loss": random_loss,
    "bursty loss": bursty_loss,
    "policer": policer,
    "jitter": jitter,
    "satellite": satellite,
    "rate step": rate_step,
    "fq_codel": fq_codel,
    "both ways": asymmetric,
}


def measure(name, folder):
    """The store of a measurement of a path: `bdp measure` runs on the path's own hosts."""
    path, store = os.path.join(folder, f"{name.replace(' ', '-')}.toml"), os.path.join(folder, f"{name.replace(' ', '-')}.db")
    text, direction, options = PATHS[name](Vary(name))
    with open(path, "w") as file:
        file.write(text)
    if os.path.exists(store):
        os.remove(store)
    command = [BDP, "lab", "exec", path, "--clock", "virtual", "--store", "none", "--serve", f"far={BDP} serve --token t",
               "--host", "near", "--", BDP, "measure", "far", "--token", "t", "--store", store]
    command += options or ["--direction", direction]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{name}: measure: {done.stderr}{done.stdout}")
    return store


def twin(name, folder):
    store = measure(name, folder)
    command = [BDP, "twin", "--store", store, "--runs", RUNS, "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"{name}: twin: {done.stderr}{done.stdout}")
    return json.loads(done.stdout)


def cell(figure, scale, digits):
    if figure is None:
        return "-", "-", "-"
    measured, ours = figure["measured"] / scale, figure["twin"] / scale
    ratio = f"{ours / measured:.2f}" if measured else "-"
    return f"{measured:.{digits}f}", f"{ours:.{digits}f}", ratio


def main():
    names = [name for name in PATHS if name in os.environ.get("BENCH_PATHS", ",".join(PATHS)).split(",")]
    folder = os.environ.get("BENCH_KEEP") or tempfile.mkdtemp(prefix="bdp-twin-")
    os.makedirs(folder, exist_ok=True)
    with ThreadPoolExecutor(JOBS) as pool:
        reports = list(pool.map(lambda name: twin(name, folder), names))
    print("| path | | goodput Mbit/s: measured | twin | ratio | loaded RTT p50 ms: measured | twin | ratio | retransmits: measured | twin | verdict |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    repeats = 0
    for name, report in zip(names, reports):
        all_figures = [figures for one in report["twins"] for figures in one["figures"]]
        repeats += all(figures["fidelity"] == "repeats" for figures in all_figures)
        for figures in all_figures:
            goodput = cell(figures["goodput_bps"], 1e6, 2)
            delay = cell(figures["loaded_p50_ns"], 1e6, 1)
            again = cell(figures["retransmits"], 1, 0)
            row = [name, figures["direction"], *goodput, *delay, *again[:2], figures["fidelity"].replace("_", " ")]
            print("| " + " | ".join(row) + " |")
    bar = int(os.environ.get("BENCH_BAR", str(len(names) - len(names) // 12)))
    print(f"\n{repeats} of {len(names)} paths repeat (goodput within 10 %, loaded RTT p50 within 20 %); the bar is {bar}; BENCH_SEED={SEED}")
    sys.exit(0 if repeats >= bar else 1)


if __name__ == "__main__":
    main()
