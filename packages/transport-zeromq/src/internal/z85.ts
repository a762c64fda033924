/** Z85 (32/Z85): keys of 32 bytes as 40 printable characters. Other lengths are not needed here and are refused. */

const digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
const values = new Map([...digits].map((digit, value) => [digit, value]))

const keyBytes = 32
const keyDigits = 40

/** The text of a key; undefined when it is not 32 bytes long. */
export const encodeZ85 = (bytes: Uint8Array): string | undefined => {
  if (bytes.length !== keyBytes) return undefined
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let text = ""
  for (let offset = 0; offset < keyBytes; offset += 4) {
    const word = view.getUint32(offset)
    for (let divisor = 85 ** 4; divisor >= 1; divisor /= 85) text += digits[Math.floor(word / divisor) % 85]
  }
  return text
}

/** The bytes of a key's text; undefined when it is none. */
export const decodeZ85 = (text: string): Uint8Array | undefined => {
  if (text.length !== keyDigits) return undefined
  const bytes = new Uint8Array(keyBytes)
  const view = new DataView(bytes.buffer)
  for (let group = 0; group < keyDigits / 5; group++) {
    let word = 0
    for (let index = 0; index < 5; index++) {
      const value = values.get(text[group * 5 + index]!)
      if (value === undefined) return undefined
      word = word * 85 + value
    }
    if (word > 0xffff_ffff) return undefined
    view.setUint32(group * 4, word)
  }
  return bytes
}
