/** The frame of every page: where one may go, whether the console lives, and whether charging rests. */
import { type RefObject, useCallback, useEffect, useRef, useState } from "react"
import type { Session } from "../src/api/Shapes.ts"
import { call, isPassing, remember } from "./client.ts"
import { againMs } from "./data.ts"
import { useFocusKept } from "./focus.ts"
import { count, span } from "./format.ts"
import { follow, useLive } from "./live.ts"
import { Attention } from "./pages/Attention.tsx"
import { Caps } from "./pages/Caps.tsx"
import { Charges } from "./pages/Charges.tsx"
import { Reconcile } from "./pages/Reconcile.tsx"
import { Runs } from "./pages/Runs.tsx"
import { SignIn } from "./pages/SignIn.tsx"
import { Story } from "./pages/Story.tsx"
import { Trail } from "./pages/Trail.tsx"
import { Workers } from "./pages/Workers.tsx"
import { Act, SessionContext, ToastContext } from "./parts/Act.tsx"
import { Spark } from "./parts/charts.tsx"
import { Problem, Time } from "./parts/show.tsx"
import { go, to, useRoute } from "./route.ts"
import { chooseTheme, type Theme, useTheme } from "./theme.ts"

const places = [
  { page: "runs", name: "Runs", key: "r" },
  { page: "charges", name: "Charges", key: "c" },
  { page: "attention", name: "Attention", key: "a" },
  { page: "caps", name: "Caps & keys", key: "k" },
  { page: "workers", name: "Workers", key: "w" },
  { page: "reconcile", name: "Reconcile", key: "e" },
  { page: "trail", name: "Trail", key: "t" }
] as const

const Page = () => {
  const { id, page } = useRoute()
  switch (page) {
    case "charges":
      return id === undefined ? <Charges /> : <Story chargeKey={id} />
    case "attention":
      return <Attention />
    case "caps":
      return <Caps />
    case "workers":
      return <Workers />
    case "reconcile":
      return <Reconcile />
    case "trail":
      return <Trail />
    default:
      return <Runs runId={id} />
  }
}

const waitingOf = (counts: Readonly<Record<string, number>> | undefined) =>
  counts === undefined ? 0 : (counts["unresolved"] ?? 0) + (counts["quarantined"] ?? 0) + (counts["conflicts"] ?? 0) + (counts["deadLetters"] ?? 0)

const Nav = () => {
  const { page } = useRoute()
  const { pulse } = useLive()
  const waiting = waitingOf(pulse?.counts)
  const nav = useRef<HTMLElement>(null)
  // On a narrow screen the places are a strip that does not show them all.
  useEffect(() => {
    // Newer browsers answer with a promise, which is no clean-up.
    void nav.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" })
  }, [page])
  return (
    <nav ref={nav} aria-label="Pages">
      <ul>
        {places.map((place) => (
          <li key={place.page}>
            <a href={to(place.page)} aria-current={page === place.page ? "page" : undefined}>
              {place.name}
              {place.page === "attention" && waiting > 0 ? <span className="badge" aria-label={`${waiting} waiting`}>{waiting > 999 ? "999+" : waiting}</span> : null}
            </a>
          </li>
        ))}
        <li className="apart"><a href="docs">API</a></li>
      </ul>
    </nav>
  )
}

const Pulse = () => {
  const { link, perSecond } = useLive()
  const text = { connecting: "connecting", live: "live", lost: "connection lost", away: "ledger away" }[link]
  const now = perSecond.slice(-6, -1)
  const speed = now.length === 0 ? 0 : now.reduce((sum, n) => sum + n, 0) / now.length
  return (
    <div className="pulse" title="Events of the ledger in each of the last 90 seconds">
      <Spark values={perSecond} />
      <span className={`link ${link}`} role="status">{text}</span>
      <span className="num dim">{count(Math.round(speed))} events/s</span>
    </div>
  )
}

const themes: ReadonlyArray<Theme> = ["system", "light", "dark"]
const ThemeChoice = () => {
  const theme = useTheme()
  return (
    <label className="theme"><span className="hidden">Appearance</span>
      <select value={theme} onChange={(event) => chooseTheme(event.target.value as Theme)}>
        {themes.map((one) => <option key={one} value={one}>{one === "system" ? "as the system" : one}</option>)}
      </select>
    </label>
  )
}

const Resting = () => {
  const { pulse } = useLive()
  const [first] = pulse?.pauses ?? []
  if (first === undefined || pulse === null) return null
  return (
    <aside className="resting" aria-label="Charging is paused">
      <p><b>Charging is paused</b> {first.cause === "person" ? `by ${first.actor}` : "by an outage"}, for {span(pulse.atMs - first.sinceMs)}: {first.reason}</p>
      <Act name="Resume charging" of="all charging of this database" explain="Every worker of this database goes on with what waits." act={(client, reason) => client.runs.resumeCharging({ payload: { reason } })} />
    </aside>
  )
}

/** What stands on the page is of the past then, and says so. */
const Lost = () => {
  const { link, pulse } = useLive()
  if (link !== "lost" && link !== "away") return null
  const what = link === "away" ? "The ledger does not answer" : "The console does not answer"
  return (
    <aside className="problem" aria-label={what}>
      <b>{what}{link === "away" ? ", the console does" : ""}.</b> {pulse === null ? "It is asked again every two seconds." : <>What is shown is of <Time ms={pulse.atMs} /> at the latest; it is asked again every two seconds.</>}
    </aside>
  )
}

/** `search`: whether the page that is gone to was gone to for its search. */
const useShortcuts = (search: RefObject<boolean>) => {
  useEffect(() => {
    let armed = 0
    const onKey = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement
      if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, textarea, select, dialog") !== null) return
      if (event.key === "g") {
        armed = performance.now()
        return
      }
      if (event.key === "/") {
        const field = document.querySelector<HTMLElement>("[data-search]")
        event.preventDefault()
        if (field !== null) field.focus()
        else {
          search.current = true
          go(to("charges"))
        }
        return
      }
      const place = performance.now() - armed < 1200 ? places.find(({ key }) => key === event.key) : undefined
      armed = 0
      if (place !== undefined) go(to(place.page))
    }
    addEventListener("keydown", onKey)
    return () => removeEventListener("keydown", onKey)
  }, [search])
}

const Frame = ({ session, signOut }: { readonly session: Session; readonly signOut: () => void }) => {
  const route = useRoute()
  const main = useRef<HTMLElement>(null)
  const opened = useRef(false)
  const search = useRef(false)
  useShortcuts(search)
  useFocusKept(main)
  useEffect(() => {
    // A page that nobody sees holds no connection: a browser has few of them for one server.
    let stop = document.hidden ? undefined : follow()
    const onVisible = () => {
      stop?.()
      stop = document.hidden ? undefined : follow()
    }
    document.addEventListener("visibilitychange", onVisible)
    return () => {
      document.removeEventListener("visibilitychange", onVisible)
      stop?.()
    }
  }, [])
  useEffect(() => {
    const name = places.find(({ page }) => page === route.page)?.name ?? "Purser"
    document.title = `${route.id ?? name} · Purser`
    // A page that was gone to is where reading goes on; the first one is not taken away from whoever types already.
    if (opened.current) main.current?.querySelector<HTMLElement>(search.current ? "[data-search]" : "h1")?.focus({ preventScroll: true })
    opened.current = true
    search.current = false
    scrollTo(0, 0)
  }, [route.page, route.id])
  return (
    <div className="frame">
      <a className="skip" href="#main" onClick={(event) => {
        event.preventDefault()
        main.current?.focus()
      }}>To the page</a>
      <header className="top">
        <a className="brand" href={to("runs")}><img src="icon.svg" alt="" width="22" height="22" />Purser</a>
        <Pulse />
        <div className="who">
          <span className="store" title={`Ledger: ${session.store}`}>{session.store}</span>
          <span>{session.actor} <span className="dim">({session.role})</span></span>
          <ThemeChoice />
          {session.canSignOut ? <button type="button" className="button small" onClick={signOut}>Sign out</button> : null}
        </div>
      </header>
      <Nav />
      <main ref={main} id="main" tabIndex={-1}>
        <Lost />
        <Resting />
        <Page />
      </main>
    </div>
  )
}

/** The console. */
export const App = () => {
  const [session, setSession] = useState<Session | null>(null)
  const [stranger, setStranger] = useState(false)
  const [failed, setFailed] = useState<string>("")
  const [toast, setToast] = useState("")
  const timer = useRef(0)
  const again = useRef(0)
  const say = useCallback((text: string) => {
    clearTimeout(timer.current)
    setToast(text)
    timer.current = window.setTimeout(() => setToast(""), 8000)
  }, [])
  const load = useCallback(async () => {
    const called = await call((client) => client.session.get())
    if (called.ok) {
      remember(called.value, { renewed: setSession, stranger: () => setStranger(true) })
      setSession(called.value)
      setStranger(false)
      setFailed("")
    } else if (called.failed.tag === "SignInNeeded") setStranger(true)
    else {
      setFailed(called.failed.message)
      if (isPassing(called.failed)) again.current = window.setTimeout(() => void load(), againMs)
    }
  }, [])
  useEffect(() => {
    void load()
    return () => clearTimeout(again.current)
  }, [load])
  const signOut = () => void call((client) => client.signIn.signOut()).then(() => {
    setSession(null)
    setStranger(true)
  })
  if (stranger) return <SignIn done={() => void load()} />
  if (session === null) return <main className="alone">{failed === "" ? <p className="dim">…</p> : <Problem failed={{ tag: "", message: failed }} />}</main>
  return (
    <SessionContext.Provider value={session}>
      <ToastContext.Provider value={say}>
        <Frame session={session} signOut={signOut} />
        {/* A region that is there before it says something is heard; one that appears with its text may not be. */}
        <div className="hidden" role="status" aria-live="polite">{toast}</div>
        <div className="toast" aria-hidden="true">{toast}</div>
      </ToastContext.Provider>
    </SessionContext.Provider>
  )
}
