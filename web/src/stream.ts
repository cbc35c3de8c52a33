// Server-sent events by fetch, which can carry a header; EventSource can't.

/** One event of a stream. */
export interface Message {
  id: number;
  data: string;
}

/** The events of a text that comes in pieces. */
export class Messages {
  private rest = "";
  private id = 0;
  private data: string[] = [];

  /** The events that this piece completes. */
  take(text: string): Message[] {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop() ?? "";
    const complete: Message[] = [];
    for (const raw of lines) {
      const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
      if (line === "") {
        if (this.data.length > 0) complete.push({ id: this.id, data: this.data.join("\n") });
        this.data = [];
      } else if (line.startsWith("id:")) this.id = Number(line.slice(3));
      else if (line.startsWith("data:")) this.data.push(line.slice(line[5] === " " ? 6 : 5));
      // A line that begins with a colon keeps the connection; other fields are for readers of several kinds.
    }
    return complete;
  }
}

/** Passes each event to `receive` until the stream ends; fails if it breaks. */
export async function receiveAll(stream: ReadableStream<Uint8Array>, receive: (message: Message) => void): Promise<void> {
  const reader = stream.getReader();
  const text = new TextDecoder();
  const messages = new Messages();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    messages.take(text.decode(value, { stream: true })).forEach(receive);
  }
}
