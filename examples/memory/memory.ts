/**
 * A memory for any agent. Live hosts get what matters put into each turn, have what users say of themselves learned, lend their model
 * to tidy up, and are woken by reminders; all others have the tools.
 */
import { type Clock, createServer, realClock, type Server } from 'vivarium/server'
import { z } from 'zod'
import { batch, consolidate } from './consolidation.ts'
import { factsIn } from './facts.ts'
import { type Memories, openMemories, type Reminder } from './memories.ts'

export interface MemoryOptions {
  /** The SQLite file. What waits for a host lies beside it, in `<file>.events`. */
  readonly file: string
  readonly clock?: Clock
}

export interface MemoryServer extends AsyncDisposable {
  readonly server: Server
}

export function openMemory({ file, clock = realClock }: MemoryOptions): MemoryServer {
  const memories = openMemories(file)
  const server = createServer({
    name: 'memory',
    version: '1.0.0',
    instructions: 'Save what you should know later with remember. Search with recall before you say that you do not know.',
    store: `sqlite:${file}.events`,
    clock,
  })
  offerTools(server, memories)
  const tidy = offerConsolidation(server, memories)
  offerHooks(server, memories, tidy)
  const stop = offerReminders(server, memories, clock)
  return {
    server,
    [Symbol.asyncDispose]: async () => {
      stop()
      await server.close()
      memories.close()
    },
  }
}

const memory = z.object({ id: z.number(), text: z.string() })

function offerTools(server: Server, memories: Memories): void {
  server.tool(
    'remember',
    {
      description: 'Saves a fact for later conversations',
      input: z.object({ text: z.string().trim().min(1).max(2000).describe('One fact, understandable without context') }),
      output: memory.extend({ known: z.boolean() }),
      annotations: { idempotentHint: true, destructiveHint: false },
      // What was known before is not forgotten by undoing.
      undo: { tool: 'forget', arguments: ({ result }) => (result?.known === false ? { id: result.id } : undefined) },
    },
    ({ text }) => memories.remember(text, 'tool'),
  )
  server.tool(
    'recall',
    {
      description: 'Finds memories by their words',
      input: z.object({ query: z.string().max(1000), limit: z.int().min(1).max(50).default(10) }),
      output: z.object({ memories: z.array(memory) }),
      annotations: { readOnlyHint: true },
    },
    ({ query, limit }) => ({ memories: [...memories.recall(query, limit)] }),
  )
  server.tool(
    'forget',
    { description: 'Deletes one memory', input: z.object({ id: z.int() }), annotations: { destructiveHint: true } },
    ({ id }, ctx) => {
      if (memories.forget(id)) return 'Deleted'
      throw ctx.problem('RESOURCE_NOT_FOUND', `The memory ${id} does not exist`, { suggestion: 'Find its id with recall' })
    },
  )
}

function offerHooks(server: Server, memories: Memories, tidy: () => void): void {
  const retrieval = server.featureSet('memory.retrieval', { description: 'Adds relevant memories to each turn' })
  retrieval.beforeInference(({ userMessage }) => {
    const found = memories.recall(userMessage ?? '', 5)
    if (found.length === 0) return undefined
    const lines = found.map(({ text }) => `- ${text}`)
    return {
      content: `Remembered from earlier conversations:\n${lines.join('\n')}`,
      metadata: { memories: found.map(({ id }) => id) },
    }
  })
  const extraction = server.featureSet('memory.extraction', { description: 'Learns what users say about themselves' })
  extraction.afterInference(({ userMessage, conversationId }) => {
    for (const fact of factsIn(userMessage ?? '')) memories.remember(fact, conversationId)
    // Not awaited: the host's model is free only when this hook is done.
    if (memories.unmerged(batch).length === batch) tidy()
    return undefined
  })
}

/** Gives what starts it in the background. */
function offerConsolidation(server: Server, memories: Memories): () => void {
  const consolidation = server.featureSet('memory.consolidation', {
    description: 'Lets the model merge memories that say the same',
    uses: ['inferenceRequest'],
  })
  let busy = false
  consolidation.tool('consolidate_memories', { description: 'Merges memories that say the same' }, async (_, ctx) => {
    const merged = await consolidate(memories, async prompt => {
      if (ctx.live) return (await ctx.infer({ messages: prompt, maxTokens: 2000, temperature: 0 })).content
      const messages = [{ role: 'user' as const, content: { type: 'text' as const, text: prompt } }]
      const { content } = await ctx.sample({ messages, maxTokens: 2000 })
      return [content]
        .flat()
        .flatMap(block => (block.type === 'text' ? [block.text] : []))
        .join('\n')
    })
    return merged === 0 ? 'Nothing to merge' : `Merged ${merged} memories into fewer`
  })
  return () => {
    if (busy) return
    busy = true
    const ask = async (prompt: string) =>
      (await consolidation.infer({ messages: prompt, maxTokens: 2000, temperature: 0 })).content
    consolidate(memories, ask)
      .catch(error => console.error(`memory: consolidation failed: ${error instanceof Error ? error.message : error}`))
      .finally(() => {
        busy = false
      })
  }
}

/** Machines sleep and clocks are set: whoever waits long looks again every hour. */
const longest = 3_600_000

/** Gives what ends it. */
function offerReminders(server: Server, memories: Memories, clock: Clock): () => void {
  const proactive = server.featureSet('memory.proactive', { description: 'Wakes the agent for reminders', uses: ['pushEvents'] })
  let cancel = () => {}
  let stopped = false
  const wait = (ms = longest): void => {
    cancel()
    if (stopped) return
    const [next] = memories.reminders()
    if (next === undefined) return
    // A push that failed is tried again after a minute, whatever is due.
    const until = ms === longest ? Math.min(Math.max(next.at - clock.now(), 0), ms) : ms
    cancel = clock.setTimeout(wake, until, true)
  }
  const wake = (): void => {
    const due = memories.reminders().filter(({ at }) => at <= clock.now())
    if (due.length === 0) wait()
    else
      void ring(due).then(
        () => wait(),
        () => wait(60_000),
      )
  }
  const ring = async (due: readonly Reminder[]): Promise<void> => {
    for (const { id, text, at } of due) {
      // The same id each time: after a crash in between, the second push is the first one again.
      const timestamp = new Date(at).toISOString()
      await proactive.push({ eventId: `reminder-${id}-${at}`, timestamp, content: `Reminder: ${text}`, tags: ['reminder'] })
      memories.cancel(id)
    }
  }
  proactive.tool(
    'remind',
    {
      description: 'Wakes the agent at a time, also after a restart',
      input: z.object({
        text: z.string().trim().min(1).max(2000),
        at: z.iso.datetime({ offset: true }).optional().describe('The time, such as 2026-01-23T10:30:00+01:00'),
        inMinutes: z.number().positive().max(525_600).optional().describe('Or the number of minutes from now'),
      }),
      output: z.object({ id: z.number(), at: z.string() }),
      undo: { tool: 'cancel_reminder', arguments: ({ result }) => result && { id: result.id } },
    },
    ({ text, at, inMinutes }, ctx) => {
      if ((at === undefined) === (inMinutes === undefined))
        throw ctx.problem('INVALID_INPUT', 'A reminder needs exactly one time', { suggestion: 'Pass either at or inMinutes' })
      const due = at === undefined ? clock.now() + Math.round((inMinutes ?? 0) * 60_000) : Date.parse(at)
      const made = memories.remind(text, due)
      wait()
      return { id: made.id, at: new Date(due).toISOString() }
    },
  )
  proactive.tool('cancel_reminder', { description: 'Cancels a reminder', input: z.object({ id: z.int() }) }, ({ id }, ctx) => {
    if (!memories.cancel(id)) throw ctx.problem('RESOURCE_NOT_FOUND', `The reminder ${id} does not exist or is over`)
    wait()
    return 'Cancelled'
  })
  wait()
  return () => {
    stopped = true
    cancel()
  }
}
