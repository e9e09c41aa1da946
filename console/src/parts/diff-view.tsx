/** Two values as JSON with their difference marked by sign and colour; long stretches without a change are folded. */
import { type ReactNode, useMemo } from 'react'
import { type DiffLine, diffLines } from './diff.ts'
import { pretty } from './json.tsx'
import { ScrollRegion } from './scroll-region.tsx'
import { Text } from './text.tsx'

/** Lines that stay visible around a change. */
const around = 3

export interface DiffViewProps {
  readonly before: unknown
  readonly after: unknown
  readonly label: string
}

export function DiffView({ before, after, label }: DiffViewProps): ReactNode {
  const lines = useMemo(() => fold(diffLines(pretty(before), pretty(after))), [before, after])
  return (
    <ScrollRegion label={label}>
      {lines.map((line, index) => (
        <div key={index} className={classOf(line)}>
          <span aria-hidden="true">{'sign' in line ? line.sign : ' '}</span> {spoken(line)}
          {'sign' in line ? <Text>{line.text}</Text> : `${line.folded} lines without a change`}
        </div>
      ))}
    </ScrollRegion>
  )
}

interface Folded {
  readonly folded: number
}

function fold(lines: readonly DiffLine[]): readonly (DiffLine | Folded)[] {
  const near = lines.map((_, at) => lines.slice(Math.max(0, at - around), at + around + 1).some(({ sign }) => sign !== ' '))
  const shown: (DiffLine | Folded)[] = []
  for (const [at, line] of lines.entries()) {
    const last = shown.at(-1)
    if (near[at]) shown.push(line)
    else if (last !== undefined && 'folded' in last) shown[shown.length - 1] = { folded: last.folded + 1 }
    else shown.push({ folded: 1 })
  }
  return shown
}

function classOf(line: DiffLine | Folded): string {
  if ('folded' in line) return 'text-muted italic'
  return line.sign === '+' ? 'diff-added' : line.sign === '-' ? 'diff-removed' : ''
}

function spoken(line: DiffLine | Folded): ReactNode {
  if ('folded' in line || line.sign === ' ') return null
  return <span className="sr-only">{line.sign === '+' ? 'added: ' : 'removed: '}</span>
}
