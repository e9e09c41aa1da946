/** The feature sets of a server as its author has described them, and what follows from that for hosts. */
import type { Catalog } from '../../core/catalog.ts'
import { problem } from '../../core/problem.ts'
import type { ChannelHandlers } from './channels/handlers.ts'
import type { RollbackHandler, StatefulSet } from './checkpoints/server.ts'
import type { Position } from './context-hooks/messages.ts'
import type { AfterHook, BeforeHook, HookedSet } from './context-hooks/server.ts'
import type { FeatureSetOptions } from './feature-set.ts'
import type { OfferedSet } from './feature-sets/declaration.ts'
import type { LiveUse } from './feature-sets/messages.ts'

interface SetRecord extends HookedSet, StatefulSet {
  readonly options: FeatureSetOptions
  readonly positions: readonly Position[]
  readonly tools: boolean
  readonly channels: boolean
  readonly handlers: ChannelHandlers
}

export interface Sets {
  get(name: string): SetRecord | undefined
  readonly hooked: () => readonly HookedSet[]
  add(name: string, options: FeatureSetOptions): void
  before(name: string, hook: BeforeHook, positions: readonly Position[] | undefined): void
  after(name: string, hook: AfterHook, blocking: boolean): void
  onRollback(name: string, handler: RollbackHandler): void
  tool(name: string): void
  channels(name: string): void
  /** What it does with what hosts say of its channels; what was said before stays. */
  onChannels(name: string, handlers: ChannelHandlers): void
  /** Those that open channels which hosts name by a kind. */
  opening(): readonly string[]
  remove(name: string): void
  /** Throws unless it has said that it does this. */
  needs(name: string, use: LiveUse): void
  scoped(name: string): void
}

export function createSets(catalog: Catalog<OfferedSet>): Sets {
  const records = new Map<string, SetRecord>()
  const change = (name: string, changes: Partial<SetRecord>): void => {
    const before = records.get(name)
    // Removed meanwhile: there is nothing left to change.
    if (before === undefined) return
    const after = described({ ...before, ...changes })
    records.set(name, after)
    catalog.update(offered(after))
  }
  return {
    get: name => records.get(name),
    hooked: () => [...records.values()],
    add: (name, options) => {
      const bare = { name, options, facts: { description: '', uses: [] }, positions: [], tools: false, channels: false }
      const record = described({ ...bare, before: undefined, after: undefined, rollback: undefined, handlers: {} })
      records.set(name, record)
      catalog.add(offered(record))
    },
    before: (name, before, positions = ['beforeUser']) => change(name, { before, positions }),
    after: (name, run, blocking) => change(name, { after: { run, blocking } }),
    onRollback: (name, rollback) => change(name, { rollback }),
    tool: name => change(name, { tools: true }),
    channels: name => {
      if (records.get(name)?.channels === false) change(name, { channels: true })
    },
    onChannels: (name, handlers) => change(name, { handlers: { ...records.get(name)?.handlers, ...handlers } }),
    opening: () => [...records.values()].filter(({ handlers }) => handlers.open !== undefined).map(({ name }) => name),
    remove: name => {
      records.delete(name)
      catalog.remove(name)
    },
    needs: (name, use) => {
      const record = records.get(name)
      if (record === undefined) throw removed(name)
      if (!record.facts.uses.includes(use)) throw undeclared(name, `uses: ['${use}']`, use)
    },
    scoped: name => {
      const record = records.get(name)
      if (record === undefined) throw removed(name)
      if (record.facts.scoped !== true) throw undeclared(name, 'scoped: true', 'scopes')
    },
  }
}

/** What a set uses by having one of these. */
const channelUses: readonly (readonly [LiveUse, ...(keyof ChannelHandlers)[]])[] = [
  ['channels.publish', 'publish'],
  ['channels.lifecycle', 'open', 'close'],
  ['channels.streaming', 'stream'],
  ['channels.typing', 'typing'],
  ['channels.acknowledge', 'acknowledge'],
]

/** What hosts read of it: its hooks and tools are among its uses, whether they were named or not. */
function described(record: SetRecord): SetRecord {
  const { description, uses = [], scoped, rollback, hostState } = record.options
  const also: LiveUse[] = [
    ...(record.before === undefined ? [] : ['contextHooks.beforeInference' as const]),
    ...(record.after === undefined ? [] : ['contextHooks.afterInference' as const]),
    ...(record.tools ? ['tools' as const] : []),
    ...(record.channels ? ['channels.register' as const, 'channels.incoming' as const] : []),
    ...channelUses.flatMap(([use, ...names]) => (names.some(name => record.handlers[name] !== undefined) ? [use] : [])),
  ]
  const facts = {
    description,
    uses: [...new Set([...uses, ...also])],
    ...(scoped === undefined ? {} : { scoped }),
    ...(rollback === undefined ? {} : { rollback }),
    ...(hostState === undefined ? {} : { hostState }),
  }
  return { ...record, facts }
}

function offered({ name, facts, before, after, positions }: SetRecord): OfferedSet {
  const told = after === undefined ? false : after.blocking ? 'blocking' : 'told'
  return { name, facts, before: before !== undefined, after: told, positions }
}

function undeclared(name: string, what: string, use: string): Error {
  return problem('FEATURE_UNDECLARED', `The feature set "${name}" does not say that it uses ${use}`, {
    suggestion: `Say so where it is made: server.featureSet('${name}', { …, ${what} })`,
    actor: 'operator',
  })
}

function removed(name: string): Error {
  return problem('FEATURE_REMOVED', `The feature set "${name}" is no longer offered`, {
    suggestion: 'Keep it, or stop using its handle',
    actor: 'operator',
  })
}
