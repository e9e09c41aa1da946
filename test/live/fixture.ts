/** A live server whose every act can be brought about by a tool: whoever has only its wire can test it whole. */
import { createServer, jsonSchema, Problem, type Server, type ServerOptions } from '../../src/server/index.ts'

export type Variant = 'told' | 'blocking' | 'bare'
type Args = Readonly<Record<string, unknown>>

const loose = jsonSchema<Args>({ type: 'object' })

export function liveFixture(variant: Variant = 'told', options: Partial<ServerOptions> = {}): Server {
  const server = createServer({ name: 'lively', version: '1.0.0', log: 'silent', ...options })
  if (variant === 'bare') return bare(server)
  const heard: unknown[] = []
  const gates: (() => void)[] = []
  const gate = (): Promise<void> => new Promise(open => gates.push(open))

  const retrieval = server.featureSet('memory.retrieval', { description: 'Finds memories' })
  retrieval.beforeInference(
    async ({ userMessage }) => {
      heard.push({ before: userMessage })
      if (userMessage === 'wait') await gate()
      if (userMessage === 'think') await consolidation.infer({ messages: 'On the way' })
      if (userMessage === 'later') void consolidation.infer({ messages: 'Afterwards' }).catch(() => undefined)
      if (userMessage === 'nothing') return undefined
      if (userMessage === 'nowhere') return { position: 'nowhere' as never, content: 'x' }
      if (userMessage === 'empty') return { content: { type: 'image' } as never }
      return [
        { namespace: 'memory', position: 'system', content: 'Known: nothing yet', metadata: { memoryIds: ['m1'] } },
        {
          content: [
            { type: 'image', data: 'aGk=', mimeType: 'image/png' },
            { type: 'resource_link', uri: 'memory://facts/1' },
          ],
        },
      ]
    },
    { positions: ['system', 'beforeUser'] },
  )
  const extraction = server.featureSet('memory.extraction', { description: 'Learns from conversations' })
  extraction.afterInference(
    async ({ assistantMessage, usage }) => {
      heard.push({ after: assistantMessage, usage })
      if (assistantMessage === 'wait') await gate()
      if (assistantMessage === 'think') await consolidation.infer({ messages: 'On the way' })
      if (assistantMessage === 'later') void consolidation.infer({ messages: 'Afterwards' }).catch(() => undefined)
      return assistantMessage.includes('sk-')
        ? { modifiedResponse: assistantMessage.replace(/sk-\w+/, '[REDACTED]'), metadata: { redactions: 1 } }
        : undefined
    },
    { blocking: variant === 'blocking' },
  )
  const consolidation = server.featureSet('memory.consolidation', { description: 'Sums up', uses: ['inferenceRequest'] })
  const proactive = server.featureSet('memory.proactive', { description: 'Reminds', uses: ['pushEvents'] })
  const silent = server.featureSet('memory.silent', { description: 'Says that it does nothing' })

  server.tool('push', { input: loose }, async ({ wait, set, ...event }) => {
    const pushed = await (set === 'silent' ? silent : proactive).push(event as never)
    return { eventId: pushed.eventId, timestamp: pushed.timestamp, ...(wait === true ? { answer: await pushed.answered } : {}) }
  })
  server.tool('infer', { input: loose }, async ({ set, iterate, ...request }) => {
    const inference = (set === 'silent' ? silent : consolidation).infer(request as never)
    const deltas: string[] = []
    if (iterate === true) for await (const delta of inference) deltas.push(delta)
    return { deltas, result: await inference }
  })
  server.tool('model', {}, () => consolidation.modelInfo())
  server.tool('heard', {}, () => ({ heard }))
  server.tool('release', {}, () => {
    for (const open of gates.splice(0)) open()
    return 'released'
  })
  server.tool('sets', { input: loose }, ({ add, remove }) => {
    if (typeof add === 'string') added.set(add, server.featureSet(add, { description: 'Came later', uses: ['pushEvents'] }))
    if (typeof remove === 'string') (remove === 'memory.proactive' ? proactive : added.get(remove))?.remove()
    return 'changed'
  })
  const added = new Map<string, { remove(): void }>()
  stateful(server)
  return server
}

/** One set that can do one thing. */
function bare(server: Server): Server {
  server.featureSet('memory.proactive', { description: 'Reminds', uses: ['pushEvents'] })
  return server
}

/** Sets with tools: scoped ones, such whose state the host keeps, and such whose state the server keeps. */
function stateful(server: Server): void {
  const edited: string[] = []
  const files = server.featureSet('files.edit', { description: 'Edits files', scoped: true })
  files.tool('edit', { input: loose }, async ({ path }, ctx) => {
    const payload = await ctx.scope(String(path), { path })
    edited.push(String(path))
    return { edited, payload }
  })
  const notes = server.featureSet('notes.edit', { description: 'Notes', rollback: true, hostState: true })
  notes.tool('add_note', { input: loose }, async ({ text }, ctx) => {
    const before = await ctx.state.get<{ notes: string[] }>()
    if (before === undefined) await ctx.state.set({ notes: [text] })
    else await ctx.state.patch([{ op: 'add', path: '/notes/-', value: text }])
    return { count: (before?.notes.length ?? 0) + 1 }
  })
  notes.tool('count_notes', {}, async (_, ctx) => ({ count: (await ctx.state.get<{ notes: string[] }>())?.notes.length ?? 0 }))
  const commits = new Map<string, string>()
  const git = server.featureSet('git.commit', { description: 'Commits', rollback: true })
  git.tool('commit', { input: loose }, ({ message }, ctx) => {
    const id = ctx.checkpoint.save(`c${commits.size + 1}`)
    commits.set(id, String(message))
    return { on: ctx.checkpoint.current ?? null, commits: commits.size }
  })
  git.onRollback(checkpoint => {
    if (commits.get(checkpoint) === 'pushed') throw new Problem('PUSHED', 'It was pushed already')
    return commits.has(checkpoint)
  })
}

/** The same for those who make servers of options alone. */
export function createLively(options: Partial<ServerOptions> = {}): Server {
  return liveFixture('told', options)
}
