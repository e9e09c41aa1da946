/** Checkpoints in lanes, newest first. Long runs without a branch are one row, which opens. */
import { type ReactNode, useMemo, useState } from 'react'
import type { StateNode } from '#contract'
import { Badge } from '../../parts/badge.tsx'
import { elementId } from '../../parts/element-id.ts'
import { Rows } from '../../parts/rows.tsx'
import { Text } from '../../parts/text.tsx'
import { timeText } from '../../parts/time.tsx'
import { type FoldedRun, foldRuns, type LaneNode, type LaneRow, lanesOf } from '../../pictures/lanes-layout.ts'
import { LaneLines } from '../../pictures/lanes-row.tsx'

export interface CheckpointTreeProps {
  readonly nodes: readonly StateNode[]
  readonly selected: string | undefined
  readonly select: (checkpoint: string) => void
}

interface TreeRow {
  readonly key: string
  readonly lines: LaneRow
  readonly item: Placed | FoldedRun<Placed>
}

interface Placed extends LaneNode {
  readonly node: StateNode
}

const height = 40
/** Between the rows of a list there is a line. */
const lineHeight = height - 1

export function CheckpointTree({ nodes, selected, select }: CheckpointTreeProps): ReactNode {
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set())
  const rows = useMemo(() => rowsOf(nodes, opened, selected), [nodes, opened, selected])
  const lanes = Math.max(...rows.map(({ lines: { lane, above, through } }) => Math.max(lane, ...above, ...through))) + 1
  return (
    <Rows
      label="Checkpoints"
      items={rows}
      keyOf={({ key }) => key}
      height={height}
      selected={selected === undefined ? undefined : elementId(`at ${selected}`)}
      select={({ item }) => {
        if ('folded' in item) setOpened(new Set([...opened, ...item.folded.map(({ id }) => id)]))
        else select(item.id)
      }}
      draw={row => <Row row={row} lanes={lanes} />}
    />
  )
}

function rowsOf(nodes: readonly StateNode[], opened: ReadonlySet<string>, selected: string | undefined): readonly TreeRow[] {
  const placed = nodes.map(node => ({ id: node.checkpoint, parent: node.parent, node }))
  const keep = ({ id, node }: Placed) => node.current || marked(node) || id === selected || opened.has(id)
  const items = foldRuns(placed, keep)
  // A fold is one node, whose parent is that of its last.
  const lines = lanesOf(
    items.map(item => ('folded' in item ? { id: item.folded[0]?.id ?? '', parent: item.folded.at(-1)?.parent ?? null } : item)),
  )
  return items.map((item, index) => ({
    item,
    key: elementId('folded' in item ? `fold ${item.folded[0]?.id}` : `at ${item.id}`),
    lines: lines[index] ?? { lane: 0, above: [], through: [], below: false },
  }))
}

function marked({ state }: StateNode): boolean {
  return state === 'broken' || state === 'orphan'
}

function Row({ row: { item, lines }, lanes }: { readonly row: TreeRow; readonly lanes: number }): ReactNode {
  if ('folded' in item) {
    return (
      <div className="flex items-center gap-2 px-3 text-muted" style={{ height: lineHeight }}>
        <LaneLines row={lines} lanes={lanes} height={lineHeight} point="fold" />
        {item.folded.length.toLocaleString('en')} more on one line
      </div>
    )
  }
  const { checkpoint, at, state, current, turn } = item.node
  return (
    <div className="flex items-center gap-2 px-3" style={{ height: lineHeight }}>
      <LaneLines
        row={lines}
        lanes={lanes}
        height={lineHeight}
        point={current ? 'head' : marked(item.node) ? 'broken' : 'plain'}
      />
      <span className="max-w-[40%] min-w-12 truncate font-mono">
        <Text most={60}>{checkpoint}</Text>
      </span>
      {current && <Badge tone="good">head</Badge>}
      {state === 'broken' && <Badge tone="danger">broken</Badge>}
      {state === 'orphan' && <Badge tone="warn">orphan</Badge>}
      <span className="min-w-0 flex-1 truncate text-muted">
        {turn && (
          <>
            turn {turn.seq} · <Text most={60}>{turn.tool}</Text>
          </>
        )}
      </span>
      <span className="shrink-0 text-muted tabular-nums">{timeText(at)}</span>
    </div>
  )
}
