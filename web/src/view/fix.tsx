// Fix: plan, rehearse, apply, verify, undo.
import "../style/fix.css";

export function Fix({ run }: { run: string | null }) {
  return (
    <section class="panel" aria-labelledby="fix">
      <h2 id="fix">Fix</h2>
      <p>{run}</p>
    </section>
  );
}
