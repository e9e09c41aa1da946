/** A console before a real host with real servers in memory, for tests. */
import { expect, onTestFinished } from 'vitest'
import { createApprovalQueue } from '../../src/console/approvals.ts'
import type { Role } from '../../src/console/contract/session.ts'
import { observeHost } from '../../src/console/host/observer.ts'
import { type ConsoleOptions, serveConsole } from '../../src/console/serve.ts'
import { createHost } from '../../src/host/create.ts'
import type { HostOptions } from '../../src/host/host.ts'
import { scripted } from '../../src/host/models/scripted.ts'
import { createServer, jsonSchema, type Server } from '../../src/server/index.ts'
import { memoryPair } from '../../src/transports/memory.ts'
import { signedIn } from './gateway-console.ts'

const secret = 'a-secret-of-thirty-two-characters!'
const text = jsonSchema<{ readonly text: string }>({
  type: 'object',
  properties: { text: { type: 'string' } },
  required: ['text'],
})

const count = jsonSchema<{ readonly count: number }>({
  type: 'object',
  properties: { count: { type: 'number' } },
  required: ['count'],
})

/** Notes whose state can be rolled back. */
export function notesServer(): Server {
  const server = createServer({ name: 'notes', version: '1.0.0', secret, log: 'silent' })
  const notes = server.featureSet('notes.edit', { description: 'Notes', rollback: true, hostState: true })
  notes.tool('add_note', { input: text }, async ({ text: note }, ctx) => {
    const before = await ctx.state.get<{ readonly notes: readonly string[] }>()
    if (before === undefined) await ctx.state.set({ notes: [note] })
    else await ctx.state.patch([{ op: 'add', path: '/notes/-', value: note }])
    return `${(before?.notes.length ?? 0) + 1} notes`
  })
  return server
}

/** A shop: `create` has a compensation, `mail` has none, `ask` asks the user. `news` wakes the agent. */
export function shopServer() {
  const server = createServer({ name: 'shop', version: '1.0.0', secret, store: 'memory:', log: 'silent' })
  const news = server.featureSet('shop.news', { description: 'News', uses: ['pushEvents'] })
  const made: string[] = []
  server.tool(
    'create',
    { input: text, undo: { tool: 'remove', arguments: ({ args }) => ({ text: args.text }) } },
    ({ text: title }) => {
      made.push(title)
      return `created ${title}`
    },
  )
  server.tool('remove', { input: text, idempotent: true }, ({ text: title }) => {
    made.splice(made.indexOf(title), 1)
    return `removed ${title}`
  })
  server.tool('mail', { input: text }, () => 'sent')
  server.tool('long', { annotations: { readOnlyHint: true } }, () => 'x'.repeat(5_000))
  server.tool('ask', {}, async (_, ctx) => {
    const answer = await ctx.elicit({ message: 'How many?', schema: count })
    return answer.action === 'accept' ? `accept ${JSON.stringify(answer.content)}` : answer.action
  })
  return { server, news, made }
}

/** The same server, however often it is connected. */
export function target(server: Server) {
  return () => {
    const [here, there] = memoryPair()
    server.acceptor.accept(there)
    return here
  }
}

/** A host with these options, a queue that answers its questions, and a console. */
export async function hostWorld(given: HostOptions = {}, options: Partial<ConsoleOptions> = {}) {
  const approvals = createApprovalQueue()
  const { onApproval, onElicit, onSampleReview } = approvals
  const onTrouble = () => {}
  const observed = observeHost({ model: scripted([]), onApproval, onElicit, onSampleReview, onTrouble, ...given })
  const host = await createHost(observed.options)
  const running = await serveConsole({ host, observer: observed.observer, approvals, by: 'ann', port: 0, ...options })
  onTestFinished(async () => {
    approvals.close()
    await running.close()
    await host.close()
  })
  return {
    ...{ host, approvals, console: running, observe: observed },
    page: (who: { readonly by?: string; readonly roles?: readonly Role[] } = {}) => signedIn(running, running.newLink(who)),
  }
}

/** Sends a message through the page, and waits until its turn has ended. */
export async function told(me: Awaited<ReturnType<typeof signedIn>>, message: string, conversation = 'main') {
  const path = `/conversations/${encodeURIComponent(conversation)}/turns`
  const sent = await me.post(path, { text: message })
  expect(sent.status).toBe(202)
  const seq = Number(sent.body['seq'])
  const ended = async () => (await me.get(`${path}/${seq}`)).body
  await expect.poll(async () => (await ended())['status'], { timeout: 10_000 }).toMatch(/done|failed|cancelled/)
  return { seq, path: `${path}/${seq}`, turn: await ended() }
}

/** A call that a scripted model makes. */
export const call = (name: string, args: Readonly<Record<string, unknown>> = {}) => ({ calls: [{ name, arguments: args }] })
