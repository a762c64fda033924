/**
 * Where reading goes on when what had the focus is taken away: by an act that ended the reason for its button, by a list that has become
 * shorter, by a dialog that closed with them.
 */
import { type RefObject, useEffect } from "react"

/** The next act of its group, the heading of its part, the page's; looked for when it is needed. */
const placesAfter = (element: Element) => {
  const group = element.closest(".acts")
  const part = element.closest("section.part")
  return (): HTMLElement | null =>
    (group?.isConnected === true ? group.querySelector<HTMLElement>("button") : null)
      ?? (part?.isConnected === true ? part.querySelector("h2") : null)
      ?? document.querySelector<HTMLElement>("main h1")
}

/** Keeps the focus within this part of the page. */
export const useFocusKept = (within: RefObject<HTMLElement | null>): void =>
  useEffect(() => {
    const root = within.current
    if (root === null) return
    let last: { readonly element: Element; readonly next: () => HTMLElement | null } | undefined
    const onFocus = ({ target }: FocusEvent) => {
      if (target instanceof Element) last = { element: target, next: placesAfter(target) }
    }
    const observer = new MutationObserver(() => {
      if (last === undefined || last.element.isConnected || document.activeElement !== document.body) return
      last.next()?.focus({ preventScroll: true })
    })
    root.addEventListener("focusin", onFocus)
    observer.observe(root, { childList: true, subtree: true })
    return () => {
      root.removeEventListener("focusin", onFocus)
      observer.disconnect()
    }
  }, [within])
