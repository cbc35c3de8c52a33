"""Intervals of shares, for the benches that count."""
import math


def interval(right, of, level=0.95):
    """The exact interval of a share (Clopper and Pearson, Biometrika 26, 1934)."""
    def tail(least, p):
        return sum(math.comb(of, k) * p**k * (1 - p) ** (of - k) for k in range(least, of + 1))

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
