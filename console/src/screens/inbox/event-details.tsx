/** One event: what it says, how often it was tried, why it waits or was given up, and the turn that came of it. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type ReactNode, useMemo } from 'react'
import type { InboxAttempt, InboxEventDetail } from '#contract'
import { request } from '../../api/client.ts'
import { useInboxEvent } from '../../api/host-lists.ts'
import { useDisconnected } from '../../frame/connection-banner.tsx'
import { useRole } from '../../frame/context.ts'
import { type KeyMap, useKeys } from '../../frame/keys.ts'
import { Badge } from '../../parts/badge.tsx'
import { Button } from '../../parts/button.tsx'
import { Waiting } from '../../parts/card.tsx'
import { Json } from '../../parts/json.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Text } from '../../parts/text.tsx'
import { timeText } from '../../parts/time.tsx'
import { stateTones } from './inbox.tsx'

export interface EventDetailsProps {
  readonly server: string
  readonly id: string
  readonly close: () => void
}

export function EventDetails({ server, id, close }: EventDetailsProps): ReactNode {
  const { data, error, refetch } = useInboxEvent(server, id)
  const keys = useMemo<KeyMap>(() => ({ Escape: close }), [close])
  useKeys(keys)
  return (
    <section aria-label="Event" className="min-h-0 w-full overflow-auto border-line p-4 lg:w-[30rem] lg:shrink-0 lg:border-l">
      <div className="mb-3 flex items-baseline gap-2">
        <h2 className="min-w-0 flex-1 text-[1.14rem] font-semibold">Event</h2>
        <Button look="quiet" onClick={close}>
          Close
        </Button>
      </div>
      {error && <ProblemCard error={error} retry={() => void refetch()} />}
      {data === undefined && !error && <Waiting rows={5} />}
      {data && <Facts event={data} />}
    </section>
  )
}

function Facts({ event }: { readonly event: InboxEventDetail }): ReactNode {
  const { server, featureSet, eventId, inferenceId, state, at, preview, attempts, why, notBefore, turn } = event
  return (
    <div className="space-y-4">
      {preview && (
        <p className="break-words whitespace-pre-wrap">
          <Text>{preview}</Text>
        </p>
      )}
      <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1">
        <dt className="text-muted">State</dt>
        <dd>
          <Badge tone={stateTones[state]}>{state}</Badge>
        </dd>
        <dt className="text-muted">From</dt>
        <dd className="break-words">
          <Text most={200}>{`${server}/${featureSet}`}</Text>
        </dd>
        <dt className="text-muted">Id</dt>
        <dd className="font-mono break-all">
          <Text most={300}>{eventId}</Text>
        </dd>
        <dt className="text-muted">Accepted</dt>
        <dd>{timeText(at)}</dd>
        {notBefore !== undefined && state === 'waiting' && (
          <>
            <dt className="text-muted">Not before</dt>
            <dd>{timeText(notBefore)}</dd>
          </>
        )}
      </dl>
      {why && (
        <div className="rounded-lg border border-warn-line bg-warn-soft p-3">
          <p>
            <Text most={1000}>{why.message}</Text>
          </p>
          <p className="text-muted">
            <Text most={1000}>{why.fix}</Text>
          </p>
          <p className="text-muted">
            <code>
              {why.code} {why.rule}
            </code>
          </p>
        </div>
      )}
      <p className="flex flex-wrap items-center gap-x-4 gap-y-2">
        {turn && (
          <Link
            to="/chat/$conversation/$seq"
            params={{ conversation: turn.conversation, seq: String(turn.seq) }}
            className="min-h-6 text-accent-strong underline"
          >
            Turn {turn.seq} of <Text most={100}>{turn.conversation}</Text>
          </Link>
        )}
        <Link
          to="/explain/$id"
          params={{ id: state === 'done' ? inferenceId : eventId }}
          className="min-h-6 text-accent-strong underline"
        >
          Why
        </Link>
      </p>
      {state === 'dead' && <Replay event={event} />}
      <Attempts attempts={attempts} />
      {event.event !== undefined && (
        <div>
          <h3 className="label mb-1">Content</h3>
          <Json value={event.event} label="Content of the event" />
        </div>
      )}
    </div>
  )
}

const outcomes: Readonly<Record<InboxAttempt['outcome'], string>> = {
  running: 'runs',
  done: 'done',
  failed: 'failed',
  interrupted: 'interrupted: the process ended',
  held: 'could not run yet',
}

function Attempts({ attempts }: { readonly attempts: readonly InboxAttempt[] }): ReactNode {
  if (attempts.length === 0) return <p className="text-muted">It was not tried yet.</p>
  return (
    <div>
      <h3 className="label mb-1">Attempts</h3>
      <ol className="space-y-1">
        {attempts.map(({ n, at, outcome, error }) => (
          <li key={n} className="break-words">
            <span className="text-muted tabular-nums">
              {n} · {timeText(at)}
            </span>{' '}
            {outcomes[outcome]}
            {error !== undefined && (
              <>
                : <Text most={500}>{error}</Text>
              </>
            )}
          </li>
        ))}
      </ol>
    </div>
  )
}

function Replay({ event: { server, eventId } }: { readonly event: InboxEventDetail }): ReactNode {
  const operator = useRole('operator')
  const disconnected = useDisconnected()
  const client = useQueryClient()
  const replay = useMutation({
    mutationFn: () => request('POST /inbox/:server/:event/replay', { path: { server, event: eventId } }),
    onSettled: () => client.invalidateQueries({ queryKey: ['inbox'] }),
  })
  const blocked = disconnected || replay.isPending
  const { mutate } = replay
  const keys = useMemo<KeyMap>(() => ({ p: () => operator && !blocked && mutate() }), [operator, blocked, mutate])
  useKeys(keys)
  if (!operator) return <p className="text-muted">Trying it again needs the role operator.</p>
  return (
    <div className="space-y-2">
      <Button look="primary" disabled={blocked} onClick={() => mutate()}>
        Try again <kbd className="font-mono text-[0.79rem]">p</kbd>
      </Button>
      {replay.error && <ProblemCard error={replay.error} />}
    </div>
  )
}
