/**
 * Requests of which there are many, alike but for their values. The SDK writes the first of a shape, with marks in the places of its
 * values, and the others are written after that one: to the letter what the SDK would write, at a small part of its price. What is not made of plain
 * words alone is left to the SDK to encode.
 */
import { Buffer } from "node:buffer"
import type { Stripe } from "stripe"

/** What the SDK built, or wants sent in its stead. */
export interface Written {
  readonly method: string
  /** With its query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string | number | ReadonlyArray<string>>>
  readonly body: string
}

/** What a request of a shape is made of. */
export type Values = Readonly<Record<string, string | number>>
type Ask<V> = (stripe: Stripe, values: V) => PromiseLike<unknown>
type Use = (stripe: Stripe) => PromiseLike<unknown>

const shape = Symbol("shape")

/** A request's shape, which is what asks for it and the names of its values, and the values. */
class Shape {
  readonly ask: Ask<Values>
  readonly values: Values

  constructor(ask: Ask<Values>, values: Values) {
    this.ask = ask
    this.values = values
  }
}

/** A call whose request depends on nothing but its values. `ask` is the same function for all of a shape, and branches on no value. */
export const shaped = <V extends Values>(ask: Ask<V>, values: V): Use => {
  const use: Use & { [shape]?: Shape } = (stripe) => ask(stripe, values)
  use[shape] = new Shape(ask as Ask<Values>, values)
  return use
}

/** Of digits, so that it may stand for a number, too. */
const stem = "8070605040"
const marked = new RegExp(`${stem}(\\d\\d)`)
const markOf = (index: number) => `${stem}${String(index).padStart(2, "0")}`

/** A text with places. */
class Template {
  /** The names of values. */
  readonly places: ReadonlyArray<string>
  private readonly texts: ReadonlyArray<string>

  constructor(text: string, names: ReadonlyArray<string>) {
    const pieces = text.split(marked)
    this.texts = pieces.filter((_, index) => index % 2 === 0)
    this.places = pieces.filter((_, index) => index % 2 === 1).map((digits) => names[Number(digits)] ?? "")
  }

  fill(values: Values): string {
    let text = this.texts[0]!
    for (let index = 0; index < this.places.length; index++) text += `${values[this.places[index]!]}${this.texts[index + 1]}`
    return text
  }
}

/** Encoded as they stand. */
const isPlain = (value: string | number | undefined): boolean => typeof value === "number" ? Number.isSafeInteger(value) && value >= 0 : value !== undefined && /^[A-Za-z0-9][\w.-]*$/.test(value)
const isPlainHeader = (value: string | number | undefined): boolean => /^[\w.:-]+$/.test(String(value))

const keyHeader = "Idempotency-Key"
/** Made for each request. */
const own: ReadonlySet<string> = new Set([keyHeader, "Content-Length", "Authorization", "Stripe-Account"])

/** A request of a shape as the SDK wrote it. */
class Pattern {
  private readonly method: string
  private readonly path: Template
  private readonly body: Template
  private readonly key: Template
  private readonly headers: Written["headers"]
  private readonly encoded: ReadonlyArray<string>

  constructor({ body, headers, method, path }: Written, names: ReadonlyArray<string>) {
    this.method = method
    this.path = new Template(path, names)
    this.body = new Template(body, names)
    this.key = new Template(String(headers[keyHeader]), names)
    this.headers = Object.fromEntries(Object.entries(headers).filter(([name]) => !own.has(name)))
    this.encoded = [...new Set([...this.path.places, ...this.body.places])]
  }

  /** Whether each value has its place, and no place is another's. */
  isWhole(names: ReadonlyArray<string>): boolean {
    const found = new Set([...this.encoded, ...this.key.places])
    return found.size === names.length && names.every((name) => found.has(name)) && !JSON.stringify(this.headers).includes(stem)
  }

  write(values: Values): Written | undefined {
    if (!this.encoded.every((name) => isPlain(values[name])) || !this.key.places.every((name) => isPlainHeader(values[name]))) return undefined
    const body = this.body.fill(values)
    const headers = { ...this.headers, [keyHeader]: this.key.fill(values), "Content-Length": Buffer.byteLength(body) }
    return { method: this.method, path: this.path.fill(values), headers, body }
  }
}

/** Writes requests of known shapes; undefined for a call that the SDK is to be asked for. `build` has the SDK build one, where it can. */
export const makeShapes = (build: (use: Use) => Written | undefined): (use: Use) => Written | undefined => {
  const patterns = new Map<Ask<Values>, Map<string, Pattern | undefined>>()

  const learn = ({ ask, values }: Shape): Pattern | undefined => {
    const names = Object.keys(values)
    const marks = Object.fromEntries(names.map((name, index) => [name, typeof values[name] === "number" ? Number(markOf(index)) : markOf(index)]))
    const built = names.length > 100 ? undefined : build((stripe) => ask(stripe, marks))
    if (built === undefined || built.headers[keyHeader] === undefined) return undefined
    const pattern = new Pattern(built, names)
    return pattern.isWhole(names) ? pattern : undefined
  }

  return (use: Use & { readonly [shape]?: Shape }) => {
    const asked = use[shape]
    if (asked === undefined) return undefined
    const names = Object.keys(asked.values).join()
    let known = patterns.get(asked.ask)
    if (known === undefined) patterns.set(asked.ask, known = new Map())
    if (!known.has(names)) known.set(names, learn(asked))
    return known.get(names)?.write(asked.values)
  }
}
