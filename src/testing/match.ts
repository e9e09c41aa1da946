/** How a written frame meets a real one: exactly, but for the values that no transcript can know beforehand. */
import { isRecord } from '../jsonrpc/message.ts'

type Values = ReadonlyMap<string, unknown>

const name = /^\$\w+$/
const types = new Set(['<string>', '<number>', '<boolean>', '<object>', '<any>'])

/** The frame with every known `"$name"` replaced by its value. */
export function fill(frame: unknown, values: Values): unknown {
  if (typeof frame === 'string') return values.has(frame) ? values.get(frame) : frame
  if (Array.isArray(frame)) return frame.map(item => fill(item, values))
  if (isRecord(frame)) return Object.fromEntries(Object.entries(frame).map(([key, item]) => [key, fill(item, values)]))
  return frame
}

/**
 * Whether `actual` is as written; then the values that it gave to names that had none, else undefined.
 * `"$name"` takes any value the first time and only that one after; `"<string>"` and its like take any of their type.
 */
export function match(written: unknown, actual: unknown, values: Values): Map<string, unknown> | undefined {
  const taken = new Map(values)
  return meets(fill(written, values), actual, taken) ? taken : undefined
}

function meets(written: unknown, actual: unknown, taken: Map<string, unknown>): boolean {
  if (typeof written === 'string') {
    if (types.has(written))
      return written === '<any>' || (written === '<object>' ? isRecord(actual) : `<${typeof actual}>` === written)
    if (name.test(written)) return takes(written, actual, taken)
  }
  if (Array.isArray(written)) {
    return (
      Array.isArray(actual) && actual.length === written.length && written.every((item, at) => meets(item, actual[at], taken))
    )
  }
  if (!isRecord(written)) return written === actual
  if (!isRecord(actual) || Object.keys(actual).length !== Object.keys(written).length) return false
  return Object.keys(written).every(key => Object.hasOwn(actual, key) && meets(written[key], actual[key], taken))
}

function takes(placeholder: string, actual: unknown, taken: Map<string, unknown>): boolean {
  if (taken.has(placeholder)) return JSON.stringify(taken.get(placeholder)) === JSON.stringify(actual)
  taken.set(placeholder, actual)
  return actual !== undefined
}
