/** The flag that names a port to listen on. */
import { Flag } from "effect/cli"

/** `--port` */
export const portFlag: Flag.Flag<number> = Flag.Int("port").pipe(Flag.filter((port) => port >= 0 && port <= 65_535, () => "--port must be from 0 to 65535"))
