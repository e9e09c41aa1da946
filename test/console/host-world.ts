/** A host with its console and three servers, and a tab of a real browser that found the link. */
import { createApprovalQueue, observeHost, serveConsole } from 'vivarium/console'
import { createHost, type Host, type Model, offline } from 'vivarium/host'
import { createServer } from 'vivarium/server'
import { memoryStore } from 'vivarium/stores'
import { z } from 'zod'
import type { RunningBrowser } from '../../scripts/browser/devtools.ts'
import { openPage, type Page } from './page.ts'

export interface HostWorld extends Page {
  readonly host: Host
  /** How many tickets there are. */
  tickets(): number
  /** Has the door send an event. */
  ring(content: string): Promise<void>
  close(): Promise<void>
}

export interface HostWorldOptions {
  /** Default: the offline assistant. */
  readonly model?: Model
  /** What the tool `note` returns. */
  readonly result?: string
}

/** Opens everything. The page is signed in and shows the chat. */
export async function openHostWorld(
  browser: RunningBrowser,
  { model = offline(), result = 'Noted' }: HostWorldOptions = {},
): Promise<HostWorld> {
  const notes = createServer({ name: 'notes', version: '1.0.0' })
  const edit = notes.featureSet('notes.edit', { description: 'A list of notes', hostState: true, rollback: true })
  edit.tool('note', { description: 'Adds a note', input: z.object({ text: z.string() }) }, async ({ text }, ctx) => {
    const { notes: before = [] } = (await ctx.state.get<{ notes: string[] }>()) ?? {}
    await ctx.state.set({ notes: [...before, text] })
    return result
  })

  const open = new Map<string, string>()
  const tickets = createServer({ name: 'tickets', version: '1.0.0', store: 'memory:' })
  tickets.tool(
    'create',
    {
      description: 'Creates a ticket',
      input: z.object({ title: z.string() }),
      output: z.object({ id: z.string() }),
      undo: { tool: 'remove', arguments: ({ result: made }) => made && { id: made.id } },
    },
    ({ title }) => {
      const id = `T-${open.size + 1}`
      open.set(id, title)
      return { id }
    },
  )
  tickets.tool('remove', { description: 'Removes a ticket', input: z.object({ id: z.string() }), idempotent: true }, ({ id }) => {
    open.delete(id)
    return 'Removed'
  })
  tickets.tool('mail', { description: 'Writes to somebody', input: z.object({ to: z.string() }) }, ({ to }) => `Sent to ${to}`)

  tickets.tool('close', { description: 'Asks for a reason, and closes all tickets' }, async (_, ctx) => {
    const answer = await ctx.elicit({ message: 'Why are they closed?', schema: z.object({ reason: z.string() }), key: 'why' })
    if (answer.action !== 'accept') return 'Nothing was closed'
    open.clear()
    return `Closed: ${String(answer.content?.reason)}`
  })

  const door = createServer({ name: 'door', version: '1.0.0' })
  const bell = door.featureSet('door.bell', { description: 'Reports who is at the door', uses: ['pushEvents'] })

  const listening = await Promise.all([notes.listen(), tickets.listen(), door.listen()])
  const [notesAt, ticketsAt, doorAt] = listening.map(({ url }) => url) as [string, string, string]
  const store = memoryStore()
  const approvals = createApprovalQueue()
  const { onApproval, onElicit, onSampleReview } = approvals
  const { options, observer } = observeHost({
    ...{ model, store, onApproval, onElicit, onSampleReview },
    servers: {
      notes: { target: notesAt, live: { enable: ['notes.*'] } },
      tickets: ticketsAt,
      door: { target: doorAt, live: { enable: ['door.*'] } },
    },
    policy: {
      rules: [
        { name: 'careful', when: { tool: 'mail' }, do: 'ask' },
        { name: 'rest', do: 'allow' },
      ],
    },
  })
  const host = await createHost(options)
  await host.open()
  const running = await serveConsole({ host, observer, approvals, port: 0, by: 'ann' })
  const page = await openPage(browser, running)
  const world: HostWorld = {
    ...page,
    host,
    tickets: () => open.size,
    ring: async content => {
      await bell.push({ content, origin: { door: 'front' } })
    },
    async close() {
      await page.tab.close()
      approvals.close()
      await running.close()
      await host.close()
      await Promise.all(listening.map(each => each.close()))
    },
  }
  await world.sees('Chat')
  return world
}

/** A model that holds its answers after the first words until they are released. */
export function heldModel(): Model & { release(): void } {
  const gate = Promise.withResolvers<void>()
  return {
    ...offline(),
    async *generate(_, { signal }) {
      yield { type: 'text', delta: 'Once upon a time' }
      await Promise.race([
        gate.promise,
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      ])
      yield { type: 'text', delta: ' there was **bread**.' }
      yield { type: 'end', finishReason: 'end_turn', usage: { inputTokens: 12, outputTokens: 8 }, model: 'held' }
    },
    release: () => gate.resolve(),
  }
}
