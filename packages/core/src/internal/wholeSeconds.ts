/** A span for people: what the store's clock leaves, to the thousandth of a millisecond, is a whole second of theirs. */
export const wholeSeconds = (ms: number): string => `${Math.max(1, Math.ceil(ms / 1000))} s`
