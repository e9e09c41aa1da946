/** The entries of the audit log that belong to one thing, oldest first, each with its rule and what to do. */
import { type ReactNode, useState } from 'react'
import type { ExplainNote } from '#contract'
import { Badge, type Tone } from '../../parts/badge.tsx'
import { Button } from '../../parts/button.tsx'
import { Text } from '../../parts/text.tsx'
import { durationText, timeText } from '../../parts/time.tsx'

export interface NoteListProps {
  readonly notes: readonly ExplainNote[]
  /** Places of those that the chosen cause stands for. */
  readonly marked: ReadonlySet<number>
}

const atOnce = 100

export function NoteList({ notes, marked }: NoteListProps): ReactNode {
  const [most, setMost] = useState(atOnce)
  const shown = Math.max(most, ...[...marked].map(each => each + 1))
  return (
    <section aria-label="Entries of the audit log">
      <h2 className="label mb-1">
        {notes.length === 1 ? 'One entry of the audit log' : `${notes.length.toLocaleString('en')} entries of the audit log`}
      </h2>
      <ol className="card divide-y divide-line">
        {notes.slice(0, shown).map((note, index) => (
          <li key={index} id={`note-${index}`} className={`px-3 py-1.5 ${marked.has(index) ? 'bg-accent-soft' : ''}`}>
            <Entry note={note} />
          </li>
        ))}
      </ol>
      {notes.length > shown && (
        <p className="mt-2 text-center">
          <Button onClick={() => setMost(shown + atOnce)}>{`Show more, ${notes.length - shown} left`}</Button>
        </p>
      )}
    </section>
  )
}

/** Whether somebody would want to know why. */
export function isBad(outcome: string | undefined): boolean {
  return outcome === 'failure' || outcome === 'timeout' || outcome === 'refused'
}

function toneOf(outcome: string): Tone {
  if (isBad(outcome)) return 'danger'
  return outcome === 'success' ? 'good' : 'warn'
}

function Entry({
  note: { at, server, featureSet, kind, outcome, detail, ms, rule, why, by },
}: {
  readonly note: ExplainNote
}): ReactNode {
  return (
    <>
      <p className="flex flex-wrap items-baseline gap-x-3">
        <span className="text-muted tabular-nums">{timeText(at)}</span>
        <strong className="font-medium">
          <Text most={80}>{kind}</Text>
        </strong>
        <Badge tone={toneOf(outcome)}>{outcome}</Badge>
        <span className="min-w-0 break-words text-muted">
          <Text most={300}>{[[server, featureSet].filter(Boolean).join('/'), detail].filter(Boolean).join(' · ')}</Text>
          {ms !== undefined && ` · ${durationText(ms)}`}
        </span>
      </p>
      {(rule !== undefined || by !== undefined) && (
        <p className="text-muted">
          {rule !== undefined && (
            <>
              allowed by <Text most={200}>{rule}</Text>
            </>
          )}
          {by !== undefined && (
            <>
              {rule === undefined ? 'by ' : ', answered by '}
              <Text most={100}>{by}</Text>
            </>
          )}
        </p>
      )}
      {why && (
        <p>
          <Text most={1000}>{why.message}</Text>
          <span className="block text-muted">
            <Text most={1000}>{why.fix}</Text> <code>{why.rule}</code>
          </span>
        </p>
      )}
    </>
  )
}
