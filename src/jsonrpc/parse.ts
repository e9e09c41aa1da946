/**
 * Frame → value, once, with depth, element and name limits that hold before any recursive code sees the value.
 * The limits cost nothing on small frames: a frame too short to break them is not looked at.
 */
import { McpError } from './error.ts'
import { clip, type FrameLimits, frameLimits } from './limits.ts'
import { isRecord } from './message.ts'

/** Parses a frame. Throws an McpError for what is no JSON or beyond the limits. */
export function parse(text: string, limits: FrameLimits = frameLimits): unknown {
  if (mayExceed(text, limits)) scan(text, limits)
  return readJson(text)
}

/** Without limits: for text that was held against them before. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new McpError(
      'parse',
      `The message is not valid JSON: ${clip(firstLine(cause))}. Send one JSON-RPC message as UTF-8 JSON text`,
      { cause },
    )
  }
}

function firstLine(cause: unknown): string {
  const message = cause instanceof Error ? cause.message : String(cause)
  // The engine's own text quotes the input after the first comma or quote; only its reason is of use.
  return message.split('\n', 1)[0]?.replace(/,? *(\.\.\.)?".*$/s, '') ?? ''
}

// The structure of JSON text without parsing it: one pass without recursion, that stops at the first limit broken.

/** The one refusal that may concern a part of a message only. */
export class TooDeep extends McpError {
  constructor(depth: number) {
    super('invalid-request', tooMuch(`is nested deeper than ${depth} levels`, 'depth'))
  }
}

/** Whether the limits may be broken, by counting characters natively. What stands inside strings counts too: it may only over-estimate. */
function mayExceed(text: string, { depth, elements, names }: FrameLimits): boolean {
  const { length } = text
  // Nesting d levels takes at least 2·d characters, two elements (`[],`) at least 3, a name with its value at least 5.
  if (length <= 2 * depth) return false
  if (hasMore(text, '{[', depth)) return true
  if (length > 1.5 * elements && hasMore(text, ',{[', elements)) return true
  return length > 5 * names && hasMore(text, ':', names)
}

function hasMore(text: string, characters: string, limit: number): boolean {
  let count = 0
  for (const character of characters) {
    for (let at = text.indexOf(character); at !== -1; at = text.indexOf(character, at + 1)) if (++count > limit) return true
  }
  return false
}

const quote = 0x22
const comma = 0x2c
const colon = 0x3a
const openList = 0x5b
const backslash = 0x5c
const closeList = 0x5d
const openObject = 0x7b
const closeObject = 0x7d

/** The next character that matters. Searching natively is faster where they are sparse, slower where they are dense. */
const structural = /["[\]{},:]/g
const sparse = 16

/** What is found too deep: where it begins and ends. It is passed over then, as if it were a plain value. */
type OnTooDeep = (from: number, to: number) => void

/** Throws what is beyond the limits. What is too deep is passed over where somebody wants to know of it. */
function scan(text: string, limits: FrameLimits, onTooDeep?: OnTooDeep): void {
  const { depth: maxDepth, elements: maxElements } = limits
  const names = new NameCount(limits.names)
  let depth = 0
  let elements = 0
  let deepFrom = 0
  let name = 0
  let nameEnd = 0
  let passed = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === quote) {
      name = at
      at = nameEnd = endOfString(text, at)
    } else if (code === colon) names.add(text, name + 1, nameEnd)
    else if (code === comma) elements++
    else if (code === openObject || code === openList) {
      if (++depth === maxDepth + 1) {
        if (onTooDeep === undefined) throw new TooDeep(maxDepth)
        deepFrom = at
      }
      elements++
    } else if (code === closeObject || code === closeList) {
      if (depth-- === maxDepth + 1) onTooDeep?.(deepFrom, at + 1)
    } else if (++passed > sparse) {
      structural.lastIndex = at
      if (!structural.test(text)) break
      at = structural.lastIndex - 2
      passed = 0
    }
    if (elements > maxElements) throw broken(`has more than ${maxElements} elements`, 'elements')
  }
  // Cut off within: that is no JSON, but there must not be anything too deep left in it for whoever finds that out.
  if (depth > maxDepth) onTooDeep?.(deepFrom, text.length)
}

/** The position of the quote that closes the string. */
function endOfString(text: string, start: number): number {
  const end = text.indexOf('"', start + 1)
  if (end === -1) return text.length
  if (text.charCodeAt(end - 1) !== backslash) return end
  // With escapes: character by character, because a native search for each quote is slower where there are many.
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === backslash) at++
    else if (code === quote) return at
  }
  return text.length
}

/** Longer names are taken for different ones unread. */
const longName = 256
/** Not to be known outside: names that look alike to the hash would not be counted. */
const multiplier = (Math.random() * 0x40000000) | 0x10000001

/** How many different names members have: each new one makes the runtime describe a new kind of object, or a table. */
class NameCount {
  readonly #limit: number
  readonly #mask: number
  #places: Int32Array | undefined = undefined
  #count = 0

  constructor(limit: number) {
    this.#limit = limit
    this.#mask = 2 ** Math.ceil(Math.log2(Math.max(limit, 8) * 2)) - 1
  }

  add(text: string, from: number, to: number): void {
    if (to - from > longName) return this.#new()
    let hash = to - from
    for (let at = from; at < to; at++) hash = (Math.imul(hash, multiplier) + text.charCodeAt(at)) | 0
    // Zero stands for a free place.
    hash = hash ^ (hash >>> 15) || 1
    this.#places ??= new Int32Array(this.#mask + 1)
    const places = this.#places
    let place = hash & this.#mask
    for (let known = places[place]; known !== 0; known = places[place]) {
      if (known === hash) return
      place = (place + 1) & this.#mask
    }
    places[place] = hash
    this.#new()
  }

  #new(): void {
    if (++this.#count > this.#limit) throw broken(`has more than ${this.#limit} different member names`, 'names')
  }
}

function broken(what: string, limit: keyof FrameLimits): McpError {
  return new McpError('invalid-request', tooMuch(what, limit))
}

function tooMuch(what: string, limit: keyof FrameLimits): string {
  return `The message ${what}, which is this peer's limit (${limit}). Send less, or in parts`
}

// Reads a message that is too deep without what makes it so: for answers of which a part may be missing, if it is known which.

/** On the entry of a list from which something was cut. No text can bring it. */
export const pruned: unique symbol = Symbol('pruned')

/** Stands where something was cut. A peer that writes it itself only makes its own entry count as cut. */
const hole = '\u0000too deep\u0000'

/**
 * The message without what is too deep, where all of that is in entries of the list `member` of its result; those entries are marked.
 * Undefined where something else is too deep. All other limits hold as for any message.
 */
export function parsePruned(text: string, limits: FrameLimits, member: string): Record<string, unknown> | undefined {
  const parts: string[] = []
  let cuts = 0
  let copied = 0
  scan(text, limits, (from, to) => {
    parts.push(text.slice(copied, from), JSON.stringify(hole))
    copied = to
    cuts++
  })
  parts.push(text.slice(copied))
  const message = readJson(parts.join(''))
  const result = isRecord(message) ? message['result'] : undefined
  const list = isRecord(result) ? result[member] : undefined
  if (!isRecord(message) || !Array.isArray(list)) return undefined
  for (const entry of list) {
    const found = holesIn(entry)
    if (found > 0) Object.assign(entry, { [pruned]: true })
    cuts -= found
  }
  return cuts === 0 ? message : undefined
}

function holesIn(entry: unknown): number {
  if (!isRecord(entry)) return 0
  let count = 0
  const todo: unknown[] = [entry]
  for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
    for (const member of Object.values(next as object)) {
      if (member === hole) count++
      else if (typeof member === 'object' && member !== null) todo.push(member)
    }
  }
  return count
}
