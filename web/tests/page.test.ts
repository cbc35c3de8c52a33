import { beforeAll, describe, expect, it, vi } from "vitest";

let page: typeof import("../src/page");
beforeAll(async () => {
  vi.stubGlobal("location", { hash: "" });
  vi.stubGlobal("addEventListener", () => undefined);
  page = await import("../src/page");
});

describe("routes", () => {
  it("reads the runs of an address", () => {
    expect(page.routeOf("")).toEqual({ panel: "run", run: null });
    expect(page.routeOf("#/run/k3")).toEqual({ panel: "run", run: "k3" });
    expect(page.routeOf("#/compare/a%20b/c")).toEqual({ panel: "compare", a: "a b", b: "c" });
    expect(page.routeOf("#/compare/")).toEqual({ panel: "compare", a: null, b: null });
    expect(page.routeOf("#/what-if/%")).toEqual({ panel: "what-if", run: "%" });
    expect(page.routeOf("#/lab")).toEqual({ panel: "lab" });
  });

  it("writes them", () => {
    expect(page.address("compare", "a/b", "c")).toBe("#/compare/a%2Fb/c");
    expect(page.address("fix")).toBe("#/fix");
  });

  it("knows the panel of a command", () => {
    expect(page.panelOf("bdp sweep ams1 -w 16K")).toBe("sweep");
    expect(page.panelOf("bdp lab run wifi.toml")).toBe("lab");
    expect(page.panelOf("bdp lab run what-if:1")).toBe("what-if");
    expect(page.panelOf("bdp measure ams1")).toBe("run");
    expect(page.nameOf("bdp tune show")).toBe("tune show");
  });
});
