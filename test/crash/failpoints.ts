/**
 * Places at which a process can be made to die: every write of a store, named by what it writes, before it, amid it and after it.
 * They are a wrapper around the store that a server is given, so that the product knows nothing of them.
 */
import type { Op, Store } from 'vivarium/stores'

export type Phase = 'before' | 'amid' | 'after'

/** `nth`: the how manieth write of that name in one life. */
export interface Death {
  readonly name: string
  readonly phase: Phase
  readonly nth: number
}

export const phases: readonly Phase[] = ['before', 'amid', 'after']

/** What the workload writes, again and again. A name that is not here is not aimed at. */
export const failpoints: readonly string[] = [
  'lease',
  'claim',
  'settle',
  'release',
  'give-up',
  'begin',
  'enrol',
  'step',
  'touch',
  'commit',
  'roll-back',
  'rollback-lease',
  'abandon',
  'undo',
  'rolled-back',
  'rollback-over',
  'state',
  'state-text',
  'state-event',
  'session',
  'replicas',
  'saga-lease',
  'saga-begin',
  'saga-enrol',
  'saga-step',
  'saga-touch',
  'saga-commit',
  'saga-roll-back',
  'saga-rollback-lease',
  'saga-abandon',
  'saga-undo',
  'saga-rolled-back',
  'saga-rollback-over',
]

/** The name of a write. */
export function nameOf(ops: readonly Op[]): string {
  const places = ops.filter(({ op }) => op !== 'check')
  const saga = places.some(op => placeOf(op).startsWith('saga/'))
  const name = plainName(places)
  return saga ? `saga-${name}` : name
}

function plainName(ops: readonly Op[]): string {
  const [first] = ops
  if (first === undefined) return 'nothing'
  const place = placeOf(first).replace(/^saga\//, '')
  const status = statusOf(first)
  if (place.startsWith('done/')) return keyNames.get(status) ?? 'release'
  if (place.startsWith('unit/')) return unitName(ops, status)
  if (place.startsWith('step/')) return stepNames.get(status) ?? 'step'
  if (place.startsWith('unit-lease/')) return first.op === 'delete' ? 'rollback-over' : 'rollback-lease'
  if (place.startsWith('runner/')) return 'lease'
  if (place.startsWith('session-state/of/')) return 'state'
  if (place.startsWith('session-state/at/')) return 'state-text'
  if (ops.some(op => op.op === 'append')) return 'state-event'
  return place.startsWith('sessions/') ? 'session' : (place.split('/')[0] ?? '')
}

const keyNames: ReadonlyMap<string, string> = new Map([
  ['running', 'claim'],
  ['done', 'settle'],
  ['failed', 'settle'],
  ['indeterminate', 'give-up'],
])
const stepNames: ReadonlyMap<string, string> = new Map([
  ['indeterminate', 'abandon'],
  ['compensated', 'undo'],
  ['compensation_failed', 'undo'],
])
const unitNames: ReadonlyMap<string, string> = new Map([
  ['committed', 'commit'],
  ['rolling_back', 'roll-back'],
  ['rolled_back', 'rolled-back'],
  ['partially_rolled_back', 'rolled-back'],
])

function unitName(ops: readonly Op[], status: string): string {
  const ends = unitNames.get(status)
  if (ends !== undefined) return ends
  if (ops.some(op => placeOf(op).includes('unfinished/'))) return 'begin'
  return ops.some(op => placeOf(op).includes('step/')) ? 'enrol' : 'touch'
}

function placeOf(op: Op): string {
  return 'log' in op ? op.log : op.key
}

function statusOf(op: Op): string {
  return op.op === 'put' ? (/"status":"(\w+)"/.exec(op.value)?.[1] ?? '') : ''
}

/** Tells of writes that no failpoint names, each name once. */
export function withNames(store: Store, unaimed: (name: string) => void): Store {
  const known = new Set(failpoints)
  return {
    get: key => store.get(key),
    scan: (prefix, options) => store.scan(prefix, options),
    read: (log, options) => store.read(log, options),
    watch: (prefixes, signal) => store.watch(prefixes, signal),
    close: () => store.close(),
    commit: ops => {
      const name = nameOf(ops)
      if (!known.has(name)) unaimed(name)
      known.add(name)
      return store.commit(ops)
    },
  }
}

/** The store, in a process that is to die of one of its writes. `die` does not come back. */
export function withFailpoint(store: Store, death: Death, die: () => void): Store {
  let left = death.nth
  return {
    get: key => store.get(key),
    scan: (prefix, options) => store.scan(prefix, options),
    read: (log, options) => store.read(log, options),
    watch: (prefixes, signal) => store.watch(prefixes, signal),
    close: () => store.close(),
    commit: async ops => {
      if (nameOf(ops) !== death.name || --left !== 0) return store.commit(ops)
      if (death.phase === 'before') return ended(die)
      const written = store.commit(ops)
      if (death.phase === 'amid') {
        // It is on its way to the disk, or to the database.
        setImmediate(() => setImmediate(die))
        return ended(() => {})
      }
      await written
      return ended(die)
    },
  }
}

/** Whoever waits for a write of the dead waits for ever. */
function ended(die: () => void): Promise<never> {
  die()
  return new Promise<never>(() => {})
}
