import { program } from "./Cli.ts"
import { launch } from "./launch.ts"

launch(program)
