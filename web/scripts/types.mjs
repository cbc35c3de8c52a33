// Writes src/generated/*.ts: the documents of bdp as TypeScript, from the JSON Schemas in docs/.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { compile } from "json-schema-to-typescript";

const root = new URL("../../", import.meta.url);
const documents = [
  "measurement",
  "job",
  "error",
  "sweep",
  "comparison",
  "twin",
  "rehearsal",
  "verification",
  "lab-run",
  "pcap",
  "plan",
  "ping",
  "path",
  "tune",
  "tune-show",
  "tune-journal",
];

await mkdir(new URL("web/src/generated/", root), { recursive: true });
for (const name of documents) {
  const schema = JSON.parse(await readFile(new URL(`docs/${name}.schema.json`, root), "utf8"));
  delete schema.title;
  delete schema.$id;
  const text = await compile(schema, `${name}_document`, {
    bannerComment: `// Made by 'npm run types' from docs/${name}.schema.json. Do not edit.`,
    additionalProperties: false,
    unreachableDefinitions: true,
    enableConstEnums: false,
    format: true,
    style: { printWidth: 110 },
  });
  await writeFile(new URL(`web/src/generated/${name}.ts`, root), text);
}

// What each fact is, for the evidence: its description in the schema.
const measurement = JSON.parse(await readFile(new URL("docs/measurement.schema.json", root), "utf8"));
const facts = measurement.$defs.fact.oneOf.map((fact) => [fact.const, fact.description]);
if (facts.length < 50 || facts.some(([, about]) => !about)) throw new Error("the schema describes no facts");
await writeFile(
  new URL("web/src/generated/facts.ts", root),
  `// Made by 'npm run types' from docs/measurement.schema.json. Do not edit.
export const FACTS: Readonly<Record<string, string>> = ${JSON.stringify(Object.fromEntries(facts), null, 2)};
`,
);
