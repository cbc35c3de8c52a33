// Compare: whether two runs differ.
import "../style/compare.css";

export function Compare({ a, b }: { a: string | null; b: string | null }) {
  return (
    <section class="panel" aria-labelledby="compare">
      <h2 id="compare">Compare</h2>
      <p>{a} {b}</p>
    </section>
  );
}
