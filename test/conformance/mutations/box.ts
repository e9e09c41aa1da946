/** A box between a server and whoever judges it, which changes what passes: the server inside is whole, the one outside has one fault. */
import { type Acceptor, type Connection, ConnectionError, type Sink } from '../../../src/jsonrpc/connection.ts'
import { isRecord } from '../../../src/jsonrpc/message.ts'

export type Json = Readonly<Record<string, unknown>>

/** What becomes of a message: itself again, others in its place, or nothing. */
export type Passed = Json | readonly Json[] | undefined

/** One fault. What it does not speak of passes as it is. */
export interface Fault {
  /** What the other end says, on its way in. */
  incoming?(message: Json, box: Box): Passed
  /** An answer of the server, with the request that it answers. */
  answer?(answer: Json, request: Json, box: Box): Passed
  /** What the server says by itself. */
  own?(message: Json, box: Box): Passed
}

export interface Box {
  /** To the one outside, later than what is on its way. */
  say(message: Json): void
  /** To the server, as if it had come from outside. */
  ask(message: Json): void
}

/** The same door, with the fault in it. Faults that remember something remember it for all connections. */
export function faultyAcceptor(acceptor: Acceptor, fault: Fault): Acceptor {
  return {
    deliver: (text, caller, reply) => acceptor.deliver(text, caller, reply),
    listen: (caller, lane) => acceptor.listen(caller, lane),
    leave: (caller, reply) => acceptor.leave(caller, reply),
    accept: connection => acceptor.accept(faulty(connection, fault)),
  }
}

function faulty(connection: Connection, fault: Fault): Connection {
  const requests = new Map<unknown, Json>()
  let sink: Sink | undefined
  const out = (message: Json): void => {
    const sent = connection.send(JSON.stringify(message))
    // Whoever has gone misses nothing.
    if (sent instanceof Promise) sent.catch(error => void (error instanceof ConnectionError))
  }
  const box: Box = {
    say: message => void setTimeout(() => out(message), 5),
    ask: message => sink?.frame(JSON.stringify(message)),
  }
  const listOf = (passed: Passed): readonly Json[] => (passed === undefined ? [] : isList(passed) ? passed : [passed])
  const inward = (message: Json): readonly Json[] => {
    const passed = listOf(fault.incoming === undefined ? message : fault.incoming(message, box))
    for (const one of passed) if (typeof one['method'] === 'string' && one['id'] !== undefined) requests.set(one['id'], message)
    return passed
  }
  const sendContext = (message: Json): readonly Json[] => {
    if (typeof message['method'] === 'string') return listOf(fault.own === undefined ? message : fault.own(message, box))
    const request = requests.get(message['id'])
    if (request === undefined || fault.answer === undefined) return [message]
    return listOf(fault.answer(message, request, box))
  }
  return {
    carrier: connection.carrier,
    ...(connection.caller === undefined ? {} : { caller: connection.caller }),
    start: given => {
      sink = given
      return connection.start({
        frame: (text, status) => {
          const value = parsed(text)
          if (Array.isArray(value) && value.every(isRecord)) given.frame(JSON.stringify(value.flatMap(inward)), status)
          else if (isRecord(value)) for (const one of inward(value)) given.frame(JSON.stringify(one), status)
          else given.frame(text, status)
        },
        fault: wrong => given.fault(wrong),
        closed: reason => given.closed(reason),
      })
    },
    send: text => {
      const value = parsed(text)
      if (Array.isArray(value) && value.every(isRecord)) return connection.send(JSON.stringify(value.flatMap(sendContext)))
      if (!isRecord(value)) return connection.send(text)
      for (const one of sendContext(value)) out(one)
      return undefined
    },
    close: () => connection.close(),
  }
}

function isList(passed: Json | readonly Json[]): passed is readonly Json[] {
  return Array.isArray(passed)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
