// A table that scrolls if it is wide, from its rows.
import type { ComponentChildren } from "preact";

export interface Row {
  key: string;
  /** The first is the row's heading. */
  cells: ComponentChildren[];
  isMarked?: boolean;
}

export function Grid({ caption, head, rows, isText }: { caption: string; head: string[]; rows: Row[]; isText?: boolean }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
      <table class={isText ? "of-text" : ""}>
        <caption>{caption}</caption>
        <thead>
          <tr>
            {head.map((name) => (name === "" ? <td key={name} /> : <th key={name} scope="col">{name}</th>))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, cells: [name, ...cells], isMarked }) => (
            <tr key={key} class={isMarked ? "marked" : ""}>
              <th scope="row">{name}</th>
              {cells.map((cell, index) => (
                <td key={index}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
