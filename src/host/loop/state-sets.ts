/**
 * Whose state a call of a tool is about. What the tool or the config says comes first, then what its results have said, then the only
 * set that keeps state. Where nobody can tell, what a tool reports is kept for that tool alone: it is neither lost nor given to others.
 */
import type { Client } from '../../client/client.ts'
import { why } from '../../core/why.ts'
import type { StateReport } from '../../features/live/checkpoints/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { LoopAudit, LoopServer } from './ports.ts'
import type { ToolboxEntry } from './toolbox.ts'

export interface StateSet {
  readonly name: string
  /** False: it stands for a tool of no known set. */
  readonly declared: boolean
}

type Named = Pick<ToolboxEntry, 'tool' | 'featureSet' | 'stateSet'>

/** Tools of one connection whose sets are remembered. */
const mostTools = 1_000

export class StateSets {
  readonly #audit: LoopAudit
  /** By connection: the sets that results have named, and the tools of none. */
  readonly #learned = new WeakMap<Client, Map<string, string | undefined>>()

  constructor(audit: LoopAudit) {
    this.#audit = audit
  }

  /** Undefined: calls of the tool are about no state. */
  of(server: LoopServer, { tool, featureSet, stateSet }: Named): StateSet | undefined {
    const named = featureSet ?? this.#of(server)?.get(tool) ?? stateSet
    if (named !== undefined) return isStateful(server, named) ? { name: named, declared: true } : undefined
    const some = [...(server.live?.featureSets ?? [])].some(([name, { enabled }]) => enabled && isStateful(server, name))
    // No declared set has a star in its name.
    return some ? { name: `*${tool}`, declared: false } : undefined
  }

  /** The set under which a report is kept; the next call of the tool finds it there. */
  placed(server: LoopServer, { tool, featureSet: own }: Named, set: StateSet, { featureSet }: StateReport): string {
    if (own !== undefined) return set.name
    const named = featureSet !== undefined && isStateful(server, featureSet) ? featureSet : undefined
    if (named === set.name || (set.declared && named === undefined)) return set.name
    const learned = this.#of(server)
    if (named === undefined && learned?.has(tool) === false) this.#untold(server.name, tool)
    if (learned !== undefined && (learned.size < mostTools || learned.has(tool))) learned.set(tool, named)
    return named ?? set.name
  }

  #of({ client }: LoopServer): Map<string, string | undefined> | undefined {
    if (client === undefined) return undefined
    const known = this.#learned.get(client) ?? new Map<string, string | undefined>()
    this.#learned.set(client, known)
    return known
  }

  #untold(server: string, tool: string): void {
    const message = `${clip(server)} does not say which feature set the tool ${clip(tool)} belongs to: its state is kept for this tool alone`
    const fix = `Add {"live":{"tools":{${JSON.stringify(tool)}:"…"}}} with the name of the set to the server's entry in the config`
    const said = why('TOOL_WITHOUT_SET', 'live.tools', message, fix)
    void this.#audit.note({ server, kind: 'state', outcome: 'held', why: said, detail: clip(tool) })
  }
}

/** From 0.4 on a server does not declare who keeps its state: its results say so. */
function isStateful({ live }: LoopServer, featureSet: string): boolean {
  const facts = live?.featureSets.get(featureSet)
  if (live === undefined || facts === undefined) return false
  return facts.hostState === true || facts.rollback === true || live.dialect.label === '0.4' || live.dialect.label === '0.5'
}

/** Work that must not overlap, in line by a key. */
export interface KeyedQueue {
  /** Runs when all that came before under this key has ended, well or not. */
  inLine<T>(key: string, work: () => Promise<T>): Promise<T>
}

export function createKeyedQueue(): KeyedQueue {
  const tails = new Map<string, Promise<unknown>>()
  return {
    inLine: (key, work) => {
      const before = tails.get(key) ?? Promise.resolve()
      const mine = before.then(work, work)
      tails.set(key, mine)
      const leave = (): void => {
        if (tails.get(key) === mine) tails.delete(key)
      }
      mine.then(leave, leave)
      return mine
    },
  }
}
