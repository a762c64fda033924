import { assert, describe, it } from "@effect/vitest"
import { Equal } from "effect"
import { inspect } from "node:util"
import { makeBeside } from "../src/internal/beside.ts"

describe("what is kept beside an object", () => {
  it("is that object's alone, of one kind alone, and seen by nobody who compares, copies or writes it", () => {
    const [names, ages] = [makeBeside<object, string>(), makeBeside<object, number>()]
    const [one, other, frozen] = [{ id: 1 }, { id: 1 }, Object.freeze({ id: 2 })]
    names.put(one, "a")
    ages.put(one, 3)
    names.put(frozen, "f")
    assert.deepStrictEqual([names.of(one), ages.of(one), names.of(frozen), names.of(other), ages.of(frozen)], ["a", 3, "f", undefined, undefined])
    assert.isUndefined(names.of({ ...one }))
    assert.deepStrictEqual(one, other)
    assert.isTrue(Equal.equals(one, other))
    assert.deepStrictEqual([Reflect.ownKeys(one), JSON.stringify(one), inspect(one, { showHidden: true })], [["id"], "{\"id\":1}", "{ id: 1 }"])
  })
})
