/** How a definition differs from the one that was pinned: each place with what stood there and what stands there now. */
import type { KeptTool } from '../../gateway/trust/held-tools.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { brief } from '../terminal/paint.ts'

const mostLines = 40
const mostLength = 400

export function changesIn({ before, tool }: Pick<KeptTool, 'before' | 'tool'>): readonly string[] {
  if (before === undefined) return [`new: ${text(tool)}`]
  const lines = [...places('', before, tool)].map(([path, old, now]) => `${path}: ${text(old)} → ${text(now)}`)
  return lines.length <= mostLines ? lines : [...lines.slice(0, mostLines), `… and ${lines.length - mostLines} more`]
}

function* places(path: string, old: unknown, now: unknown): Generator<readonly [path: string, old: unknown, now: unknown]> {
  if (JSON.stringify(old) === JSON.stringify(now)) return
  if (!isRecord(old) || !isRecord(now)) return yield [path, old, now]
  for (const name of new Set([...Object.keys(old), ...Object.keys(now)]))
    yield* places(path === '' ? name : `${path}.${name}`, old[name], now[name])
}

function text(value: unknown): string {
  return value === undefined ? 'nothing' : brief(JSON.stringify(value), mostLength)
}
