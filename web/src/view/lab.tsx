// Lab: shipped scenarios.
import "../style/lab.css";

export function Lab() {
  return (
    <section class="panel" aria-labelledby="lab">
      <h2 id="lab">Lab</h2>
    </section>
  );
}
