import { describe, expect, it } from "vitest";
import { Messages } from "../src/stream";

describe("events of a stream", () => {
  it("come whole, wherever the text is cut", () => {
    const text = 'id: 1\ndata: {"a":1}\n\n: still there\n\nevent: outcome\nid: 2\ndata: {"b":\ndata: 2}\n\n';
    const all = [
      { id: 1, data: '{"a":1}' },
      { id: 2, data: '{"b":\n2}' },
    ];
    for (let cut = 0; cut <= text.length; cut += 1) {
      const messages = new Messages();
      expect([...messages.take(text.slice(0, cut)), ...messages.take(text.slice(cut))]).toEqual(all);
    }
  });
  it("are not made of what breaks off", () => {
    expect(new Messages().take("id: 3\ndata: {")).toEqual([]);
  });
});
