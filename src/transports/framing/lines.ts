/**
 * Bytes → frames, one frame a line (the stdio binding of every revision: UTF-8, no line break inside a message).
 * On the hot path of stdio: all complete lines of a chunk are decoded at once and cut as text. Only where a line is too
 * long or not UTF-8 are they looked at one by one, so that a bad line costs its neighbours nothing.
 */

import { isAscii, isUtf8 } from 'node:buffer'
import type { FrameFault, Sink } from '../../jsonrpc/connection.ts'
import { type Id, idLength } from '../../jsonrpc/message.ts'

const newline = 0x0a
const carriageReturn = 0x0d
const space = 0x20
const tab = 0x09
/** So many loose chunks of an unfinished line are joined: a line that comes byte by byte must not cost an object a byte. */
const looseChunks = 256
/** So many that are delivered may stand before those that are not. */
const mostDone = 1_024
/** A line that is too long is waited for up to so many times its limit, where only its end says whose answer it is. */
const patience = 8

/** Cuts a stream of bytes into lines. It can be paused at any time, also from within the sink. */
export class Lines {
  /** How many frames the sink was given. */
  delivered = 0
  readonly #sink: Pick<Sink, 'frame' | 'fault'>
  readonly #limit: number
  /** Made once: there may be one in every few bytes. */
  readonly #tooLarge: FrameFault
  readonly #asks: boolean
  /** What is ready for the sink, from `#first` on: whole lines as text, and faults, in their order. `#at` is how far the first text is delivered. */
  readonly #ready: (string | FrameFault)[] = []
  #first = 0
  #at = 0
  /** The line whose end has not come yet. It is joined once, when it has. */
  #tail: Buffer[] = []
  #tailBytes = 0
  #loose = 0
  /** In a line that was refused as too long, up to its end. */
  #skipping = false
  /** The last bytes of that line, while it is not told yet whose answer it is, and how many there were in all. */
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

  push(chunk: Buffer): void {
    this.#take(chunk)
    this.#deliver()
  }

  /** The stream has ended; a last line without a line break counts too. */
  end(): void {
    if (this.#tail.length > 0 || this.#ending !== undefined) this.push(Buffer.of(newline))
  }

  get paused(): boolean {
    return this.#paused
  }

  /** Holds back everything until `resume`, what has already been pushed included. */
  pause(): void {
    this.#paused = true
  }

  resume(): void {
    this.#paused = false
    this.#deliver()
  }

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

  #keep(part: Buffer): void {
    this.#tailBytes += part.length
    if (this.#tailBytes > this.#limit) return this.#refuse(part)
    this.#tail.push(part)
    if (++this.#loose === looseChunks) {
      this.#tail.push(Buffer.concat(this.#tail.splice(-looseChunks)))
      this.#loose = 0
    }
  }

  /** The line is too long, by this part of it at the latest. */
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

  #skip(part: Buffer): void {
    if (this.#ending === undefined) return
    this.#skipped += part.length
    this.#ending = Buffer.concat([this.#ending, part.subarray(-lookBytes)]).subarray(-lookBytes)
    if (this.#skipped <= this.#limit * patience) return
    this.#ending = undefined
    this.#ready.push(named(this.#tooLarge, 'any'))
  }

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

  /** Whole lines, the line break of the last included. */
  #decode(region: Buffer): void {
    const text = region.length > this.#limit + 1 ? undefined : decoded(region)
    if (text !== undefined) this.#ready.push(text)
    else this.#decodeSingly(region)
  }

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

  /** The first is delivered. To shift it out would move all the others each time, and a hostile chunk holds tens of thousands. */
  #done(): void {
    // Lets go of the text.
    this.#ready[this.#first++] = ''
    if (this.#first === this.#ready.length) this.#ready.length = 0
    else if (this.#first === mostDone) this.#ready.splice(0, mostDone)
    else return
    this.#first = 0
  }

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

/** Enough of the first bytes to tell whose answer it is. */
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

function requested(fault: FrameFault, head: Buffer): FrameFault {
  const request = requestIn(head)
  return request === undefined ? fault : { ...fault, request }
}

function named(fault: FrameFault, of: Whose): FrameFault {
  return of === 'none' ? fault : { ...fault, answers: of }
}

/** ASCII is by far the most frequent, and the cheapest to decode. Undefined when the bytes are not UTF-8. */
function decoded(bytes: Buffer): string | undefined {
  if (isAscii(bytes)) return bytes.toString('latin1')
  return isUtf8(bytes) ? bytes.toString('utf8') : undefined
}

/** Only the white space of JSON is nothing: a line of other blanks is a frame that is no JSON, and refused as such. */
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
  message: 'The line is not UTF-8. Send one JSON-RPC message as UTF-8 JSON text on each line',
}

// Whose answer a line is that is not read as a whole: what its first bytes say, else its last ones. Most servers write the id of an
// answer before its result, some behind it. Bounded, whatever the line holds.

/** So much of either end of a line is looked at. */
const lookBytes = 2 * idLength

/** `none`: it is no answer; `any`: an answer to something, or nobody knows what. */
type Whose = { readonly id: Id } | 'none' | 'any'

const member = /\s*"(\w{1,64})"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*(?=[\s,}])|true|false|null|[[{])\s*,?/y
const last = /[,{]\s*"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d{1,17})\s*(?:,\s*"\w{1,64}"\s*:\s*(?:"[^"\\]*"|\d{1,17})\s*){0,4}\}\s*$/

/** The id of a request whose line is not read as a whole, where its first bytes tell it. */
function requestIn(bytes: Buffer): Id | undefined {
  const text = bytes.subarray(0, lookBytes).toString('utf8')
  let at = /^\s*\{/.exec(text)?.[0].length
  while (at !== undefined) {
    member.lastIndex = at
    const [all, name, value = ''] = member.exec(text) ?? ['']
    if (name === 'id') return idIn(value)?.id
    at = all === '' || value === '{' || value === '[' ? undefined : at + all.length
  }
  return undefined
}

/** By the first bytes of a line: `any` where they do not tell. */
function whoseByHead(bytes: Buffer): Whose {
  const text = bytes.subarray(0, lookBytes).toString('utf8')
  const open = /^\s*\{/.exec(text)
  // Noise is nobody's answer; a batch may hold any.
  if (open === null) return /^\s*(\[|$)/.test(text) ? 'any' : 'none'
  let id: Whose = 'any'
  let at = open[0].length
  while (true) {
    member.lastIndex = at
    const found = member.exec(text)
    if (found === null) return id
    const [all, name, value = ''] = found
    if (name === 'method' || name === 'params') return 'none'
    if (name === 'id') id = idIn(value) ?? 'any'
    if (value === '{' || value === '[') return id
    at += all.length
  }
}

/** By the last bytes of a line whose first ones did not tell. */
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
