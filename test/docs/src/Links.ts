/** Links of pages to places outside of the repository. */

/** Addresses with the pages that link to them. Those in code, of this machine, or with a part left open (`…`) are examples. */
export const outsideLinks = (pages: ReadonlyArray<readonly [path: string, text: string]>): ReadonlyMap<string, ReadonlyArray<string>> => {
  const found = new Map<string, ReadonlyArray<string>>()
  for (const [path, text] of pages) {
    const prose = text.replaceAll(/^```[^]*?^```$/gm, "").replaceAll(/`[^`\n]*`/g, "")
    for (const [, link] of prose.matchAll(/(?:\]\(|<)(https?:\/\/[^)>\s]+)/g)) {
      const address = link!.replace(/#.*$/, "")
      if (/^https?:\/\/(?:localhost|127\.|\[::1\]|[\w.-]*\.(?:internal|example)\b)|…/.test(address)) continue
      found.set(address, [...new Set([...found.get(address) ?? [], path])])
    }
  }
  return found
}
