/** Writes what is generated from the code: `pnpm docs:write`. The difference is part of the commit that made it. */
import { Effect } from "effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { generated } from "../src/Generated.ts"
import { root } from "../src/Pages.ts"

for (const [path, text] of await Effect.runPromise(generated)) {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text)
  console.log(path)
}
