/**
 * Checking against a schema that a peer sent, such as the output schema of a server's tool. Neither the schema nor the value may cost more than
 * it should: the schema is bounded before use, its patterns are tested in linear time, and each step of a check is counted.
 */

import { type Bounded, compileBounded } from './bounded.ts'
import { dialectOf } from './engine.ts'
import { makeIssue, type Validation } from './issue.ts'
import { Meter, OverBudget } from './meter.ts'
import { type JsonSchema, UnsupportedSchema } from './schema.ts'

export interface PeerSchemaLimits {
  /** UTF-8 bytes of its JSON text. */
  readonly bytes: number
  /** Subschemas within subschemas. */
  readonly depth: number
  readonly subschemas: number
  /** What checking one value may cost: some tens of nanoseconds each, so that all of them stay well below 50 ms. */
  readonly steps: number
}

export const peerSchemaLimits: PeerSchemaLimits = { bytes: 64 * 1024, depth: 32, subschemas: 1_000, steps: 1_300_000 }

export interface PeerSchema {
  /** What of the schema is not checked, and why: for a trace. */
  readonly unchecked: readonly string[]
  /** Reports the first thing that is wrong. A value that cannot be checked within the steps allowed does not pass. */
  validate(value: unknown): Validation
}

/**
 * Throws `SchemaError` for a schema that is beyond the limits or refers to what it does not hold.
 *
 * @example
 * const { ok } = compilePeerSchema(tool.outputSchema).validate(result.structuredContent)
 */
export function compilePeerSchema(json: JsonSchema, limits: Partial<PeerSchemaLimits> = {}): PeerSchema {
  const whole = { ...peerSchemaLimits, ...limits }
  if (!mayFit(json, whole.bytes)) throw tooLarge(whole.bytes)
  const text = textOf(json)
  const key = JSON.stringify(whole) + text
  const known = byText.get(key)
  if (known !== undefined) return known
  if (new TextEncoder().encode(text).length > whole.bytes) throw tooLarge(whole.bytes)
  const schema = peerSchema(compileBounded(json, dialectOf(json), whole), whole.steps)
  if (byText.size >= maxSchemas) for (const [oldest] of byText) if (byText.delete(oldest)) break
  byText.set(key, schema)
  return schema
}

/** A peer's list is fetched again and again, and is mostly the same. */
const maxSchemas = 256
const byText = new Map<string, PeerSchema>()

function tooLarge(bytes: number): UnsupportedSchema {
  return new UnsupportedSchema(`The peer's schema is larger than ${bytes} bytes, which is the limit`)
}

/** False as soon as its text is sure to be too long: writing that down to find out would take longer than any schema is worth. */
function mayFit(json: unknown, bytes: number): boolean {
  let least = 0
  const todo: unknown[] = [json]
  for (let next = todo.pop(); next !== undefined && least <= bytes; next = todo.pop()) {
    if (typeof next === 'string') least += next.length + 2
    else if (typeof next !== 'object' || next === null) least++
    else if (Array.isArray(next)) {
      least += next.length + 1
      if (least <= bytes) for (const item of next) todo.push(item ?? null)
    } else {
      for (const [name, member] of Object.entries(next)) {
        least += name.length + 3
        if (least > bytes) break
        todo.push(member ?? null)
      }
    }
  }
  return least <= bytes
}

function textOf(json: JsonSchema): string {
  try {
    return JSON.stringify(json)
  } catch (cause) {
    throw new UnsupportedSchema("The peer's schema is nested too deeply to be written as JSON", { cause })
  }
}

function peerSchema(bounded: Bounded, steps: number): PeerSchema {
  return {
    unchecked: bounded.unchecked,
    validate(value) {
      try {
        const issue = bounded.check(value, new Meter(steps))
        return issue === undefined ? { ok: true, value } : { ok: false, issues: [issue] }
      } catch (error) {
        // A schema that refers to itself without end runs out of stack before it runs out of steps.
        if (!(error instanceof OverBudget || error instanceof RangeError)) throw error
        return { ok: false, issues: [makeIssue([], `cannot be checked against the peer's schema within ${steps} steps`)] }
      }
    },
  }
}
