"""The rows of benches/peers: programs in turn over the paths that it made. See there."""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

NEAR, FAR, OUT = sys.argv[1:4]
BDP = os.environ["BDP"]
RUNS = int(os.environ.get("RUNS", "5"))
SECONDS = float(os.environ.get("SECONDS_EACH", "1"))
MOST_LOSS = 0.001
# How often the runs are done again with a lower rate for whoever loses more than that.
LOWERED = 6
# A run of which the hypervisor took more than this part of the processors' time says little of the program: it is done again.
MOST_STOLEN = 0.05
REST = float(os.environ.get("REST_SECONDS", "3"))
# What a user of a peer would ask for to lose less: as large a buffer as the system gives.
BUFFER = open("/proc/sys/net/core/rmem_max").read().strip()
PATHS = {"loopback": (NEAR, "127.0.0.1"), "veth": (FAR, "192.0.2.2")}
STORE = tempfile.TemporaryDirectory()
# A server without one, `--open`, would hold what it sends to a rate.
TOKEN = "peers-side-by-side"


class Failed(Exception):
    """A run that gave no figure."""


FAILURES = (Failed, subprocess.TimeoutExpired, ValueError, KeyError, IndexError)


def run(command, timeout=60):
    done = subprocess.run(["ip", "netns", "exec", NEAR, *command], capture_output=True, text=True, timeout=timeout)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: exit {done.returncode}: {(done.stderr or done.stdout).strip()[-200:]}")
    return done.stdout


def number(pattern, text):
    found = re.search(pattern, text)
    if not found:
        raise Failed(f"no '{pattern}' in {text.strip()[-200:]!r}")
    return float(found.group(1))


# Each program: how it is served, and how it is asked; of UDP (received bit/s, fraction lost), of TCP bit/s.


def bdp_json(address, *flags):
    store = f"{STORE.name}/bdp.sqlite"
    common = ["-t", str(SECONDS), "--idle", "0.1", "--json", "--token", TOKEN, "--store", store]
    return json.loads(run([BDP, "measure", f"{address}:5701", *common, *flags]))["runs"][0]["directions"][0]


def bdp_tcp(*flags):
    def once(address, streams, reverse):
        way = "--reverse" if reverse else "--forward"
        return bdp_json(address, way, "-P", str(streams), *flags)["goodput_bps"]

    return once


def bdp_udp(address, rate, size):
    direction = bdp_json(address, "--forward", "-u", "--flood", "-b", str(int(rate)), "-l", str(size))
    return direction["goodput_bps"], direction["udp"]["loss_ratio"]


def iperf3_tcp(*flags):
    def once(address, streams, reverse):
        way = ["-R"] if reverse else []
        out = run(["iperf3", "-c", address, "-p", "5702", "-t", str(SECONDS), "-J", "-P", str(streams), *way, *flags])
        return json.loads(out)["end"]["sum_received"]["bits_per_second"]

    return once


def iperf3_udp(address, rate, size):
    command = ["iperf3", "-c", address, "-p", "5702", "-t", str(SECONDS), "-J", "-u", "-b", str(int(rate)), "-w", BUFFER]
    total = json.loads(run([*command, "-l", str(size)]))["end"]["sum"]
    received = total["packets"] - total["lost_packets"]
    return received * size * 8 / total["seconds"], total["lost_packets"] / max(total["packets"], 1)


def iperf2_tcp(*flags):
    def once(address, streams, reverse):
        way = ["-R"] if reverse else []
        out = run(["iperf", "-c", address, "-p", "5703", "-t", str(SECONDS), "-y", "C", "-P", str(streams), *way, *flags])
        return float(out.strip().splitlines()[-1].split(",")[8])

    return once


def iperf2_udp(address, rate, size):
    command = ["iperf", "-c", address, "-p", "5704", "-t", str(SECONDS), "-u", "-b", f"{int(rate)}", "-l", str(size)]
    out = run([*command, "-f", "b", "-w", BUFFER])
    # The server's report, sent back at the end: interval, transfer, bandwidth, jitter, lost/total.
    found = re.findall(r"([\d.e+]+) bits/sec +[\d.]+ ms +(\d+)/ *(\d+)", out)
    if not found:
        raise Failed("no report of the server")
    bps, lost, total = found[-1]
    return float(bps), int(lost) / max(int(total), 1)


def nuttcp_tcp(address, streams, reverse):
    many = ([f"-N{streams}"] if streams > 1 else []) + (["-r"] if reverse else [])
    out = run(["nuttcp", "-P5705", "-p5750", f"-T{max(SECONDS, 1):g}", "-fparse", *many, address])
    return number(r"rate_Mbps=([\d.]+)", out) * 1e6


def nuttcp_udp(address, rate, size):
    command = ["nuttcp", "-P5705", "-p5750", f"-T{max(SECONDS, 1):g}", "-u", f"-R{int(rate / 1000)}", f"-l{size}"]
    out = run([*command, f"-w{int(BUFFER) // 1024}", "-fparse", address])
    return number(r"rate_Mbps=([\d.]+)", out) * 1e6, number(r"data_loss=([\d.]+)", out) / 100


def qperf_tcp(address, _streams, reverse):
    if reverse:
        raise Failed("qperf has no other direction")
    return qperf_rate(run(["qperf", "-lp", "5706", "-t", f"{max(SECONDS, 1):g}", "-m", "128K", address, "tcp_bw"]), "bw")


def qperf_udp(address, _rate, size):
    out = run(["qperf", "-lp", "5706", "-t", f"{max(SECONDS, 1):g}", "-m", str(size), "-sb", BUFFER, address, "udp_bw"])
    sent, received = qperf_rate(out, "send_bw"), qperf_rate(out, "recv_bw")
    return received, max(0.0, 1 - received / sent)


def qperf_rate(out, name):
    units = {"bytes/sec": 8, "KB/sec": 8e3, "MB/sec": 8e6, "GB/sec": 8e9}
    found = re.search(rf"\b{name} += +([\d.]+) (\S+)", out)
    if not found or found.group(2) not in units:
        raise Failed(f"no {name} in {out!r}")
    return float(found.group(1)) * units[found.group(2)]


def xfr(address, *flags):
    command = ["xfr", address, "-p", "5707", "-t", f"{max(int(SECONDS), 1)}s", "--json", "--no-tui", "--no-update-check"]
    return json.loads(run([*command, *flags]))


def xfr_tcp(address, streams, reverse):
    return xfr(address, "-P", str(streams), *(["-R"] if reverse else []))["throughput_mbps"] * 1e6


def xfr_udp(address, rate, size):
    out = xfr(address, "-u", "-b", str(int(rate)), "-l", str(size), "-w", BUFFER)
    return out["throughput_mbps"] * 1e6, out["udp_stats"]["lost_percent"] / 100


# name, program, server, TCP, most streams of it, UDP. qperf has one stream and no rate.
PROGRAMS = [
    ("bdp", BDP, [BDP, "serve", "--token", TOKEN, "--listen", "ADDRESS:5701"], bdp_tcp(), 1000, bdp_udp),
    ("bdp --zerocopy off", BDP, None, bdp_tcp("--zerocopy", "off"), 1000, None),
    ("iperf3", "iperf3", ["iperf3", "-s", "-p", "5702"], iperf3_tcp(), 128, iperf3_udp),
    ("iperf3 -Z", "iperf3", None, iperf3_tcp("-Z"), 128, None),
    ("iperf3 --skip-rx-copy", "iperf3", None, iperf3_tcp("--skip-rx-copy"), 128, None),
    ("iperf3 -Z --skip-rx-copy", "iperf3", None, iperf3_tcp("-Z", "--skip-rx-copy"), 128, None),
    ("iperf2", "iperf", ["iperf", "-s", "-p", "5703"], iperf2_tcp(), 1000, None),
    ("iperf2 -l 1M", "iperf", None, iperf2_tcp("-l", "1M"), 1000, None),
    ("iperf2 UDP", "iperf", ["iperf", "-s", "-u", "-p", "5704", "-w", BUFFER], None, 0, iperf2_udp),
    ("nuttcp", "nuttcp", ["nuttcp", "-S", "--nofork", "-P5705"], nuttcp_tcp, 64, nuttcp_udp),
    ("qperf", "qperf", ["qperf", "-lp", "5706"], qperf_tcp, 1, qperf_udp),
    ("xfr", "xfr", ["xfr", "serve", "-p", "5707"], xfr_tcp, 64, xfr_udp),
]
# Name of a row: streams, and whether it is the server that sends.
TCP_ROWS = {f"tcp-{n}{way}": (n, bool(way)) for n in (1, 2, 8, 64, 1000) for way in ("", "-reverse")}
UDP_ROWS = {"udp-1400": 1400, "udp-64": 64}


def version(program):
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10)
    return (done.stdout or done.stderr).splitlines()[0]


def iperf3_help():
    done = subprocess.run(["iperf3", "--help"], capture_output=True, text=True, timeout=10)
    return done.stdout + done.stderr


def processor_seconds():
    """Processor time of the whole machine since boot: that which was neither idle nor stolen, what was stolen, and all."""
    with open("/proc/stat") as stat:
        ticks = [int(field) / os.sysconf("SC_CLK_TCK") for field in stat.readline().split()[1:9]]
    return sum(ticks[:7]) - ticks[3] - ticks[4], ticks[7], sum(ticks)


class Taken:
    """What a run took of the processors."""

    def __enter__(self):
        self.before = processor_seconds()
        return self

    def __exit__(self, *_):
        busy, stolen, passed = (after - before for after, before in zip(processor_seconds(), self.before))
        self.busy_s, self.stolen = busy, stolen / max(passed, 1e-9)


def frequency_hz():
    with open("/proc/cpuinfo") as info:
        found = re.search(r"cpu MHz\s*:\s*([\d.]+)", info.read())
    return float(found.group(1)) * 1e6 if found else None


def alternated(programs, once):
    """RUNS rounds of every program: bit/s, busy seconds and stolen part of each. A run that was stolen from is done again, up to
    three times; of those that there are, the ones with the least stolen are kept."""
    got = {name: [] for name in programs}
    for round_ in range(RUNS * 4):
        for name in programs:
            if sum(r["stolen"] <= MOST_STOLEN for r in got[name]) >= RUNS or len(got[name]) > round_:
                continue
            try:
                with Taken() as taken:
                    bps = once(name)
            except FAILURES as error:
                print(f"  {name}: {error}", file=sys.stderr)
                continue
            got[name].append({"bps": bps, "busy_s": taken.busy_s, "stolen": taken.stolen})
            if taken.stolen > MOST_STOLEN:
                time.sleep(REST)
    return {name: sorted(runs, key=lambda r: r["stolen"])[:RUNS] for name, runs in got.items() if runs}


def search(once):
    """The highest rate offered of which less than MOST_LOSS was lost: doubled until it is not, then bisected five times; lowered by
    a sixteenth until it holds in two of three runs."""

    def holds(rate, tries=2, needed=1):
        # A machine that stalls is given another chance, every program alike.
        held, dirty = 0, 0
        while tries > 0 and held < needed:
            with Taken() as taken:
                try:
                    received, lost = once(rate)
                except Failed as error:
                    # As a run that lost everything.
                    print(f"  at {rate / 1e6:.0f} Mbit/s: {error}", file=sys.stderr)
                    received, lost = 0.0, 1.0
            if lost < MOST_LOSS and received > 0.9 * rate:
                held += 1
            if taken.stolen > MOST_STOLEN and dirty < 3:
                dirty += 1
                time.sleep(REST)
            else:
                tries -= 1
        return held >= needed

    low, high = 0.0, 100e6
    while high < 200e9 and holds(high):
        low, high = high, high * 2
    for _ in range(5):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    for _ in range(8):
        if low == 0 or holds(low, tries=3, needed=2):
            break
        low *= 15 / 16
    return low


def table(row, path, got, extra, lossy):
    hz = frequency_hz()
    medians = {name: statistics.median(r["bps"] for r in runs) for name, runs in got.items()}
    peers = [bps for name, bps in medians.items() if not name.startswith("bdp") and name not in lossy]
    lines = [f"{path} {row}"]
    for name, bps in sorted(medians.items(), key=lambda item: -item[1]):
        low, high = (f(r["bps"] for r in got[name]) for f in (min, max))
        per_byte = statistics.median(r["busy_s"] * 8 / (r["bps"] * SECONDS) for r in got[name] if r["bps"] > 0)
        cycles = f"{per_byte * hz:6.2f} cycles/B" if hz else f"{per_byte * 1e9:6.2f} ns/B"
        ratio = f"{bps / max(peers):5.2f} x best peer" if peers and name.startswith("bdp") and name not in lossy else ""
        stolen = max(r["stolen"] for r in got[name])
        ratio += f"  (up to {stolen * 100:.0f} % stolen)" if stolen > MOST_STOLEN else ""
        lines.append(f"  {name:24} {bps / 1e9:8.3f} Gbit/s  {low / 1e9:7.3f}..{high / 1e9:7.3f} {cycles}  {extra.get(name, '')}{ratio}")
    return lines


class Servers:
    """Those of the programs, by their names. One that ended is started again, and the one for datagrams of iperf2 for every run:
    2.1.8 breaks down by a segmentation fault after its first or second."""

    RENEWED = "iperf2 UDP"

    def __init__(self, where, address, programs):
        def command(program):
            return ["ip", "netns", "exec", where, *[word.replace("ADDRESS", address) for word in program[2]]]

        self.commands = {program[0]: command(program) for program in programs if program[2]}
        self.running = {name: self.start(command) for name, command in self.commands.items()}
        time.sleep(1)

    @staticmethod
    def start(command):
        quiet = subprocess.DEVNULL
        return subprocess.Popen(command, stdout=quiet, stderr=quiet, stdin=quiet)

    def see_to(self, name):
        if name == self.RENEWED:
            self.stop(name)
        for name, command in self.commands.items():
            if self.running[name].poll() is not None:
                self.running[name] = self.start(command)
                time.sleep(0.5)

    def stop(self, name):
        server = self.running[name]
        server.terminate()
        try:
            server.wait(timeout=3)
        except subprocess.TimeoutExpired:
            # iperf2's waits for its tests to end, of which some never do.
            server.kill()
            server.wait()

    def end(self):
        for name in self.running:
            self.stop(name)


def measure(row, path, address, available, servers):
    if row in TCP_ROWS:
        streams, reverse = TCP_ROWS[row]
        programs = {p[0]: p[3] for p in available if p[3] and p[4] >= streams}

        def tcp(name):
            servers.see_to(name)
            return programs[name](address, streams, reverse)

        return alternated(programs, tcp), {}, ()
    size = UDP_ROWS[row]
    programs = {p[0]: p[5] for p in available if p[5]}
    rates, extra = {}, {}
    for name, once in programs.items():
        if name == "qperf":
            extra[name], rates[name] = "as fast as it sends; ", 0
            continue
        try:

            def trial(rate, name=name, once=once):
                servers.see_to(name)
                return once(address, rate, size)

            rates[name] = search(trial)
        except FAILURES as error:
            print(f"  {name}: {error}", file=sys.stderr)
            continue
        extra[name] = "no rate held; " if rates[name] == 0 else ""
    lost = {}

    def once(name):
        servers.see_to(name)
        received, loss = programs[name](address, rates[name], size)
        lost[name].append(loss)
        return received

    held = [name for name in rates if rates[name] > 0 or name == "qperf"]
    for _ in range(LOWERED):
        lost = {name: [] for name in rates}
        got = alternated(held, once)
        lossy = [name for name in got if statistics.median(lost[name]) > MOST_LOSS]
        if not [name for name in lossy if name != "qperf"]:
            break
        # What held while it was searched for does not hold now: all are run again, side by side.
        rates.update({name: rates[name] * 15 / 16 for name in lossy})
    for name in got:
        pps = statistics.median(r["bps"] for r in got[name]) / 8 / size
        extra[name] += f"{pps / 1e6:.3f} M/s, {statistics.median(lost[name]) * 100:.3f} % lost; {'more than the bound; ' if name in lossy else ''}"
    return got, extra, lossy


def main():
    wanted = os.environ.get("BENCH_PEERS", "").split()
    rows = os.environ.get("BENCH_ONLY", " ".join([*TCP_ROWS, *UDP_ROWS])).split()
    paths = os.environ.get("BENCH_PATHS", " ".join(PATHS)).split()
    for unknown in [r for r in rows if r not in TCP_ROWS | UDP_ROWS] + [p for p in paths if p not in PATHS]:
        sys.exit(f"'{unknown}' is no row or path; rows: {' '.join([*TCP_ROWS, *UDP_ROWS])}, paths: {' '.join(PATHS)}")
    available = []
    versions = [version(program) for program in ("iperf3", "xfr") if shutil.which(program)]
    lines = [f"Linux {os.uname().release}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.2f}, TCP {os.environ['CONGESTION']}, {RUNS} runs of {SECONDS:g} s, alternated",
             "cycles/B: time of all processors, neither idle nor stolen, x frequency / bytes received; both ends together", *versions]
    for program in PROGRAMS:
        if wanted and not any(program[0].startswith(w) for w in wanted):
            continue
        if "--skip-rx-copy" in program[0] and shutil.which("iperf3") and "--skip-rx-copy" not in iperf3_help():
            lines.append(f"SKIPPED {program[0]}: this iperf3 has no such option")
            continue
        if not shutil.which(program[1]):
            lines.append(f"SKIPPED {program[0]}: {program[1]} is not installed")
            continue
        available.append(program)
    print("\n".join(lines), flush=True)
    raw = {}
    for path in paths:
        where, address = PATHS[path]
        servers = Servers(where, address, available)
        try:
            for row in rows:
                got, extra, lossy = measure(row, path, address, available, servers)
                raw[f"{path} {row}"] = got
                more = table(row, path, got, extra, lossy)
                print("\n".join(more), flush=True)
                lines += more
        finally:
            servers.end()
    with open(f"{OUT}/peers.json", "w") as file:
        json.dump({"runs": RUNS, "seconds": SECONDS, "rows": raw}, file, indent=1)
    with open(f"{OUT}/peers.txt", "w") as file:
        file.write("\n".join(lines) + "\n")


main()
