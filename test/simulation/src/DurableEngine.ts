/**
 * Effect's own workflow engine and cluster, each life of a runner with its own, over tables that outlive them all: the messages,
 * the list of runners, and the locks on shards. A lock lasts as long as its runner's session with the database, which ends with the process, or
 * when nothing was heard of it for a while.
 */
import { Clock, Context, Effect, Layer, Option } from "effect"
import {
  type ClusterError, ClusterWorkflowEngine, MachineId, MessageStorage, type RunnerAddress, RunnerHealth, Runners, RunnerStorage, Sharding, ShardingConfig, Snowflake
} from "effect/cluster"
import { WebCrypto } from "effect/crypto"
import type { WorkflowEngine } from "effect/workflow"
import { createHash } from "node:crypto"
import { definitionsGroup, patientMessages } from "@purser/engine"

/** How long a runner may be silent before others take what it has. */
export const takeOverMs = 60_000
const refreshMs = takeOverMs / 3
/** Looks that a runner takes idly, which cost a world more than its work. What happens in a runner itself waits for none of them. */
const pollMs = 30_000

/** What every engine of a database shares. */
export interface EngineTables {
  readonly messages: MessageStorage.Encoded
  readonly members: RunnerStorage.Encoded
}

const groups = ["default", definitionsGroup]

const config = (address: Option.Option<RunnerAddress.RunnerAddress>) => ShardingConfig.layer({
  runnerAddress: address,
  shardsPerGroup: 2,
  availableShardGroups: groups,
  assignedShardGroups: groups,
  shardLockExpiration: takeOverMs,
  shardLockRefreshInterval: refreshMs,
  runnerHealthCheckInterval: pollMs,
  refreshAssignmentsInterval: pollMs,
  entityMessagePollInterval: pollMs,
  entityReplyPollInterval: pollMs,
  entityTerminationTimeout: "3 seconds"
})

/** Chance comes from the seed alone: the library would draw a number for each machine. */
const snowflakes = (machine: number) =>
  Layer.effect(Snowflake.Generator, Effect.tap(Snowflake.makeGenerator, (generator) => generator.setMachineId(MachineId.make(machine))))

interface Session {
  readonly machine: number
  runner: string
  healthy: boolean
  /** Null: not on the list. */
  seenMs: number | null
  heardMs: number
}

/** The list of runners and the locks, as the library keeps them in SQL. `isAlive` tells whether the process that has an address still lives. */
const membersOf = (isAlive: (address: string) => boolean): RunnerStorage.Encoded => {
  const sessions = new Map<string, Session>()
  const locks = new Map<string, string>()
  const now = Clock.currentTimeMillis
  const isOpen = (address: string, nowMs: number) => isAlive(address) && (sessions.get(address)?.heardMs ?? -Infinity) + takeOverMs > nowMs
  const heard = <A>(address: string, answer: (nowMs: number) => A) =>
    Effect.map(now, (nowMs) => {
      // What a session held that was closed for its silence is not its own any more.
      if (!isOpen(address, nowMs)) for (const [shard, owner] of locks) if (owner === address) locks.delete(shard)
      const session = sessions.get(address)
      if (session !== undefined) session.heardMs = nowMs
      return answer(nowMs)
    })
  const held = (address: string, shards: ReadonlyArray<string>) => shards.filter((shard) => locks.get(shard) === address)
  return {
    getRunners: Effect.map(now, (nowMs) =>
      [...sessions.values()].filter(({ seenMs }) => seenMs !== null && seenMs + takeOverMs > nowMs).map(({ healthy, runner }) => [runner, healthy] as const)),
    register: (address, runner, healthy) =>
      Effect.map(now, (nowMs) => {
        const machine = sessions.get(address)?.machine ?? sessions.size + 1
        sessions.set(address, { machine, runner, healthy, seenMs: nowMs, heardMs: nowMs })
        return machine
      }),
    unregister: (address) => Effect.sync(() => {
      const session = sessions.get(address)
      if (session !== undefined) session.seenMs = null
    }),
    setRunnerHealth: (address, healthy) => Effect.sync(() => {
      const session = sessions.get(address)
      if (session !== undefined) session.healthy = healthy
    }),
    acquire: (address, shards) =>
      heard(address, (nowMs) => {
        for (const shard of shards) {
          const owner = locks.get(shard)
          if (owner === undefined || !isOpen(owner, nowMs)) locks.set(shard, address)
        }
        return held(address, shards)
      }),
    refresh: (address, shards) =>
      heard(address, (nowMs) => {
        const session = sessions.get(address)
        if (session !== undefined && session.seenMs !== null) session.seenMs = nowMs
        return held(address, shards)
      }),
    release: (address, shard) => heard(address, () => {
      if (locks.get(shard) === address) locks.delete(shard)
    }),
    releaseAll: (address) => heard(address, () => {
      for (const [shard, owner] of locks) if (owner === address) locks.delete(shard)
    })
  }
}

/** Tables that are empty. */
export const makeTables = (isAlive: (address: string) => boolean): Effect.Effect<EngineTables> =>
  Effect.map(Effect.provide(MessageStorage.MemoryDriver.make, snowflakes(0)), ({ encoded }) => ({ messages: encoded, members: membersOf(isAlive) }))

/** How a process gets to the tables; `idle` is what it asks for again and again while nothing happens. */
export type Reach = <A>(operation: string, call: Effect.Effect<A, ClusterError.PersistenceError>, idle: boolean) => Effect.Effect<A, ClusterError.PersistenceError>

const looks = new Set(["unprocessedMessages", "getRunners", "refresh", "acquire", "resetShards"])

/** A service of which every call goes through a gate. What is no call stays as it is. */
export const gated = <S extends object>(service: S, gate: (operation: string, call: Effect.Effect<any, any>) => Effect.Effect<any, any>): S =>
  Object.fromEntries(Object.entries(service).map(([name, member]) => [
    name,
    typeof member === "function"
      ? (...given: ReadonlyArray<unknown>) => gate(name, Effect.suspend(() => member(...given)))
      : Effect.isEffect(member) ? gate(name, member as Effect.Effect<any, any>) : member
  ])) as S

/** How an engine stands in the cluster. Without an address it hands over and runs nothing. */
export interface Membership {
  readonly address: RunnerAddress.RunnerAddress | undefined
  readonly isAlive: (address: string) => Effect.Effect<boolean>
}

/** An engine on the tables. */
export const engineOn = (tables: EngineTables, reach: Reach, { address, isAlive }: Membership): Layer.Layer<WorkflowEngine.WorkflowEngine> => {
  const gate = (operation: string, call: Effect.Effect<any, any>) => reach(operation, call, looks.has(operation))
  const messages = { ...gated(tables.messages, gate), withTransaction: tables.messages.withTransaction }
  return ClusterWorkflowEngine.layer.pipe(
    Layer.provide(Sharding.layer),
    Layer.provide(Layer.effect(Runners.Runners, Runners.makeNoop)),
    Layer.provide(patientMessages(Layer.effect(MessageStorage.MessageStorage, MessageStorage.makeEncoded(messages)))),
    Layer.provide(snowflakes(address?.port ?? 0)),
    Layer.provide(Layer.succeed(RunnerStorage.RunnerStorage, RunnerStorage.makeEncoded(gated(tables.members, gate)))),
    Layer.provide(Layer.succeed(RunnerHealth.RunnerHealth, RunnerHealth.RunnerHealth.of({ isAlive: (one) => isAlive(`${one.host}:${one.port}`) }))),
    Layer.provide(config(Option.fromUndefinedOr(address)))
  )
}

/** Digests without the system's own threads, whose turn no seed decides. */
export const digests = Context.make(WebCrypto.WebCrypto, {
  subtle: { digest: (_: string, data: Uint8Array) => Promise.resolve(new Uint8Array(createHash("sha256").update(data).digest()).buffer) }
} as unknown as typeof globalThis.crypto)
