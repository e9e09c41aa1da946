/** A gateway that listens with fixed tokens, before a server whose tools wait and count; for tests of who may call it. */
import type { IncomingMessage } from 'node:http'
import { onTestFinished } from 'vitest'
import { type Client, type ConnectOptions, connect } from '../../src/client/index.ts'
import { createGateway, type Gateway, type GatewayOptions } from '../../src/gateway/index.ts'
import { type Upstream, upstreamOf } from '../gateway/world.ts'

export const tokens = { ann: 'the-token-of-ann-0123456789', bob: 'the-token-of-bob-0123456789' }
export const everyone: GatewayOptions = { auth: { tokens }, clients: { ann: {}, bob: {} } }
/** Ann is gone: her token, and the client of her name. */
export const onlyBob: GatewayOptions = { auth: { tokens: { bob: tokens.bob } }, clients: { bob: {} } }

export interface Guarded {
  readonly gateway: Gateway
  readonly bank: Upstream
  readonly url: string
  readonly origin: string
  /** How many calls of `wait` hang at the server, and how many of them were cancelled there. */
  readonly hangs: { now: number; cancelled: number }
  /** Other trust settings beside the same servers. */
  reload(options: GatewayOptions): Promise<unknown>
}

/** The tool `wait` hangs until it is cancelled. `more`: servers beside the bank. */
export async function guardedGateway(options: GatewayOptions = everyone, more: GatewayOptions['servers'] = {}): Promise<Guarded> {
  const bank = upstreamOf()
  const hangs = { now: 0, cancelled: 0 }
  bank.server.tool('wait', {}, (_, { signal }) => {
    hangs.now++
    return new Promise<string>((_resolve, reject) => {
      signal.addEventListener('abort', () => {
        hangs.cancelled++
        reject(new Error('cancelled'))
      })
    })
  })
  const fixed = {
    servers: { bank: bank.target, ...more },
    log: 'silent' as const,
    drain: 1,
    listen: { wsPath: '/ws', ssePath: '/sse' },
  }
  const gateway = await createGateway({ ...fixed, ...options })
  onTestFinished(() => gateway.close())
  await gateway.ready()
  const { url, port } = await gateway.listen()
  return { gateway, bank, url, origin: `http://127.0.0.1:${port}`, hangs, reload: next => gateway.reload({ ...fixed, ...next }) }
}

export function bearerOf(name: keyof typeof tokens): { readonly authorization: string } {
  return { authorization: `Bearer ${tokens[name]}` }
}

export async function clientAt(url: string, name: keyof typeof tokens, options: ConnectOptions = {}): Promise<Client> {
  const client = await connect(url, { headers: bearerOf(name), retry: false, ...options })
  onTestFinished(() => client.close())
  return client
}

/** Resolves with all that a stream still says before it ends. */
export async function restOf(response: IncomingMessage): Promise<string> {
  let text = ''
  try {
    for await (const chunk of response.setEncoding('utf8')) text += chunk
  } catch {
    return text
  }
  return text
}
