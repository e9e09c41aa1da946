/**
 * Reads recordings into the one model that playing, replaying and comparing work on: connections, each a list of frames with their
 * direction, time and HTTP status. Files of the two older forms are read as if they had been written today: tapes, which began with
 * `{"tape":1, …}`, and the recordings of a host, which began with `{"kind":"begin","version":1, …}`.
 */
import { readFile, stat } from 'node:fs/promises'
import type { Carrier } from '../jsonrpc/connection.ts'
import { clip } from '../jsonrpc/limits.ts'
import { isRecord } from '../jsonrpc/message.ts'
import { integer, object, optional, string } from '../jsonrpc/shape.ts'
import {
  type FrameLine,
  frameText,
  frameValue,
  isLine,
  jsonValue,
  type RecordingHeader,
  type RecordingLine,
  recordingVersion,
} from './format.ts'

/** A frame of a recording or a transcript. */
export interface RecordedFrame {
  /** Who sent it. */
  readonly from: FrameLine['from']
  /** Milliseconds since the recording began. 0 in transcripts, which have no times. */
  readonly at: number
  /** The frame as text. */
  readonly text: string
  /** The parsed text. Undefined if it is not JSON. */
  readonly value: unknown
  /** The line of the file. */
  readonly line: number
  /** The HTTP status, if HTTP carried it. */
  readonly status?: number
  /** The headers, if HTTP carried it. Headers with secrets are not recorded. */
  readonly headers?: Readonly<Record<string, string>>
}

/** The frames of one connection. */
export interface RecordedConnection {
  /** The carrier of the connection. */
  readonly carrier: Carrier
  /** The name of the server, if a host recorded it. */
  readonly server?: string
  /** The frames in both directions, in order. */
  readonly frames: readonly RecordedFrame[]
}

/** A recording that was read. */
export interface RecordingText {
  readonly header: RecordingHeader
  readonly lines: readonly RecordingLine[]
  /** Whether its writer was killed amid a line, or the file was full: something is missing at its end. */
  readonly cut: boolean
}

/** More than any recording of ours holds. */
const mostBytes = 300 * 1024 * 1024

/** Reads the file of a recording; `noun` names it in errors. */
export async function openRecording(file: string, noun = 'recording'): Promise<RecordingText> {
  const { size } = await stat(file)
  if (size > mostBytes)
    throw new TypeError(`${clip(file)} has ${size} bytes, more than ${mostBytes} (the limit). Set maxBytes to record less`)
  return readRecording(await readFile(file, 'utf8'), noun)
}

/** Reads the text of a recording. Throws TypeError where it is none, with the line that is wrong. */
export function readRecording(text: string, noun = 'recording'): RecordingText {
  const { values, cut } = jsonLines(text, noun)
  const [first = {}, ...rest] = values
  const form = forms.find(({ version }) => first[version] !== undefined && (version !== 'version' || first['kind'] === 'begin'))
  const header = form?.header(first)
  if (form === undefined || !isHeader(header))
    throw new TypeError(
      `This file is not a ${noun}: its first line does not begin with {"recording":${recordingVersion}, …}. Create one with vivarium record`,
    )
  if (header.recording !== recordingVersion)
    throw new TypeError(
      `This ${noun} has version ${header.recording}, but only version ${recordingVersion} is supported. Record it again`,
    )
  const lines = rest.map((raw, at) => {
    const line = form.line(raw, first)
    if (!isLine(line)) throw new TypeError(`Line ${at + 2} of the ${noun} is not a valid entry`)
    return line
  })
  const whole = { ...header, recording: recordingVersion } as const
  return { header: whole, lines, cut: cut || lines.some(({ kind }) => kind === 'full') }
}

type Raw = Readonly<Record<string, unknown>>

const headerShape = object({ recording: integer, began: string, by: string, target: optional(string) })

/** Whether a value is a first line, of whatever version. */
function isHeader(value: unknown): value is Omit<RecordingHeader, 'recording'> & { readonly recording: number } {
  return headerShape.check(value) === undefined
}

/**
 * The JSON objects of a text, one a line, without empty lines. `cut`: the last line broke off, because its writer was killed; what
 * stands before it is whole all the same. Throws TypeError where a line that is whole is none.
 */
function jsonLines(text: string, noun: string): { readonly values: readonly Raw[]; readonly cut: boolean } {
  const lines = text.split('\n')
  // What follows the last line end is a line that its writer did not finish, or nothing.
  const last = lines.length - 1
  const values: Raw[] = []
  for (const [at, line] of lines.entries()) {
    if (line.trim() === '') continue
    const value = jsonValue(line)
    if (isRecord(value)) values.push(value)
    else if (at === last) return { values, cut: true }
    else throw new TypeError(`Line ${at + 1} of the ${noun} is not valid JSON`)
  }
  return { values, cut: false }
}

interface Form {
  /** The member of the first line that holds the version. */
  readonly version: 'recording' | 'tape' | 'version'
  /** The first line as it is written today; unchecked, as the lines are. */
  header(first: Raw): unknown
  line(raw: Raw, first: Raw): unknown
}

const forms: readonly Form[] = [
  { version: 'recording', header: first => first, line: raw => raw },
  {
    version: 'tape',
    header: ({ tape, ...more }) => ({ recording: tape, ...more }),
    line: ({ conversation, ...more }) => ({ ...more, connection: conversation }),
  },
  {
    version: 'version',
    header: ({ version, at }) => ({ recording: version, began: timeText(at), by: 'vivarium' }),
    line: (raw, first) => hostLine({ ...raw, at: Number(raw['at']) - Number(first['at']) }),
  },
]

/** The recorder of a host named frames by their way, and kept what is no JSON as a string in their place. */
function hostLine(raw: Raw): Raw {
  const { kind, frame, server, ...more } = raw
  if (kind !== 'out' && kind !== 'in') return raw
  const stored = typeof frame === 'string' ? { text: frame } : { frame }
  return { ...more, ...stored, kind: 'frame', from: kind === 'out' ? 'client' : 'server' }
}

function timeText(at: unknown): string | undefined {
  const time = new Date(Number(at))
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString()
}

/** The connections of a recording in the order in which they were opened, those without frames included. */
export function connectionsOf({ lines }: Pick<RecordingText, 'lines'>): readonly RecordedConnection[] {
  const found = new Map<number, { carrier: Carrier; server?: string; frames: RecordedFrame[] }>()
  for (const [at, line] of lines.entries()) {
    if (line.kind === 'open') {
      const { carrier, server } = line
      found.set(line.connection, { carrier, ...(server !== undefined && { server }), frames: [] })
    }
    if (line.kind !== 'frame') continue
    const { status, headers } = line.http ?? {}
    found.get(line.connection)?.frames.push({
      from: line.from,
      at: line.at,
      text: frameText(line),
      value: frameValue(line),
      line: at + 2,
      ...(status !== undefined && { status }),
      ...(headers !== undefined && { headers }),
    })
  }
  return [...found.values()]
}
