import { describe, expect, it } from "vitest";
import { milliseconds, percent, rate, seconds, significant, size, threeDigits, time } from "../src/format";

describe("format", () => {
  it("prints rates with three digits and an SI prefix", () => {
    expect(rate(94_120_000)).toBe("94.1 Mbit/s");
    expect(rate(941_500_000)).toBe("942 Mbit/s");
    expect(rate(60_000_000)).toBe("60.0 Mbit/s");
    expect(rate(0)).toBe("0 bit/s");
    expect(rate(null)).toBe("-");
  });
  it("takes the next unit where rounding reaches it", () => {
    expect(rate(999_600)).toBe("1.00 Mbit/s");
    expect(rate(999_400)).toBe("999 kbit/s");
    expect(size(1023.9 * 1024)).toBe("1.00 MiB");
  });
  it("prints sizes in IEC units and times by their size", () => {
    expect(size(65_536)).toBe("64.0 KiB");
    expect(size(3_932_160)).toBe("3.75 MiB");
    expect(size(512)).toBe("512 B");
    expect(time(24_200_000)).toBe("24.2 ms");
    expect(time(81_100)).toBe("81.1 µs");
    expect(milliseconds(81_100)).toBe("0.0811");
    expect(milliseconds(285_431_061)).toBe("285");
  });
  it("prints shares as the terminal does", () => {
    expect(percent(1)).toBe("100 %");
    expect(percent(0.093)).toBe("9.3 %");
    expect(percent(0.0005)).toBe("0.05 %");
    expect(percent(0)).toBe("0 %");
    expect(percent(Number.NaN)).toBe("-");
  });
  it("keeps three digits where rounding adds one", () => {
    expect(threeDigits(9.996)).toBe("10.0");
    expect(threeDigits(99.96)).toBe("100");
    expect(threeDigits(-1.234)).toBe("-1.23");
    expect(significant(1234.5)).toBe("1235");
    expect(significant(2.5)).toBe("2.5");
    expect(seconds(-5)).toBe("0.0 s");
  });
});
