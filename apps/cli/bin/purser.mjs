#!/usr/bin/env node
// Compiled once for all starts on this machine; where there is no place for that, each start compiles.
import { enableCompileCache } from "node:module"

enableCompileCache()
await import("../dist/main.js")
