/** What the page is built from, as one hash: a build of other sources is not the page of these. */
import { createHash } from "node:crypto"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** The folder of a checkout's sources of the page; undefined where there are none, as in what is published. */
export const webSources = (packageFolder: string): string | undefined => {
  const folder = join(packageFolder, "web")
  return existsSync(join(folder, "index.html")) && existsSync(join(packageFolder, "scripts", "buildWeb.ts")) ? folder : undefined
}

/** The hash over the page's sources and the API that it speaks. */
export const webStamp = (packageFolder: string): string => {
  const hash = createHash("sha256")
  for (const part of ["web", "src/api", "scripts"]) {
    for (const name of readdirSync(join(packageFolder, part), { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name)).sort()) {
      hash.update(name.slice(packageFolder.length)).update("\0").update(readFileSync(name))
    }
  }
  return hash.digest("hex")
}

/** The name of the file that keeps it beside the build. */
export const stampFile = "build-stamp"
