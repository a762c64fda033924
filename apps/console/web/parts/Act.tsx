/** A button that asks why before it acts, and says what came of it. */
import type { Effect } from "effect"
import { createContext, type FormEvent, type KeyboardEvent, type ReactNode, useContext, useEffect, useId, useRef, useState } from "react"
import type { ConsoleClient } from "../../src/ConsoleClient.ts"
import type { Session } from "../../src/api/Shapes.ts"
import { call } from "../client.ts"
import { span } from "../format.ts"

/** Who looks. */
export const SessionContext = createContext<Session | null>(null)

/** Says what came of an act, at the foot of the page and to a screen reader. */
export const ToastContext = createContext<(text: string) => void>(() => undefined)

/** Fields that an act needs beside its reason. */
export interface Field {
  readonly name: string
  readonly label: string
  readonly value?: string
  readonly required?: boolean
  readonly hint?: string
}

interface ActProps {
  readonly name: string
  /** What it is done to, by the name that people know it by. */
  readonly of: string
  /** What will happen, in a sentence. */
  readonly explain: ReactNode
  readonly fields?: ReadonlyArray<Field>
  /** What speaks against these fields, if anything does: it is asked about before it is done. */
  readonly doubt?: (fields: Readonly<Record<string, string>>) => string | undefined
  /** `isSure`: the doubt was answered. */
  readonly act: (client: ConsoleClient["Service"], reason: string, fields: Readonly<Record<string, string>>, isSure: boolean) => Effect.Effect<{ readonly text: string }, unknown>
  readonly done?: () => void
  readonly danger?: boolean
  readonly quiet?: boolean
}

/** How long an act that was sent off has not been answered, for whoever looks; whoever hears is told once. */
const Waiting = () => {
  const [seconds, setSeconds] = useState(0)
  useEffect(() => {
    const timer = window.setInterval(() => setSeconds((before) => before + 1), 1000)
    return () => clearInterval(timer)
  }, [])
  return (
    <p className="waiting dim"><span role="status">Sent off, and not answered yet; it is waited for two minutes.</span> <span className="num" aria-hidden="true">{span(seconds * 1000)}</span></p>
  )
}

/** The question that stands before an act. */
export const Dialog = ({ act, close, danger, done, doubt, explain, fields = [], name, of }: ActProps & { readonly close: () => void }) => {
  const ref = useRef<HTMLDialogElement>(null)
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState("")
  /** What was asked; sent off once more with the same doubt, it is meant. */
  const [doubtful, setDoubtful] = useState<string>()
  const toast = useContext(ToastContext)
  const id = useId()
  useEffect(() => ref.current?.showModal(), [])
  // The browser takes the focus back to the button, which it does not when the dialog is only taken away.
  const leave = () => ref.current?.close()
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    // A record is of one line.
    const text = (field: string) => String(form.get(field) ?? "").replaceAll(/\s+/g, " ").trim()
    const given = Object.fromEntries(fields.map((field) => [field.name, text(field.name)]))
    const doubted = doubt?.(given)
    setProblem("")
    setDoubtful(doubted)
    if (doubted !== doubtful && doubted !== undefined) return
    setBusy(true)
    const called = await call((client) => act(client, text("reason"), given, doubted !== undefined), "act")
    setBusy(false)
    if (!called.ok) {
      setProblem(called.failed.message)
      // Who has left the question hears of it all the same.
      if (ref.current?.open !== true) toast(`${name}, ${of}: ${called.failed.message}`)
      return
    }
    toast(called.value.text)
    leave()
    done?.()
  }
  /** Within the reason Enter is a line break. */
  const send = (event: KeyboardEvent<HTMLFormElement>) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || busy) return
    event.preventDefault()
    event.currentTarget.requestSubmit()
  }
  return (
    <dialog ref={ref} aria-labelledby={`${id}-title`} onClose={close} onCancel={(event) => {
      if (busy) event.preventDefault()
    }}>
      <form onSubmit={(event) => void submit(event)} onKeyDown={send}>
        <h2 id={`${id}-title`}>{name} <span className="object">{of}</span></h2>
        <div className="explain">{explain}</div>
        {fields.map((field) => (
          <label key={field.name} className="field"><span>{field.label}</span>
            <input name={field.name} defaultValue={field.value} required={field.required ?? false} autoComplete="off" spellCheck={false} />
            {field.hint === undefined ? null : <small>{field.hint}</small>}
          </label>
        ))}
        <label className="field"><span>Reason, for the record</span>
          <textarea name="reason" required minLength={3} maxLength={500} rows={2} />
        </label>
        {problem === "" ? null : <p className="problem" role="alert">{problem}</p>}
        {doubtful === undefined ? null : <p className="problem" role="alert">{doubtful} Is that meant?</p>}
        {busy ? <Waiting /> : null}
        <div className="buttons">
          <button type="button" className="button" onClick={leave} disabled={busy}>Leave it</button>
          <button type="submit" className={`button ${danger === true ? "danger" : "main"}`} disabled={busy}>{busy ? "Waiting…" : doubtful === undefined ? name : "That is meant"}</button>
        </div>
      </form>
    </dialog>
  )
}

/** The button; whoever only looks does not see it. */
export const Act = (props: ActProps) => {
  const session = useContext(SessionContext)
  const [open, setOpen] = useState(false)
  if (session?.role !== "operator") return null
  const close = () => setOpen(false)
  return (
    <>
      <button type="button" className={`button ${props.danger === true ? "danger-quiet" : ""} ${props.quiet === true ? "small" : ""}`} aria-label={props.quiet === true ? `${props.name}: ${props.of}` : undefined} onClick={() => setOpen(true)}>{props.name}</button>
      {open ? <Dialog {...props} close={close} /> : null}
    </>
  )
}
