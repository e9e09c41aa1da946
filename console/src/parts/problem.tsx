/** A failure: what happened, what to do, and a way to try again. The rest of the screen stays. */
import type { ReactNode } from 'react'
import { asProblem } from '../api/client.ts'
import { Button } from './button.tsx'
import { Text } from './text.tsx'

export interface ProblemCardProps {
  readonly error: unknown
  readonly retry?: () => void
}

export function ProblemCard({ error, retry }: ProblemCardProps): ReactNode {
  const { code, message, fix } = asProblem(error)
  return (
    <div role="alert" className="rounded-lg border border-danger-line bg-danger-soft p-4">
      <p className="font-semibold">
        <Text>{message}</Text>
      </p>
      <p className="mt-1">
        <Text>{fix}</Text>
      </p>
      <p className="mt-2 flex items-center gap-3 text-muted">
        <code>{code}</code>
        {retry && <Button onClick={retry}>Try again</Button>}
      </p>
    </div>
  )
}
