"""Paths with one fault each for benches/experiments and benches/until-settled: 5 to 500 Mbit/s, 2 to 100 ms, reno, cubic or bbr, by the virtual clock."""
import json
import math
import random
import subprocess
import tempfile

WIRE, SEGMENT = 1538, 1448
RATE = ("path_rate", "ceiling")
TOKEN = "experiments-of-the-lab"


class Case:
    def __init__(self, seed, number):
        self.number = number
        self.name = list(FAULTS)[number % len(FAULTS)]
        draws = self.draws = random.Random(f"experiments {seed} {number}")
        self.rtt, self.rate = self.between(0.002, 0.1), self.between(5e6, 5e8)
        while self.rate * self.rtt / 8 / WIRE < 30 or self.rate * self.rtt / 8 > 4e6:
            self.rtt, self.rate = self.between(0.002, 0.1), self.between(5e6, 5e8)
        self.control = draws.choice(["cubic", "cubic", "reno", "bbr"])
        self.seconds = draws.choice([4, 6, 10])
        self.queue = self.between(0.5, 2)
        self.write = FAULTS[self.name]

    def between(self, least, most):
        return math.exp(self.draws.uniform(math.log(least), math.log(most)))

    @property
    def segments(self):
        return self.rate * self.rtt / 8 / WIRE

    def loss(self, low, high):
        """Losses at which Reno reaches such a part of the rate."""
        return min(0.05, 1.5 / (self.segments * self.between(low, high)) ** 2)

    def scenario(self):
        parts = {"forward": "", "reverse": ""}
        self.right = self.write(self, parts)
        limit = max(4, round(self.segments * self.queue))
        text = f'title = "experiments"\n[[link]]\nbetween = ["near", "far"]\nrate = {round(self.rate)}\ndelay = "{self.rtt / 2 * 1e6:.0f}us"\nlimit = {limit}\n'
        text += f'[link.forward]\n{parts["forward"]}' if parts["forward"] else ""
        text += f'[link.reverse]\n{parts["reverse"]}' if parts["reverse"] else ""
        return text

    def measure(self, bdp, text, options):
        """What `bdp measure` writes on the hosts of the scenario with these options; a text instead if it wrote no measurement."""
        with tempfile.TemporaryDirectory(prefix="experiments-") as folder:
            scenario, out = f"{folder}/path.toml", f"{folder}/out.json"
            with open(scenario, "w", encoding="utf-8") as file:
                file.write(text)
            measure = f"{bdp} measure far --token {TOKEN} --forward -C {self.control} --json --store {folder}/in.sqlite {options}"
            command = [bdp, "lab", "exec", scenario, "--clock", "virtual", "--seed", str(self.number + 1), "--json", "--store", f"{folder}/out.sqlite",
                       "--serve", f"far={bdp} serve --token {TOKEN}", "--on", f"near={measure} > {out}"]
            ended = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=600, check=False)
            try:
                with open(out, encoding="utf-8") as file:
                    document = json.load(file)
            except (OSError, json.JSONDecodeError):
                return ended.stderr.decode(errors="replace")[-600:]
        return document if "runs" in document else str(document.get("error", {}).get("message"))


def random_loss(case, parts):
    parts["forward"] = f"loss = {case.loss(0.15, 0.6):.7f}\n"
    return ("random_loss",)


def burst_loss(case, parts):
    parts["forward"] = f"loss = {{ to_bad = {case.loss(0.15, 0.6):.7f}, to_good = 0.33, loss_bad = 1.0 }}\n"
    return ("random_loss",)


def short_queue(case, parts):
    case.queue = case.between(0.02, 0.15)
    return ("shallow_queue",)


def policer(case, parts):
    rate = case.rate * case.between(0.2, 0.7)
    parts["forward"] = f'policer = {{ rate = {round(rate)}, burst = {max(16 << 10, round(rate * case.between(0.005, 0.3) / 8))} }}\n'
    return ("policer",)


def reordering(case, parts):
    parts["forward"] = f'reorder = {{ probability = "{case.between(1, 5):.1f}%", by = "{case.rtt * case.between(0.2, 0.8) * 1e3:.2f}ms" }}\n'
    return ("reordering",)


def full_path(case, parts):
    return RATE


def jitter(case, parts):
    parts["forward"] = f'jitter = {{ uniform = "{case.rtt * case.between(0.05, 0.3) * 1e3:.3f}ms" }}\n'
    return (*RATE, "jitter")


def acknowledgements(case, parts):
    parts["reverse"] = f'loss = "{case.between(15, 45):.0f}%"\n'
    return ("reverse_path",)


FAULTS = {
    "random loss": random_loss,
    "bursts of loss": burst_loss,
    "short queue": short_queue,
    "policer": policer,
    "reordering": reordering,
    "full path": full_path,
    "jitter": jitter,
    "lost acknowledgements": acknowledgements,
}
