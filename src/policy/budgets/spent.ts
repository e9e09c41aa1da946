/** What was spent, by server, feature set and day: counted with every settlement, for reports. */
import { add, type Op, type Store } from '../../stores/store.ts'
import type { Spender, Spending } from './limits.ts'

export interface SpentRow extends Spender {
  readonly tokens: number
  readonly money: number
  readonly requests: number
}

export interface SpentOptions {
  /** Days, both included: `2026-01-31`. Default: all that is kept. */
  readonly from?: string
  /** The last day. Default: today. */
  readonly to?: string
}

const keepMs = 400 * 86_400_000
const million = 1_000_000

export function spending({ server, featureSet }: Spender, spent: Readonly<Record<Spending, number>>, now: number): readonly Op[] {
  const day = new Date(now).toISOString().slice(0, 10)
  const place = `spent/${day}/${encodeURIComponent(server.toWellFormed())}/${encodeURIComponent(featureSet.toWellFormed())}`
  return Object.entries(spent)
    .filter(([, amount]) => amount > 0)
    .map(([what, amount]) => add(`${place}/${what}`, Math.round(amount * million), { ttl: keepMs }))
}

/** One row for each server and feature set, the most expensive first. */
export async function spentRows(store: Store, { from, to }: SpentOptions): Promise<readonly SpentRow[]> {
  const rows = new Map<string, SpentRow>()
  const before = to === undefined ? {} : { before: `spent/${to}~` }
  for (let after = from === undefined ? undefined : `spent/${from}`; ; ) {
    const page = await store.scan('spent/', { ...before, ...(after !== undefined && { after }) })
    for (const { key, value } of page) {
      const [, , server = '', featureSet = '', what = ''] = key.split('/')
      const id = `${server}/${featureSet}`
      const names = { server: decodeURIComponent(server), featureSet: decodeURIComponent(featureSet) }
      const row = rows.get(id) ?? { ...names, tokens: 0, money: 0, requests: 0 }
      if (what === 'tokens' || what === 'money' || what === 'requests')
        rows.set(id, { ...row, [what]: (Math.round(row[what] * million) + Number(value)) / million })
    }
    after = page.at(-1)?.key
    if (after === undefined) break
  }
  return [...rows.values()].sort((a, b) => b.money - a.money || b.tokens - a.tokens || b.requests - a.requests)
}
