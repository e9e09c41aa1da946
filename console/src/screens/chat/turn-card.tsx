/** One turn in the conversation: what began it, the calls, the answer, and where to look closer. */
import { useMutation, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { TurnRow } from '#contract'
import { request } from '../../api/client.ts'
import { useTurn } from '../../api/host-lists.ts'
import { approvalList } from '../../api/lists.ts'
import { isGathered, useLiveText } from '../../feed/live-turns.ts'
import { useRole } from '../../frame/context.ts'
import { Badge } from '../../parts/badge.tsx'
import { Markdown } from '../../parts/markdown.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Text } from '../../parts/text.tsx'
import { durationText, timeText, useNow } from '../../parts/time.tsx'
import { callSigns, costText, isOpen, originText, TurnBadge } from './turn-words.tsx'

export interface TurnCardProps {
  readonly turn: TurnRow
  /** It is shown at the right. */
  readonly current: boolean
  readonly undo: (() => void) | undefined
}

export function TurnCard({ turn, current, undo }: TurnCardProps): ReactNode {
  const { conversation, seq, at, status, why, inferenceId, cost, ended } = turn
  const open = isOpen(turn)
  const link = 'inline-flex min-h-6 items-center text-muted underline hover:text-ink'
  return (
    <article aria-label={`Turn ${seq}`} className={`border-l-3 pl-3 ${current ? 'border-accent' : 'border-transparent'}`}>
      <Beginning turn={turn} />
      <Calls turn={turn} />
      <div className="mt-2 min-w-0">
        <Answer turn={turn} />
      </div>
      {why && (
        <div className="mt-2 rounded-lg border border-warn-line bg-warn-soft p-3">
          <p>
            <TurnBadge status={status} /> <Text most={1000}>{why.message}</Text>
          </p>
          <p className="text-muted">
            <Text most={1000}>{why.fix}</Text>
          </p>
        </div>
      )}
      <footer className="mt-1.5 flex flex-wrap items-center gap-x-3 gap-y-1 text-[0.86rem] text-muted">
        {open ? (
          <Running turn={turn} />
        ) : (
          <>
            <span className="tabular-nums">
              {timeText(at)}
              {ended !== undefined && ` · ${durationText(ended - at)}`} · {costText(cost)}
            </span>
            {status === 'undone' && <TurnBadge status={status} />}
          </>
        )}
        <Link to="/chat/$conversation/$seq" params={{ conversation, seq: String(seq) }} className={link}>
          Steps
        </Link>
        <Link to="/explain/$id" params={{ id: inferenceId }} className={link}>
          Why
        </Link>
        {status === 'interrupted' && turn.from.kind === 'user' && <Resume conversation={conversation} />}
        {undo && status !== 'undone' && (
          <button type="button" className={link} onClick={undo}>
            Undo…
          </button>
        )}
      </footer>
    </article>
  )
}

function Beginning({ turn }: { readonly turn: TurnRow }): ReactNode {
  const { from, text, preview, reduced } = turn
  if (from.kind === 'event') {
    return (
      <p className="flex flex-wrap items-baseline gap-x-2">
        <Badge>◆ event</Badge>
        <span className="text-muted">
          <Text most={200}>{originText(turn)}</Text>
        </span>
        {preview && (
          <span className="w-full break-words whitespace-pre-wrap">
            <Text most={4000}>{preview}</Text>
          </span>
        )}
      </p>
    )
  }
  return (
    <p className="ml-auto w-fit max-w-[88%] rounded-xl rounded-br-sm bg-accent-soft px-3.5 py-2 break-words whitespace-pre-wrap">
      {reduced ? <em className="text-muted">The text is not shown to your role.</em> : <Text>{text ?? ''}</Text>}
    </p>
  )
}

function Calls({ turn: { calls } }: { readonly turn: TurnRow }): ReactNode {
  if (calls.length === 0) return null
  return (
    <ul aria-label="Calls" className="mt-2 flex flex-wrap gap-1.5">
      {calls.map(({ n, name, server, status }) => {
        const [sign, word] = callSigns[status]
        return (
          <li key={n} className="rounded border border-line bg-raised px-1.5 text-[0.93rem]" title={server}>
            <span aria-hidden="true">{sign}</span> <Text most={80}>{name}</Text> <span className="sr-only">{word}</span>
          </li>
        )
      })}
    </ul>
  )
}

function Answer({ turn }: { readonly turn: TurnRow }): ReactNode {
  const { conversation, seq, answer, cut, reduced } = turn
  const live = useLiveText(conversation, seq)
  const open = isOpen(turn)
  // Whole texts, and those whose beginning this page has not seen, are read from the process.
  const asks = cut === true || (open && !isGathered(conversation, seq))
  const whole = useTurn(conversation, asks ? seq : undefined).data
  if (reduced) return answer === undefined && <em className="text-muted">The answer is not shown to your role.</em>
  const text = open ? (live?.text ?? whole?.partial) : (whole?.answer ?? answer)
  return (
    <>
      {live?.before.map((each, index) => (
        <div key={index} className="mb-2 text-muted">
          <Markdown>{each}</Markdown>
        </div>
      ))}
      {text !== undefined && text !== '' && <Markdown>{text}</Markdown>}
    </>
  )
}

/** Continues what a stop of the host interrupted. */
function Resume({ conversation }: { readonly conversation: string }): ReactNode {
  const operator = useRole('operator')
  const resume = useMutation({
    mutationFn: () => request('POST /conversations/:conversation/resume', { path: { conversation } }),
  })
  if (!operator) return null
  return (
    <>
      <button
        type="button"
        className="inline-flex min-h-6 items-center font-semibold text-accent-strong underline"
        disabled={resume.isPending}
        onClick={() => resume.mutate()}
      >
        Resume
      </button>
      {resume.error && <ProblemCard error={resume.error} />}
    </>
  )
}

/** What it does at this moment, and how to stop it. */
function Running({ turn: { conversation, seq, at, calls, status } }: { readonly turn: TurnRow }): ReactNode {
  const now = useNow()
  const operator = useRole('operator')
  const approvals = useQuery(approvalList).data ?? []
  const stop = useMutation({
    mutationFn: () =>
      request('POST /conversations/:conversation/turns/:seq/cancel', { path: { conversation, seq: String(seq) } }),
  })
  const call = calls.findLast(each => each.status === 'planned')
  // What a server asks in the middle of a call names no conversation.
  const asked = approvals.find(each => (each.conversation ?? (each.server === call?.server && conversation)) === conversation)
  return (
    <>
      <span role="status" className="tabular-nums">
        {asked
          ? 'Waits for an approval'
          : status === 'waiting'
            ? 'Waits for its turn'
            : call
              ? `Calls ${call.server ?? 'the host'}`
              : 'The model answers'}
      </span>
      <span className="tabular-nums">{durationText(Math.max(0, now - at))}</span>
      {asked && (
        <Link
          to="/approvals/$id"
          params={{ id: asked.id }}
          className="inline-flex min-h-6 items-center font-semibold text-accent-strong underline"
        >
          Answer it
        </Link>
      )}
      {operator && (
        <button
          type="button"
          className="inline-flex min-h-6 items-center text-danger underline"
          disabled={stop.isPending}
          onClick={() => stop.mutate()}
        >
          Stop
        </button>
      )}
      {stop.error && <ProblemCard error={stop.error} />}
    </>
  )
}
