// Writes src/generated/*.ts: the documents of bdp as TypeScript, from the JSON Schemas in docs/.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { compile } from "json-schema-to-typescript";

const root = new URL("../../", import.meta.url);
const documents = ["measurement", "job", "error"];

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
