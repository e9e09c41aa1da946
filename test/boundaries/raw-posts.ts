/** Requests over HTTP without a socket, from any address or user, to a real server. */
import type { Server } from 'vivarium/server'
import type { Caller, Lane, Principal, SendHints } from '../../src/jsonrpc/connection.ts'
import { type Frame, helloParams } from '../spec/wire.ts'

export interface Answer {
  readonly status: number
  readonly frame: Frame | undefined
  readonly session: string | undefined
}

/** A user, by one of the programs that act for it. */
export const user = (subject: string, client = 'app'): Principal => ({
  id: JSON.stringify(['https://issuer', subject, client]),
  issuer: 'https://issuer',
  subject,
  client,
})

export interface From {
  readonly address?: string
  readonly principal?: Principal
  readonly session?: string | undefined
  /** What the header says that the request is about, where that is not `params.name`. */
  readonly name?: string
}

/** One exchange over HTTP, without the socket. */
export function post(server: Server, body: Frame, { address, principal, session, name }: From = {}): Promise<Answer> {
  const params = body['params'] as Frame | undefined
  const headers: Record<string, string | undefined> = { 'mcp-session-id': session }
  if (params?.['_meta'] !== undefined) {
    headers['mcp-protocol-version'] = '2026-07-28'
    headers['mcp-method'] = body['method'] as string
    headers['mcp-name'] = name ?? (params['name'] as string | undefined)
  }
  return new Promise(resolve => {
    const connection = address === undefined ? {} : { remoteAddress: address }
    const caller: Caller = { carrier: 'http', connection, principal, header: name => headers[name] }
    const settle = (frame: string | undefined, hints: SendHints | undefined, standard: number): void =>
      resolve({
        status: hints?.status ?? standard,
        frame: frame === undefined ? undefined : JSON.parse(frame),
        session: hints?.headers?.['mcp-session-id'],
      })
    const send: Lane['send'] = (frame, hints) => {
      if (hints?.final === true) settle(frame, hints, 200)
    }
    const lane: Lane = { send, end: hints => settle(undefined, hints, 202), closed: false, onClose: () => {} }
    server.acceptor.deliver(JSON.stringify({ jsonrpc: '2.0', id: 1, ...body }), caller, lane)
  })
}

export const hello = { method: 'initialize', params: helloParams('2025-11-25') }
export const ping = { method: 'ping' }
