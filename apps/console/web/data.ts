/** What a page shows, read when it opens and read anew when something moved, no faster than the answers come, and again by itself where none came. */
import type { Effect } from "effect"
import { useCallback, useEffect, useRef, useState } from "react"
import type { ConsoleClient } from "../src/ConsoleClient.ts"
import { call, type Failed, isPassing } from "./client.ts"
import { useLive } from "./live.ts"

/** An answer, as far as there is one. */
export interface Data<A> {
  readonly value: A | undefined
  readonly failed: Failed | undefined
  readonly refresh: () => void
}

const restMs = 900

/** What was not answered is asked again after so long. */
export const againMs = 3000

/** `key` names what is asked for: another one is read at once, and the old answer is dropped. `follow`: what makes it stale. */
export const useData = <A, E>(key: string, ask: (client: ConsoleClient["Service"]) => Effect.Effect<A, E>, follow: "moves" | "beats" | "never" = "beats"): Data<A> => {
  const live = useLive()
  const stale = follow === "never" ? 0 : live[follow]
  const [shown, setShown] = useState<{ readonly key: string; readonly value: A | undefined; readonly failed: Failed | undefined }>({ key, value: undefined, failed: undefined })
  const askRef = useRef(ask)
  askRef.current = ask
  const state = useRef({ key: "", busy: false, again: false, notBefore: 0, timer: 0 })

  const load = useCallback(() => {
    const now = state.current
    if (now.busy) {
      now.again = true
      return
    }
    const wait = now.notBefore - performance.now()
    if (wait > 0) {
      clearTimeout(now.timer)
      now.timer = window.setTimeout(load, wait)
      return
    }
    now.busy = true
    now.again = false
    const asked = now.key
    const from = performance.now()
    void call((client) => askRef.current(client)).then((called) => {
      now.busy = false
      // A slow answer is asked for less often.
      now.notBefore = performance.now() + Math.max(restMs, (performance.now() - from) * 3)
      if (asked !== now.key) {
        now.notBefore = 0
        load()
        return
      }
      setShown((before) => called.ok
        ? { key: asked, value: called.value, failed: undefined }
        : { key: asked, value: before.key === asked ? before.value : undefined, failed: called.failed })
      if (now.again) load()
      else if (!called.ok && isPassing(called.failed)) {
        clearTimeout(now.timer)
        now.timer = window.setTimeout(load, againMs)
      }
    })
  }, [])

  useEffect(() => {
    const now = state.current
    if (now.key !== key) {
      now.key = key
      now.notBefore = 0
    }
    load()
  }, [key, stale, load])
  useEffect(() => () => clearTimeout(state.current.timer), [])

  const refresh = useCallback(() => {
    state.current.notBefore = 0
    load()
  }, [load])
  const current = shown.key === key
  return { value: current ? shown.value : undefined, failed: current ? shown.failed : undefined, refresh }
}
