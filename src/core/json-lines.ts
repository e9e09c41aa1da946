/**
 * Files of JSON values, one a line, as they are while somebody still writes them: the last line may be cut off, because its writer was
 * killed, and what stands before it is whole all the same.
 */
import { isRecord } from '../jsonrpc/message.ts'

interface JsonLines {
  /** In order; empty lines are left out. */
  readonly values: readonly Record<string, unknown>[]
  /** Whether the last line broke off. */
  readonly cut: boolean
}

/** The text of one value, its line end included. */
export function jsonLine(value: object): string {
  return `${JSON.stringify(value)}\n`
}

/** Throws TypeError where a line that is whole is no JSON object; `what` names the file in words. */
export function readJsonLines(text: string, what: string): JsonLines {
  const lines = text.split('\n')
  // What follows the last line end is a line that its writer did not finish, or nothing.
  const rest = lines.pop() ?? ''
  const values: Record<string, unknown>[] = []
  for (const [at, line] of lines.entries()) {
    if (line.trim() === '') continue
    const value = parsed(line)
    if (value === undefined) throw new TypeError(`Line ${at + 1} of the ${what} is no JSON`)
    values.push(value)
  }
  const last = rest.trim() === '' ? undefined : parsed(rest)
  if (last !== undefined) values.push(last)
  return { values, cut: rest.trim() !== '' && last === undefined }
}

function parsed(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}
