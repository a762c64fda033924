/** Text of a file as it may be shown on a terminal: what could move the cursor or turn the writing is escaped. */
export const quoted = (text: string): string =>
  `"${text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}"\\]/gu, (char) =>
    char === "\"" || char === "\\" ? `\\${char}` : `\\u{${char.codePointAt(0)!.toString(16)}}`)}"`
