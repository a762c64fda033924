import { assert, describe, it } from "@effect/vitest"
import { isLocalAddress, parseEndpoint, splitEndpoints } from "@purser/transport-zeromq"
import { Result } from "effect"
import { openEnvelope } from "../src/internal/envelope.ts"

describe("Endpoint", () => {
  it("knows what no other machine can reach", () => {
    for (const address of ["tcp://127.0.0.1:5555", "tcp://127.1.2.3:*", "tcp://localhost:1", "tcp://[::1]:1", "ipc:///tmp/a.sock", "inproc://a"]) {
      assert.isTrue(isLocalAddress(address), address)
    }
    for (const address of ["tcp://0.0.0.0:1", "tcp://*:1", "tcp://localhost.example.com:1", "tcp://[::]:1", "tcp://128.0.0.1:1", "udp://127.0.0.1:1"]) {
      assert.isFalse(isLocalAddress(address), address)
    }
  })

  it("takes the prefix for how the socket attaches", () => {
    const attach = (text: string) => Result.map(parseEndpoint(text, { attach: "connect", allowPlain: false }), (endpoint) => [endpoint.attach, endpoint.address])
    assert.deepStrictEqual(attach("inproc://a"), Result.succeed(["connect", "inproc://a"]))
    assert.deepStrictEqual(attach("@inproc://a"), Result.succeed(["bind", "inproc://a"]))
    assert.deepStrictEqual(attach(">inproc://a"), Result.succeed(["connect", "inproc://a"]))
  })

  it("has no port beyond the last one, which libzmq would take for another", () => {
    const read = (port: string) => Result.isSuccess(parseEndpoint(`tcp://127.0.0.1:${port}`, { attach: "bind", allowPlain: false }))
    assert.deepStrictEqual(["1", "65535", "*", "65536", "99999"].map(read), [true, true, true, false, false])
  })

  it("splits a list", () => {
    assert.deepStrictEqual(splitEndpoints(" inproc://a , ,ipc://b"), ["inproc://a", "ipc://b"])
  })
})

describe("the envelope", () => {
  const open = (...frames: ReadonlyArray<string>) => {
    const { envelope, payload } = openEnvelope(frames.map((frame) => Buffer.from(frame)))
    return [envelope.map(String), ...payload.map(String)]
  }

  it("ends at the first empty frame, or after the peer's id", () => {
    assert.deepStrictEqual(open("req", "", "body"), [["req", ""], "body"])
    assert.deepStrictEqual(open("dealer", "body"), [["dealer"], "body"])
    assert.deepStrictEqual(open("proxy", "req", "", "body"), [["proxy", "req", ""], "body"])
    assert.deepStrictEqual(open("req", "", ""), [["req", ""], ""])
  })

  it("leaves as many frames as there are after it", () => {
    assert.deepStrictEqual(open("peer"), [["peer"]])
    assert.deepStrictEqual(open("req", ""), [["req", ""]])
    assert.deepStrictEqual(open("req", "", "one", "two"), [["req", ""], "one", "two"])
    assert.deepStrictEqual(open("dealer", "one", "two"), [["dealer"], "one", "two"])
  })
})
