import { describe, expect, it } from "vitest";
import { commandLine, EMPTY, fieldOf, PRESETS, quoted, words, type Form } from "../src/command";

const form = (values: Partial<Form>): Form => ({ ...EMPTY, host: "ams1", ...values });

describe("command", () => {
  it("has only what differs from the defaults", () => {
    expect(commandLine(words(form({})))).toBe("bdp measure ams1");
    expect(commandLine(words(form({ host: "  ams1 ", time: " 3 " })))).toBe("bdp measure ams1 -t 3");
  });
  it("has every field", () => {
    const all = form({
      direction: "both",
      time: "5",
      streams: "8",
      window: "256K",
      length: "1200",
      mss: "1400",
      protocol: "udp",
      rate: "50M",
      congestion: "bbr",
    });
    expect(commandLine(words(all))).toBe("bdp measure ams1 --bidir -u -t 5 -P 8 -w 256K -l 1200 -M 1400 -b 50M -C bbr");
  });
  it("has further options, one for each line of those that repeat", () => {
    const more = { omit: "1", "no-experiments": true, expect: "to.goodput>=900M\n\nrtt.idle.p95<=30ms" } as const;
    expect(commandLine(words(form({ more })))).toBe(
      "bdp measure ams1 --omit=1 --no-experiments '--expect=to.goodput>=900M' '--expect=rtt.idle.p95<=30ms'",
    );
  });
  it("quotes for a shell", () => {
    expect(quoted("ams1:5201")).toBe("ams1:5201");
    expect(quoted("[::1]:5201")).toBe("'[::1]:5201'");
    expect(quoted("")).toBe("''");
    expect(quoted("it's; $(rm)")).toBe(`'it'\\''s; $(rm)'`);
  });
  it("has presets that keep to the fields", () => {
    const lines = PRESETS.map((preset) => commandLine(words(form(preset.values))));
    expect(lines).toEqual([
      "bdp measure ams1 -t 3",
      "bdp measure ams1",
      "bdp measure ams1 -P 8",
      "bdp measure ams1 -u -b 50M",
      "bdp measure ams1 -R",
    ]);
  });
  it("tells the field that an error is about", () => {
    expect(fieldOf("invalid value 'abc' for '--time <TIME>': 'abc' is not a time", form({ time: "abc" }))).toBe("time");
    expect(fieldOf("measure: -b takes a rate", form({}))).toBe("rate");
    expect(fieldOf("'64Q' is not a size", form({ window: "64Q" }))).toBe("window");
    expect(fieldOf("ams1 refused the connection", form({}))).toBe("host");
    expect(fieldOf("the following required arguments were not provided: <HOST[:PORT]>", form({ host: "" }))).toBe("host");
    expect(fieldOf("the store is read only", form({}))).toBeNull();
    expect(fieldOf("--time-limit is no option", form({}))).toBeNull();
  });
});
