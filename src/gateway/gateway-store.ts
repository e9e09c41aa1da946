/** Where a gateway keeps what must last: opened once, for its face and for what it adds, and closed where it opened it. */
import type { Clock } from '../core/clock.ts'
import { openStore } from '../stores/open.ts'
import type { Store } from '../stores/store.ts'

export interface GatewayStore {
  readonly store: Store
  close(): Promise<void>
}

export async function openGatewayStore(option: string | Store | undefined, clock: Clock): Promise<GatewayStore> {
  if (typeof option === 'object') return { store: option, close: async () => {} }
  const store = await openStore(option ?? 'memory:', { now: clock.now })
  return { store, close: () => store.close() }
}
