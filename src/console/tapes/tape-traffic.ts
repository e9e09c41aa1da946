/** The frames of a tape as traffic that has passed: listed and shown like those of a connection, without a server behind them. */
import type { Id } from '../../jsonrpc/message.ts'
import type { Tape } from '../../recording/mock-server.ts'
import type { RecordedFrame } from '../../recording/read.ts'
import type { ConnectionRow, FrameDetail } from '../contract/frames.ts'
import { FrameRedaction } from '../frames/redaction.ts'
import { detailOf, FrameRing, type StoredFrame } from '../frames/ring.ts'
import { summaryOf } from '../frames/summary.ts'

/** A tape is read as a whole, so that more of it is held than of what goes on passing. */
const mostFrames = 100_000

interface PlacedFrame {
  readonly connection: string
  readonly frame: RecordedFrame
}

/** All that is on a tape. */
export class TapeTraffic {
  readonly ring = new FrameRing(mostFrames)
  readonly #began: number
  readonly #server: string
  readonly #rows: readonly ConnectionRow[]
  readonly #redaction = new FrameRedaction()
  /** Requests by connection, way and id. */
  readonly #requests = new Map<string, StoredFrame>()

  constructor({ header, conversations }: Tape, server: string) {
    this.#began = Date.parse(header.began)
    this.#server = server
    const placed = conversations.flatMap(({ frames }, at): readonly PlacedFrame[] =>
      frames.map(frame => ({ connection: `${server} ${at + 1}`, frame })),
    )
    for (const each of placed.sort((one, other) => one.frame.at - other.frame.at)) this.#add(each)
    this.#rows = conversations.map(({ carrier, frames }, at) => ({
      ...{ name: `${server} ${at + 1}`, server, carrier, open: false },
      ...{ since: this.#began + (frames[0]?.at ?? 0), until: this.#began + (frames.at(-1)?.at ?? 0) },
    }))
  }

  /** All connections of the tape, in their order. */
  connections(): readonly ConnectionRow[] {
    return this.#rows
  }

  /** A frame, whole. */
  detail(n: number, whole: boolean): FrameDetail | undefined {
    const frame = this.ring.get(n)
    return frame && { ...detailOf(frame, whole), notAgain: 'A tape has no server to send it to.' }
  }

  #add({ connection, frame: { from, at, text, status, headers } }: PlacedFrame): void {
    const clean = this.#redaction.frame(text)
    const { about, token: _, asks, answers, ...summary } = summaryOf(clean.value, clean.text)
    const way = from === 'client' ? 'out' : 'in'
    const other = way === 'out' ? 'in' : 'out'
    const request = answers.map(id => this.#requests.get(keyOf(connection, other, id))).find(each => each !== undefined)
    const time = this.#began + at
    const head = { ...(status !== undefined && { status }), ...(headers !== undefined && { headers }) }
    const stored = this.ring.add({
      ...{ text: clean.text, taken: clean.taken, ...(Object.keys(head).length > 0 && { head }) },
      row: {
        ...{ at: time, server: this.#server, connection, way, bytes: Buffer.byteLength(text), about, ...summary },
        ...(status !== undefined && { http: status }),
        ...(request !== undefined && { ...answering(request), ms: Math.round((time - request.row.at) * 100) / 100 }),
      },
    })
    for (const { id } of asks) this.#requests.set(keyOf(connection, way, id), stored)
    if (request === undefined) return
    const { n, ms, status: outcome } = stored.row
    const { row } = request
    request.row = { ...row, answer: n, ...(ms !== undefined && { ms }), ...(outcome !== undefined && { status: outcome }) }
  }
}

function keyOf(connection: string, way: string, id: Id): string {
  return JSON.stringify([connection, way, id])
}

function answering({ row: { n, method } }: StoredFrame) {
  return { of: n, ...(method !== undefined && { method }) }
}
