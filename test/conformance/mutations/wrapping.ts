/** A client with one fault: what it sends and hears passes through hands that change it. */
import type { ConnectOptions } from '../../../src/client/api.ts'
import type { Connection, Outgoing, Sink } from '../../../src/jsonrpc/connection.ts'

export type Message = Record<string, unknown>

/** What goes on in the place of a message; undefined: nothing does. */
export type Change = (message: Message, hands: Hands) => Message | readonly unknown[] | undefined

export interface Hands {
  /** Sends something more. */
  send(message: unknown): void
  /** What the fault remembers. */
  readonly memory: Map<string, unknown>
}

export interface Fault {
  readonly out?: Change
  readonly in?: Change
  /** Changes the headers of an HTTP request. */
  readonly headers?: (headers: Headers, body: string) => void
}

export function faulty({ out, in: inward, headers }: Fault): ConnectOptions {
  return {
    ...(out === undefined && inward === undefined ? {} : { wrap: connection => wrapped(connection, out, inward) }),
    ...(headers === undefined
      ? {}
      : {
          fetch: (url, init) => {
            const changed = new Headers(init?.headers)
            headers(changed, String(init?.body ?? ''))
            return fetch(url, { ...init, headers: changed })
          },
        }),
  }
}

function wrapped(inner: Connection, out: Change = message => message, inward: Change = message => message): Connection {
  const memory = new Map<string, unknown>()
  const raw = (text: string, outgoing?: Outgoing): void | Promise<void> => inner.send(text, outgoing)
  const hands: Hands = { memory, send: message => void Promise.resolve(raw(JSON.stringify(message))).catch(() => {}) }
  return new Proxy(inner, {
    get(target, name) {
      if (name === 'send')
        return (text: string, outgoing?: Outgoing) => {
          const changed = out(JSON.parse(text) as Message, hands)
          return changed === undefined ? undefined : raw(JSON.stringify(changed), outgoing)
        }
      if (name === 'start')
        return (sink: Sink) =>
          inner.start({
            ...sinkOf(sink),
            frame: (text, status) => {
              const heard = changedText(text, inward, hands)
              if (heard !== undefined) sink.frame(heard, status)
            },
          })
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

function sinkOf(sink: Sink): Sink {
  return {
    frame: (text, status) => sink.frame(text, status),
    fault: fault => sink.fault(fault),
    closed: reason => sink.closed(reason),
    ...(sink.hold === undefined ? {} : { hold: (id, held) => sink.hold?.(id, held) }),
    ...(sink.quiet === undefined ? {} : { quiet: () => sink.quiet?.() ?? Promise.resolve() }),
  }
}

/** What is no message passes as it is. */
function changedText(text: string, change: Change, hands: Hands): string | undefined {
  let message: unknown
  try {
    message = JSON.parse(text)
  } catch {
    return text
  }
  if (typeof message !== 'object' || message === null || Array.isArray(message)) return text
  const changed = change(message as Message, hands)
  return changed === undefined ? undefined : JSON.stringify(changed)
}
