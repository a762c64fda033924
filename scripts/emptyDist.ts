/** Empties `dist` of the package that is being built: of a module that has been renamed or removed nothing is left to be published. */
import { rmSync } from "node:fs"
import { join } from "node:path"

rmSync(join(process.cwd(), "dist"), { recursive: true, force: true })
