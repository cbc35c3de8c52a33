// What if: what a change of the path would bring.
import "../style/whatif.css";

export function WhatIf({ run }: { run: string | null }) {
  return (
    <section class="panel" aria-labelledby="whatif">
      <h2 id="whatif">What if</h2>
      <p>{run}</p>
    </section>
  );
}
