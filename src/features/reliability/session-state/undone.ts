/** States that steps of a unit of work wrote: what is kept of them, so that they can be taken back, or found to have been built upon. */
import { isRecord } from '../../../jsonrpc/message.ts'

/** What a step has written, as data. */
export interface Written {
  readonly session: string
  readonly unit: string
}

export function readWritten(value: unknown): Written | undefined {
  if (!isRecord(value) || typeof value['session'] !== 'string' || typeof value['unit'] !== 'string') return undefined
  return value as unknown as Written
}

export const builtUpon = {
  code: 'STATE_CONFLICT',
  message: 'What it did was taken back, but not the state that it wrote: others have built on that outside of the transaction',
}

export function undoneKey({ session, unit }: Written): string {
  return `session-state/undone/${session}/${unit}`
}

export function laterKey({ session, unit }: Written): string {
  return `session-state/later/${session}/${unit}`
}

export function beforePrefix(session: string): string {
  return `session-state/before/${session}/`
}

/** They sort by their depth. */
export function beforeKey(session: string, depth: number): string {
  return `${beforePrefix(session)}${String(Math.max(0, depth)).padStart(12, '0')}`
}
