/** A console before a real server in memory, for tests: the playground of whoever writes a server. */
import { onTestFinished } from 'vitest'
import type { Call } from '../../src/console/contract/calls.ts'
import type { FrameRow } from '../../src/console/contract/frames.ts'
import type { Role } from '../../src/console/contract/session.ts'
import { type ConsoleOptions, serveConsole } from '../../src/console/serve.ts'
import type { PlaygroundOptions } from '../../src/console/shown.ts'
import type { Connection } from '../../src/jsonrpc/connection.ts'
import { createServer, jsonSchema, type Server, text } from '../../src/server/index.ts'
import { memoryPair } from '../../src/testing/index.ts'
import { signedIn } from './gateway-console.ts'

const order = jsonSchema<{ item: string; token?: string }>({
  type: 'object',
  properties: { item: { type: 'string' }, token: { type: 'string' } },
  required: ['item'],
})

const loaves = jsonSchema<{ loaves: number }>({ type: 'object', properties: { loaves: { type: 'integer' } } })

/** A shop: `order` answers at once, `wait` until its call is cancelled, `ask` after a form, `think` after an inference; a prompt, a resource and a template. */
export function shop(amount = 1): Server {
  const server = createServer({ name: 'shop', version: '1.0.0', log: 'silent' })
  server.tool(
    'order',
    { description: 'Orders', input: order, annotations: { destructiveHint: false } },
    ({ item }) => `${amount} ${item}`,
  )
  server.tool('large', {}, () => 'x'.repeat(300_000))
  server.tool('wait', {}, async (_, { signal }) => {
    await new Promise(resolve => signal.addEventListener('abort', resolve))
    return 'stopped'
  })
  server.tool('ask', {}, async (_, ctx) => JSON.stringify(await ctx.elicit({ message: 'How many?', schema: loaves })))
  server.tool('think', {}, async (_, ctx) => {
    const { content } = await ctx.sample({ messages: [{ role: 'user', content: text('Why?') }], maxTokens: 9 })
    return JSON.stringify(content)
  })
  server.prompt('greet', { arguments: { name: { required: true } } }, ({ name }) => `Hello ${name}`)
  server.resource('note://1', { name: 'note' }, () => 'a note')
  server.resource('page://{number}', { name: 'page' }, ({ number }) => `page ${number}`)
  onTestFinished(() => server.close())
  return server
}

/** Opens connections to a server in memory. */
export function inMemory(server: Server): () => Connection {
  return () => {
    const [near, far] = memoryPair()
    server.acceptor.accept(far)
    return near
  }
}

/** A console for a server, and browsers that are signed in. */
export async function playgroundWorld(
  { server = shop(), ...playground }: Partial<PlaygroundOptions> & { readonly server?: Server } = {},
  options: Partial<ConsoleOptions> = {},
) {
  const wanted: PlaygroundOptions = { target: inMemory(server), name: 'shop', ...playground }
  const running = await serveConsole({ playground: wanted, by: 'ann', port: 0, ...options })
  onTestFinished(() => running.close())
  const page = async (who: { readonly by?: string; readonly roles?: readonly Role[] } = {}) => {
    const me = await signedIn(running, running.newLink(who))
    return {
      ...me,
      /** Frames that match, oldest first. */
      frames: async (query = '') => ((await me.get(`/frames?limit=1000&${query}`)).body['items'] as FrameRow[]).toReversed(),
      /** A call, when it has ended. */
      called: async (wish: object): Promise<Call> => {
        const { id } = (await me.post('/calls', wish)).body as unknown as Call
        for (;;) {
          const call = (await me.get(`/calls/${id}`)).body as unknown as Call
          if (call.state !== 'running') return call
          await new Promise(resolve => setTimeout(resolve, 10))
        }
      },
    }
  }
  return { console: running, server, page }
}
