/** Definitions of tools that wait for a yes, kept on the store: whoever runs the gateway answers from any process. */
import type { Clock } from '../../core/clock.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { type Op, put, remove, type Store } from '../../stores/store.ts'
import { type HeldTool, Pins } from './pins.ts'

export interface KeptTool extends Pick<HeldTool, 'server' | 'tool' | 'before' | 'digest' | 'changes'> {
  /** Since when it is held: milliseconds since the epoch. */
  readonly since: number
}

const prefix = 'held/'
/** How long a no is remembered. */
const refusedMs = 90 * 86_400_000

/** `store`: what is the gateway's own of it. */
export class HeldTools {
  readonly #store: Store
  readonly #clock: Clock

  constructor(store: Store, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  /** These are the ones of a server now, and no others. */
  async keep(server: string, held: readonly HeldTool[]): Promise<void> {
    const known = new Map((await this.#scan(`${prefix}${placeOf(server)}`)).map(kept => [idOf(kept), kept]))
    const ops: Op[] = []
    for (const { tool, before, digest, changes } of held) {
      const record: KeptTool = {
        server,
        tool,
        digest,
        changes,
        since: this.#clock.now(),
        ...(before !== undefined && { before }),
      }
      if (!known.delete(idOf(record))) ops.push(put(`${prefix}${idOf(record)}`, JSON.stringify(record)))
    }
    for (const [id, kept] of known) if (kept.server === server) ops.push(remove(`${prefix}${id}`))
    if (ops.length > 0) await this.#store.commit(ops)
  }

  /** Those that nobody has refused, by id. */
  async waiting(): Promise<ReadonlyMap<string, KeptTool>> {
    const found = new Map<string, KeptTool>()
    for (const kept of await this.#scan(prefix)) {
      const id = idOf(kept)
      if ((await this.#store.get(refusedKey(id))) === undefined) found.set(id, kept)
    }
    return found
  }

  async find(id: string): Promise<KeptTool | undefined> {
    if (!id.startsWith('tool.') || id.length > 400) return undefined
    const entry = await this.#store.get(`${prefix}${id}`)
    return entry === undefined ? undefined : readKept(entry.value)
  }

  /** From now on this definition is the one. Whoever watches the pins looks again. */
  async approve(kept: Pick<HeldTool, 'server' | 'tool' | 'digest'>): Promise<void> {
    await new Pins({ store: this.#store, clock: this.#clock }).approve(kept)
    await this.#store.commit([remove(`${prefix}${idOf(kept)}`)])
  }

  /** It stays hidden, and is not asked about again. */
  async refuse(id: string): Promise<void> {
    await this.#store.commit([put(refusedKey(id), '1', { ttl: refusedMs })])
  }

  async #scan(within: string): Promise<readonly KeptTool[]> {
    const found: KeptTool[] = []
    for (let after: string | undefined; ; ) {
      const page = await this.#store.scan(within, after === undefined ? {} : { after })
      for (const { value } of page) found.push(...[readKept(value)].filter(kept => kept !== undefined))
      after = page.at(-1)?.key
      if (after === undefined || page.length < 1_000) return found
    }
  }
}

/** Names a held definition, the same on every process. */
export function idOf({ server, digest }: Pick<HeldTool, 'server' | 'digest'>): string {
  return `${placeOf(server)}${digest.slice(0, 22)}`
}

function placeOf(server: string): string {
  return `tool.${encodeURIComponent(clip(server))}.`
}

function refusedKey(id: string): string {
  return `refused/${id}`
}

function readKept(text: string): KeptTool | undefined {
  const value: unknown = JSON.parse(text)
  if (!isRecord(value) || typeof value['server'] !== 'string' || !isRecord(value['tool'])) return undefined
  return value as unknown as KeptTool
}
