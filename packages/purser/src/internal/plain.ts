/** Sums as plain programs have them: `response.json(…)` takes no bigint. */

/** A sum in minor units: a number where a number holds it, else its digits as a text. `BigInt(sum)` reads both exactly. */
export type MinorUnits = number | string

/** A record with its sums as JSON can hold them. */
export type Plain<A> = { readonly [K in keyof A]: bigint extends A[K] ? MinorUnits : A[K] }

/** A sum as a number where a number holds it, else as the text of its digits. */
export const minorUnits = (sum: bigint): MinorUnits => {
  const number = Number(sum)
  return Number.isSafeInteger(number) ? number : String(sum)
}

/** A record whose sums JSON can hold. */
export const plain = <A extends object>(record: A): Plain<A> =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, typeof value === "bigint" ? minorUnits(value) : value])) as Plain<A>
