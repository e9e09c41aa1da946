/** Talks with the agent, and shows how it came to each answer: a conversation at the left, one of its turns at the right. */
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type ReactNode, useEffect, useMemo, useRef, useState } from 'react'
import { hostFacts, useTurns } from '../../api/host-lists.ts'
import { useRole } from '../../frame/context.ts'
import { type KeyMap, useKeys } from '../../frame/keys.ts'
import { Button } from '../../parts/button.tsx'
import { Waiting } from '../../parts/card.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Composer } from './composer.tsx'
import { ConversationPicker } from './conversation-picker.tsx'
import { TurnCard } from './turn-card.tsx'
import { TurnPanel } from './turn-panel.tsx'
import { isOpen } from './turn-words.tsx'
import { UndoDialog } from './undo-dialog.tsx'

export interface ChatProps {
  /** Undefined: the one that the host begins with. */
  readonly conversation: string | undefined
  /** The turn at the right. */
  readonly turn: number | undefined
  /** The step of it that is opened. */
  readonly span: string | undefined
}

export function Chat({ conversation, turn, span }: ChatProps): ReactNode {
  const facts = useQuery(hostFacts)
  const first = facts.data?.conversation
  const shown = conversation ?? first
  if (facts.error) {
    return (
      <div className="p-4">
        <ProblemCard error={facts.error} retry={() => void facts.refetch()} />
      </div>
    )
  }
  if (shown === undefined || facts.data === undefined) {
    return (
      <div className="p-4">
        <Waiting />
      </div>
    )
  }
  return <Talk key={shown} conversation={shown} turn={turn} span={span} model={facts.data.model} examples={facts.data.examples} />
}

interface TalkProps extends ChatProps {
  readonly conversation: string
  readonly model: string
  readonly examples: readonly string[]
}

function Talk({ conversation, turn, span, model, examples }: TalkProps): ReactNode {
  const turns = useTurns(conversation)
  const rows = useMemo(() => turns.data?.pages.flatMap(page => page.items).reverse() ?? [], [turns.data])
  const navigate = useNavigate()
  const operator = useRole('operator')
  const [undoing, setUndoing] = useState<number>()
  const [draft, setDraft] = useState('')
  const wide = matchMedia('(min-width: 1024px)').matches
  const newest = rows.at(-1)
  const opened = turn ?? (wide ? newest?.seq : undefined)
  const row = rows.find(({ seq }) => seq === opened)
  const keys = useMemo<KeyMap>(() => {
    const open = (seq: number | undefined) =>
      seq === undefined
        ? void navigate({ to: '/chat/$conversation', params: { conversation } })
        : void navigate({ to: '/chat/$conversation/$seq', params: { conversation, seq: String(seq) }, replace: true })
    const step = (by: number) => () => {
      const at = rows.findIndex(({ seq }) => seq === opened)
      open(rows[Math.min(rows.length - 1, Math.max(0, at < 0 ? rows.length - 1 : at + by))]?.seq)
    }
    return {
      j: step(1),
      k: step(-1),
      w: () => open(turn === undefined ? newest?.seq : undefined),
      u: () => operator && row !== undefined && setUndoing(row.seq),
      h: () => row !== undefined && void navigate({ to: '/explain/$id', params: { id: row.inferenceId } }),
      Escape: () => open(undefined),
    }
  }, [rows, opened, turn, newest, row, conversation, operator, navigate])
  useKeys(keys)
  const busy = rows.some(isOpen)
  return (
    <div className="flex h-full min-h-0">
      <section
        aria-label="Conversation"
        className={`flex min-h-0 min-w-0 flex-1 flex-col lg:max-w-[46rem] lg:border-r lg:border-line ${turn === undefined ? '' : 'max-lg:hidden'}`}
      >
        <div className="flex items-center gap-3 border-b border-line px-4 py-2">
          <ConversationPicker conversation={conversation} />
          <span className="ml-auto min-w-0 truncate text-[0.86rem] text-muted" title="The model that answers">
            {model}
          </span>
        </div>
        <Scroll bottom={`${newest?.seq} ${newest?.answer?.length} ${newest?.calls.length} ${newest?.status}`}>
          {turns.error && <ProblemCard error={turns.error} retry={() => void turns.refetch()} />}
          {turns.isPending && <Waiting rows={4} />}
          {turns.hasNextPage && (
            <div className="text-center">
              <Button disabled={turns.isFetchingNextPage} onClick={() => void turns.fetchNextPage()}>
                Show earlier turns
              </Button>
            </div>
          )}
          {turns.isSuccess && rows.length === 0 && <Nothing examples={examples} choose={setDraft} />}
          {rows.map(each => (
            <TurnCard
              key={each.seq}
              turn={each}
              current={each.seq === opened}
              undo={operator ? () => setUndoing(each.seq) : undefined}
            />
          ))}
        </Scroll>
        <p aria-live="polite" className="sr-only">
          {newest !== undefined && !isOpen(newest) && `Turn ${newest.seq}: ${newest.status}`}
        </p>
        <Composer conversation={conversation} draft={draft} setDraft={setDraft} busy={busy} />
      </section>
      <section aria-label="Turn" className={`min-h-0 min-w-0 flex-1 overflow-auto ${turn === undefined ? 'max-lg:hidden' : ''}`}>
        {opened !== undefined && (
          <TurnPanel
            key={opened}
            conversation={conversation}
            seq={opened}
            span={span}
            undo={operator ? () => setUndoing(opened) : undefined}
          />
        )}
      </section>
      {undoing !== undefined && <UndoDialog conversation={conversation} seq={undoing} close={() => setUndoing(undefined)} />}
    </div>
  )
}

/** Stays at the end while the reader is there, and where the reader is otherwise. */
function Scroll({ bottom, children }: { readonly bottom: string; readonly children: ReactNode }): ReactNode {
  const box = useRef<HTMLElement>(null)
  const inner = useRef<HTMLDivElement>(null)
  const atEnd = useRef(true)
  useEffect(() => {
    const [outer, content] = [box.current, inner.current]
    if (outer === null || content === null) return
    const follow = () => atEnd.current && outer.scrollTo({ top: outer.scrollHeight })
    const watch = new ResizeObserver(follow)
    watch.observe(content)
    return () => watch.disconnect()
  }, [])
  useEffect(() => {
    if (bottom !== '' && atEnd.current) box.current?.scrollTo({ top: box.current.scrollHeight })
  }, [bottom])
  return (
    <section
      ref={box}
      aria-label="Turns"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable for the arrow keys
      tabIndex={0}
      className="min-h-0 flex-1 overflow-auto"
      onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
        atEnd.current = scrollHeight - scrollTop - clientHeight < 48
      }}
    >
      <div ref={inner} className="space-y-5 p-4">
        {children}
      </div>
    </section>
  )
}

interface NothingProps {
  readonly examples: readonly string[]
  readonly choose: (text: string) => void
}

function Nothing({ examples, choose }: NothingProps): ReactNode {
  return (
    <div className="mx-auto max-w-md py-10 text-center">
      <p className="text-[1.14rem] font-semibold">Nothing was said yet.</p>
      <p className="mt-1 text-muted">
        Write a message below. Each answer shows its steps, what they cost, and how to take them back.
      </p>
      {examples.length > 0 && (
        <ul aria-label="Examples" className="mt-4 space-y-2">
          {examples.map(example => (
            <li key={example}>
              <Button className="w-full !justify-start text-left" onClick={() => choose(example)}>
                {example}
              </Button>
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}
