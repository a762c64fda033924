/** The door. */
import { Redacted } from "effect"
import { type FormEvent, useState } from "react"
import { call } from "../client.ts"

/** Asks for a token, and for the name that goes on every act. */
export const SignIn = ({ done }: { readonly done: () => void }) => {
  const [problem, setProblem] = useState("")
  const [busy, setBusy] = useState(false)
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    setBusy(true)
    const called = await call((client) => client.signIn.signIn({ payload: { token: Redacted.make(String(form.get("token"))), actor: String(form.get("actor")) } }))
    setBusy(false)
    if (called.ok) done()
    else setProblem(called.failed.message)
  }
  return (
    <main className="alone">
      <form className="sign-in" onSubmit={(event) => void submit(event)}>
        <h1><img src="icon.svg" alt="" width="28" height="28" />Purser</h1>
        <label className="field"><span>Your name, for the record</span><input name="actor" autoComplete="username" required maxLength={80} /></label>
        <label className="field"><span>Token</span><input name="token" type="password" autoComplete="current-password" required /></label>
        {problem === "" ? null : <p className="problem" role="alert">{problem}</p>}
        <button type="submit" className="button main" disabled={busy}>Sign in</button>
      </form>
    </main>
  )
}
