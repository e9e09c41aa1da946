/** A stream that this process writes to a store: what waits to be written, and which values of it lie there. */
import { type Op, put } from '../../stores/store.ts'
import { byteLength } from './event.ts'
import type { HttpLimits } from './limits.ts'
import { pack } from './log-chunks.ts'
import { chunkKey, chunksOf, type Ending, recordKey, type StreamRecord } from './log-records.ts'
import type { LoggedEvent, StreamFacts } from './stream-log.ts'

interface Written {
  readonly key: string
  readonly bytes: number
  /** Events that begin in it. */
  readonly events: number
  /** The number of the last event in it. */
  readonly last: number
  readonly at: number
}

/** What one commit writes of a stream, and what then holds. */
export interface CommitPlan {
  readonly own: OwnStream
  readonly ops: readonly Op[]
  readonly added: readonly Written[]
  readonly bytes: number
  readonly events: number
  readonly through: number
  readonly over: Ending | undefined
}

export class OwnStream {
  readonly session: string
  readonly id: string
  readonly facts: StreamFacts
  /** In whose share it counts. */
  readonly account: string
  /** The digest of its session, known from the first commit on. */
  key = ''
  over: Ending | undefined = undefined
  /** Nothing of it is to be kept. */
  dropped = false
  /** Its session is no more served here. */
  left = false
  /** Until when another process is known to tell it to a reader of its own. */
  followedUntil = 0
  followedVersion = 0
  /** Its reader has come back here: who followed it up to this look does so no more. */
  recalledIn = 0
  /** Whether this process is held to be alive for it. */
  held = false
  /** When its record must be written anew, so that it stays. */
  dueAt = 0
  /** Of what lies on the store. */
  bytes = 0
  events = 0
  #waiting: LoggedEvent[] = []
  #waitingBytes = 0
  #written: Written[] = []
  #ordinal = 0

  constructor(session: string, id: string, facts: StreamFacts, account = `session ${session}`) {
    this.session = session
    this.account = account
    this.id = id
    this.facts = facts
  }

  /** Gives how many events had to go: where the store takes nothing for a while, the oldest do, as they would in the log. */
  append(event: LoggedEvent, { logEvents, logBytes }: HttpLimits): number {
    this.#waiting.push(event)
    this.#waitingBytes += byteLength(event.frame)
    let lost = 0
    while (this.#waiting.length > 1 && (this.#waiting.length > logEvents || this.#waitingBytes > logBytes)) {
      this.#waitingBytes -= byteLength(this.#waiting.shift()?.frame ?? '')
      lost++
    }
    return lost
  }

  plan(runner: string, now: number, ttl: number): CommitPlan {
    const prefix = chunksOf(this.key, this.id)
    const chunks = pack(this.#waiting)
    const added = chunks.map(({ text, events, last }, index) => {
      return { key: chunkKey(prefix, this.#ordinal + index), bytes: byteLength(text), events, last, at: now }
    })
    const { over, facts } = this
    const record: StreamRecord = { runner, ...facts, ...(over === undefined ? {} : { over }) }
    const ops = [put(recordKey(this.key, this.id), JSON.stringify(record), { ttl })]
    for (const [index, { text }] of chunks.entries()) ops.push(put(added[index]?.key ?? '', text, { ttl }))
    const bytes = added.reduce((sum, chunk) => sum + chunk.bytes, 0)
    return { own: this, ops, added, bytes, events: this.#waiting.length, through: this.#waiting.at(-1)?.number ?? 0, over }
  }

  /** Whether nothing has come since. */
  done({ added, bytes, events, through, over }: CommitPlan): boolean {
    this.#waiting = this.#waiting.filter(({ number }) => number > through)
    this.#waitingBytes = this.#waiting.reduce((sum, { frame }) => sum + byteLength(frame), 0)
    this.#written.push(...added)
    this.#ordinal += added.length
    this.bytes += bytes
    this.events += events
    return this.#waiting.length === 0 && this.over === over
  }

  /** Lets go of the oldest values while there is too much, or they are too old; gives their keys. The newest stays: it may be the answer. */
  shed(tooMuch: (bytes: number, events: number) => boolean, oldest: number, all = false): readonly string[] {
    const newest = all ? undefined : this.#written.at(-1)?.last
    let count = 0
    for (const { last, at, bytes, events } of this.#written) {
      if (last === newest || (at > oldest && !tooMuch(this.bytes, this.events))) break
      this.bytes -= bytes
      this.events -= events
      count++
    }
    return this.#written.splice(0, count).map(({ key }) => key)
  }
}
