/** Small pieces that show one thing each. */
import type { ReactNode } from "react"
import type { Failed } from "../client.ts"
import { amount, moment, short, span, words } from "../format.ts"
import { Mark, toneOf } from "./marks.tsx"

/** An amount with its currency; the minor unit's decimals are the currency's own. */
export const Amount = ({ code, minor }: { readonly minor: number | bigint | null; readonly code: string }) =>
  minor === null ? <span className="dim">–</span> : <span className="num">{amount(minor, code)} <span className="code">{code.toUpperCase()}</span></span>

/** A moment, with the whole of it in its title. */
export const Time = ({ ms, now = Date.now() }: { readonly ms: number | null; readonly now?: number }) =>
  ms === null || ms === 0 ? <span className="dim">–</span> : <time className="num" dateTime={new Date(ms).toISOString()} title={new Date(ms).toISOString()}>{moment(ms, now)}</time>

/** How long ago. */
export const Ago = ({ ms, now }: { readonly ms: number | null; readonly now: number }) =>
  ms === null ? <span className="dim">–</span> : <time className="num" dateTime={new Date(ms).toISOString()} title={new Date(ms).toISOString()}>{span(now - ms)} ago</time>

/** An id that can be read, selected whole and found by its title. */
export const Id = ({ head, id, tail }: { readonly id: string | null; readonly head?: number; readonly tail?: number }) =>
  id === null ? <span className="dim">–</span> : <code className="id" title={id}>{short(id, head, tail)}</code>

const order = ["succeeded", "declined", "requires_action", "rejected", "canceled", "conflict", "quarantined", "processing", "attached", "claimed", "in work", "planned", "staged", "waiting"]

/** Where a state stands among the others, from what is over to what waits. */
export const orderOf = (state: string): number => order.indexOf(state)

/** A state: a mark and its word. */
export const State = ({ state, children }: { readonly state: string; readonly children?: ReactNode }) =>
  <span className="state"><Mark tone={toneOf(state)} />{children ?? words(state)}</span>

/** What went wrong, where the answer would be. */
export const Problem = ({ failed }: { readonly failed: Failed | undefined }) =>
  failed === undefined || failed.tag === "SignInNeeded" ? null : <p className="problem" role="alert">{failed.message}</p>

/** Where there is nothing. */
export const Nothing = ({ children }: { readonly children: ReactNode }) => <p className="nothing">{children}</p>

/** The head of a page. */
export const Head = ({ children, title }: { readonly title: ReactNode; readonly children?: ReactNode }) =>
  <header className="head"><h1 tabIndex={-1}>{title}</h1>{children}</header>

/** A part of a page with its own heading. */
export const Part = ({ children, count, id, title }: { readonly title: string; readonly count?: string | undefined; readonly id?: string; readonly children: ReactNode }) =>
  <section className="part" id={id} aria-label={title}><h2 tabIndex={-1}>{title}{count === undefined ? null : <span className="count">{count}</span>}</h2>{children}</section>

/** A fact and its name. */
export const Fact = ({ children, name }: { readonly name: string; readonly children: ReactNode }) => <div className="fact"><dt>{name}</dt><dd>{children}</dd></div>

/** A large number and its name. */
export const Figure = ({ children, name, note }: { readonly name: string; readonly children: ReactNode; readonly note?: ReactNode }) =>
  <div className="figure"><dt>{name}</dt><dd className="num">{children}</dd>{note === undefined ? null : <dd className="note">{note}</dd>}</div>
