/**
 * A button that asks why before it acts, and says what came of it. Reading goes on at the button, or where it stood: what was
 * done often ends the reason for the button.
 */
import type { Effect } from "effect"
import { createContext, type FormEvent, type ReactNode, useContext, useEffect, useId, useRef, useState } from "react"
import type { ConsoleClient } from "../../src/ConsoleClient.ts"
import type { Session } from "../../src/api/Shapes.ts"
import { call } from "../client.ts"

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
  /** What will happen, in a sentence. */
  readonly explain: ReactNode
  readonly fields?: ReadonlyArray<Field>
  readonly act: (client: ConsoleClient["Service"], reason: string, fields: Readonly<Record<string, string>>) => Effect.Effect<{ readonly text: string }, unknown>
  readonly done?: () => void
  readonly danger?: boolean
  readonly quiet?: boolean
}

const Dialog = ({ act, close, danger, done, explain, fields = [], name }: ActProps & { readonly close: () => void }) => {
  const ref = useRef<HTMLDialogElement>(null)
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState("")
  const toast = useContext(ToastContext)
  const id = useId()
  useEffect(() => ref.current?.showModal(), [])
  // The browser takes the focus back to the button, which it does not when the dialog is only taken away.
  const leave = () => ref.current?.close()
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const text = (field: string) => String(form.get(field) ?? "").trim()
    setBusy(true)
    setProblem("")
    const called = await call((client) => act(client, text("reason"), Object.fromEntries(fields.map((field) => [field.name, text(field.name)]))))
    setBusy(false)
    if (!called.ok) {
      setProblem(called.failed.message)
      return
    }
    toast(called.value.text)
    leave()
    done?.()
  }
  return (
    <dialog ref={ref} aria-labelledby={`${id}-title`} onClose={close}>
      <form onSubmit={(event) => void submit(event)}>
        <h2 id={`${id}-title`}>{name}</h2>
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
        <div className="buttons">
          <button type="button" className="button" onClick={leave} disabled={busy}>Leave it</button>
          <button type="submit" className={`button ${danger === true ? "danger" : "main"}`} disabled={busy}>{busy ? "…" : name}</button>
        </div>
      </form>
    </dialog>
  )
}

/** Where reading goes on when a button is gone: at the next act of its group, at the heading of its part, at the page's. */
const placeAfter = (button: HTMLElement) => {
  const group = button.closest(".acts")
  const part = button.closest("section.part")
  return (): HTMLElement | null =>
    (group?.isConnected === true ? group.querySelector<HTMLElement>("button") : null)
      ?? (part?.isConnected === true ? part.querySelector("h2") : null)
      ?? document.querySelector<HTMLElement>("main h1")
}

/** The button; whoever only looks does not see it. */
export const Act = (props: ActProps) => {
  const session = useContext(SessionContext)
  const [open, setOpen] = useState(false)
  const button = useRef<HTMLButtonElement>(null)
  const opened = useRef(false)
  useEffect(() => {
    const after = button.current === null ? undefined : placeAfter(button.current)
    return () => {
      if (opened.current && document.activeElement === document.body) after?.()?.focus()
    }
  }, [])
  if (session?.role !== "operator") return null
  const close = () => setOpen(false)
  return (
    <>
      <button ref={button} type="button" className={`button ${props.danger === true ? "danger-quiet" : ""} ${props.quiet === true ? "small" : ""}`} onClick={() => {
        opened.current = true
        setOpen(true)
      }}>{props.name}</button>
      {open ? <Dialog {...props} close={close} /> : null}
    </>
  )
}
