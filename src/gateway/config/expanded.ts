/** A part of the file with its variables filled in, wherever they stand in it. */
import { type ConfigEnvironment, expand } from '../../host/config/expand.ts'
import type { Placed } from '../../host/config/jsonc.ts'
import type { TellFault } from './read.ts'

export function expanded(at: Placed, path: string, around: ConfigEnvironment, tell: TellFault): Placed {
  if (at.members !== undefined) {
    const members = new Map([...at.members].map(([name, member]) => [name, expanded(member, `${path}.${name}`, around, tell)]))
    return { line: at.line, members, value: Object.fromEntries([...members].map(([name, { value }]) => [name, value])) }
  }
  if (at.items !== undefined) {
    const items = at.items.map((item, i) => expanded(item, `${path}[${i}]`, around, tell))
    return { line: at.line, items, value: items.map(({ value }) => value) }
  }
  if (typeof at.value !== 'string') return at
  const filled = expand(at.value, around)
  if ('text' in filled) return { line: at.line, value: filled.text }
  tell(at, filled.why.rule, `${path}: ${filled.why.message}`, filled.why.fix)
  return { line: at.line, value: null }
}
