/**
 * Splits bytes into frames, one frame per line (the stdio binding of every revision: UTF-8, no line break inside a message).
 * This is the hot path of stdio: all complete lines of a chunk are decoded at once and split as text. They are examined one by
 * one only if one of them is too long or not UTF-8, so that a bad line does not affect the others.
 */

import { isAscii, isUtf8 } from 'node:buffer'
import type { FrameFault, Sink } from '../../jsonrpc/connection.ts'
import { type Id, idLength } from '../../jsonrpc/message.ts'

const newline = 0x0a
const carriageReturn = 0x0d
const space = 0x20
const tab = 0x09
/**
 * This many chunks of an unfinished line are joined into one, so that a line that arrives byte by byte does not cost one object
 * per byte.
 */
const looseChunks = 256
/** Delivered entries are removed from the front of the list when there are this many. */
const mostDone = 1_024
/** An overlong line is read up to this many times the limit while only its end can tell which request it answers. */
const skippedLimits = 8

/** Splits a stream of bytes into lines. It can be paused at any time, also by the sink during delivery. */
export class Lines {
  /** Number of frames that the sink was given. */
  delivered = 0
  readonly #sink: Pick<Sink, 'frame' | 'fault'>
  /** The most bytes in one line, without its line break. */
  readonly #limit: number
  /** Created once: hostile input can cause one every few bytes. */
  readonly #tooLarge: FrameFault
  /** This end sends requests, so an unreadable line may be the answer to one of them. */
  readonly #asks: boolean
  /**
   * Text of whole lines, and faults, in order; the first `#first` entries are delivered. `#at` is how far the first text is
   * delivered.
   */
  readonly #ready: (string | FrameFault)[] = []
  #first = 0
  #at = 0
  /** The parts of the line whose end has not arrived yet. They are joined once. */
  #tail: Buffer[] = []
  #tailBytes = 0
  #loose = 0
  /** Inside a line that was refused as too long, until its end. */
  #skipping = false
  /** The last bytes of that line, while it is not known which request it answers; `#skipped` counts all bytes of it. */
  #ending: Buffer | undefined = undefined
  #skipped = 0
  #paused = false
  #delivering = false

  /** `limit` is the most bytes of one line, its line break not counted; `asks`: this is the end whose requests are answered. */
  constructor(sink: Pick<Sink, 'frame' | 'fault'>, limit: number, asks = false) {
    this.#sink = sink
    this.#limit = limit
    this.#asks = asks
    this.#tooLarge = tooLarge(limit)
  }

  /** Takes a chunk and delivers the lines that it completes. */
  push(chunk: Buffer): void {
    this.#take(chunk)
    this.#deliver()
  }

  /** The stream has ended. A last line without a line break counts too. */
  end(): void {
    if (this.#tail.length > 0 || this.#ending !== undefined) this.push(Buffer.of(newline))
  }

  /** True between `pause` and `resume`. */
  get paused(): boolean {
    return this.#paused
  }

  /** Stops delivery until `resume`, including lines that were already pushed. */
  pause(): void {
    this.#paused = true
  }

  /** Continues delivery. */
  resume(): void {
    this.#paused = false
    this.#deliver()
  }

  /** Separates complete lines from the unfinished rest. */
  #take(chunk: Buffer): void {
    const last = chunk.lastIndexOf(newline)
    if (last === -1) {
      if (this.#skipping) this.#skip(chunk)
      else this.#keep(chunk)
      return
    }
    let start = 0
    if (this.#skipping || this.#tail.length > 0) {
      start = chunk.indexOf(newline) + 1
      if (this.#skipping) this.#skipLast(chunk.subarray(0, start))
      else this.#decode(Buffer.concat([...this.#tail, chunk.subarray(0, start)]))
      this.#skipping = false
      this.#dropTail()
    }
    if (start <= last) this.#decode(start === 0 && last === chunk.length - 1 ? chunk : chunk.subarray(start, last + 1))
    if (last < chunk.length - 1) this.#keep(chunk.subarray(last + 1))
  }

  /** Stores a part of an unfinished line. */
  #keep(part: Buffer): void {
    this.#tailBytes += part.length
    if (this.#tailBytes > this.#limit) return this.#refuse(part)
    this.#tail.push(part)
    if (++this.#loose === looseChunks) {
      this.#tail.push(Buffer.concat(this.#tail.splice(-looseChunks)))
      this.#loose = 0
    }
  }

  /** The unfinished line is too long. Reports it now, or at its end if only that can name the request. */
  #refuse(part: Buffer): void {
    const head = beginning([...this.#tail, part])
    const whose = this.#asks ? whoseByHead(head) : 'none'
    this.#dropTail()
    this.#skipping = true
    this.#skipped = 0
    if (!this.#asks) this.#ready.push(requested(this.#tooLarge, head))
    else if (whose !== 'any') this.#ready.push(named(this.#tooLarge, whose))
    else this.#ending = Buffer.from(part.subarray(-lookBytes))
  }

  /** Discards a part of an overlong line but keeps its last bytes. */
  #skip(part: Buffer): void {
    if (this.#ending === undefined) return
    this.#skipped += part.length
    this.#ending = Buffer.concat([this.#ending, part.subarray(-lookBytes)]).subarray(-lookBytes)
    if (this.#skipped <= this.#limit * skippedLimits) return
    this.#ending = undefined
    this.#ready.push(named(this.#tooLarge, 'any'))
  }

  /** The overlong line has ended. */
  #skipLast(part: Buffer): void {
    this.#skip(part)
    if (this.#ending === undefined) return
    this.#ready.push(named(this.#tooLarge, whoseByTail(this.#ending)))
    this.#ending = undefined
  }

  #dropTail(): void {
    this.#tail = []
    this.#tailBytes = 0
    this.#loose = 0
  }

  /** Decodes whole lines at once; the region ends with a line break. */
  #decode(region: Buffer): void {
    const text = region.length > this.#limit + 1 ? undefined : decoded(region)
    if (text !== undefined) this.#ready.push(text)
    else this.#decodeSingly(region)
  }

  /** Decodes line by line, because at least one line is too long or not UTF-8. */
  #decodeSingly(region: Buffer): void {
    let good = ''
    for (let start = 0, end = 0; start < region.length; start = end + 1) {
      end = region.indexOf(newline, start)
      const text = end - start > this.#limit ? undefined : decoded(region.subarray(start, end + 1))
      if (text !== undefined) good += text
      else {
        if (good !== '') this.#ready.push(good)
        good = ''
        const fault = end - start > this.#limit ? this.#tooLarge : notUtf8
        const line = region.subarray(start, end)
        this.#ready.push(this.#asks ? named(fault, whose(line)) : requested(fault, line))
      }
    }
    if (good !== '') this.#ready.push(good)
  }

  /** Hands entries to the sink until paused. The flag prevents recursion when the sink resumes us. */
  #deliver(): void {
    if (this.#delivering) return
    this.#delivering = true
    try {
      while (!this.#paused) {
        const next = this.#ready[this.#first]
        if (next === undefined) return
        if (typeof next === 'string') {
          this.#cut(next)
          if (this.#at < next.length) return
          this.#at = 0
        }
        this.#done()
        if (typeof next !== 'string') this.#sink.fault(next)
      }
    } finally {
      this.#delivering = false
    }
  }

  /**
   * Marks the first entry as delivered. `shift` would move all others each time, and a hostile chunk holds tens of thousands.
   */
  #done(): void {
    // Releases the text for garbage collection.
    this.#ready[this.#first++] = ''
    if (this.#first === this.#ready.length) this.#ready.length = 0
    else if (this.#first === mostDone) this.#ready.splice(0, mostDone)
    else return
    this.#first = 0
  }

  /** Splits one text into frames, without CR and blank lines. */
  #cut(text: string): void {
    for (let start = this.#at; start < text.length && !this.#paused; start = this.#at) {
      const end = text.indexOf('\n', start)
      this.#at = end + 1
      const stop = text.charCodeAt(end - 1) === carriageReturn ? end - 1 : end
      if (isBlank(text, start, stop)) continue
      this.delivered++
      this.#sink.frame(text.slice(start, stop))
    }
  }
}

/** The first bytes of a line in parts, enough to find an id. */
function beginning(parts: readonly Buffer[]): Buffer {
  const [first = Buffer.alloc(0), ...others] = parts
  if (first.length >= lookBytes) return first
  const heads: Buffer[] = [first]
  for (let bytes = first.length, at = 0; bytes < lookBytes && at < others.length; at++) {
    const head = (others[at] as Buffer).subarray(0, lookBytes)
    heads.push(head)
    bytes += head.length
  }
  return Buffer.concat(heads)
}

function whose(line: Buffer): Whose {
  const told = whoseByHead(line)
  return told === 'any' ? whoseByTail(line) : told
}

/** Adds the id of the request that the unreadable line was, if its start shows one. */
function requested(fault: FrameFault, head: Buffer): FrameFault {
  const request = requestIn(head)
  return request === undefined ? fault : { ...fault, request }
}

/** Adds which request the unreadable line answers. */
function named(fault: FrameFault, of: Whose): FrameFault {
  return of === 'none' ? fault : { ...fault, answers: of }
}

/** Decodes bytes; undefined if they are not UTF-8. ASCII is by far the most frequent input and the fastest to decode. */
function decoded(bytes: Buffer): string | undefined {
  if (isAscii(bytes)) return bytes.toString('latin1')
  return isUtf8(bytes) ? bytes.toString('utf8') : undefined
}

/** Only JSON white space is ignored. A line of other blanks is a frame that is not JSON, and is refused as such. */
function isBlank(text: string, start: number, stop: number): boolean {
  for (let at = start; at < stop; at++) {
    const code = text.charCodeAt(at)
    if (code !== space && code !== tab && code !== carriageReturn) return false
  }
  return true
}

function tooLarge(limit: number): FrameFault {
  return {
    kind: 'too-large',
    message: `The line is longer than ${limit} bytes, which is this peer's limit (frameBytes). Send less, or in parts`,
  }
}

const notUtf8: FrameFault = {
  kind: 'not-utf8',
  message: 'The line is not valid UTF-8. Send one JSON-RPC message as UTF-8 JSON text on each line',
}

// Finds the request that an unreadable line answers, from its first bytes, else from its last ones. Most servers write the id
// before the result, some after it. Bounded, whatever the line holds.

/** Number of bytes examined at either end of a line. */
const lookBytes = 2 * idLength

/** The id that the line answers. `none`: it is not an answer; `any`: it may answer any request. */
type Whose = { readonly id: Id } | 'none' | 'any'

/** One member of the outermost object, up to where a nested value starts. */
const member = /\s*"(\w{1,64})"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*(?=[\s,}])|true|false|null|[[{])\s*,?/y
const last = /[,{]\s*"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d{1,17})\s*(?:,\s*"\w{1,64}"\s*:\s*(?:"[^"\\]*"|\d{1,17})\s*){0,4}\}\s*$/

/** Names and values (JSON) of the outermost object as far as the text shows them; of a nested value only its beginning. */
function* membersIn(text: string): Generator<readonly [name: string | undefined, value: string]> {
  let at: number | undefined = /^\s*\{/.exec(text)?.[0].length
  while (at !== undefined) {
    member.lastIndex = at
    const [all, name, value = ''] = member.exec(text) ?? []
    if (all === undefined) return
    yield [name, value]
    at = value === '{' || value === '[' ? undefined : at + all.length
  }
}

/** The id of an unreadable request, if its first bytes contain it. */
function requestIn(bytes: Buffer): Id | undefined {
  for (const [name, value] of membersIn(bytes.subarray(0, lookBytes).toString('utf8'))) if (name === 'id') return idIn(value)?.id
  return undefined
}

/** Reads the first bytes of a line; `any` if they do not decide. */
function whoseByHead(bytes: Buffer): Whose {
  const text = bytes.subarray(0, lookBytes).toString('utf8')
  // Text that is not JSON answers nothing; a batch may answer any request.
  if (!/^\s*\{/.test(text)) return /^\s*(\[|$)/.test(text) ? 'any' : 'none'
  let id: Whose = 'any'
  for (const [name, value] of membersIn(text)) {
    if (name === 'method' || name === 'params') return 'none'
    if (name === 'id') id = idIn(value) ?? 'any'
  }
  return id
}

/** Reads the last bytes of a line whose first bytes did not decide. */
function whoseByTail(bytes: Buffer): Whose {
  const text = bytes.subarray(-lookBytes).toString('utf8')
  const found = last.exec(text)
  return (found?.[1] === undefined ? undefined : idIn(found[1])) ?? 'any'
}

function idIn(json: string): { readonly id: Id } | undefined {
  try {
    const id: unknown = JSON.parse(json)
    return typeof id === 'string' || typeof id === 'number' ? { id } : undefined
  } catch {
    return undefined
  }
}
