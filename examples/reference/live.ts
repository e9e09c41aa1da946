/** MCP Live: a feature set for each thing that it knows. */
import { jsonSchema, Problem, type Server } from 'vivarium/server'
import { z } from 'zod'
import { shows } from './shows.ts'

export function addLive(server: Server): void {
  addHooks(server)
  addPushing(server)
  addActs(server)
}

function addHooks(server: Server): void {
  const retrieval = server.featureSet('memory.retrieval', { description: 'Finds memories' })
  retrieval.beforeInference(
    ({ userMessage }) => [
      { namespace: 'memory', position: 'system', content: `Known of "${userMessage ?? ''}": nothing yet` },
      {
        content: [
          { type: 'image', data: 'aGk=', mimeType: 'image/png' },
          { type: 'resource_link', uri: 'memory://facts/1' },
        ],
      },
    ],
    { positions: ['system', 'beforeUser'] },
  )
  const extraction = server.featureSet('memory.extraction', { description: 'Hides what is secret' })
  extraction.afterInference(
    ({ assistantMessage }) => ({
      modifiedResponse: assistantMessage.replaceAll('secret', '[hidden]'),
      metadata: { looked: true },
    }),
    { blocking: true },
  )
}

function addPushing(server: Server): void {
  const proactive = server.featureSet('memory.proactive', { description: 'Reminds', uses: ['pushEvents'] })
  const content = z.object({ content: z.string().meta({ examples: ['Tea is ready'] }), eventId: z.string().optional() })
  server.tool(
    'remind',
    { description: 'Pushes an event', input: content, meta: shows('push:memory.proactive') },
    async ({ content, eventId }) => {
      const pushed = await proactive.push({ content, ...(eventId === undefined ? {} : { eventId }), origin: { tool: 'remind' } })
      return { eventId: pushed.eventId, timestamp: pushed.timestamp }
    },
  )
  const consolidation = server.featureSet('memory.consolidation', { description: 'Sums up', uses: ['inferenceRequest'] })
  consolidation.tool(
    'consolidate',
    { description: "Asks the host's model", meta: shows('inference:memory.consolidation') },
    async (_, ctx) => ({ content: (await ctx.infer({ messages: 'Sum up', maxTokens: 10 })).content }),
  )
  let round = 0
  let later: { remove(): void } | undefined
  server.tool(
    'rearrange_sets',
    { description: 'Puts another feature set in the place of one', meta: shows('change:sets') },
    () => {
      later?.remove()
      const name = `memory.later${++round}`
      later = server.featureSet(name, { description: 'Came later', uses: ['pushEvents'] })
      return name
    },
  )
}

/** Sets with tools: scoped, with a state that the host keeps, with one that the server keeps. */
function addActs(server: Server): void {
  const files = server.featureSet('files.edit', { description: 'Edits files', scoped: true })
  let edits = 0
  const path = z.object({ path: z.string().meta({ examples: ['/project/a.ts'] }) })
  files.tool(
    'edit_file',
    { description: 'Edits a file, with leave', input: path, meta: shows('scope:files.edit') },
    async ({ path }, ctx) => {
      await ctx.scope(path, { path })
      return { edits: ++edits }
    },
  )
  const notes = server.featureSet('notes.edit', { description: 'Keeps notes', rollback: true, hostState: true })
  const line = jsonSchema<{ line: string }>({
    type: 'object',
    properties: { line: { type: 'string', examples: ['a'] } },
    required: ['line'],
  })
  notes.tool(
    'write_line',
    { description: 'Adds a line to the notes', input: line, meta: shows('hoststate:notes.edit') },
    async ({ line }, ctx) => {
      const before = await ctx.state.get<{ lines: string[] }>()
      if (before === undefined) await ctx.state.set({ lines: [line] })
      else await ctx.state.patch([{ op: 'add', path: '/lines/-', value: line }])
      return { count: (before?.lines.length ?? 0) + 1 }
    },
  )
  const commits = new Map<string, string>()
  const git = server.featureSet('git.commit', { description: 'Commits', rollback: true })
  git.tool('commit', { description: 'Commits', input: line, meta: shows('checkpoint:git.commit') }, ({ line }, ctx) => {
    commits.set(ctx.checkpoint.save(`c${commits.size + 1}`), line)
    return { on: ctx.checkpoint.current ?? null }
  })
  git.onRollback(checkpoint => {
    if (commits.get(checkpoint) === 'pushed') throw new Problem('PUSHED', 'It was pushed already')
    return commits.has(checkpoint)
  })
}
