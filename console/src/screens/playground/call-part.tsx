/** One tool, resource or prompt: its arguments, at which revisions it is called, and the calls. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useMemo, useRef, useState } from 'react'
import type { Call, CallWish, Offer, OfferDetail, RevisionRow, ServerRow } from '#contract'
import { useOffer, useRevisions } from '../../api/author.ts'
import { request } from '../../api/client.ts'
import { useDisconnected } from '../../frame/connection-banner.tsx'
import { useConsole, useRole } from '../../frame/context.ts'
import { type KeyMap, useKeys } from '../../frame/keys.ts'
import { Button } from '../../parts/button.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { QueryState } from '../../parts/query-state.tsx'
import { ArgumentsEditor } from '../../parts/schema/arguments-editor.tsx'
import { type Draft, draftOf, turned } from '../../parts/schema/draft.ts'
import { startOf } from '../../parts/schema/start.ts'
import { isObject, isUnfinished, readText, withMember } from '../../parts/schema/typed.ts'
import { Tabs } from '../../parts/tabs.tsx'
import { Extras, emptyExtras, extrasOf } from './call-extras.tsx'
import { CallResults } from './call-results.tsx'
import { Completions } from './completions.tsx'
import { OfferHead } from './offer-head.tsx'
import type { PlaygroundPlace } from './playground.tsx'
import { Revisions } from './revisions.tsx'
import { type SavedCall, saveCall } from './saved-calls.ts'

export interface CallPartProps {
  readonly server: ServerRow
  readonly kind: Offer['kind']
  readonly item: string
  readonly saved: SavedCall | undefined
  readonly place: PlaygroundPlace
  readonly change: (place: PlaygroundPlace) => void
}

export function CallPart(props: CallPartProps): ReactNode {
  const { server, kind, item } = props
  const query = useOffer(server.name, kind, item, undefined)
  const revisions = useRevisions(server.name).data ?? []
  if (query.data === undefined) return <QueryState query={query} />
  return <CallForm {...props} detail={query.data} revisions={revisions} />
}

/** What was typed stays while the page is open, also when another tool was looked at. */
const drafts = new Map<string, Draft>()
const mostDrafts = 100

function CallForm({
  server,
  kind,
  item,
  saved,
  place,
  change,
  detail,
  revisions,
}: CallPartProps & { readonly detail: OfferDetail; readonly revisions: readonly RevisionRow[] }): ReactNode {
  const { self } = useConsole()
  const client = useQueryClient()
  const operator = useRole('operator')
  const disconnected = useDisconnected()
  const schema = detail.input
  const [draft, setDraft, draftKey] = useDraft(`${server.name} ${kind} ${item}`, saved, schema)
  const [strict, setStrict] = useState(false)
  const [extras, setExtras] = useState(emptyExtras)
  const revisionBox = useRef<HTMLDivElement>(null)
  const chosen = useMemo(() => chosenRevisions(place.rev, revisions), [place.rev, revisions])
  const wish: CallWish = {
    server: server.name,
    ...target(kind, item, draft.value),
    ...(chosen.length > 0 && { revisions: chosen }),
    ...extrasOf(extras, detail.offer.task),
  }
  const run = useMutation({
    mutationFn: () => request('POST /calls', { body: wish }),
  })
  // Who has left the screen meanwhile is not taken back to it.
  const show = (call: Call) => {
    client.setQueryData(['calls', call.id], (shown: Call | undefined) => shown ?? call)
    change({ ...place, call: call.id })
  }
  const unfinished = isUnfinished(draft.value) || extras.wrong
  const start = () => {
    setStrict(true)
    if (!unfinished && !run.isPending && !disconnected) run.mutate(undefined, { onSuccess: show })
  }
  const turn = () => setDraft(turned(draft))
  const actsNow = useRef({ start, turn })
  actsNow.current = { start, turn }
  const keys = useMemo<KeyMap>(
    () => ({
      ...(operator && { r: () => actsNow.current.start() }),
      e: () => actsNow.current.turn(),
      v: () => revisionBox.current?.querySelector('input')?.focus(),
    }),
    [operator],
  )
  useKeys(keys)
  const keep = () => {
    const label = labelOf(draft)
    saveCall({ target: self.name, server: server.name, kind, item, label, text: draftText(draft), revisions: chosen })
  }
  return (
    <div className="space-y-4 p-4">
      <OfferHead detail={detail} />
      {schema !== undefined && (
        <section aria-label="Arguments">
          <div className="mb-2 flex items-center gap-3">
            <h3 className="font-semibold">Arguments</h3>
            <Tabs
              label="How the arguments are edited"
              names={['form', 'json']}
              chosen={draft.mode}
              choose={mode => mode !== draft.mode && turn()}
            />
          </div>
          <div className="max-w-2xl">
            <ArgumentsEditor key={draftKey} label="Arguments" schema={schema} draft={draft} change={setDraft} strict={strict} />
            {operator && kind !== 'tool' && (
              <Completions
                server={server.name}
                detail={detail}
                value={isObject(draft.value) ? draft.value : {}}
                take={(name, value) =>
                  setDraft(draftOf(withMember(isObject(draft.value) ? draft.value : {}, name, value), draft.mode))
                }
              />
            )}
          </div>
        </section>
      )}
      <Extras extras={extras} change={setExtras} task={kind === 'tool' ? detail.offer.task : undefined} />
      <div className="sticky bottom-0 z-10 -mx-4 flex flex-wrap items-start gap-x-4 gap-y-2 border-y border-line bg-raised px-4 py-2">
        <span className="flex shrink-0 items-center gap-2">
          {operator && (
            <Button look="primary" disabled={disconnected || run.isPending} title="Key r" onClick={start}>
              Run
            </Button>
          )}
          <Button onClick={keep}>Save</Button>
        </span>
        <div ref={revisionBox} className="min-w-0 flex-1 basis-64">
          <Revisions rows={revisions} chosen={chosen} change={next => change({ ...place, rev: next.join(',') })} />
        </div>
        {strict && unfinished && <p className="w-full text-danger">Something that was typed is no value. Mend it first.</p>}
      </div>
      {run.error && <ProblemCard error={run.error} />}
      {place.call !== undefined && <CallResults id={place.call} />}
    </div>
  )
}

function useDraft(key: string, saved: SavedCall | undefined, schema: unknown) {
  const [draft, set] = useState<Draft>(() => {
    if (saved !== undefined) return { mode: 'form', value: readText(saved.text), text: saved.text }
    return drafts.get(key) ?? draftOf(schema === undefined ? undefined : (startOf(schema, schema) ?? {}))
  })
  const change = (next: Draft) => {
    drafts.delete(key)
    drafts.set(key, next)
    for (const oldest of drafts.keys()) {
      if (drafts.size <= mostDrafts) break
      drafts.delete(oldest)
    }
    set(next)
  }
  return [draft, change, key] as const
}

/** Those of the address, else the one that client and server agree on by themselves. */
function chosenRevisions(text: string | undefined, rows: readonly RevisionRow[]): readonly string[] {
  const named = (text ?? '').split(',').filter(each => rows.some(({ revision }) => revision === each))
  return named.length > 0 ? named : rows.filter(({ preferred }) => preferred).map(({ revision }) => revision)
}

function target(kind: Offer['kind'], item: string, value: unknown): Partial<CallWish> {
  if (kind === 'resource') return { uri: item }
  // Also what is no object: the server says what it thinks of it.
  const sent = { arguments: (value === undefined ? {} : value) as Readonly<Record<string, unknown>> }
  if (kind === 'template') return { template: item, ...sent }
  return kind === 'tool' ? { tool: item, ...sent } : { prompt: item, ...sent }
}

function draftText({ mode, value, text }: Draft): string {
  return mode === 'json' ? text : draftOf(value).text
}

/** What tells a saved call from another: its arguments on one line. */
function labelOf(draft: Draft): string {
  const text = draftText(draft).replace(/\s+/g, ' ').trim()
  return text === '' || text === '{}' ? 'no arguments' : text.slice(0, 120)
}
