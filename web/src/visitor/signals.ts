// The part of @preact/signals that this page needs, in a tenth of its size: a change draws the whole page again.
// The build of the visitor's page takes this for the package, also in the modules that it shares.

type Call<T> = (value: T) => void;

let draw: () => void = () => undefined;
let isDue = false;

function due(): void {
  if (isDue) return;
  isDue = true;
  // Together with other changes of the same task.
  queueMicrotask(() => {
    isDue = false;
    draw();
  });
}

/** What draws the page. */
export function drawWith(call: () => void): void {
  draw = call;
  draw();
}

export interface Signal<T> {
  value: T;
  peek: () => T;
  subscribe: (call: Call<T>) => () => void;
}

export function signal<T>(first: T): Signal<T> {
  let now = first;
  const calls = new Set<Call<T>>();
  return {
    get value() {
      return now;
    },
    set value(next: T) {
      if (Object.is(next, now)) return;
      now = next;
      for (const call of calls) call(next);
      // What has subscribers draws by itself.
      if (calls.size === 0) due();
    },
    peek: () => now,
    subscribe(call) {
      calls.add(call);
      call(now);
      return () => calls.delete(call);
    },
  };
}
