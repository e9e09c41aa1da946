/** A server without the reliability features: what `src/server/reliability.ts` is replaced by in the variant that they are measured against. */
import type { Reliability } from '../../src/server/reliability.ts'

export function reliability(): Reliability {
  return {
    sides: [],
    references: undefined,
    toolExtras: { kinds: {}, meta: () => undefined, annotations: () => undefined },
    confirmations: { find: absent, approve: absent, waiting: absent, refuse: absent },
    permissions: { sessions: absent, extend: absent, revoke: absent },
    budgets: { give: absent, left: absent, revoke: absent },
    cost: absent,
    decides: () => false,
    hears: () => true,
    lapsing: { listens: absent, lapses: absent, lapsed: absent },
    audit: { read: absent, verify: absent },
    judgeHearing: () => undefined,
    store: absent,
    ready: async () => {},
    runners: absent,
    declare: () => {},
    allow: absent,
    state: { side: {}, states: { follow: absent, rollback: absent }, declare: () => {}, of: absent, revert: absent },
    streaming: { side: {}, stream: absent, progress: () => false, close: async () => {} },
    shared: undefined,
    problemMeta: () => undefined,
    explain: (_, thrown) => thrown,
    explainTo: (_peer, thrown) => thrown,
    transactions: { stuck: absent },
    close: async () => {},
  }
}

function absent(): never {
  throw new Error('This server was built without it')
}
