/** One version of a state: whole, opaque to us, or a patch on its parent. */
import { isRecord } from '../../jsonrpc/message.ts'

export interface Version {
  /** Counts up within its space and is never given twice. */
  readonly id: number
  /** 0: none, the first of its space. */
  readonly parent: number
  readonly kind: 'data' | 'opaque' | 'patch'
  readonly body: unknown
  readonly at: number
  /** How many patches lie between this one and the whole state below it. */
  readonly patches: number
}

/** The current version of a space, and how many there have been. */
export interface Head {
  readonly current: number
  readonly last: number
  /** Versions before this one are forgotten. */
  readonly first: number
}

export const noHead: Head = { current: 0, last: 0, first: 1 }

export function headKey(space: string): string {
  return `state/${space}/head`
}

export function versionKey(space: string, id: number): string {
  return `${versionsPrefix(space)}${String(id).padStart(12, '0')}`
}

export function versionsPrefix(space: string): string {
  return `state/${space}/at/`
}

export function readVersion(text: string): Version {
  return read<Version>(text, 'parent')
}

export function readHead(text: string): Head {
  return read<Head>(text, 'current')
}

function read<T>(text: string, mark: string): T {
  const value: unknown = JSON.parse(text)
  if (isRecord(value) && typeof value[mark] === 'number') return value as T
  throw new Error('A version of a state cannot be read: was it written by another program?')
}
