/** The server of Restate, where somebody has installed it: 216 MB that no test run should download. */
import { existsSync } from "node:fs"
import { join } from "node:path"

/** Its program on the PATH. */
export const restateServer = (): string | undefined => (process.env["PATH"] ?? "").split(":").map((folder) => join(folder, "restate-server")).find((file) => existsSync(file))
