#!/usr/bin/env node
// This file asks for nothing that an old Node has not: such a one would stop at the first thing that it does not know, with a message about that.
import { readFileSync } from "node:fs"

const { engines } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"))
const [wanted, had] = [engines.node.replace(">=", ""), process.versions.node].map((text) => text.split(".").map(Number))

if (had[0] < wanted[0] || (had[0] === wanted[0] && had[1] < wanted[1])) {
  console.error(`purser needs Node ${wanted.join(".")} or newer, and this is Node ${had.join(".")}`)
  process.exit(1)
}

// Compiled once for all starts on this machine; where there is no place for that, each start compiles.
const { enableCompileCache } = await import("node:module")
enableCompileCache()
await import("../dist/main.js")
