/**
 * Every edit with what was there before and after it, in one SQLite file. An edit is a checkpoint, and knows the one before it: so the
 * files can be set back, or forward, to any of them. What somebody else has changed meanwhile is not overwritten.
 */
import { randomUUID } from 'node:crypto'
import { DatabaseSync, type SQLOutputValue } from 'node:sqlite'
import { type Problem, problem } from 'vivarium/server'
import { readFileIn, writeFileIn } from './contents.ts'

/** Null: no such file. */
export type Content = string | null

export interface Journal {
  /** Changes a file from what it is to what it shall be. Gives the checkpoint that this is. */
  edit(path: string, before: Content, after: Content): Promise<string>
  /** The inverse of one edit, as an edit of its own. Undefined: there is none such. */
  revert(checkpoint: string): Promise<{ readonly path: string; readonly checkpoint: string } | undefined>
  /** False: there is none such. */
  goTo(checkpoint: string): Promise<boolean>
  close(): void
}

interface Edit {
  readonly id: string
  readonly parent: string | null
  readonly path: string
  readonly before: Content
  readonly after: Content
}

/** Older ones are forgotten. */
const most = 1000

const schema = `
  pragma journal_mode = wal;
  create table if not exists edits (
    n integer primary key autoincrement, id text not null unique, parent text, path text not null, before text, after text,
    done integer not null default 0
  ) strict;
  create table if not exists head (only integer primary key check (only = 1), id text) strict;
  insert or ignore into head values (1, null);
`

/** Resolves when an edit that was cut off is either done or undone. */
export async function openJournal(file: string): Promise<Journal> {
  // Another process may be writing on the same file.
  const db = new DatabaseSync(file, { timeout: 5000 })
  db.exec(schema)
  const insert = db.prepare('insert into edits (id, parent, path, before, after) values (?, ?, ?, ?, ?)')
  const finish = db.prepare('update edits set done = 1 where id = ?')
  const cancel = db.prepare('delete from edits where id = ?')
  const byId = db.prepare('select * from edits where id = ? and done = 1')
  const begun = db.prepare('select * from edits where done = 0')
  const trim = db.prepare(`delete from edits where n <= (select max(n) from edits) - ${most}`)
  const setHead = db.prepare('update head set id = ?')
  const getHead = db.prepare('select id from head')

  const head = (): string | null => textOf(getHead.get()?.['id'])
  const find = (id: string | null): Edit | undefined => {
    const row = id === null ? undefined : byId.get(id)
    return row && editOf(row)
  }
  const done = (id: string): void => {
    db.exec('begin immediate')
    finish.run(id)
    setHead.run(id)
    trim.run()
    db.exec('commit')
  }
  const edit: Journal['edit'] = async (path, before, after) => {
    const id = `edit_${randomUUID()}`
    insert.run(id, head(), path, before, after)
    try {
      await expect(path, [before])
      await writeFileIn(path, after)
    } catch (error) {
      cancel.run(id)
      throw error
    }
    done(id)
    return id
  }
  for (const { id, path, after } of begun.all().map(editOf)) {
    const now = await readFileIn(path).catch(() => undefined)
    if (now === after) done(id)
    else cancel.run(id)
  }
  return {
    edit,
    revert: async id => {
      const found = find(id)
      if (found === undefined) return undefined
      const { path, before, after } = found
      return { path, checkpoint: await edit(path, after, before) }
    },
    goTo: async id => {
      const changes = find(id) && changesBetween(find, head(), id)
      if (changes === undefined) return false
      // All are looked at before the first is written. What was set back already, by a run that was cut off, is fine as it is.
      for (const [path, { from, to }] of changes) await expect(path, [from, to])
      for (const [path, { to }] of changes) await writeFileIn(path, to)
      setHead.run(id)
      return true
    },
    close: () => db.close(),
  }
}

type Changes = Map<string, { readonly from: Content; readonly to: Content }>

/** Back from one checkpoint to where the ways part, and forward to the other. Undefined: too old to be known. */
function changesBetween(find: (id: string | null) => Edit | undefined, from: string | null, to: string): Changes | undefined {
  const [back, forward] = [lineOf(find, from), lineOf(find, to)]
  const common = new Set(forward.map(({ id }) => id))
  const undone = back.slice(0, back.findIndex(({ id }) => common.has(id)) >>> 0)
  const meeting = back[undone.length]
  // Where they never meet, both began at the same beginning, or one of the beginnings was forgotten.
  if (meeting === undefined && [back.at(-1), forward.at(-1)].some(first => first !== undefined && first.parent !== null))
    return undefined
  const redone = forward.slice(0, meeting === undefined ? forward.length : forward.findIndex(({ id }) => id === meeting.id))
  const changes: Changes = new Map()
  const change = (path: string, was: Content, becomes: Content): void => {
    changes.set(path, { from: changes.has(path) ? (changes.get(path)?.from ?? null) : was, to: becomes })
  }
  for (const { path, before, after } of undone) change(path, after, before)
  for (const { path, before, after } of redone.reverse()) change(path, before, after)
  return changes
}

/** From an edit back to the first. */
function lineOf(find: (id: string | null) => Edit | undefined, id: string | null): Edit[] {
  const line: Edit[] = []
  for (let edit = find(id); edit !== undefined; edit = find(edit.parent)) line.push(edit)
  return line
}

async function expect(path: string, contents: readonly Content[]): Promise<void> {
  if (!contents.includes(await readFileIn(path))) throw changed(path)
}

function changed(path: string): Problem {
  return problem('FILE_CHANGED', `${path} was changed by somebody else after this edit, so the edit is not undone`, {
    suggestion: 'Look at the file, and undo the edit by hand',
    actor: 'user',
  })
}

const textOf = (value: SQLOutputValue | undefined): string | null => (typeof value === 'string' ? value : null)

function editOf(row: Record<string, SQLOutputValue>): Edit {
  const { id, parent, path, before, after } = row
  return {
    id: String(id),
    parent: textOf(parent),
    path: String(path),
    before: textOf(before),
    after: textOf(after),
  }
}
