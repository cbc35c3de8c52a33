// Small parts of several panels.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

/** A button that copies a text and says so. */
export function Copy({ text, children, label }: { text: () => string; children: ComponentChildren; label?: string }) {
  const [said, say] = useState("");
  const copy = () => {
    void copied(text()).then((worked) => {
      say(worked ? "copied" : "copying is not allowed here");
      setTimeout(() => {
        say("");
      }, 2000);
    });
  };
  return (
    <button type="button" class="quiet" onClick={copy} aria-label={label}>
      {said === "" ? children : said}
      <span class="hidden" role="status">
        {said}
      </span>
    </button>
  );
}

/** The clipboard is only there on loopback and with TLS; elsewhere a selection has to do. */
async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "hidden";
    document.body.append(area);
    area.select();
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- the only way where there is no clipboard
    const worked = document.execCommand("copy");
    area.remove();
    return worked;
  }
}

/** A command to paste. */
export function CommandLine({ command, label }: { command: string; label: string }) {
  return (
    <div class="command">
      <code aria-label={label} tabIndex={0} role="textbox" aria-readonly="true">
        {command}
      </code>
      <Copy text={() => command} label={`Copy: ${label}`}>
        Copy
      </Copy>
    </div>
  );
}

/** A long name cut off, whole in its title. */
export const Name = ({ children }: { children: string }) => (
  <span class="name" title={children}>
    {children}
  </span>
);

/** The head of a table. */
export const Heads = ({ names }: { names: readonly string[] }) => (
  <thead>
    <tr>
      {names.map((name) => (
        <th scope="col" key={name}>
          {name}
        </th>
      ))}
    </tr>
  </thead>
);
