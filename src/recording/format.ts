/**
 * The format of a recording: one line of JSON for each thing that happened on the wire, in order, after a first line that says what the
 * file is. A frame is kept as a value where that gives the same text again, and as text where it does not. What a host records of its
 * users, its model and its turns stands between the frames, in lines of the same file.
 */
import { clip } from '../jsonrpc/limits.ts'
import { isRecord } from '../jsonrpc/message.ts'
import { anything, array, dictionary, type Infer, integer, number, object, oneOf, optional, string } from '../jsonrpc/shape.ts'

/** The version of the format that this code writes. */
export const recordingVersion = 1

/** The first line of a recording. */
export interface RecordingHeader {
  /** The version of the format. */
  readonly recording: typeof recordingVersion
  /** When the recording began, ISO 8601. Other lines count milliseconds from then. */
  readonly began: string
  /** The program that wrote the recording. */
  readonly by: string
  /** A description of the server. */
  readonly target?: string
}

const from = oneOf('client', 'server')
const http = object({
  method: optional(string),
  path: optional(string),
  status: optional(integer),
  headers: optional(dictionary(string)),
})
/** What HTTP said beside the frame: of a request its method, of an answer its status. */
export type HttpFacts = Infer<typeof http>

const timed = {
  /** Milliseconds since the recording began. */
  at: number,
}
const placed = {
  ...timed,
  /** The number of the connection; over HTTP a session is one. */
  connection: integer,
}

const lineShapes = {
  open: object({
    ...placed,
    carrier: oneOf('stdio', 'memory', 'websocket', 'sse', 'http'),
    /** Its name in the config of the host that recorded it. */
    server: optional(string),
  }),
  /** A frame as it is in the file. */
  frame: object({
    ...placed,
    from,
    frame: optional(anything),
    /** Where the value alone would not give the same text. */
    text: optional(string),
    /** How many characters it had, where only its beginning was kept. */
    cut: optional(integer),
    /** Over HTTP: which exchange it belongs to. */
    exchange: optional(integer),
    http: optional(http),
  }),
  /** An exchange, or the beginning of its answer, that carries no frame. */
  http: object({ ...placed, from, exchange: integer, http }),
  closed: object({ ...placed, why: optional(string) }),
  /** The file hit its bound, and what followed is not in it. */
  full: object(timed),
  // What a host writes; what may be anything here is typed by the host's recorder.
  model: object({
    ...timed,
    info: anything,
    request: anything,
    parts: array(anything),
    error: optional(object({ code: string, message: string })),
  }),
  /** An id that the host made up. */
  id: object({ ...timed, id: string }),
  said: object({ ...timed, conversation: string, text: string, attach: array(anything) }),
  turn: object({ ...timed, turn: anything }),
}

/** The lines of a recording after the first one, by kind. */
type Lines = {
  [K in keyof typeof lineShapes]: Infer<(typeof lineShapes)[K]> & {
    /** The kind of the line. */
    readonly kind: K
  }
}
/** A frame as it is in the file. */
export type FrameLine = Lines['frame']
/** What a host writes beside the frames of its servers. */
export type HostLine = Lines['model' | 'id' | 'said' | 'turn']
/** One line of a recording after the first. */
export type RecordingLine = Lines[keyof Lines]

/** Whether a value is a line of a recording. */
export function isLine(value: unknown): value is RecordingLine {
  if (!isRecord(value)) return false
  const kind = String(value['kind'])
  if (!Object.hasOwn(lineShapes, kind) || lineShapes[kind as keyof Lines].check(value) !== undefined) return false
  return kind !== 'frame' || 'frame' in value !== 'text' in value
}

/** The text of a line of the file, its line end included. */
export function lineText(line: RecordingHeader | RecordingLine): string {
  return `${JSON.stringify(line)}\n`
}

/** A frame as it is kept in its line. `most`: the characters after which the rest of it is left out. */
export function recordedFrame(text: string, most = Number.POSITIVE_INFINITY): Pick<FrameLine, 'frame' | 'text' | 'cut'> {
  if (text.length > most) return { text: text.slice(0, most), cut: text.length }
  const value = jsonValue(text)
  return JSON.stringify(value) === text ? { frame: value } : { text }
}

/** The text that passed. */
export function frameText({ frame, text }: Pick<FrameLine, 'frame' | 'text'>): string {
  return text ?? JSON.stringify(frame)
}

/** What it says; undefined for what is no JSON. */
export function frameValue({ frame, text }: Pick<FrameLine, 'frame' | 'text'>): unknown {
  return text === undefined ? frame : jsonValue(text)
}

/** What a text says in JSON; undefined for what is none. */
export function jsonValue(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A JSON-RPC message, not yet looked into. */
export type RecordedMessage = Readonly<Record<string, unknown>>

/** The messages of a frame: a batch is several. */
export function messagesOf(frame: unknown): readonly RecordedMessage[] {
  return (Array.isArray(frame) ? frame : [frame]).filter(isRecord)
}

/** The token by which the params of a request want progress told. */
export function tokenOf(params: unknown): unknown {
  return isRecord(params) && isRecord(params['_meta']) ? params['_meta']['progressToken'] : undefined
}

// Members of a frame, named as people write them: `result.content[0].text`, `params.arguments.*`, `**.duration_ms`, `_meta["a.b/c"]`.

/** The members that lead to a value, from the outside in. */
type Path = readonly string[]

/** The most members that one pattern names: what is longer is a mistake. */
const mostParts = 64

/** `*` is any one member, `**` any number of them; a pattern without a leading `**` begins at the frame itself. */
export function pathPattern(text: string): (path: Path) => boolean {
  const parts = partsOf(text)
  return path => meets(parts, 0, path, 0)
}

/** As it is written: names that hold a dot or a bracket in quotes. */
export function pathText(path: Path): string {
  let text = ''
  for (const name of path) {
    if (/^\d+$/.test(name)) text += `[${name}]`
    else if (/^[^.[\]"*]+$/.test(name)) text += text === '' ? name : `.${name}`
    else text += `[${JSON.stringify(name)}]`
  }
  return text
}

type Part = { readonly name: string } | 'one' | 'many'

const part = /\[(\d+|\*)\]|\["((?:[^"\\]|\\.)*)"\]|\.?([^.[\]"]+)/y

/** Parses a path pattern. */
function partsOf(text: string): readonly Part[] {
  const parts: Part[] = []
  let at = 0
  while (at < text.length) {
    part.lastIndex = at
    const found = part.exec(text)
    if (found === null || parts.length >= mostParts)
      throw new TypeError(`"${clip(text)}" is not a valid path. Separate names with dots, as in result.content[0].text`)
    at = part.lastIndex
    const [, index, quoted, name] = found
    // A name in quotes is itself, even if it is an asterisk.
    parts.push(quoted === undefined ? partOf(index ?? name ?? '') : { name: unquoted(quoted) })
  }
  if (parts.length === 0) throw new TypeError('A path is empty. Name a member, as in result.content')
  return parts
}

/** A part of a pattern: wildcard or name. */
function partOf(word: string): Part {
  return word === '**' ? 'many' : word === '*' ? 'one' : { name: word }
}

function unquoted(inner: string): string {
  try {
    return String(JSON.parse(`"${inner}"`))
  } catch {
    throw new TypeError(`"${clip(inner)}" in a path is not a valid JSON string. Write the name as in ["name"]`)
  }
}

/** Matches parts against a path, with backtracking at `**`. */
function meets(parts: readonly Part[], from: number, path: Path, at: number): boolean {
  const wanted = parts[from]
  if (wanted === undefined) return at === path.length
  if (wanted === 'many') {
    for (let next = at; next <= path.length; next++) if (meets(parts, from + 1, path, next)) return true
    return false
  }
  const name = path[at]
  if (name === undefined) return false
  return (wanted === 'one' || wanted.name === name) && meets(parts, from + 1, path, at + 1)
}
