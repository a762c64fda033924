/** The `purser` command: its subcommands, and how every failure becomes one readable message and an exit status. */
import { NodeServices } from "@effect/platform-node"
import { SpendCapError } from "@purser/core"
import { Cause, Config, Effect, Layer } from "effect"
import { Command } from "effect/cli"
import { RunError } from "@purser/engine"
import { settingProblem } from "@purser/purser/SettingProblem"
import { CommandFailed, exitStatus } from "./CommandFailed.ts"
import { deadLettersCommand } from "./commands/deadLettersCommand.ts"
import { brokerCommand } from "./commands/brokerCommand.ts"
import { eventsCommand, feedCommand } from "./commands/feedCommands.ts"
import { forwarderCommand } from "./commands/forwarderCommand.ts"
import { dunningCommand } from "./commands/dunningCommand.ts"
import { consoleCommand } from "./commands/consoleCommand.ts"
import { doctorCommand } from "./commands/doctorCommand.ts"
import { keyCommand } from "./commands/keyCommand.ts"
import { keygenCommand } from "./commands/keygenCommand.ts"
import { pauseCommand, resumeCommand } from "./commands/pauseCommand.ts"
import { pruneCommand } from "./commands/pruneCommand.ts"
import { proxyCommand } from "./commands/proxyCommand.ts"
import { rebillCommand } from "./commands/rebillCommand.ts"
import { refundCommand } from "./commands/refundCommand.ts"
import { auditCommand, reconcileCommand } from "./commands/reconcileCommand.ts"
import { retryCommand } from "./commands/retryCommand.ts"
import { runCommand } from "./commands/runCommand.ts"
import { runnerCommand } from "./commands/runnerCommand.ts"
import { runsCommand } from "./commands/runsCommand.ts"
import { scheduleCommand } from "./commands/scheduleCommand.ts"
import { showCommand } from "./commands/showCommand.ts"
import { simCommand } from "./commands/simCommand.ts"
import { capCommand, statusCommand, sweepCommand } from "./commands/storeCommands.ts"
import { vaultCommand } from "./commands/vaultCommand.ts"
import { webhooksCommand } from "./commands/webhooksCommand.ts"
import { workerCommand } from "./commands/workerCommand.ts"
import { logging } from "./logging.ts"
import { settingsFile } from "./settingsFile.ts"
import { note } from "./ui/Output.ts"
import { version } from "./version.ts"

export { version }

const purser = Command.make("purser").pipe(
  Command.withDescription("Bill every customer and period exactly once, over ZeroMQ and through Stripe"),
  Command.withSubcommands([runCommand, runsCommand, runnerCommand, scheduleCommand, pruneCommand, workerCommand, brokerCommand, forwarderCommand, feedCommand, eventsCommand, statusCommand, consoleCommand, sweepCommand, retryCommand, dunningCommand, pauseCommand, resumeCommand, doctorCommand, refundCommand, rebillCommand, showCommand, capCommand, keyCommand, keygenCommand, deadLettersCommand, simCommand, webhooksCommand, reconcileCommand, auditCommand, proxyCommand, vaultCommand])
)

const raising = ({ billingPeriod, currency }: { readonly billingPeriod: string; readonly currency: string }) =>
  `purser cap raise ${billingPeriod} --currency ${currency} --expected-total … --reason …`

const textOf = (error: unknown): string => {
  if (error instanceof Config.ConfigError) return settingProblem(error)
  if (error instanceof RunError && error.reason._tag === "TotalOverCap") {
    return `${error.message}\nRaise the cap (${raising(error.reason)}), or charge what fits (--over-cap fits).`
  }
  if (error instanceof SpendCapError && error.reason._tag === "CapAlreadyOpen") return `${error.message}: ${raising(error.reason)}`
  return error instanceof Error ? error.message || error.name : String(error)
}

/** Runs the command line; fails only with {@link CommandFailed}, whose text the user has seen. */
export const program = Command.run(purser, { version }).pipe(
  // Inside the handler of failures: a wrong PURSER_LOG_LEVEL is one.
  Effect.provide(logging.pipe(Layer.provideMerge(settingsFile))),
  Effect.catch((error) => {
    if (error._tag === "CommandFailed") return Effect.andThen(note(error.text), Effect.fail(error))
    // The command-line library has shown its own errors, with the help of the command.
    const shown = error._tag === "ShowHelp" || (typeof error === "object" && "~effect/cli/CliError" in error)
    const failed = new CommandFailed({ text: textOf(error), status: exitStatus.refused })
    return Effect.andThen(shown ? Effect.void : note(failed.text), Effect.fail(failed))
  }),
  Effect.catchDefect((defect) =>
    Effect.andThen(
      note(`purser failed inside; this is a bug: ${Cause.pretty(Cause.die(defect))}`),
      Effect.fail(new CommandFailed({ text: textOf(defect), status: exitStatus.refused }))
    )
  ),
  Effect.provide(NodeServices.layer)
)
