/**
 * What is known of an object beside it and not in it: whoever compares, copies or writes the object does not see it, and it goes
 * with the object. It is a private field that the object is given later; a `WeakMap` says the same at several times the price,
 * because its table has to be built anew and walked by the collector for every few that came and went.
 */

/** What "makes" the object that it is given lets classes below it put their private fields on that. */
const Given = function(object: object) {
  return object
} as unknown as new(object: object) => object

/** Something beside objects of a kind. */
export interface Beside<Of extends object, A> {
  readonly of: (object: Of) => A | undefined
  /** At most once for each object. */
  readonly put: (object: Of, value: A) => void
}

/** Makes it. */
export const makeBeside = <Of extends object, A>(): Beside<Of, A> => {
  class Kept extends Given {
    readonly #value: A
    constructor(object: object, value: A) {
      super(object)
      this.#value = value
    }
    static of(object: object): A | undefined {
      return #value in object ? object.#value : undefined
    }
  }
  return {
    of: Kept.of,
    put: (object, value) => void new Kept(object, value)
  }
}
