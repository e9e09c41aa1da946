/**
 * Frame exchanges as readable text: the spelling of a recording for people to write and to read. A transcript is a list of lines; one that starts with a blank continues the line before.
 *
 *   # a remark
 *   @ memory stdio                only over these carriers; without it, over all
 *   $name = {…}                   a value that frames then call "$name"
 *   -> {…}                        the client says this
 *   ->! {…}                       the same, wrong on purpose
 *   with Mcp-Name: other          a header of the client's next frame, on carriers that have them
 *   -x 3                          the client lets go of the exchange that its request 3 opened
 *   <- {…}                        the server says this
 *   <- 404 {…}                    the same, under this status on carriers that have one
 */
import type { Connection } from '../jsonrpc/connection.ts'
import type { Id } from '../jsonrpc/message.ts'
import type { RecordedFrame } from './read.ts'
import { tapConnection } from './tap.ts'

/** A frame of a transcript. */
export interface TranscriptFrame extends RecordedFrame {
  /** Marks a frame. */
  readonly kind: 'frame'
  /** Whether the frame is wrong on purpose. */
  readonly wrong: boolean
}

/** One step of a transcript. */
export type TranscriptStep =
  | TranscriptFrame
  | {
      /** Marks that the client gives up a request. */
      readonly kind: 'drop'
      /** The line of the file. */
      readonly line: number
      /** The id of the request. */
      readonly id: Id
    }

/** A transcript. */
export interface Transcript {
  /** The carriers that it is for. Undefined: all. */
  readonly carriers: readonly string[] | undefined
  /** The values that the transcript defines, by name. */
  readonly values: ReadonlyMap<string, unknown>
  /** The steps, in order. */
  readonly steps: readonly TranscriptStep[]
}

interface Draft {
  carriers: readonly string[] | undefined
  readonly values: Map<string, unknown>
  readonly steps: TranscriptStep[]
  headers: Record<string, string>
}

/** Parses the text of a transcript. Throws with the line of a mistake. */
export function parseTranscript(text: string): Transcript {
  const draft: Draft = { carriers: undefined, values: new Map(), steps: [], headers: {} }
  for (const { line, text: whole } of wholeLines(text)) read(draft, whole, line)
  return draft
}

/** Joins continued lines. */
function wholeLines(text: string): { line: number; text: string }[] {
  const lines: { line: number; text: string }[] = []
  for (const [at, raw] of text.split('\n').entries()) {
    const last = lines.at(-1)
    if (/^\s+\S/.test(raw) && last !== undefined) last.text += ` ${raw.trim()}`
    else if (raw.trim() !== '' && !raw.startsWith('#')) lines.push({ line: at + 1, text: raw.trim() })
  }
  return lines
}

type Parts = readonly (string | undefined)[]

/** What a line may be, each with what it adds to the transcript. */
const kinds: readonly (readonly [RegExp, (draft: Draft, line: number, parts: Parts) => void])[] = [
  [
    /^->(!?)\s*(.*)$/s,
    (draft, line, [, mark, frame]) => {
      const { headers } = draft
      const more = { wrong: mark === '!', ...(Object.keys(headers).length > 0 && { headers }) }
      draft.steps.push({ ...frameOf('client', frame, line), ...more })
      draft.headers = {}
    },
  ],
  [
    /^<-\s*(?:(\d{3})\s+)?(.*)$/s,
    ({ steps }, line, [, code, frame]) => {
      const status = code === undefined ? {} : { status: Number(code) }
      steps.push({ ...frameOf('server', frame, line), ...status })
    },
  ],
  [/^-x\s+(.*)$/, ({ steps }, line, [, id]) => steps.push({ kind: 'drop', line, id: json(id, line) as Id })],
  [/^(\$\w+)\s*=\s*(.*)$/s, ({ values }, line, [, name = '', value]) => values.set(name, json(value, line))],
  [
    /^with\s+([\w-]+):\s*(.*)$/,
    ({ headers }, _line, [, name = '', value = '']) => {
      headers[name.toLowerCase()] = value
    },
  ],
  [
    /^@\s*(.*)$/,
    (draft, _line, [, names = '']) => {
      draft.carriers = names.split(/\s+/)
    },
  ],
]

function read(draft: Draft, text: string, line: number): void {
  for (const [pattern, add] of kinds) {
    const parts = pattern.exec(text)
    if (parts !== null) return add(draft, line, parts)
  }
  throw new SyntaxError(`Line ${line} of the transcript must start with ->, <-, -x, with, $, @ or #`)
}

function json(text: string | undefined, line: number): unknown {
  try {
    return JSON.parse(text ?? '')
  } catch (cause) {
    throw new SyntaxError(`Line ${line} of the transcript is not valid JSON`, { cause })
  }
}

function frameOf(from: 'client' | 'server', text: string | undefined, line: number): TranscriptFrame {
  const value = json(text, line)
  return { kind: 'frame', from, at: 0, text: JSON.stringify(value), value, line, wrong: false }
}

/** A transcript in progress. */
export interface TranscriptRecording {
  /** The connection to use instead of the given one. */
  readonly connection: Connection
  /** Returns the transcript so far, as the client sees it. */
  text(): string
}

/**
 * Writes a transcript of the traffic of a client's connection.
 * @example
 * const recording = recordTranscript(connection)
 * await using mcp = await connect(recording.connection)
 */
export function recordTranscript(connection: Connection): TranscriptRecording {
  const lines: string[] = []
  const recorded = tapConnection(connection, ({ way, text, status }) => {
    const mark = way === 'out' ? '->' : status === undefined || status === 200 ? '<-' : `<- ${status}`
    lines.push(`${mark} ${formatFrame(JSON.parse(text))}`)
  })
  return { connection: recorded, text: () => lines.map(line => `${line}\n`).join('') }
}

const width = 120

/**
 * JSON on few lines: what does not fit into the width is broken at its members, the last of which may open on the first line. `column` is
 * where the value begins, `indent` where the line does that it stands on.
 */
export function formatFrame(value: unknown, indent = 3, column = 3): string {
  const flat = JSON.stringify(value)
  if (column + flat.length <= width || typeof value !== 'object' || value === null) return flat
  const [open, close] = Array.isArray(value) ? '[]' : '{}'
  const members = Array.isArray(value)
    ? value.map(item => ['', item] as const)
    : Object.entries(value).map(([key, item]) => [`${JSON.stringify(key)}:`, item] as const)
  const [lastKey, last] = members.at(-1) ?? ['', undefined]
  const others = members.slice(0, -1).map(([key, item]) => `${key}${JSON.stringify(item)},`)
  const first = open + others.join('') + lastKey
  if (typeof last === 'object' && last !== null && column + first.length < 0.75 * width) {
    return first + formatFrame(last, indent, column + first.length) + close
  }
  const pad = ' '.repeat(indent + 2)
  const lines = members.map(([key, item]) => pad + key + formatFrame(item, indent + 2, indent + 2 + key.length))
  return `${open}\n${lines.join(',\n')}\n${' '.repeat(indent)}${close}`
}
