"""A path of three network namespaces, made and removed by `benches/explain-real`: near - router - far.

The kernel forwards, and its own means do the harm: nft, tbf, sysctls, control groups, signals. Delay is the one thing that a kernel without sch_netem has
nothing for: a relay of 40 lines (this file, run as a program) takes packets from TUN devices of the router, one for each way, and gives them back later. It
knows no rate, no queue and no loss, and stands behind the bottleneck: what it delivers late and at once overflows nothing.
"""
import contextlib
import fcntl
import heapq
import os
import random
import select
import signal
import struct
import subprocess
import sys
import time

NEAR, FAR = "198.51.100.1", "203.0.113.1"
CPU_GROUPS = [("/sys/fs/cgroup/cpu,cpuacct", 1), ("/sys/fs/cgroup/cpu", 1), ("/sys/fs/cgroup", 2), ("/sys/fs/cgroup/unified", 2)]


def run(*words, given=None, may_fail=False):
    ended = subprocess.run(words, input=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if ended.returncode and not may_fail:
        raise RuntimeError(f"'{' '.join(words)}' failed: {ended.stdout.strip()[-300:]}")
    return ended.stdout


class PathOfNamespaces:
    """The three namespaces, what runs in them, and what is to be undone."""

    def __init__(self):
        self.started, self.groups, self.delays = [], [], False

    def __enter__(self):
        for name in ("near", "router", "far"):
            run("ip", "netns", "add", name)
        run("ip", "-batch", "-", given="""
            link add eth0 netns near type veth peer name to-near netns router
            link add eth0 netns far type veth peer name to-far netns router
        """)
        run("ip", "-n", "router", "-batch", "-", given="""
            link set lo up
            address add 198.51.100.254/24 dev to-near
            address add 203.0.113.254/24 dev to-far
            link set to-near up
            link set to-far up
        """)
        for name, address, network in (("near", NEAR, "198.51.100"), ("far", FAR, "203.0.113")):
            run("ip", "-n", name, "-batch", "-", given=f"""
                link set lo up
                address add {address}/24 dev eth0
                link set eth0 up
                route add default via {network}.254
            """)
            # A segment a packet, as on a wire: rules count and drop what was sent.
            run("ip", "-n", name, "link", "set", "eth0", "gso_max_segs", "1")
            run("ip", "-n", "router", "link", "set", f"to-{name}", "gso_max_segs", "1")
        self.sysctl("router", "ip_forward", 1)
        return self

    def __exit__(self, *_):
        for process in reversed(self.started):
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.kill()
        for process in self.started:
            process.wait()
        for group in self.groups:
            remove(group)
        for name in ("near", "router", "far"):
            run("ip", "netns", "delete", name, may_fail=True)

    def sysctl(self, host, name, value):
        """Of `net.ipv4`, in that namespace alone."""
        run("nsenter", f"--net=/run/netns/{host}", "sh", "-c", f"echo '{value}' >/proc/sys/net/ipv4/{name}")

    def start(self, host, words, group=None, pin=None, **options):
        """A program in that namespace, in that control group, on that processor."""
        def place():
            if group:
                with open(f"{group}/cgroup.procs", "w", encoding="ascii") as file:
                    file.write(str(os.getpid()))
            if pin is not None:
                os.sched_setaffinity(0, {pin})
        process = subprocess.Popen(["nsenter", f"--net=/run/netns/{host}", "unshare", "--uts", "sh", "-c", f'hostname {host}; exec "$@"', host, *words],
                                   preexec_fn=place, **options)
        self.started.append(process)
        return process

    def quota(self, share):
        """A control group that may use this share of one processor, in periods of 100 ms."""
        for root, version in CPU_GROUPS:
            inner = os.path.exists(f"{root}/cpu.cfs_quota_us") if version == 1 else "cpu" in read(f"{root}/cgroup.subtree_control").split()
            if not inner:
                continue
            group = f"{root}/{os.environ['BETWEEN']}-{len(self.groups)}"
            os.mkdir(group)
            self.groups.append(group)
            us = max(1000, round(share * 100_000))
            values = [("cpu.cfs_period_us", 100_000), ("cpu.cfs_quota_us", us)] if version == 1 else [("cpu.max", f"{us} 100000")]
            for name, value in values:
                with open(f"{group}/{name}", "w", encoding="ascii") as file:
                    file.write(str(value))
            return group
        raise RuntimeError("no control group with a quota of processor time here: neither cpu.cfs_quota_us nor cpu.max")

    def nft(self, *rules):
        """Rules of what the router forwards, in order."""
        table = "\n".join(rules)
        run("ip", "netns", "exec", "router", "nft", "-f", "-", given=f"table inet faults {{\n{table}\n}}\n")

    def forward(self, *rules):
        """Rules of what the router forwards; by `iifname` each packet meets them once, before the bottleneck and the delay."""
        self.nft("chain forward { type filter hook forward priority 0; " + "; ".join(rules) + "; }")

    def tbf(self, towards, rate_bps, limit_bytes, burst_bytes=None):
        """A bottleneck on the way to a host: its queue holds so many bytes."""
        device = f"{'delay' if self.delays else 'to'}-{towards}"
        burst = burst_bytes or max(3200, round(rate_bps / 8 / 250))
        run("tc", "-n", "router", "qdisc", "replace", "dev", device, "root", "tbf", "rate", f"{round(rate_bps)}bit", "burst", str(burst), "limit", str(round(limit_bytes)))

    def delay(self, one_way_s, jitter_s=0, late_share=0, late_s=0):
        """So much for every packet that the router forwards, each way; up to `jitter_s` more, in order; and of long ones this share so much later than others."""
        words = [str(value) for value in (one_way_s, jitter_s, late_share, late_s)]
        process = self.start("router", [sys.executable, os.path.abspath(__file__), *words], stdout=subprocess.PIPE)
        if process.stdout.readline().strip() != b"ready":
            raise RuntimeError("the relay that delays packets did not start")
        self.delays = True
        run("ip", "-n", "router", "-batch", "-", given="""
            link set delay-near up txqueuelen 20000
            link set delay-far up txqueuelen 20000
            route add default dev delay-far table 100
            route add default dev delay-near table 101
            rule add iif to-near lookup 100 priority 100
            rule add iif to-far lookup 101 priority 100
        """)

    def wait_for_port(self, host, port):
        """Until something listens there; a busy machine takes its time."""
        for _ in range(100):
            if f":{port} " in run("nsenter", f"--net=/run/netns/{host}", "ss", "-Hltn"):
                return
            time.sleep(0.1)
        raise RuntimeError(f"nothing listens on port {port} of {host} after 10 s")


def read(file):
    try:
        with open(file, encoding="ascii") as text:
            return text.read()
    except OSError:
        return ""


def remove(group):
    """A control group whose processes have ended; they leave it a moment later."""
    for _ in range(50):
        try:
            return os.rmdir(group)
        except FileNotFoundError:
            return None
        except OSError:
            time.sleep(0.1)
    return print(f"could not remove {group}: a process is still in it", file=sys.stderr)


def relay(one_way_s, jitter_s=0.0, late_share=0.0, late_s=0.0):
    """Packets out of a TUN device, and back into it later: in order, but for those that are late."""
    devices = []
    for name in (b"delay-near", b"delay-far"):
        devices.append(os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK))
        fcntl.ioctl(devices[-1], 0x400454CA, struct.pack("16sH22x", name, 0x1001))  # TUNSETIFF, IFF_TUN | IFF_NO_PI
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    print("ready", flush=True)
    due, count, last, chance = [], 0, {}, random.Random(1)
    while True:
        now = time.monotonic()
        while due and due[0][0] <= now:
            with contextlib.suppress(OSError):
                os.write(due[0][2], due[0][3])
            heapq.heappop(due)
        for device in select.select(devices, [], [], max(0, due[0][0] - time.monotonic()) if due else None)[0]:
            with contextlib.suppress(OSError):
                for _ in range(64):
                    packet = os.read(device, 2048)
                    count += 1
                    at = time.monotonic() + one_way_s
                    if jitter_s:
                        at = last[device] = max(last.get(device, 0), at + chance.uniform(0, jitter_s))
                    if late_share and len(packet) > 200 and chance.random() < late_share:
                        at += late_s
                    heapq.heappush(due, (at, count, device, packet))


if __name__ == "__main__":
    relay(*(float(word) for word in sys.argv[1:]))
