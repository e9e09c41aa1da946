/** One checkpoint: what it holds, what differs from another one, where it came from, and the way back to it. */
import { Link } from '@tanstack/react-router'
import { type ReactNode, useMemo, useState } from 'react'
import type { StateNode, StateSetRow } from '#contract'
import { useStateContent } from '../../api/host-lists.ts'
import { useRole } from '../../frame/context.ts'
import { type KeyMap, useKeys } from '../../frame/keys.ts'
import { Button } from '../../parts/button.tsx'
import { Waiting } from '../../parts/card.tsx'
import { DiffView } from '../../parts/diff-view.tsx'
import { Json } from '../../parts/json.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Text } from '../../parts/text.tsx'
import { timeText } from '../../parts/time.tsx'
import { RollbackDialog } from './rollback-dialog.tsx'

export interface CheckpointDetailsProps {
  readonly row: StateSetRow
  readonly node: StateNode
  readonly nodes: readonly StateNode[]
  readonly close: () => void
}

type View = 'content' | 'parent' | 'head'

const places: Readonly<Record<StateNode['state'], string>> = {
  kept: 'kept by the host',
  server: 'kept by its server: what it holds is not known here',
  orphan: 'its parent is unknown, so what it holds cannot be computed yet',
  broken: 'its change could not be applied, so what it holds is not known',
}

export function CheckpointDetails({ row, node, nodes, close }: CheckpointDetailsProps): ReactNode {
  const { checkpoint, parent, at, state, current, turn } = node
  const head = nodes.find(each => each.current)
  const [view, setView] = useState<View>('content')
  const [asking, setAsking] = useState(false)
  const operator = useRole('operator')
  const keys = useMemo<KeyMap>(
    () => ({ d: () => setView(before => (before === 'parent' || parent === null ? 'content' : 'parent')) }),
    [parent],
  )
  useKeys(keys)
  const views: readonly (readonly [View, string, boolean])[] = [
    ['content', 'Content', true],
    ['parent', 'Difference to its parent', parent !== null],
    ['head', 'Difference to the head', head !== undefined && !current],
  ]
  return (
    <section aria-label="Checkpoint" className="min-h-0 min-w-0 flex-1 overflow-auto border-line p-4 lg:border-l">
      <div className="flex flex-wrap items-start gap-2">
        <div className="min-w-0 flex-1">
          <h2 className="text-[1.14rem] font-semibold break-all">
            <Text most={200}>{checkpoint}</Text>
          </h2>
          <p className="text-muted">
            {timeText(at)} · {places[state]}
            {turn && (
              <>
                {' · '}
                <Link
                  to="/chat/$conversation/$seq"
                  params={{ conversation: turn.conversation, seq: String(turn.seq) }}
                  search={{ span: `call.${turn.call}` }}
                  className="text-accent-strong underline"
                >
                  turn {turn.seq}, <Text most={80}>{turn.tool}</Text>
                </Link>
              </>
            )}
          </p>
        </div>
        {operator && row.rollsBack && !current && <Button onClick={() => setAsking(true)}>Roll back to here…</Button>}
        <Button look="quiet" className="lg:hidden" onClick={close}>
          Close
        </Button>
      </div>
      <div role="tablist" aria-label="What to show" className="mt-3 flex flex-wrap gap-1 border-b border-line">
        {views
          .filter(([, , there]) => there)
          .map(([name, title]) => (
            <button
              key={name}
              type="button"
              role="tab"
              aria-selected={view === name}
              onClick={() => setView(name)}
              className={`-mb-px min-h-8 border-b-2 px-2.5 ${view === name ? 'border-accent font-semibold' : 'border-transparent text-muted hover:text-ink'}`}
            >
              {title}
            </button>
          ))}
      </div>
      <div role="tabpanel" aria-label={views.find(([name]) => name === view)?.[1]} className="mt-3">
        {view === 'content' && <Content row={row} checkpoint={checkpoint} />}
        {view === 'parent' && parent !== null && <Difference row={row} from={parent} to={checkpoint} />}
        {view === 'head' && head !== undefined && <Difference row={row} from={checkpoint} to={head.checkpoint} />}
      </div>
      {asking && (
        <RollbackDialog row={row} to={node} head={head} close={() => setAsking(false)}>
          {head && <Difference row={row} from={head.checkpoint} to={checkpoint} />}
        </RollbackDialog>
      )}
    </section>
  )
}

interface ContentProps {
  readonly row: StateSetRow
  readonly checkpoint: string
}

function Content({ row: { server, featureSet }, checkpoint }: ContentProps): ReactNode {
  const { data, error, refetch } = useStateContent(server, featureSet, checkpoint)
  if (error) return <ProblemCard error={error} retry={() => void refetch()} />
  if (data === undefined) return <Waiting rows={4} />
  if (data.value === undefined) {
    return (
      <p className="text-muted">{`Its ${data.length.toLocaleString('en')} characters are not shown: they are too many, or not for your role.`}</p>
    )
  }
  return <Json value={data.value} label="Content" />
}

interface DifferenceProps {
  readonly row: StateSetRow
  readonly from: string
  readonly to: string
}

function Difference({ row: { server, featureSet }, from, to }: DifferenceProps): ReactNode {
  const before = useStateContent(server, featureSet, from)
  const after = useStateContent(server, featureSet, to)
  const error = before.error ?? after.error
  if (error) return <ProblemCard error={error} />
  if (before.data === undefined || after.data === undefined) return <Waiting rows={4} />
  const [old, now] = [before.data.value, after.data.value]
  if (old === undefined || now === undefined) return <p className="text-muted">The content is too large, or not for your role.</p>
  return (
    <>
      <p className="mb-1 text-muted">
        From <Text most={60}>{from}</Text> to <Text most={60}>{to}</Text>
      </p>
      <DiffView before={old} after={now} label={`Difference from ${from} to ${to}`} />
    </>
  )
}
