/** Memories, and reminders for later, in one SQLite file. Memories are found by the words in them. */
import { DatabaseSync, type SQLOutputValue } from 'node:sqlite'

export interface Memory {
  readonly id: number
  readonly text: string
}

export interface Reminder {
  readonly id: number
  readonly text: string
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** Several memories said as one. */
export interface Merge {
  readonly text: string
  readonly replaces: readonly number[]
}

export interface Memories {
  /** The one that says the same is kept as it is; `known` tells. */
  remember(text: string, source: string): Memory & { readonly known: boolean }
  /** Those that share words with the query, the closest first. */
  recall(query: string, limit: number): readonly Memory[]
  forget(id: number): boolean
  /** Those that no merge has looked at yet, the oldest first. */
  unmerged(limit: number): readonly Memory[]
  /** All or nothing: each merge takes the place of what it replaces; the others count as looked at. */
  merge(merges: readonly Merge[], looked: readonly number[]): void
  remind(text: string, at: number): Reminder
  cancel(id: number): boolean
  /** What is to come, the next one first. */
  reminders(): readonly Reminder[]
  close(): void
}

const schema = `
  pragma journal_mode = wal;
  create table if not exists memories (
    id integer primary key autoincrement,
    text text not null,
    said text not null unique,
    source text not null,
    merged integer not null default 0
  ) strict;
  create virtual table if not exists words using fts5 (
    text, content = 'memories', content_rowid = 'id', tokenize = 'porter unicode61 remove_diacritics 2'
  );
  create trigger if not exists added after insert on memories begin
    insert into words (rowid, text) values (new.id, new.text);
  end;
  create trigger if not exists removed after delete on memories begin
    insert into words (words, rowid, text) values ('delete', old.id, old.text);
  end;
  create table if not exists reminders (id integer primary key autoincrement, text text not null, at integer not null) strict;
`

export function openMemories(file: string): Memories {
  // Another process may be writing on the same file.
  const db = new DatabaseSync(file, { timeout: 5000 })
  db.exec(schema)
  const insert = db.prepare('insert into memories (text, said, source, merged) values (?, ?, ?, ?)')
  const bySaid = db.prepare('select id, text from memories where said = ?')
  const search = db.prepare(
    `select memories.id, memories.text from words join memories on memories.id = words.rowid
     where words match ? order by bm25(words), memories.id desc limit ?`,
  )
  const fresh = db.prepare('select id, text from memories where merged = 0 order by id limit ?')
  const looked = db.prepare('update memories set merged = 1 where id = ?')
  const remove = db.prepare('delete from memories where id = ?')
  const add = db.prepare('insert into reminders (text, at) values (?, ?)')
  const drop = db.prepare('delete from reminders where id = ?')
  const coming = db.prepare('select id, text, at from reminders order by at, id')
  const keep = (text: string, source: string, merged: number) => {
    const there = bySaid.get(normal(text))
    if (there !== undefined) return { ...memoryOf(there), known: true }
    return { id: Number(insert.run(text, normal(text), source, merged).lastInsertRowid), text, known: false }
  }
  return {
    remember: (text, source) => keep(text, source, 0),
    recall: (query, limit) => {
      const words = wordsOf(query)
      return words.length === 0 ? [] : search.all(words.map(word => `"${word}"`).join(' OR '), limit).map(memoryOf)
    },
    forget: id => remove.run(id).changes === 1,
    unmerged: limit => fresh.all(limit).map(memoryOf),
    merge: (merges, ids) => {
      db.exec('begin immediate')
      try {
        for (const { text, replaces } of merges) {
          for (const id of replaces) remove.run(id)
          keep(text, 'consolidation', 1)
        }
        for (const id of ids) looked.run(id)
        db.exec('commit')
      } catch (error) {
        db.exec('rollback')
        throw error
      }
    },
    remind: (text, at) => ({ id: Number(add.run(text, at).lastInsertRowid), text, at }),
    cancel: id => drop.run(id).changes === 1,
    reminders: () => coming.all().map(row => ({ ...memoryOf(row), at: Number(row['at']) })),
    close: () => db.close(),
  }
}

const memoryOf = (row: Record<string, SQLOutputValue>): Memory => ({ id: Number(row['id']), text: String(row['text']) })

/** Two memories that differ in case, spaces or the full stop are one. */
const normal = (text: string): string =>
  text
    .toLowerCase()
    .replace(/\s+/g, ' ')
    .replace(/[.!\s]+$/, '')
    .trim()

const common = new Set(
  'the and for you are was but not with that this what when where who how why can could would should will does did has have had from about into your mine its they them there here please tell know user'.split(
    ' ',
  ),
)

/** The words worth looking for. They are only letters and digits, so nothing in them speaks to the query language. */
function wordsOf(query: string): readonly string[] {
  const words = query.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
  return [...new Set(words.filter(word => word.length > 2 && !common.has(word)))].slice(0, 20)
}
