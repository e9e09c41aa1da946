/** All connections of a console to its servers, the frames that passed on them, and sending one of them again. */
import { type Clock, realClock } from '../../core/clock.ts'
import type { Connection } from '../../jsonrpc/connection.ts'
import type { RevisionId } from '../../revisions/index.ts'
import type { ConnectionRow, FrameAgain, FrameDetail, FrameSent, HttpHead } from '../contract/frames.ts'
import { ConsoleFailure } from '../failure.ts'
import { observedFetch, passing } from './http-heads.ts'
import { ObservedConnection } from './observed-connection.ts'
import { FrameRedaction } from './redaction.ts'
import { detailOf, FrameRing, type StoredFrame } from './ring.ts'

/** Connections that have ended and are still listed. */
const mostEnded = 100

/** Observes the connections that one `connect` opens. */
export interface ConnectObserver {
  /** The options of `connect`. */
  readonly options: { wrap(connection: Connection): Connection; readonly fetch: typeof fetch }
  /** The last connection that was opened; undefined before the first. */
  readonly last: ObservedConnection | undefined
  /** The revision is known. */
  settle(revision: RevisionId): void
}

/** What passes between this process and its servers. */
export class Traffic {
  readonly ring = new FrameRing()
  readonly redaction: FrameRedaction
  readonly #clock: Clock
  #connections: ObservedConnection[] = []
  #count = 0
  #authorization: string | undefined
  readonly #followers = new Set<(connection: ConnectionRow) => void>()

  constructor(clock: Clock = realClock, redaction = new FrameRedaction()) {
    this.#clock = clock
    this.redaction = redaction
  }

  /** Observes what a `connect` to a server opens. */
  observe(server: string): ConnectObserver {
    const { redaction } = this
    let last: ObservedConnection | undefined
    const bare: Parameters<typeof observedFetch>[0]['bare'] = ({ head, ms, failed }, of) =>
      last?.note(
        {
          way: head.method === undefined ? 'in' : 'out',
          kind: 'http',
          about: failed === undefined ? aboutHead(head) : redaction.text(failed),
          ...(head.method === undefined && { status: (head.status ?? 400) < 400 ? 'ok' : 'error' }),
          ...(of !== undefined && { of }),
          ...(head.status !== undefined && { http: head.status }),
          ...(ms !== undefined && { ms: Math.round(ms * 100) / 100 }),
        },
        { head },
      )
    return {
      options: {
        wrap: connection => {
          last = this.#connection(connection, server)
          return last.connection
        },
        fetch: observedFetch({ redaction, bare, credentials: authorization => (this.#authorization = authorization) }),
      },
      get last() {
        return last
      },
      settle: revision => last?.settle(revision),
    }
  }

  /** The credentials that went with the last frame over HTTP, as a header. */
  get credentials(): { readonly authorization?: string } {
    return this.#authorization === undefined ? {} : { authorization: this.#authorization }
  }

  /** Does work whose frames belong to a call. */
  during<T>(call: string, work: () => T): T {
    return passing.run({ call }, work)
  }

  /** Open ones first, then newest first. */
  connections(): readonly ConnectionRow[] {
    return this.#connections
      .map(({ row }) => row)
      .reverse()
      .sort((one, other) => Number(other.open) - Number(one.open))
  }

  /** Calls back when a connection was opened, is known better, or has ended; returns the way to stop. */
  follow(follower: (connection: ConnectionRow) => void): () => void {
    this.#followers.add(follower)
    return () => void this.#followers.delete(follower)
  }

  /** A frame, whole. */
  detail(n: number, whole: boolean): FrameDetail | undefined {
    const frame = this.ring.get(n)
    if (frame === undefined) return undefined
    const { row } = frame
    const { revision } = this.#connections.find(each => each.row.name === row.connection)?.row ?? {}
    const notAgain = this.#notAgain(frame)
    return {
      ...detailOf(frame, whole),
      ...(revision !== undefined && { revision }),
      ...(notAgain !== undefined && { notAgain }),
    }
  }

  /** Sends a frame again, as it was or as it was edited. */
  again(n: number, { text, connection }: FrameAgain): FrameSent {
    const frame = this.ring.get(n)
    if (frame === undefined) throw new ConsoleFailure('NOT_FOUND', `Frame ${n} is not stored any more.`, 'Choose a newer one.')
    const refused = this.#notAgain(frame, text !== undefined)
    if (refused !== undefined) throw new ConsoleFailure('INVALID_INPUT', refused, 'Choose another frame.', { member: 'n' })
    const chosen = this.#openFor(frame, connection)
    return { ...chosen.again(text ?? frame.text ?? '', n), connection: chosen.row.name }
  }

  #notAgain({ row, text, cut }: StoredFrame, edited = false): string | undefined {
    if (text === undefined) return 'This row has no frame.'
    if (row.way === 'in') return 'It came from the server.'
    return cut !== undefined && !edited ? 'It is so long that only its beginning is stored.' : undefined
  }

  /** The one that was chosen, its own, or one like it. */
  #openFor({ row }: StoredFrame, chosen: string | undefined): ObservedConnection {
    const own = this.#connections.find(each => each.row.name === (chosen ?? row.connection))
    if (own?.row.open === true) return own
    const like =
      chosen === undefined
        ? this.#connections.findLast(
            each => each.row.open && each.row.server === row.server && each.row.revision === own?.row.revision,
          )
        : undefined
    if (like !== undefined) return like
    throw new ConsoleFailure(
      'INVALID_INPUT',
      chosen === undefined ? 'Its connection has ended.' : 'There is no open connection of this name.',
      'Choose one of the open connections, or make a call at its revision first.',
      { member: 'connection' },
    )
  }

  #connection(inner: Connection, server: string): ObservedConnection {
    const observed = new ObservedConnection(inner, {
      ...{ name: `${server} ${++this.#count}`, server, clock: this.#clock, ring: this.ring, redaction: this.redaction },
      changed: ({ row }) => {
        for (const follower of this.#followers) follower(row)
      },
    })
    const ended = this.#connections.filter(({ row }) => !row.open)
    if (ended.length > mostEnded) this.#connections = this.#connections.filter(each => each !== ended[0])
    this.#connections.push(observed)
    return observed
  }
}

function aboutHead({ method, path, status }: HttpHead): string {
  return [method, path, status].filter(part => part !== undefined).join(' ')
}
