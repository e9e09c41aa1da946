/**
 * What stands in a form. A value is JSON, except where a person typed something that is no value of its field: that text is kept as `Typed`,
 * so that a change between form and JSON loses nothing.
 */
import { readJson } from '../json-text/read.ts'

/** Characters that were typed and are no value. */
export class Typed {
  readonly text: string
  readonly why: string

  constructor(text: string, why: string) {
    this.text = text
    this.why = why
  }
}

/** Indented JSON; what is no value stands in it as it was typed. `undefined` is the empty text. */
export function writeText(value: unknown): string {
  return value === undefined ? '' : write(value, '')
}

function write(value: unknown, indent: string): string {
  if (value instanceof Typed) return value.text
  const inner = `${indent}  `
  if (Array.isArray(value)) {
    if (value.length === 0) return '[]'
    return `[\n${value.map(each => inner + write(each, inner)).join(',\n')}\n${indent}]`
  }
  if (isObject(value)) {
    const members = Object.entries(value).filter(([, each]) => each !== undefined)
    if (members.length === 0) return '{}'
    return `{\n${members.map(([name, each]) => `${inner}${JSON.stringify(name)}: ${write(each, inner)}`).join(',\n')}\n${indent}}`
  }
  return JSON.stringify(value) ?? 'null'
}

/** A value of a text in which a number or any JSON is typed. */
export function readText(text: string): unknown {
  if (text.trim() === '') return undefined
  const reading = readJson(text)
  if ('value' in reading) return reading.value
  const { line, column, message } = reading.fault
  return new Typed(text, line === 1 ? message : `Line ${line}, column ${column}: ${message}`)
}

/** Whether something that is no value stands anywhere in it. */
export function isUnfinished(value: unknown): boolean {
  if (value instanceof Typed) return true
  if (Array.isArray(value)) return value.some(isUnfinished)
  return isObject(value) && Object.values(value).some(isUnfinished)
}

export type JsonObject = Readonly<Record<string, unknown>>

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Typed)
}

/** The object with one member set, or taken out (`undefined`). Its other members keep their order. */
export function withMember(object: JsonObject, name: string, value: unknown): JsonObject {
  const members = Object.entries(object).filter(([each]) => value !== undefined || each !== name)
  const at = members.findIndex(([each]) => each === name)
  if (at >= 0) members[at] = [name, value]
  else if (value !== undefined) members.push([name, value])
  // `fromEntries` defines: a member may be named __proto__.
  return Object.fromEntries(members)
}
