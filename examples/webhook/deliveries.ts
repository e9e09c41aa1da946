/** Which webhooks have come in: so that none is told twice, and each can be read whole later. In one SQLite file. */
import { DatabaseSync, type SQLOutputValue } from 'node:sqlite'

export interface Delivery {
  readonly source: string
  readonly id: string
  readonly event: string
  /** Milliseconds since the epoch. */
  readonly at: number
}

export interface Deliveries {
  knows(source: string, id: string, digest: string | undefined): boolean
  add(delivery: Delivery & { readonly digest: string | undefined; readonly body: string }): void
  /** The latest first. */
  list(limit: number): readonly Delivery[]
  /** Undefined: there is none such. Null: it is too long ago. */
  body(source: string, id: string): string | null | undefined
  close(): void
}

/** Bodies are needed for a while, ids as long as somebody may send them again. */
const bodies = 1_000
const ids = 100_000

const schema = `
  pragma journal_mode = wal;
  create table if not exists deliveries (
    n integer primary key autoincrement, source text not null, id text not null, digest text, event text not null, at integer not null,
    body text, unique (source, id)
  ) strict;
  create index if not exists by_digest on deliveries (source, digest);
`

export function openDeliveries(file: string): Deliveries {
  // Another process may be writing on the same file.
  const db = new DatabaseSync(file, { timeout: 5000 })
  db.exec(schema)
  const known = db.prepare('select 1 from deliveries where source = ? and (id = ? or digest = ?)')
  const insert = db.prepare(
    'insert into deliveries (source, id, digest, event, at, body) values (?, ?, ?, ?, ?, ?) on conflict do nothing',
  )
  const clear = db.prepare(`update deliveries set body = null where n = (select max(n) from deliveries) - ${bodies}`)
  const trim = db.prepare(`delete from deliveries where n <= (select max(n) from deliveries) - ${ids}`)
  const latest = db.prepare('select source, id, event, at from deliveries order by n desc limit ?')
  const byId = db.prepare('select body from deliveries where source = ? and id = ?')
  return {
    knows: (source, id, digest) => known.get(source, id, digest ?? null) !== undefined,
    add: ({ source, id, digest, event, at, body }) => {
      insert.run(source, id, digest ?? null, event, at, body)
      clear.run()
      trim.run()
    },
    list: limit => latest.all(limit).map(deliveryOf),
    body: (source, id) => {
      const row = byId.get(source, id)
      return row && (typeof row['body'] === 'string' ? row['body'] : null)
    },
    close: () => db.close(),
  }
}

function deliveryOf({ source, id, event, at }: Record<string, SQLOutputValue>): Delivery {
  return { source: String(source), id: String(id), event: String(event), at: Number(at) }
}
