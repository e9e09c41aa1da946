/** What a page without a session shows: why, and how to get a link. */
import type { ReactNode } from 'react'
import { asProblem } from '../api/client.ts'

export function SignIn({ error }: { readonly error: unknown }): ReactNode {
  const { code, message, fix } = asProblem(error)
  const refused = code !== 'SESSION_REQUIRED'
  return (
    <main className="mx-auto max-w-xl p-6 pt-[14vh]">
      <h1 className="text-2xl font-semibold">{refused ? message : 'Open the console with its link'}</h1>
      <p className="mt-3">
        {refused ? fix : 'The process prints a link when it starts. It works once, for ten minutes, and signs this browser in.'}
      </p>
      <p className="mt-3">To get a new link of a gateway, run this command on its machine; FILE is its configuration:</p>
      <pre className="code mt-2">vivarium gateway console FILE</pre>
      <p className="mt-3">To get a new link of a host, write this in its terminal:</p>
      <pre className="code mt-2">/console</pre>
      <p className="mt-3 text-muted">
        <code>{code}</code>
      </p>
    </main>
  )
}
