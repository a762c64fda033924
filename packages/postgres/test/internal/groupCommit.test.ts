/** Group commit against a store that answers when the test lets it. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Scope } from "effect"
import * as GroupCommit from "../../src/internal/groupCommit.ts"

interface Input {
  readonly key: string
  readonly value: number
}

const Who = Context.Reference<string>("test/groupCommit/Who", { defaultValue: () => "nobody" })

class Refused {
  readonly _tag = "Refused"
  readonly splits: boolean
  constructor(splits: boolean) {
    this.splits = splits
  }
}

/** A store that notes each batch and waits at the gate before it answers with `value + 1`. */
const makeStore = Effect.fnUntraced(function*(options: Partial<GroupCommit.GroupCommitOptions<Input, number, Refused>> = {}) {
  const batches: Array<ReadonlyArray<Input>> = []
  const gate: { current: Deferred.Deferred<void> } = { current: Deferred.makeUnsafe() }
  const call = yield* GroupCommit.make<Input, number, Refused>({
    execute: (inputs) =>
      Effect.suspend(() => {
        batches.push(inputs)
        return Effect.as(Deferred.await(gate.current), inputs.map((input) => input.value + 1))
      }),
    keyOf: (input) => input.key,
    splits: (error) => error.splits,
    maxSize: 512,
    inFlight: 1,
    ...options
  })
  const sizes = () => batches.map((batch) => batch.length)
  const open = Effect.suspend(() => Deferred.succeed(gate.current, undefined))
  return { call, batches, sizes, open }
})

const input = (value: number, key = `k${value}`): Input => ({ key, value })
const settleFibers = Effect.forEach(Array.from({ length: 20 }), () => Effect.yieldNow, { discard: true })

describe("group commit", () => {
  it.effect("sends the first call alone at once and what came meanwhile together", () =>
    Effect.gen(function*() {
      const store = yield* makeStore()
      const first = yield* Effect.forkChild(store.call(input(0)))
      yield* settleFibers
      assert.deepStrictEqual(store.sizes(), [1])
      const others = yield* Effect.forEach(Array.from({ length: 100 }, (_, index) => input(index + 1)), (one) => Effect.forkChild(store.call(one)))
      yield* settleFibers
      assert.deepStrictEqual(store.sizes(), [1])
      yield* store.open
      assert.strictEqual(yield* Fiber.join(first), 1)
      assert.deepStrictEqual(yield* Effect.forEach(others, (fiber) => Fiber.join(fiber)), Array.from({ length: 100 }, (_, index) => index + 2))
      assert.deepStrictEqual(store.sizes(), [1, 100])
    }))

  it.effect("joins calls of one moment", () =>
    Effect.gen(function*() {
      const store = yield* makeStore()
      yield* store.open
      yield* Effect.forEach(Array.from({ length: 50 }, (_, index) => input(index)), (one) => store.call(one), { concurrency: "unbounded" })
      assert.deepStrictEqual(store.sizes(), [50])
    }))

  it.effect("keeps to the size of a batch and to the batches in flight", () =>
    Effect.gen(function*() {
      const store = yield* makeStore({ maxSize: 10, inFlight: 2 })
      const fibers = yield* Effect.forEach(Array.from({ length: 45 }, (_, index) => input(index)), (one) => Effect.forkChild(store.call(one)))
      yield* settleFibers
      assert.strictEqual(store.batches.length, 2)
      yield* store.open
      yield* Effect.forEach(fibers, (fiber) => Fiber.join(fiber))
      assert.isTrue(store.sizes().every((size) => size <= 10))
      assert.strictEqual(store.sizes().reduce((sum, size) => sum + size, 0), 45)
    }))

  it.effect("never holds a key twice in one batch", () =>
    Effect.gen(function*() {
      const store = yield* makeStore()
      yield* store.open
      const answers = yield* Effect.forEach([input(1, "a"), input(2, "a"), input(3, "b"), input(4, "a")], (one) => store.call(one), { concurrency: "unbounded" })
      assert.deepStrictEqual(answers, [2, 3, 4, 5])
      assert.deepStrictEqual(store.batches.map((batch) => batch.map((one) => one.value)), [[1, 3], [2], [4]])
    }))

  it.effect("answers a follower from its leader, without sending it", () =>
    Effect.gen(function*() {
      const store = yield* makeStore({ follow: (first, later) => first.value === later.value ? (answer) => answer * 100 : undefined })
      yield* store.open
      const answers = yield* Effect.forEach([input(1, "a"), input(1, "a"), input(2, "a")], (one) => store.call(one), { concurrency: "unbounded" })
      assert.deepStrictEqual(answers, [2, 200, 3])
      assert.deepStrictEqual(store.sizes(), [1, 1])
    }))

  it.effect("lets each caller go on from its answer in its own fiber", () =>
    Effect.gen(function*() {
      const call = yield* GroupCommit.make<Input, number, Refused, Refused, string>({
        execute: (inputs) => Effect.succeed(inputs.map(({ value }) => value + 1)),
        keyOf: ({ key }) => key,
        follow: (first, later) => first.value === later.value ? (answer) => -answer : undefined,
        splits: () => false,
        onward: ({ value }, answer) =>
          value === 3 ? Effect.fail(new Refused(false)) : Effect.withFiber((fiber) => Effect.succeed(`${answer} ${fiber.getRef(Who)}`)),
        maxSize: 512,
        inFlight: 1
      })
      const exits = yield* Effect.forEach([input(1), input(2), input(2), input(3)], (one, at) => Effect.exit(Effect.provideService(call(one), Who, `caller ${at}`)), { concurrency: "unbounded" })
      assert.deepStrictEqual(exits, [Exit.succeed("2 caller 0"), Exit.succeed("3 caller 1"), Exit.succeed("-3 caller 2"), Exit.fail(new Refused(false))])
    }))

  it.effect("fails the input that is bad and answers the rest of its batch", () =>
    Effect.gen(function*() {
      const sent: Array<number> = []
      const call = yield* GroupCommit.make<Input, number, Refused>({
        execute: (inputs) => {
          sent.push(inputs.length)
          return inputs.some((one) => one.value === 13) ? Effect.fail(new Refused(true)) : Effect.succeed(inputs.map((one) => one.value))
        },
        keyOf: (one) => one.key,
        splits: (error) => error.splits,
        maxSize: 512,
        inFlight: 1
      })
      const exits = yield* Effect.forEach(Array.from({ length: 64 }, (_, index) => input(index)), (one) => Effect.exit(call(one)), { concurrency: "unbounded" })
      assert.deepStrictEqual(exits.flatMap((exit, index) => Exit.isFailure(exit) ? [index] : []), [13])
      assert.strictEqual(sent[0], 64)
    }))

  it.effect("fails the input of which no statement can be made, and answers the rest of its batch and who comes later", () =>
    Effect.gen(function*() {
      const call = yield* GroupCommit.make<Input, number, Refused>({
        execute: (inputs) => {
          const whole = inputs.map(({ value }) => BigInt(value))
          return Effect.succeed(whole.map(Number))
        },
        keyOf: ({ key }) => key,
        splits: () => false,
        maxSize: 512,
        inFlight: 1
      })
      const exits = yield* Effect.forEach([1, 2.5, 3, 4], (value) => Effect.exit(call(input(value))), { concurrency: "unbounded" })
      assert.deepStrictEqual(exits.map((exit) => Exit.isSuccess(exit) ? exit.value : Exit.hasDies(exit)), [1, true, 3, 4])
      assert.isTrue(Exit.hasDies(yield* Effect.exit(call(input(0.5)))))
      assert.strictEqual(yield* call(input(5)), 5)
    }))

  it.effect("tells everybody of a defect between a batch and its callers, and answers who comes later", () =>
    Effect.gen(function*() {
      let broken = true
      const call = yield* GroupCommit.make<Input, number, Refused, Refused, number>({
        execute: (inputs) => inputs.some(({ value }) => value === 13) ? Effect.fail(new Refused(false)) : Effect.succeed(inputs.map(({ value }) => value)),
        keyOf: ({ key }) => key,
        follow: () => (answer) => answer,
        splits: () => false,
        failure: (_, refused) => {
          if (broken) throw new Error("no failure can be made of it")
          return refused
        },
        onward: ({ value }, answer) => {
          if (value === 7) throw new Error("nobody can go on from it")
          return Effect.succeed(answer)
        },
        maxSize: 512,
        inFlight: 1
      })
      const together = (values: ReadonlyArray<number>) => Effect.map(
        Effect.forEach(values, (value) => Effect.exit(call(input(value))), { concurrency: "unbounded" }),
        (exits) => exits.map((exit) => Exit.isSuccess(exit) ? exit.value : Exit.hasDies(exit))
      )
      assert.deepStrictEqual(yield* together([1, 13, 13, 2]), [true, true, true, true])
      assert.deepStrictEqual(yield* together([6, 7, 8, 8]), [6, true, true, true])
      broken = false
      assert.deepStrictEqual(yield* together([13]), [false])
      assert.deepStrictEqual(yield* together([1, 2]), [1, 2])
    }))

  it.effect("fails a whole batch once when the store itself is away, and works again after", () =>
    Effect.gen(function*() {
      let away = true
      const sent: Array<number> = []
      const call = yield* GroupCommit.make<Input, number, Refused>({
        execute: (inputs) => {
          sent.push(inputs.length)
          return away ? Effect.fail(new Refused(false)) : Effect.succeed(inputs.map((one) => one.value))
        },
        keyOf: (one) => one.key,
        splits: (error) => error.splits,
        maxSize: 512,
        inFlight: 1
      })
      const failed = yield* Effect.forEach(Array.from({ length: 8 }, (_, index) => input(index)), (one) => Effect.flip(call(one)), { concurrency: "unbounded" })
      assert.strictEqual(failed.length, 8)
      assert.deepStrictEqual(sent, [8])
      away = false
      assert.strictEqual(yield* call(input(5)), 5)
    }))

  it.effect("takes a call that was given up off the queue, and goes on", () =>
    Effect.gen(function*() {
      const store = yield* makeStore()
      const first = yield* Effect.forkChild(store.call(input(0)))
      yield* settleFibers
      const given = yield* Effect.forkChild(store.call(input(1)))
      const kept = yield* Effect.forkChild(store.call(input(2)))
      yield* settleFibers
      yield* Fiber.interrupt(given)
      yield* store.open
      yield* Fiber.join(first)
      assert.strictEqual(yield* Fiber.join(kept), 3)
      assert.deepStrictEqual(store.batches.map((batch) => batch.map((one) => one.value)), [[0], [2]])
    }))

  it.effect("does not take a batch down with a caller that is interrupted while it is under way", () =>
    Effect.gen(function*() {
      const store = yield* makeStore()
      const fibers = yield* Effect.forEach([input(0), input(1)], (one) => Effect.forkChild(store.call(one)))
      yield* settleFibers
      assert.deepStrictEqual(store.sizes(), [2])
      yield* Fiber.interrupt(fibers[0]!)
      yield* store.open
      assert.strictEqual(yield* Fiber.join(fibers[1]!), 2)
    }))

  it.effect("ends its callers when the layer's scope closes", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const store = yield* makeStore().pipe(Effect.provideService(Scope.Scope, scope))
      const running = yield* Effect.forkChild(store.call(input(0)))
      yield* settleFibers
      const waiting = yield* Effect.forkChild(store.call(input(1)))
      yield* settleFibers
      yield* Scope.close(scope, Exit.void)
      const exits = yield* Effect.forEach([running, waiting], (fiber) => Fiber.await(fiber))
      assert.isTrue(exits.every((exit) => Exit.hasInterrupts(exit)))
      assert.isTrue(Exit.hasInterrupts(yield* Effect.exit(store.call(input(2)))))
    }))

  it.effect("runs batches in the context of the layer, not in a caller's transaction", () =>
    Effect.gen(function*() {
      const Place = Context.Reference<string>("test/Place", { defaultValue: () => "layer" })
      const seen: Array<string> = []
      const call = yield* GroupCommit.make<Input, number, Refused>({
        execute: (inputs) =>
          Effect.map(Effect.service(Place), (place) => {
            seen.push(place)
            return inputs.map((one) => one.value)
          }),
        keyOf: (one) => one.key,
        splits: () => false,
        maxSize: 512,
        inFlight: 1
      })
      yield* Effect.provideService(call(input(1)), Place, "caller's transaction")
      assert.deepStrictEqual(seen, ["layer"])
    }))
})
