/** What is judged: revisions, carriers, which scenarios, and whether tools that may write are called. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import type { Conformance } from '#contract'
import { conformanceKey, resultsKey } from '../../api/author.ts'
import { request } from '../../api/client.ts'
import { useDisconnected } from '../../frame/connection-banner.tsx'
import { Button } from '../../parts/button.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Text } from '../../parts/text.tsx'

export interface StartFormProps {
  readonly run: Conformance
  readonly begun: () => void
  readonly cancel?: () => void
}

export function StartForm({ run, begun, cancel }: StartFormProps): ReactNode {
  const client = useQueryClient()
  const disconnected = useDisconnected()
  const [revisions, setRevisions] = useState(run.wish?.revisions ?? run.revisions)
  const [carriers, setCarriers] = useState(run.wish?.carriers ?? run.carriers)
  const [only, setOnly] = useState(run.wish?.only ?? '')
  const [allowWrites, setAllowWrites] = useState(run.wish?.allowWrites ?? false)
  const start = useMutation({
    mutationFn: () =>
      request('POST /conformance', {
        body: { revisions, carriers, ...(only.trim() !== '' && { only: only.trim() }), allowWrites },
      }),
    onSuccess: now => {
      client.setQueryData(resultsKey, [])
      client.setQueryData(conformanceKey, now)
      void client.invalidateQueries({ queryKey: conformanceKey })
      begun()
    },
  })
  const none = revisions.length === 0 || carriers.length === 0
  return (
    <form
      className="mx-auto max-w-2xl space-y-4 p-6"
      onSubmit={event => {
        event.preventDefault()
        start.mutate()
      }}
    >
      <p>
        Scenarios of the specification are played against{' '}
        <strong>
          <Text most={120}>{run.server}</Text>
        </strong>
        , each in a connection of its own. What fails is shown with the statement that it breaks and the frames that show it.
      </p>
      <Several label="Revisions" all={run.revisions} chosen={revisions} change={setRevisions} />
      <Several label="Carriers" all={run.carriers} chosen={carriers} change={setCarriers} />
      <label className="block">
        <span className="font-semibold">Only scenarios with</span>
        <input
          className="mt-1 w-full"
          placeholder="tools, base/cancel, a statement; separated by commas"
          autoComplete="off"
          value={only}
          onChange={event => setOnly(event.target.value)}
        />
      </label>
      <label className="flex items-start gap-2">
        <input
          type="checkbox"
          className="mt-0.5"
          checked={allowWrites}
          onChange={event => setAllowWrites(event.target.checked)}
        />
        <span>
          Also call tools that may write
          <span className="block text-muted">
            Without it only tools that claim to read are called. Do not switch it on against what you cannot lose.
          </span>
        </span>
      </label>
      <div className="flex gap-2">
        <Button type="submit" look="primary" disabled={none || disconnected || start.isPending}>
          Start
        </Button>
        {cancel && <Button onClick={cancel}>Back to the last run</Button>}
      </div>
      {none && <p className="text-danger">Choose at least one revision and one carrier.</p>}
      {start.error && <ProblemCard error={start.error} />}
      <div>
        <p className="label">Without a page</p>
        <code className="code block">
          <Text most={600}>{run.command}</Text>
        </code>
      </div>
    </form>
  )
}

interface SeveralProps {
  readonly label: string
  readonly all: readonly string[]
  readonly chosen: readonly string[]
  readonly change: (chosen: readonly string[]) => void
}

function Several({ label, all, chosen, change }: SeveralProps): ReactNode {
  const turn = (name: string) => change(all.filter(each => (each === name ? !chosen.includes(each) : chosen.includes(each))))
  return (
    <fieldset>
      <legend className="font-semibold">{label}</legend>
      <div className="mt-1 flex flex-wrap gap-x-4 gap-y-1">
        {all.map(name => (
          <label key={name} className="flex min-h-7 items-center gap-1.5">
            <input type="checkbox" checked={chosen.includes(name)} onChange={() => turn(name)} />
            <span className="tabular-nums">{name}</span>
          </label>
        ))}
      </div>
    </fieldset>
  )
}
