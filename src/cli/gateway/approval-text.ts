/** How a definition differs from the one that was pinned: each place with what stood there and what stands there now. */

import { isRecord } from '../../jsonrpc/message.ts'
import type { KeptTool } from '../../policy/pins/tool-pins.ts'

const mostLines = 40
const mostLength = 400

/** `whole`: however long it is. Otherwise only the beginning of what is long. */
export function changesIn({ before, tool }: Pick<KeptTool, 'before' | 'tool'>, whole = false): readonly string[] {
  const text = (value: unknown): string => shown(value, whole)
  if (before === undefined) return [`new: ${text(tool)}`]
  const lines = [...places('', before, tool)].map(([path, old, now]) => `${shownText(path)}: ${text(old)} → ${text(now)}`)
  return whole || lines.length <= mostLines ? lines : [...lines.slice(0, mostLines), `… and ${lines.length - mostLines} more`]
}

/** How many characters they have, where the list does not show all of them. */
export function cutIn(kept: Pick<KeptTool, 'before' | 'tool'>): number | undefined {
  const [whole, cut] = [changesIn(kept, true).join('\n'), changesIn(kept).join('\n')]
  return whole === cut ? undefined : whole.length
}

function* places(path: string, old: unknown, now: unknown): Generator<readonly [path: string, old: unknown, now: unknown]> {
  if (JSON.stringify(old) === JSON.stringify(now)) return
  if (!isRecord(old) || !isRecord(now)) return yield [path, old, now]
  for (const name of new Set([...Object.keys(old), ...Object.keys(now)]))
    yield* places(path === '' ? name : `${path}.${name}`, old[name], now[name])
}

function shown(value: unknown, whole: boolean): string {
  const text = value === undefined ? 'nothing' : shownJson(value)
  return whole || text.length <= mostLength ? text : `${text.slice(0, mostLength - 1)}…`
}

/** Control and format characters, separators other than the space, and what stands for half a character. */
const unplain = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000\u115f\u1160\u3164\uffa0]/gu

function escaped(char: string): string {
  let text = ''
  for (let i = 0; i < char.length; i++) text += `\\u${char.charCodeAt(i).toString(16).padStart(4, '0')}`
  return text
}

/** A name or sentence, without quotation marks. */
export function shownText(text: string): string {
  return text.replace(unplain, escaped)
}

/** A value, exactly as it was sent. */
export function shownJson(value: unknown): string {
  return shownText(JSON.stringify(value) ?? 'null')
}
