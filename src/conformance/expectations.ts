/**
 * What must hold, as a table: each sentence that is told where something does not hold, with the check behind it. Tables of
 * scenarios for servers, clients and hosts are all written with these; `hold` is the only code that goes through them.
 */
import { isRecord } from '../jsonrpc/message.ts'
import type { Json } from './scenario.ts'

/** True or undefined: it holds. False: it does not, in the words of its sentence. A text: it does not, in these words. */
export type CheckResult = boolean | string | undefined

/** Looks at what came (`it`), with whatever the runner of the role offers beside it (`x`). */
export type Expectation<It, X = unknown> = (it: It, x: X, says: string) => CheckResult

/**
 * What must hold, by sentence, in order.
 *
 * @example { 'the call must succeed': ({ result }) => result.isError !== true, 'ttl must be a number': hasResult({ ttl: isNumeric }) }
 */
export type Expectations<It, X = unknown> = Readonly<Record<string, Expectation<It, X>>>

/** How a scenario reports what is neither right nor wrong. */
export interface Judging {
  /** Notes that a SHOULD is not followed: the scenario passes with a remark. */
  warn(says: string): void
  /** Skips the scenario, because there is nothing to judge. */
  leave(why: string): never
}

/** Goes through a table and tells `broken` of the first sentence that does not hold. */
export function hold<It, X>(expected: Expectations<It, X>, it: It, x: X, broken: (says: string) => never): void {
  for (const [says, check] of Object.entries(expected)) {
    const told = brokenBy(check(it, x, says), says)
    if (told !== undefined) broken(told)
  }
}

function brokenBy(finding: CheckResult, says: string): string | undefined {
  if (typeof finding === 'string') return finding
  return finding === false ? says : undefined
}

/** A SHOULD: where it does not hold there is a remark, and the scenario goes on. */
export function should<It, X extends Judging>(check: Expectation<It, X>): Expectation<It, X> {
  return (it, x, says) => {
    const told = brokenBy(check(it, x, says), says)
    if (told !== undefined) x.warn(told)
    return undefined
  }
}

/** What must be so for the rest to say anything: where it is not, the scenario is skipped with its sentence as the reason. */
export function orSkip<It, X extends Judging>(check: Expectation<It, X>): Expectation<It, X> {
  return (it, x, says) => {
    const told = brokenBy(check(it, x, says), says)
    return told === undefined ? undefined : x.leave(told)
  }
}

/** All of these together, under one sentence. */
export function allOf<It, X>(...checks: readonly Expectation<It, X>[]): Expectation<It, X> {
  return (it, x, says) => checks.every(check => brokenBy(check(it, x, says), says) === undefined)
}

/** Tells of the first item with which something is wrong. */
export function firstFault<T>(
  items: Iterable<T>,
  fault: (item: T, at: number) => string | false | undefined,
): string | undefined {
  let at = 0
  for (const item of items) {
    const told = fault(item, at++)
    if (typeof told === 'string') return told
  }
  return undefined
}

/** A member of a pattern: a value that must be the same, a pattern of an object, or a test. */
export type JsonPattern = { readonly [member: string]: unknown }

/** Whether a value has the members of a pattern: the same values, what passes the tests, and objects that fit in turn. */
export function fitsPattern(pattern: JsonPattern, value: unknown): boolean {
  const members = isRecord(value) ? value : {}
  return Object.entries(pattern).every(([name, wanted]) => {
    if (typeof wanted === 'function') return wanted(members[name]) === true
    return isRecord(wanted) ? fitsPattern(wanted, members[name]) : sameJson(wanted, members[name])
  })
}

/** Whether two values of JSON are the same as they are written. */
export function sameJson(one: unknown, other: unknown): boolean {
  return one === other || (one !== undefined && JSON.stringify(one) === JSON.stringify(other))
}

/** What a text is as JSON; undefined where it is none. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** What members of patterns, and values of any kind, are tested by. */
export const is = {
  /** A member that must not be there. */
  absent: (value: unknown): value is undefined => value === undefined,
  /** A member that may be missing, and passes the test where it is not. */
  optional: (test: (value: unknown) => boolean) => (value: unknown) => value === undefined || test(value),
  oneOf:
    (...values: readonly unknown[]) =>
    (value: unknown) =>
      values.includes(value),
  /** A text, be it empty. */
  string: (value: unknown): value is string => typeof value === 'string',
  /** A text that says something. */
  word: (value: unknown): value is string => typeof value === 'string' && value !== '',
  number: (value: unknown): value is number => typeof value === 'number',
  /** A whole number from 0 on. */
  count: (value: unknown): value is number => Number.isInteger(value) && Number(value) >= 0,
  boolean: (value: unknown): value is boolean => typeof value === 'boolean',
  /** An ISO 8601 time with its zone. */
  time: (value: unknown): value is string =>
    typeof value === 'string' &&
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(value) &&
    !Number.isNaN(Date.parse(value)),
}

/** A member that should be an object, wherever it is; empty where it is none. */
export function objectIn(value: unknown, ...path: readonly string[]): Json {
  let at: unknown = value
  for (const member of path) at = isRecord(at) ? at[member] : undefined
  return isRecord(at) ? at : {}
}

/** What should be a list: the value itself, or a member of it; empty where it is none. */
export function listIn(value: unknown, ...path: readonly string[]): readonly unknown[] {
  const [member, ...before] = path.toReversed()
  const list = member === undefined ? value : objectIn(value, ...before.toReversed())[member]
  return Array.isArray(list) ? list : []
}

/** The objects of what should be a list of objects. */
export function objectsIn(value: unknown, ...path: readonly string[]): readonly Json[] {
  return listIn(value, ...path).filter(isRecord)
}
