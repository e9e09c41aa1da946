/** What lies in a store when all is over: whether it is sound, and whether anything was left that nobody will take away. */
import { copyFileSync, existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { Entry, Store } from 'vivarium/stores'
import { broken, type Finding } from './operation.ts'

/**
 * What SQLite itself says of a file whose process was killed. A copy is looked at, so that the next life finds the file as the last
 * one left it.
 */
export function integrityOf(file: string): Finding[] {
  const copy = `${file}.copy`
  for (const ending of ['', '-wal']) {
    if (existsSync(file + ending)) copyFileSync(file + ending, copy + ending)
    else if (ending === '') return []
  }
  const database = new DatabaseSync(copy)
  try {
    const checks = [...database.prepare('PRAGMA integrity_check').all(), ...database.prepare('PRAGMA foreign_key_check').all()]
    const said = checks.map(row => Object.values(row).join(' ')).filter(text => text !== 'ok')
    return said.map(text => broken(`SQLite says: ${text}`))
  } catch (error) {
    return [broken(`SQLite says: ${error}`)]
  } finally {
    database.close()
  }
}

/** Records of what runs, leases and open units: of the dead none may stay. */
export async function residueOf(store: Store): Promise<Finding[]> {
  const all = await everything(store)
  const found = (prefix: string): Entry[] => all.filter(({ key }) => key.startsWith(prefix))
  const running = found('done/').filter(({ value }) => statusIn(value) === 'running')
  const leases = ['runner/', 'saga/runner/', 'unit-lease/', 'saga/unit-lease/'].flatMap(found)
  const open = found('unfinished/')
  const sagas = found('saga/unfinished/').filter(({ key }) => found(`${key.replace('unfinished/', 'step/')}/`).length > 0)
  return [
    ...running.map(({ key, value }) => broken(`still running: ${key} ${value.slice(0, 300)}`)),
    ...leases.map(({ key }) => broken(`still leased: ${key}`)),
    ...[...open, ...sagas].map(({ key }) => broken(`still open: ${key}`)),
  ]
}

async function everything(store: Store): Promise<Entry[]> {
  const all: Entry[] = []
  for (let after: string | undefined; ; ) {
    const page = await store.scan('', after === undefined ? {} : { after })
    all.push(...page)
    after = page.at(-1)?.key
    if (after === undefined) return all
  }
}

function statusIn(value: string): unknown {
  return (JSON.parse(value) as { status?: unknown }).status
}
