/** All suites, in the order in which they are run and shown. */
import { charge, embedded, scale, waiting } from "./charge/suite.ts"
import { gateway } from "./gateway/suite.ts"
import { growth } from "./growth/suite.ts"
import { latency } from "./latency/suite.ts"
import { ledger } from "./ledger/suite.ts"
import { limit } from "./limit/suite.ts"
import { plan } from "./plan/suite.ts"
import { proxy } from "./proxy/suite.ts"
import { start } from "./start/suite.ts"
import type { Suite } from "./support/Suite.ts"
import { telemetry } from "./telemetry/suite.ts"
import { transport } from "./transport/suite.ts"

export const suites: ReadonlyArray<Suite> = [charge, waiting, ledger, gateway, transport, plan, growth, scale, limit, latency, start, embedded, proxy, telemetry]
