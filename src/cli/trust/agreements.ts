/**
 * What the user agreed to before. It is kept with the user, where no folder can bring it along, and holds only digests: a file may
 * have secrets in it.
 */
import { hash } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { userFolder } from '../../auth/client/user-storage.ts'
import { isRecord } from '../../jsonrpc/message.ts'

type Env = Readonly<Record<string, string | undefined>>

interface Agreed {
  readonly file: string
  /** Of the file and all that was asked about with it. */
  readonly digest: string
  /** Of each line that was shown, so that the next question can say what is new. */
  readonly lines: readonly string[]
}

/** Answers that are remembered; the oldest are asked for again. */
const most = 1_000

interface Book {
  has(file: string, digest: string): boolean
  /** The lines that were agreed to last for this file, by their digests; undefined where there was no question yet. */
  last(file: string): ReadonlySet<string> | undefined
  add(file: string, digest: string, lines: readonly string[]): void
}

export function lineDigest(line: string): string {
  return hash('sha256', line, 'base64url').slice(0, 22)
}

export function bookOf(env: Env): Book {
  const path = join(userFolder(env, 'XDG_CONFIG_HOME', '.config'), 'vivarium', 'trusted.json')
  const all = read(path)
  return {
    has: (file, digest) => all.some(each => each.file === file && each.digest === digest),
    last: file => {
      const found = all.findLast(each => each.file === file)
      return found === undefined ? undefined : new Set(found.lines)
    },
    add: (file, digest, lines) => write(path, [...all, { file, digest, lines: lines.map(lineDigest) }].slice(-most)),
  }
}

function read(path: string): readonly Agreed[] {
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'))
    const agreed = isRecord(value) ? value['agreed'] : undefined
    return Array.isArray(agreed) ? agreed.filter(isAgreed) : []
  } catch {
    // Not there, or of no use: then everything is asked about again.
    return []
  }
}

function isAgreed(value: unknown): value is Agreed {
  if (!isRecord(value) || typeof value['file'] !== 'string' || typeof value['digest'] !== 'string') return false
  return Array.isArray(value['lines']) && value['lines'].every(line => typeof line === 'string')
}

function write(path: string, agreed: readonly Agreed[]): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    writeFileSync(`${path}.${process.pid}`, JSON.stringify({ agreed }), { mode: 0o600 })
    renameSync(`${path}.${process.pid}`, path)
  } catch {
    // The answer counts for this run; the next one asks again.
  }
}
