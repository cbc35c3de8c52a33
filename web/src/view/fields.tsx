// Fields of the panels' forms, and the options of a command as the server lists them.
import { effect, signal, type ReadonlySignal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import * as api from "../api";
import type { More } from "../command";

interface Labelled {
  id: string;
  label: string;
  error?: string | null;
  wide?: boolean;
}

interface TextProps extends Labelled {
  value: string;
  onValue: (value: string) => void;
  placeholder?: string;
  list?: string;
  /** Shown as dots, and kept by no browser. */
  secret?: boolean;
}

export function Text({ id, label, value, onValue, placeholder, list, error = null, wide, secret }: TextProps) {
  return (
    <div class={`field${wide ? " wide" : ""}${error === null ? "" : " wrong"}`}>
      <label for={id}>{label}</label>
      <input
        // An input with a list can't be a password by its types.
        {...(secret ? ({ type: "password", autocomplete: "new-password" } as object) : { autocomplete: "off" })}
        id={id}
        value={value}
        placeholder={placeholder}
        autocapitalize="off"
        spellcheck={false}
        list={list}
        maxLength={300}
        aria-invalid={error !== null}
        aria-describedby={error === null ? undefined : `${id}-error`}
        onInput={(event) => {
          onValue(event.currentTarget.value);
        }}
      />
      <FieldError id={id} error={error} />
    </div>
  );
}

interface ChoiceProps<T extends string> extends Labelled {
  value: T;
  onValue: (value: T) => void;
  choices: readonly (readonly [T, string])[];
}

export function Choice<T extends string>({ id, label, value, onValue, choices, error = null, wide }: ChoiceProps<T>) {
  return (
    <div class={`field${wide ? " wide" : ""}`}>
      <label for={id}>{label}</label>
      <select
        id={id}
        value={value}
        aria-describedby={error === null ? undefined : `${id}-error`}
        onChange={(event) => {
          onValue(event.currentTarget.value as T);
        }}
      >
        {choices.map(([name, text]) => (
          <option key={name} value={name}>
            {text}
          </option>
        ))}
      </select>
      <FieldError id={id} error={error} />
    </div>
  );
}

const FieldError = ({ id, error }: { id: string; error: string | null }) =>
  error === null ? null : (
    <p class="error" id={`${id}-error`} role="alert">
      {error}
    </p>
  );

/** An error of a whole form. */
export const Problem = ({ text }: { text: string | null }) =>
  text === null ? null : (
    <p class="error" role="alert">
      {text}
    </p>
  );

/** What the server says against the command that is typed, once typing pauses; null if nothing, or if it is not ready. */
export function checked(line: ReadonlySignal<string[]>, isReady: () => boolean): Signal<string | null> {
  const problem = signal<string | null>(null);
  let timer = 0;
  effect(() => {
    const now = line.value;
    clearTimeout(timer);
    if (!isReady()) {
      problem.value = null;
      return;
    }
    timer = window.setTimeout(() => {
      api.check(now).then(
        () => {
          if (line.peek() === now) problem.value = null;
        },
        (error: unknown) => {
          if (line.peek() === now && error instanceof api.Refusal && error.status !== 401) problem.value = withoutHelp(error.message);
        },
      );
    }, 200);
  });
  return problem;
}

/** A refusal without its hint to `--help`. */
export const withoutHelp = (message: string): string => message.replace(/; see 'bdp [a-z ]*--help'$/, "");

/** The commands of the server with their options; null until they are asked for. */
export const commands = signal<api.Command[] | null>(null);

export function loadCommands(): void {
  if (commands.peek() !== null) return;
  api.commands().then(
    (list) => (commands.value = list),
    () => undefined,
  );
}

/** Escape stops the job of a panel. */
export function useEscape(stop: () => void): void {
  useEffect(() => {
    const escape = (event: KeyboardEvent) => {
      if (event.key === "Escape" && !document.querySelector("dialog[open]")) stop();
    };
    addEventListener("keydown", escape);
    return () => {
      removeEventListener("keydown", escape);
    };
  }, []);
}

/** Options that make no sense on a page. */
const ELSEWHERE = new Set(
  "help version json json-stream csv format report title note prometheus store units details verbose interval capture figures".split(" "),
);

interface OptionsProps {
  command: string;
  /** Long names of options that have fields of their own. */
  own: ReadonlySet<string>;
  values: More;
  onValues: (values: More) => void;
}

export function Options({ command, own, values, onValues }: OptionsProps) {
  const groups = new Map<string, api.Argument[]>();
  for (const argument of commands.value?.find((one) => one.name === command)?.arguments ?? []) {
    if (argument.positional || argument.long === null || own.has(argument.long) || ELSEWHERE.has(argument.long)) continue;
    const heading = argument.heading ?? "Other";
    groups.set(heading, [...(groups.get(heading) ?? []), argument]);
  }
  const used = Object.keys(values).length;
  const change = (name: string, next: string | true | undefined) => {
    const all = new Map(Object.entries(values));
    if (next === undefined || next === "") all.delete(name);
    else all.set(name, next);
    onValues(Object.fromEntries(all));
  };
  return (
    <details
      class="wide"
      onToggle={(event) => {
        if (event.currentTarget.open) loadCommands();
      }}
    >
      <summary>All options{used > 0 ? `, ${String(used)} set` : ""}</summary>
      {commands.value === null && <p class="faint">Reading the options of bdp {command}.</p>}
      {[...groups].map(([heading, list]) => (
        <fieldset key={heading}>
          <legend>{heading}</legend>
          {list.map((argument) => (
            <Option key={argument.name} argument={argument} value={values[argument.long ?? argument.name]} change={change} />
          ))}
        </fieldset>
      ))}
    </details>
  );
}

interface OptionProps {
  argument: api.Argument;
  value: string | true | undefined;
  change: (name: string, next: string | true | undefined) => void;
}

function Option({ argument, value, change }: OptionProps) {
  const name = argument.long ?? argument.name;
  const id = `option-${name}`;
  const label = `--${name}${argument.value === null ? "" : ` ${argument.value}`}`;
  const shown = typeof value === "string" ? value : "";
  const typed = (event: { currentTarget: { value: string } }) => {
    change(name, event.currentTarget.value);
  };
  return (
    <div class="option">
      {argument.value === null ? (
        <label>
          <input
            type="checkbox"
            checked={value === true}
            aria-describedby={`${id}-help`}
            onChange={(event) => {
              change(name, event.currentTarget.checked ? true : undefined);
            }}
          />{" "}
          {label}
        </label>
      ) : (
        <>
          <label for={id}>{label}</label>
          {argument.choices.length > 0 ? (
            <select id={id} value={shown} aria-describedby={`${id}-help`} onChange={typed}>
              <option value="">{argument.default ?? ""}</option>
              {argument.choices.map((choice) => (
                <option key={choice}>{choice}</option>
              ))}
            </select>
          ) : argument.many ? (
            <textarea id={id} rows={2} value={shown} placeholder="one a line" aria-describedby={`${id}-help`} onInput={typed} />
          ) : (
            <input
              id={id}
              type="text"
              value={shown}
              placeholder={argument.default ?? ""}
              autocomplete="off"
              spellcheck={false}
              aria-describedby={`${id}-help`}
              onInput={typed}
            />
          )}
        </>
      )}
      <p class="faint" id={`${id}-help`}>
        {argument.help}
      </p>
    </div>
  );
}
