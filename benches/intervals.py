"""Intervals of shares, for the benches that count."""
import math


def interval(right, of, level=0.95):
    """The exact interval of a share (Clopper and Pearson, Biometrika 26, 1934)."""
    def tail(least, p):
        if p <= 0 or p >= 1:
            return float(least == 0 or p >= 1)
        ways = lambda k: math.lgamma(of + 1) - math.lgamma(k + 1) - math.lgamma(of - k + 1)  # noqa: E731
        return sum(math.exp(ways(k) + k * math.log(p) + (of - k) * math.log1p(-p)) for k in range(least, of + 1))

    def solve(holds):
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if holds(middle) else (low, middle)
        return low

    if not of:
        return 0.0, 1.0
    part = (1 - level) / 2
    return (0.0 if right == 0 else solve(lambda p: tail(right, p) < part), 1.0 if right == of else solve(lambda p: 1 - tail(right + 1, p) > part))


def percent(right, of):
    """A share in percent with its interval."""
    if not of:
        return "-"
    low, high = interval(right, of)
    return f"{100 * right / of:.1f} % ({100 * low:.0f} to {100 * high:.0f})"


def reliability(rows):
    """Of what was said with each confidence, how much is right; the expected calibration error where findings state probabilities."""
    lines = ["", "| confidence | findings | right | wrong | share right |", "|---|---|---|---|---|"]
    named = [row for row in rows if row["was"] in ("right", "also right", "wrong") and row["said"] not in ("unknown", "none")]
    for level in ("high", "medium", "low"):
        was = [row["was"] for row in named if row["confidence"] == level]
        good = len(was) - was.count("wrong")
        lines.append(f"| {level} | {len(was)} | {good} | {len(was) - good} | {percent(good, len(was))} |")
    stated = [row for row in named if row.get("probability") is not None]
    if stated:
        bins = {}
        for row in stated:
            bins.setdefault(min(9, int(10 * row["probability"])), []).append(row)
        lines += ["", "| probability | findings | right | mean stated |", "|---|---|---|---|"]
        error = 0.0
        for at, of in sorted(bins.items()):
            good, mean = sum(row["was"] != "wrong" for row in of), sum(row["probability"] for row in of) / len(of)
            error += abs(good - mean * len(of)) / len(stated)
            lines.append(f"| {at * 10} to {at * 10 + 10} % | {len(of)} | {percent(good, len(of))} | {100 * mean:.1f} % |")
        lines += ["", f"Expected calibration error: {100 * error:.1f} %."]
    return lines
