import { Pair } from "@purser/transport-zeromq"
import { Console, Effect, Result, Schema, Stream } from "effect"

// Two ends in one process; each sends and receives at any time, here questions one way and answers the other.
const Question = Schema.Struct({ left: Schema.Int, right: Schema.Int })
const Answer = Schema.Struct({ sum: Schema.Int })
const endpoint = "inproc://sums"

const program = Effect.gen(function*() {
  const asker = yield* Pair.open({ endpoint, attach: "bind", send: Question, receive: Answer })
  const answerer = yield* Pair.open({ endpoint, attach: "connect", send: Answer, receive: Question })
  yield* answerer.messages.pipe(
    Stream.runForEach((question) => Result.isSuccess(question) ? answerer.send({ sum: question.success.left + question.success.right }) : Effect.void),
    Effect.forkChild
  )
  yield* asker.send({ left: 19, right: 23 })
  yield* asker.send({ left: 1, right: 2 })
  yield* asker.messages.pipe(
    Stream.take(2),
    Stream.runForEach((answer) => Console.log(Result.getOrThrow(answer).sum))
  )
})

await Effect.runPromise(Effect.scoped(program))
