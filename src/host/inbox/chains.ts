/**
 * Chains: an event becomes a turn, the turn reaches a server by a call or a hook, the server pushes the next event, and so on. How
 * deep an event lies in one is known where its server says which inference it came of. Where it does not, it can only be suspected:
 * the event came while a turn was at that server, or right after.
 */
import type { Clock } from '../../core/clock.ts'
import { type Duration, durationText, toMilliseconds } from '../../core/duration.ts'
import { quoted, type Why, why } from '../../core/why.ts'
import type { PushEvent } from '../../features/live/push-events/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'

/** How long chains of events may become. */
export interface ChainOptions {
  /** Events in a row, each brought about by the turn of the one before. Default 8. */
  readonly depth?: number
  /** How long after a call or a hook an event of that server may have come of it. Default 1 s. */
  readonly window?: Duration
  /** How long an event waits that seems to lie deeper. Default 10 s. */
  readonly pause?: Duration
}

/** Where an event stands in the chain that led to it. */
export interface ChainPosition {
  /** 1: nothing of ours brought it about, as far as is known. */
  readonly depth: number
  /** Servers whose events began the turns that it came of, or may have come of. */
  readonly through: readonly string[]
  /** Its server said so. */
  readonly told: boolean
}

/** A turn that an event began: how deep it lies, and the servers whose events led to it. */
interface ChainedTurn {
  readonly depth: number
  readonly servers: readonly string[]
}

const usersTurn: ChainedTurn = { depth: 0, servers: [] }

/** A turn that is, or was just now, at a server. */
interface Visit {
  readonly turn: ChainedTurn
  ended: number | undefined
}

const remembered = 10_000
/** Visits of one server that are told apart, at most: beyond that the oldest are forgotten. */
const visitsKept = 100

/** Knows which event led to which, so that servers cannot wake each other without end. */
export class Chains {
  readonly depth: number
  readonly pauseMs: number
  readonly #windowMs: number
  readonly #clock: Clock
  /** The turns that events began, by inference, the oldest first. */
  readonly #turns = new Map<string, ChainedTurn>()
  readonly #visits = new Map<string, Visit[]>()

  constructor({ depth = 8, window = '1s', pause = '10s' }: ChainOptions, clock: Clock) {
    if (!Number.isSafeInteger(depth) || depth < 1)
      throw new TypeError(`inbox.chain.depth is ${depth}: give a whole number from 1`)
    this.depth = depth
    this.#windowMs = toMilliseconds(window, 'inbox.chain.window')
    this.pauseMs = toMilliseconds(pause, 'inbox.chain.pause')
    this.#clock = clock
  }

  /** An event becomes a turn. */
  began(inferenceId: string, depth: number, servers: readonly string[] = []): void {
    this.#turns.delete(inferenceId)
    this.#turns.set(inferenceId, { depth, servers })
    const [oldest] = this.#turns.size > remembered ? this.#turns.keys() : []
    if (oldest !== undefined) this.#turns.delete(oldest)
  }

  /** A turn is at a server; what is returned says that it has left it. */
  visits(server: string, inferenceId: string): () => void {
    const visit: Visit = { turn: this.#turns.get(inferenceId) ?? usersTurn, ended: undefined }
    const visits = this.#fresh(server)
    visits.push(visit)
    this.#visits.set(server, visits.slice(-visitsKept))
    return () => {
      visit.ended = this.#clock.now()
    }
  }

  /** Where an event stands that comes now. */
  placeOf(server: string, { origin, extra }: PushEvent): ChainPosition {
    const named = origin?.['inferenceId'] ?? extra?.['inferenceId']
    const known = typeof named === 'string' ? this.#turns.get(named) : undefined
    const visits = this.#visits.has(server) ? this.#fresh(server).map(({ turn }) => turn) : []
    // What a server says makes it no less likely that the others were the cause: who is suspected stays so.
    const led = (known === undefined ? visits : [known, ...visits]).flatMap(({ servers }) => servers)
    const through = [...new Set(led)].filter(other => other !== server).sort()
    if (known !== undefined) return { depth: known.depth + 1, told: true, through }
    return { depth: Math.max(-1, ...visits.map(({ depth }) => depth)) + 1 || 1, told: false, through }
  }

  /** Why one that lies too deep does not run, or not now. */
  tooDeep(server: string, { eventId }: PushEvent, { depth, told }: ChainPosition): Why {
    const what = `Event ${quoted(eventId)} of ${clip(server)}`
    const rule = `inbox.chain.depth ${this.depth}`
    if (told) {
      const message = `${what} is number ${depth} of events that each came of the one before`
      return why('CHAIN_TOO_DEEP', rule, message, 'Let the server not answer its own events, or raise inbox.chain.depth')
    }
    const message = `${what} seems to be number ${depth} of events that each came of the one before: it waits ${durationText(this.pauseMs)}`
    const fix = 'Let the server say origin.inferenceId where it knows what an event came of, or raise inbox.chain.depth'
    return why('CHAIN_TOO_DEEP', rule, message, fix)
  }

  #fresh(server: string): Visit[] {
    const since = this.#clock.now() - this.#windowMs
    const fresh = (this.#visits.get(server) ?? []).filter(({ ended }) => ended === undefined || ended >= since)
    if (fresh.length === 0) this.#visits.delete(server)
    return fresh
  }
}
