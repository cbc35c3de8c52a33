// Captures: what a capture shows.
import "../style/captures.css";

export function Captures() {
  return (
    <section class="panel" aria-labelledby="captures">
      <h2 id="captures">Captures</h2>
    </section>
  );
}
