/**
 * A tape: one line of JSON for each thing that passed between a client and a server, in order. The first line says what the file is.
 * A frame is kept as a value where that gives the same text again, and as text where it does not.
 */
import { jsonLine, readJsonLines } from '../../core/json-lines.ts'
import type { Carrier } from '../../jsonrpc/connection.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { anything, array, dictionary, integer, number, object, oneOf, optional, string } from '../../jsonrpc/shape.ts'

/** The version of the format that this code writes, and the only one that it reads. */
export const tapeVersion = 1

export interface TapeHeader {
  readonly tape: typeof tapeVersion
  /** When it begins, ISO 8601; the lines count milliseconds from there. */
  readonly began: string
  /** Who wrote it. */
  readonly by: string
  /** The server, in words. */
  readonly target?: string
}

export type From = 'client' | 'server'

/** What HTTP said beside the frame: of a request its method, of an answer its status. */
export interface HttpFacts {
  readonly method?: string
  readonly path?: string
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
}

interface Placed {
  /** Milliseconds since the tape began. */
  readonly at: number
  readonly conversation: number
}

export interface FrameLine extends Placed {
  readonly kind: 'frame'
  readonly from: From
  readonly frame?: unknown
  /** Where the value alone would not give the same text. */
  readonly text?: string
  /** How many characters it had, where only its beginning was kept. */
  readonly cut?: number
  /** Over HTTP: which exchange it belongs to. */
  readonly exchange?: number
  readonly http?: HttpFacts
}

export type TapeLine =
  | (Placed & { readonly kind: 'open'; readonly carrier: Carrier })
  | FrameLine
  /** An exchange, or the beginning of its answer, that carries no frame. */
  | (Placed & { readonly kind: 'http'; readonly from: From; readonly exchange: number; readonly http: HttpFacts })
  | (Placed & { readonly kind: 'closed'; readonly why?: string })
  /** The tape was full: what followed is not on it. */
  | (Placed & { readonly kind: 'full' })

export interface TapeText {
  readonly header: TapeHeader
  readonly lines: readonly TapeLine[]
  /** Whether its last line broke off: whoever wrote it was killed. */
  readonly cut: boolean
}

const placed = { at: number, conversation: integer }
const from = oneOf('client', 'server')
const http = object({
  method: optional(string),
  path: optional(string),
  status: optional(integer),
  headers: optional(dictionary(string)),
})
const frame = {
  frame: optional(anything),
  text: optional(string),
  cut: optional(integer),
  exchange: optional(integer),
  http: optional(http),
}

const headerShape = object({ tape: integer, began: string, by: string, target: optional(string) })

const shapes = new Map([
  ['open', object({ ...placed, carrier: oneOf('stdio', 'memory', 'websocket', 'sse', 'http') })],
  ['frame', object({ ...placed, ...frame, from })],
  ['http', object({ ...placed, from, exchange: integer, http })],
  ['closed', object({ ...placed, why: optional(string) })],
  ['full', object(placed)],
])

/** For whoever describes the format. */
export const tapeShapes = { header: headerShape, lines: array(object({ ...placed, kind: string })) }

export function headerText(header: TapeHeader): string {
  return jsonLine(header)
}

export function lineText(line: TapeLine): string {
  return jsonLine(line)
}

/** A frame as the tape keeps it. `most`: the characters after which the rest of it is left out. */
export function keptFrame(text: string, most = Number.POSITIVE_INFINITY): Pick<FrameLine, 'frame' | 'text' | 'cut'> {
  if (text.length > most) return { text: text.slice(0, most), cut: text.length }
  try {
    const value: unknown = JSON.parse(text)
    return JSON.stringify(value) === text ? { frame: value } : { text }
  } catch {
    return { text }
  }
}

/** The text that passed. */
export function frameText({ frame: value, text }: FrameLine): string {
  return text ?? JSON.stringify(value)
}

/** What it says; undefined for what is no JSON. */
export function frameValue({ frame: value, text }: FrameLine): unknown {
  if (text === undefined) return value
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export function readTape(text: string): TapeText {
  const { values, cut } = readJsonLines(text, 'tape')
  const [first, ...rest] = values
  if (!isHeader(first))
    throw new TypeError('This is no tape: its first line does not begin with {"tape":1, …}. Make one with vivarium record')
  if (first.tape !== tapeVersion)
    throw new TypeError(`This tape has version ${first.tape}, and version ${tapeVersion} is read here. Record it anew`)
  const lines = rest.map((line, at) => {
    if (!isLine(line)) throw new TypeError(`Line ${at + 2} of the tape is none of its lines`)
    return line
  })
  return { header: first, lines, cut }
}

function isHeader(value: unknown): value is TapeHeader {
  return headerShape.check(value) === undefined
}

function isLine(value: unknown): value is TapeLine {
  if (!isRecord(value)) return false
  const shape = shapes.get(String(value['kind']))
  if (shape === undefined || shape.check(value) !== undefined) return false
  return value['kind'] !== 'frame' || 'frame' in value !== 'text' in value
}
