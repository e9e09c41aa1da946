/**
 * What each feature set was able to do while it was enabled, kept on the store. Rules and grants name sets and not what these declare:
 * a set that wants more than it had is asked about all the same, also after a restart.
 */
import { hash } from 'node:crypto'
import type { SetUse } from '../../features/live/dialects/messages.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import type { Store } from '../../stores/store.ts'
import { storeWithin } from '../../stores/within.ts'

interface Agreed {
  readonly server: string
  readonly featureSet: string
  readonly uses: readonly string[]
}

/** Of one server. Those that come after are taken as new each time. */
const mostSets = 1_000

export class AgreedUses {
  readonly #store: Store
  readonly #failed: (error: unknown) => void
  /** By server, then by set. */
  readonly #agreed = new Map<string, Map<string, ReadonlySet<string>>>()

  /** `failed`: told what could not be written. */
  constructor(store: Store, failed: (error: unknown) => void) {
    this.#store = storeWithin(store, 'policy/agreed/')
    this.#failed = failed
  }

  async load(): Promise<void> {
    for (let after: string | undefined; ; ) {
      const page = await this.#store.scan('', after === undefined ? {} : { after })
      for (const { value } of page) this.#remember(read(value))
      after = page.at(-1)?.key
      if (after === undefined) return
    }
  }

  /** Undefined: the set was never enabled. */
  of(server: string, featureSet: string): ReadonlySet<string> | undefined {
    return this.#agreed.get(server)?.get(featureSet)
  }

  /** The set is enabled with these, because somebody agreed to them. */
  note(server: string, featureSet: string, uses: Iterable<SetUse>): void {
    const before = this.of(server, featureSet)
    const now = new Set<string>([...(before ?? []), ...uses])
    if (before !== undefined && before.size === now.size) return
    if (before === undefined && (this.#agreed.get(server)?.size ?? 0) >= mostSets) return
    const agreed = { server, featureSet, uses: [...now] }
    this.#remember(agreed)
    const key = hash('sha256', JSON.stringify([server, featureSet]), 'base64url')
    this.#store.commit([{ op: 'put', key, value: JSON.stringify(agreed) }]).catch(this.#failed)
  }

  #remember(agreed: Agreed | undefined): void {
    if (agreed === undefined) return
    const sets = this.#agreed.get(agreed.server) ?? new Map<string, ReadonlySet<string>>()
    sets.set(agreed.featureSet, new Set(agreed.uses))
    this.#agreed.set(agreed.server, sets)
  }
}

function read(value: string): Agreed | undefined {
  const { server, featureSet, uses } = (isRecord(JSON.parse(value)) ? JSON.parse(value) : {}) as Partial<Agreed>
  return server === undefined || featureSet === undefined || uses === undefined ? undefined : { server, featureSet, uses }
}
