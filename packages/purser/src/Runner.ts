/**
 * The workflow engine of this process, on the configured database: Effect Cluster, with its tables beside Purser's.
 *
 * On PostgreSQL any number of runners share the work; each holds some of the shards by a lock that ends with its session, so
 * that another one takes over what a killed or frozen runner had. The embedded database has one process, which runs everything
 * by itself. The sockets between runners carry calls without keys: they are for a network that runners alone can reach, so that one
 * that other machines reach has to be allowed by name.
 */
// By their modules: the whole package would load a client of Redis.
import * as NodeClusterSocket from "@effect/platform-node/NodeClusterSocket"
import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import * as NodeSocketServer from "@effect/platform-node/NodeSocketServer"
import { Database, engineTables } from "@purser/postgres"
import { clusterLoggers, definitionsGroup, patientMessages } from "@purser/engine"
import { Config, Duration, Effect, Layer, Logger, Option, Schedule, Schema } from "effect"
import {
  ClusterWorkflowEngine, type MessageStorage, RunnerAddress, RunnerHealth, Runners, RunnerStorage, Sharding, ShardingConfig, SocketRunner, SqlMessageStorage, SqlRunnerStorage
} from "effect/cluster"
import { RpcSerialization } from "effect/rpc"
import { SocketServer } from "effect/socket"
import type { SqlClient } from "effect/sql"
import type { WorkflowEngine } from "effect/workflow"
import { EngineUnavailable, orEngineUnavailable } from "./EngineUnavailable.ts"

/** A lock is refreshed three times within it, and a refresh that is slower takes the runner for ill: a busy database needs its time. */
const Silence = Schema.DurationFromString.check(Schema.makeFilter((silence: Duration.Duration) =>
  (Duration.toMillis(silence) >= 2000 && Duration.toMillis(silence) <= 600_000) || "expected from 2 seconds to 10 minutes"))

/** `PURSER_RUNNER_TAKEOVER`: after how long the work of a runner that is silent goes to others. */
export const takeOverAfter: Config.Config<Duration.Duration> = Config.schema(Silence, "PURSER_RUNNER_TAKEOVER").pipe(
  Config.withDefault(Duration.seconds(6))
)

const settings = Config.all({
  host: Config.NonEmptyString("PURSER_RUNNER_HOST").pipe(Config.withDefault("127.0.0.1")),
  listen: Config.option(Config.NonEmptyString("PURSER_RUNNER_LISTEN")),
  allowPlain: Config.Boolean("PURSER_RUNNER_ALLOW_PLAIN").pipe(Config.withDefault(false)),
  port: Config.schema(Schema.FiniteFromString.check(Schema.isInt(), Schema.isBetween({ minimum: 0, maximum: 65_535 })), "PURSER_RUNNER_PORT").pipe(
    Config.withDefault(0)
  ),
  takeOver: takeOverAfter
})

type Settings = Config.Success<typeof settings>

/** A runner that is gone is noticed by its lock, by its heartbeat, or because nobody answers at its address. */
const sharding = ({ takeOver }: Settings, knowsDefinitions = true) => ({
  ...ShardingConfig.defaults,
  shardsPerGroup: 60,
  availableShardGroups: ["default", definitionsGroup],
  assignedShardGroups: knowsDefinitions ? ["default", definitionsGroup] : ["default"],
  shardLockExpiration: takeOver,
  shardLockRefreshInterval: Duration.divideUnsafe(takeOver, 3),
  runnerHealthCheckInterval: Duration.divideUnsafe(takeOver, 3),
  // Work that moves to a runner which joins is cut short and done anew there: every step may be.
  entityTerminationTimeout: Duration.seconds(3),
  refreshAssignmentsInterval: Duration.seconds(1),
  entityMessagePollInterval: Duration.seconds(1)
})

const onTables = orEngineUnavailable("its tables cannot be used")
const messages = patientMessages(onTables(SqlMessageStorage.layerWith({ prefix: engineTables })).pipe(Layer.provide(NodeCrypto.layerDigest)))
const members = onTables(SqlRunnerStorage.layerWith({ prefix: engineTables }))

const isLoopback = (host: string) => /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/.test(host)

/** Where this runner listens. */
const addressOf = ({ allowPlain, host, listen }: Settings): Effect.Effect<string, EngineUnavailable> => {
  const at = Option.getOrElse(listen, () => host)
  return allowPlain || isLoopback(at) ? Effect.succeed(at) : Effect.fail(new EngineUnavailable({
    detail: `other machines can reach ${at}, and the sockets between runners bear no keys; PURSER_RUNNER_ALLOW_PLAIN=true allows it, for a network that runners alone reach`,
    isRetryable: false
  }))
}

/** What an engine is made of. */
export type RunnerServices = WorkflowEngine.WorkflowEngine | Sharding.Sharding | MessageStorage.MessageStorage

/** Everything in this process; its shards are nobody else's. */
const alone = (config: ReturnType<typeof sharding>, address: ShardingConfig.ShardingConfig["Service"]["runnerAddress"]) =>
  Sharding.layer.pipe(
    Layer.provideMerge(Runners.layerNoop),
    Layer.provideMerge(messages),
    Layer.provide([RunnerStorage.layerMemory, RunnerHealth.layerNoop]),
    Layer.provide(ShardingConfig.layer({ ...config, runnerAddress: address }))
  )

/** The library's own pings wait for a minute before a frozen runner is given up: longer than its lock lasts. */
const pings = ({ takeOver }: Settings) =>
  Layer.effect(RunnerHealth.RunnerHealth, Effect.map(Runners.Runners, (runners) => ({
    isAlive: (address: RunnerAddress.RunnerAddress) =>
      runners.ping(address).pipe(
        Effect.timeout(Duration.divideUnsafe(takeOver, 3)),
        Effect.retry({ times: 1, schedule: Schedule.spaced("250 millis") }),
        Effect.isSuccess
      )
  })))

/**
 * A runner that leaves takes itself off the list, and the library warns then that the list is empty, once a second. Nothing is wrong with
 * that: the warning is for those who stay.
 */
const leavingQuietly = <A, E, R>(cluster: Layer.Layer<A, E, R>): Layer.Layer<A, E, R> =>
  Layer.unwrap(Effect.map(Logger.CurrentLoggers, (loggers) => {
    let isLeaving = false
    const quiet = new Set([...clusterLoggers(loggers)].map((logger) =>
      Logger.make((entry) => isLeaving && String(entry.message).includes("No healthy runners available") ? undefined : logger.log(entry))))
    // Built last, so that it ends first.
    return Layer.effectDiscard(Effect.addFinalizer(() => Effect.sync(() => {
      isLeaving = true
    }))).pipe(Layer.provideMerge(cluster), Layer.provide(Layer.succeed(Logger.CurrentLoggers, quiet)))
  }))

/** One of several: listens for the others, and has its share of the shards. */
const member = Effect.fnUntraced(function*(read: Settings, knowsDefinitions: boolean) {
  const server = yield* NodeSocketServer.make({ host: yield* addressOf(read), port: read.port })
  // Of a port that the system chose only the server knows the number.
  const port = server.address._tag === "InetAddressV4" || server.address._tag === "InetAddressV6" ? server.address.port : read.port
  const health = pings(read).pipe(Layer.provide(Runners.layerRpc), Layer.provide(NodeClusterSocket.layerClientProtocol))
  return SocketRunner.layer.pipe(
    Layer.provide([Layer.succeed(SocketServer.SocketServer, server), NodeClusterSocket.layerClientProtocol]),
    Layer.provide(health),
    Layer.provideMerge(messages),
    Layer.provide(members),
    Layer.provide(ShardingConfig.layer({
      ...sharding(read, knowsDefinitions),
      runnerAddress: Option.some(RunnerAddress.make(read.host, port))
    })),
    Layer.provide(RpcSerialization.layerSchemaBinary())
  )
})

/** Hands work over to runners, and runs none. */
const outside = (read: Settings) =>
  SocketRunner.layerClientOnly.pipe(
    Layer.provide(NodeClusterSocket.layerClientProtocol),
    Layer.provideMerge(messages),
    Layer.provide(members),
    Layer.provide(ShardingConfig.layer(sharding(read))),
    Layer.provide(RpcSerialization.layerSchemaBinary())
  )

const engineOn = <A, E, R>(cluster: Layer.Layer<A | Sharding.Sharding | MessageStorage.MessageStorage, E, R>) =>
  ClusterWorkflowEngine.layer.pipe(Layer.provideMerge(cluster))

const isEmbedded = Effect.map(Database, ({ kind }) => kind === "pglite")

const serving = (knowsDefinitions: boolean) =>
  Layer.unwrap(Effect.gen(function*() {
    const read = yield* settings
    return (yield* isEmbedded) ? engineOn(alone(sharding(read, knowsDefinitions), ShardingConfig.defaults.runnerAddress)) : engineOn(leavingQuietly(yield* member(read, knowsDefinitions)))
  })).pipe(orEngineUnavailable("its address cannot be used"))

/** Layers of the engine; workflows are registered by the layers that are built on it. */
export const Runner: {
  /** An engine that runs workflows: alone on the embedded database, one of several on PostgreSQL. */
  readonly layer: Layer.Layer<RunnerServices, Config.ConfigError | EngineUnavailable, Database | SqlClient.SqlClient>
  /** The same for a program that runs planned rows and dunning, and knows no definitions: it takes no run that needs one, and no schedule. */
  readonly layerNoDefinitions: Layer.Layer<RunnerServices, Config.ConfigError | EngineUnavailable, Database | SqlClient.SqlClient>
  /** An engine that starts workflows for runners elsewhere and wakes them; on the embedded database, for the process that has it next. */
  readonly layerClient: Layer.Layer<RunnerServices, Config.ConfigError | EngineUnavailable, Database | SqlClient.SqlClient>
} = {
  layer: serving(true),
  layerNoDefinitions: serving(false),
  layerClient: Layer.unwrap(Effect.gen(function*() {
    const read = yield* settings
    // Without an address it runs nothing, and leaves what it starts for the process that comes.
    return (yield* isEmbedded) ? engineOn(alone(sharding(read), Option.none())) : engineOn(outside(read))
  }))
}
