// Sweep: how goodput depends on a parameter.
import "../style/sweep.css";

export function Sweep() {
  return (
    <section class="panel" aria-labelledby="sweep">
      <h2 id="sweep">Sweep</h2>
    </section>
  );
}
