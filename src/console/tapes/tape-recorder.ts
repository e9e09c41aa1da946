/** Writes what passes on the connections of a console into a tape, in the format of `vivarium record`. */
import { type Clock, realClock } from '../../core/clock.ts'
import { RecordingWriter } from '../../recording/writer.ts'
import type { StoredFrame } from '../frames/ring.ts'
import type { Traffic } from '../frames/traffic.ts'

/** Messages by which a connection is begun: without them a tape could not be replayed. */
const opening: ReadonlySet<string> = new Set(['initialize', 'notifications/initialized', 'server/discover'])

interface RecorderParts {
  readonly file: string
  readonly target: string
  readonly traffic: Traffic
  /** Also write what is stored of the time before. */
  readonly past: boolean
  readonly clock: Clock
  /** A frame was written. */
  wrote(): void
}

type Lines = ReturnType<RecordingWriter['connection']>

/** A recording in progress. Frames are written without their secrets, as they are stored. */
export class TapeRecorder {
  readonly began: number
  readonly #parts: RecorderParts
  readonly #writer: RecordingWriter
  readonly #connections = new Map<string, Lines>()
  readonly #stop: () => void
  /** The time of the frame that is being written. */
  #at: number
  #frames = 0

  constructor(parts: RecorderParts) {
    const { file, target, traffic, past, clock, wrote } = parts
    this.#parts = parts
    const before = traffic.ring.all()
    this.began = Math.floor(past ? (before[0]?.row.at ?? clock.now()) : clock.now())
    this.#at = this.began
    this.#writer = new RecordingWriter(file, { target, clock: { ...realClock, now: () => this.#at } })
    this.#writer.begin()
    if (past) for (const frame of before) this.#write(frame, frame.text)
    this.#stop = traffic.ring.follow((frame, whole) => {
      this.#write(frame, whole)
      wrote()
    })
  }

  /** How much is on the tape. */
  get counts(): { readonly frames: number; readonly connections: number } {
    return { frames: this.#frames, connections: this.#connections.size }
  }

  /** Ends it. Throws where something could not be written. */
  stop(): void {
    this.#stop()
    this.#writer.close()
  }

  #write(frame: StoredFrame, text: string | undefined): void {
    const { row, head } = frame
    this.#at = row.at
    const lines = this.#linesOf(frame)
    if (row.kind === 'closed') return void lines?.closed(row.about === '' ? undefined : row.about)
    if (text === undefined || lines === undefined) return
    this.#frames++
    const http = head ?? (row.http === undefined ? undefined : { status: row.http })
    lines.frame(row.way === 'out' ? 'client' : 'server', text, http === undefined ? {} : { http })
  }

  /** Undefined for the end of a connection of which nothing is on the tape. */
  #linesOf({ row }: StoredFrame): Lines | undefined {
    const known = this.#connections.get(row.connection)
    if (known !== undefined || row.kind === 'closed' || row.kind === 'http') return known
    const { traffic } = this.#parts
    const { carrier = 'memory' } = traffic.connections().find(({ name }) => name === row.connection) ?? {}
    const lines = this.#writer.connection(carrier)
    this.#connections.set(row.connection, lines)
    // It was opened before the recording began: how it was opened is written first.
    const first = traffic.ring.all().filter(each => each.row.connection === row.connection && each.row.n < row.n)
    for (const each of first) if (opening.has(each.row.method ?? '')) this.#write(each, each.text)
    this.#at = row.at
    return lines
  }
}
