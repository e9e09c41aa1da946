/** Why something happened: a sentence, the graph of causes, and every entry of the audit log that belongs to it. */
import { Link, useNavigate } from '@tanstack/react-router'
import { type ReactNode, useEffect, useMemo, useState } from 'react'
import type { ExplainNode, Explanation } from '#contract'
import { ProblemError } from '../../api/client.ts'
import { useExplanation } from '../../api/host-lists.ts'
import { Button } from '../../parts/button.tsx'
import { Waiting } from '../../parts/card.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Text } from '../../parts/text.tsx'
import { timeText } from '../../parts/time.tsx'
import { type CauseNode, CausesGraph } from '../../pictures/causes-graph.tsx'
import { isBad, NoteList } from './note-list.tsx'

export interface ExplainProps {
  readonly id: string | undefined
  /** The node that is opened. */
  readonly node: string | undefined
}

export function Explain({ id, node }: ExplainProps): ReactNode {
  const { data, error, isFetching, refetch } = useExplanation(id)
  const unknown = error instanceof ProblemError && error.problem.code === 'NOT_FOUND'
  return (
    <div className="mx-auto max-w-[90rem] space-y-4 p-4">
      <IdForm key={id} id={id} />
      {id === undefined && <WhereIdsAre />}
      {unknown && (
        <div className="card p-4">
          <p className="font-semibold">The audit log has nothing about this id.</p>
          <WhereIdsAre />
        </div>
      )}
      {error && !unknown && <ProblemCard error={error} retry={() => void refetch()} />}
      {data === undefined && isFetching && <Waiting rows={5} />}
      {data && !unknown && <Explained explanation={data} node={node} />}
    </div>
  )
}

function IdForm({ id }: { readonly id: string | undefined }): ReactNode {
  const navigate = useNavigate()
  const [text, setText] = useState(id ?? '')
  return (
    <form
      className="flex flex-wrap items-center gap-2"
      onSubmit={event => {
        event.preventDefault()
        const wanted = text.trim()
        if (wanted !== '') void navigate({ to: '/explain/$id', params: { id: wanted } })
      }}
    >
      <input
        type="search"
        data-filter=""
        aria-label="Id of an event or a turn"
        placeholder="Id of an event or a turn"
        spellCheck={false}
        autoComplete="off"
        className="min-w-48 flex-1 font-mono"
        value={text}
        onChange={event => setText(event.target.value)}
        onKeyDown={event => event.key === 'Escape' && event.currentTarget.blur()}
      />
      <Button type="submit" disabled={text.trim() === ''}>
        Explain
      </Button>
    </form>
  )
}

function WhereIdsAre(): ReactNode {
  const link = 'text-accent-strong underline'
  return (
    <p className="text-muted">
      Turns have their link “Why” in the{' '}
      <Link to="/chat" className={link}>
        chat
      </Link>
      , events in the{' '}
      <Link to="/inbox" className={link}>
        inbox
      </Link>
      , and entries of the{' '}
      <Link to="/audit" className={link}>
        audit log
      </Link>{' '}
      show both ids. Entries are kept for 90 days, unless the host says otherwise.
    </p>
  )
}

const kinds: Readonly<Record<ExplainNode['kind'], string>> = {
  event: 'event',
  turn: 'turn',
  call: 'call',
  hook: 'hook',
  decision: 'decision',
  note: 'note',
}

function pictureOf({ id, kind, label, outcome }: ExplainNode): CauseNode {
  return { id, kind: kinds[kind], label, outcome: outcome ?? 'no outcome', bad: isBad(outcome) }
}

interface ExplainedProps {
  readonly explanation: Explanation
  readonly node: string | undefined
}

function Explained({ explanation, node }: ExplainedProps): ReactNode {
  const { id, sentence, nodes, edges, notes, cut } = explanation
  const navigate = useNavigate()
  const select = (next: string) =>
    void navigate({ to: '/explain/$id', params: { id }, search: next === node ? {} : { node: next }, replace: true })
  const pictures = useMemo(() => nodes.map(pictureOf), [nodes])
  const lines = useMemo(() => edges.map(({ from, to, kind }) => ({ from, to, inside: kind === 'part' })), [edges])
  const opened = nodes.find(each => each.id === node)
  const marked = useMemo(() => new Set(opened?.notes ?? []), [opened])
  useEffect(() => {
    const first = opened?.notes[0]
    if (first !== undefined) document.getElementById(`note-${first}`)?.scrollIntoView({ block: 'nearest' })
  }, [opened])
  return (
    <>
      <p className="text-[1.14rem]" role="status">
        <Text most={2000}>{sentence}</Text>
      </p>
      {cut && <p className="text-muted">There is more than is shown here: only the first 200 nodes and 2,000 entries.</p>}
      {nodes.length > 0 && (
        <div>
          <CausesGraph title="Causes" nodes={pictures} lines={lines} selected={node} select={select} />
        </div>
      )}
      {opened && <Node node={opened} of={id} />}
      <NoteList notes={notes} marked={marked} />
    </>
  )
}

function Node({
  node: { kind, label, at, server, outcome, ref, turn, notes },
  of,
}: {
  readonly node: ExplainNode
  readonly of: string
}): ReactNode {
  const link = 'min-h-6 text-accent-strong underline'
  return (
    <section aria-label="Chosen cause" className="card flex flex-wrap items-baseline gap-x-4 gap-y-1 p-3">
      <h2 className="min-w-0 font-semibold break-words">
        {kinds[kind]} <Text most={200}>{label}</Text>
      </h2>
      <span className="text-muted">
        {[server, outcome, at === undefined ? undefined : timeText(at)].filter(Boolean).join(' · ')}
        {notes.length > 0 && ` · ${notes.length} ${notes.length === 1 ? 'entry' : 'entries'} below`}
      </span>
      {turn !== undefined && (
        <Link
          to={turn.seq === undefined ? '/chat/$conversation' : '/chat/$conversation/$seq'}
          params={{ conversation: turn.conversation, seq: String(turn.seq) }}
          className={link}
        >
          Open the turn
        </Link>
      )}
      {ref !== undefined && ref !== of && (
        <Link to="/explain/$id" params={{ id: ref }} className={link}>
          Explain this
        </Link>
      )}
    </section>
  )
}
