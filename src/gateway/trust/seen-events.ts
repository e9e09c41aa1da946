/** Which of the events that are made of what servers say a caller hears of. */
import type { Caller } from '../../jsonrpc/connection.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import type { Kind } from './rules.ts'
import type { Visibility } from './visibility.ts'

const listKinds: ReadonlyMap<unknown, Kind> = new Map([
  ['tools', 'tool'],
  ['resources', 'resource'],
  ['prompts', 'prompt'],
])

/** Without a payload: whether there may be one that it hears of. */
export function showsEvent(visibility: Visibility, caller: Caller, name: string, payload: unknown): boolean {
  const at = name.lastIndexOf('/')
  const [upstream, what] = [name.slice(0, at), name.slice(at + 1)]
  if (at <= 0) return true
  if (what === 'resource_updated') {
    const uri = isRecord(payload) ? payload['uri'] : undefined
    if (typeof uri === 'string') return visibility.reads(caller, 'resource', { upstream, own: uri })
    return payload === undefined && visibility.some(caller, 'resource', upstream)
  }
  if (what !== 'list_changed') return true
  const list = isRecord(payload) ? listKinds.get(payload['list']) : undefined
  if (list !== undefined) return visibility.some(caller, list, upstream)
  return payload === undefined && [...listKinds.values()].some(kind => visibility.some(caller, kind, upstream))
}
