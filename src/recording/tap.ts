/** Listens in on a connection: what passes in either direction, without changing anything about it. */
import type { Connection, Outgoing } from '../jsonrpc/connection.ts'

/** A frame as it passed, seen from the end that was tapped. */
export interface PassedFrame {
  readonly way: 'out' | 'in'
  readonly text: string
  /** The HTTP status that carried it, where there was one. */
  readonly status?: number | undefined
  /** What travelled with a frame that went out. */
  readonly outgoing?: Outgoing | undefined
}

/** Told of every frame. */
export type OnFrame = (frame: PassedFrame) => void

/** The same connection, with every frame told to `onFrame` just before it goes on its way, and its end to `onClosed`. */
export function tapConnection(connection: Connection, onFrame: OnFrame, onClosed?: (reason?: Error) => void): Connection {
  const { listen, drop, rest, expire } = connection
  return {
    carrier: connection.carrier,
    ...(connection.caller === undefined ? {} : { caller: connection.caller }),
    start: sink =>
      connection.start({
        frame: (text, status, within) => {
          onFrame({ way: 'in', text, status })
          sink.frame(text, status, within)
        },
        fault: fault => sink.fault(fault),
        closed: reason => {
          onClosed?.(reason)
          sink.closed(reason)
        },
        hold: (id, held) => sink.hold?.(id, held),
        released: (id, retryMs) => sink.released?.(id, retryMs),
        quiet: () => sink.quiet?.() ?? Promise.resolve(),
      }),
    send: (text, outgoing) => {
      onFrame({ way: 'out', text, outgoing })
      return connection.send(text, outgoing)
    },
    ...(listen === undefined ? {} : { listen: (outgoing, user) => listen.call(connection, outgoing, user) }),
    ...(drop === undefined ? {} : { drop: (id, reason) => drop.call(connection, id, reason) }),
    ...(rest === undefined ? {} : { rest: ms => rest.call(connection, ms) }),
    ...(expire === undefined ? {} : { expire: () => expire.call(connection) }),
    close: () => connection.close(),
  }
}
