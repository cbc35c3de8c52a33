// What the engine needs of a browser, from this one.
import { resolution } from "./counts";
import { PLAN, type Env } from "./engine";

const now = (): number => performance.now();

/** One body for all uploads; of random bytes, so that nothing on the path compresses it. */
let body: Blob | null = null;

function bodyOf(bytes: number): Blob {
  if (body?.size === bytes) return body;
  const block = new Uint8Array(65_536);
  const blocks: Uint8Array<ArrayBuffer>[] = [];
  for (let made = 0; made < bytes; made += block.length) {
    // A page gets 64 KiB of random numbers at a time; 1 MiB of them is repeated.
    const last = made < 1 << 20 ? crypto.getRandomValues(new Uint8Array(block.length)) : blocks[blocks.length - 16];
    blocks.push((last ?? block).subarray(0, Math.min(block.length, bytes - made)));
  }
  body = new Blob(blocks, { type: "application/octet-stream" });
  return body;
}

export function browser(): Env {
  bodyOf(PLAN.body);
  return {
    now,
    clockStep: resolution(now),
    agent: navigator.userAgent,
    after: (ms, call) => {
      const timer = setTimeout(call, ms);
      return () => {
        clearTimeout(timer);
      };
    },
    fetch: (path, init) => fetch(path, { credentials: "omit", ...init }),
    socket:
      typeof WebSocket === "function"
        ? (path, events) => {
            const url = new URL(path, location.href);
            url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
            const socket = new WebSocket(url);
            socket.onopen = events.open;
            socket.onclose = events.close;
            socket.onmessage = ({ data }) => {
              if (typeof data === "string") events.message(data);
            };
            return {
              send: (text) => {
                if (socket.readyState === WebSocket.OPEN) socket.send(text);
              },
              close: () => {
                socket.close();
              },
            };
          }
        : null,
    upload: (path, bytes, progress, signal) =>
      new Promise((done, fail) => {
        const request = new XMLHttpRequest();
        const broken = () => {
          signal.removeEventListener("abort", abort);
          fail(new Error("the upload broke off"));
        };
        const abort = () => {
          request.abort();
        };
        request.upload.onprogress = request.upload.onload = ({ loaded }) => {
          progress(loaded);
        };
        request.onerror = request.onabort = broken;
        request.onload = () => {
          signal.removeEventListener("abort", abort);
          done({ status: request.status, text: request.responseText });
        };
        request.open("POST", path);
        signal.addEventListener("abort", abort);
        request.send(bodyOf(bytes));
      }),
  };
}
