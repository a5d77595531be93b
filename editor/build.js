// Makes the one file that the dashboard serves, and the licences of what is in it beside it.
import { build } from "esbuild";
import { readFile, writeFile } from "node:fs/promises";

const made = "../tilesmith/app/service/dashboard/static";
const { metafile } = await build({
  entryPoints: ["editor.js"],
  outfile: `${made}/editor.js`,
  bundle: true,
  format: "esm",
  minify: true,
  target: "es2022",
  metafile: true,
  legalComments: "none",
});
const packages = new Set(Object.keys(metafile.inputs).flatMap((path) => path.match(/^node_modules\/((@[^/]+\/)?[^/]+)\//)?.[1] ?? []));
const licences = await Promise.all(
  [...packages].sort().map(async (name) => `${name}\n\n${await readFile(`node_modules/${name}/LICENSE`, "utf8")}`),
);
await writeFile(`${made}/editor.LICENSES.txt`, licences.join("\n\n"));
