/** Tools that take long: where the caller knows tasks they become one, elsewhere it waits. */
import { setTimeout as wait } from 'node:timers/promises'
import { McpError, type Server } from 'vivarium/server'
import { z } from 'zod'
import { askName } from './rounds.ts'

const yes = z.object({ confirm: z.boolean() })

export function addTasks(server: Server): void {
  server.tool(
    'slow_compute',
    {
      description: 'Takes its time, and stops when cancelled',
      input: z.object({ seconds: z.number().min(0).max(600), label: z.string().optional() }),
      task: 'optional',
    },
    async ({ seconds, label = 'something' }, ctx) => {
      await wait(seconds * 1_000, undefined, { signal: ctx.signal })
      return `Computed ${label} in ${seconds} s`
    },
  )

  server.tool('failing_job', { description: 'Fails after a second', task: 'required' }, async (_, ctx) => {
    await wait(1_000, undefined, { signal: ctx.signal })
    throw new Error('The job failed, as it always does')
  })

  server.tool('protocol_error_job', { description: 'Fails as a request, not as a tool', task: 'optional' }, () => {
    throw new McpError('internal', 'The job broke down')
  })

  addAskingTasks(server)
}

function addAskingTasks(server: Server): void {
  server.tool(
    'confirm_delete',
    { description: 'Asks before it pretends to delete', input: z.object({ filename: z.string() }), task: 'optional' },
    async ({ filename }, ctx) => {
      const answer = await ctx.elicit({ message: `Delete ${filename}?`, schema: yes })
      return answer.action === 'accept' && answer.content.confirm ? `Deleted ${filename}` : `Kept ${filename}`
    },
  )

  server.tool('multi_input', { description: 'Asks two things at once', task: 'optional' }, async (_, ctx) => {
    const [name, go] = await Promise.all([
      ctx.elicit({ message: 'What is it called?', schema: z.object({ name: z.string() }) }),
      ctx.elicit({ message: 'Shall it be made?', schema: yes }),
    ])
    return `${name.action === 'accept' ? name.content.name : 'nameless'}: ${go.action === 'accept' && go.content.confirm ? 'made' : 'left'}`
  })

  server.tool(
    'test_tool_with_task',
    { description: 'Asks first, then becomes a task', task: { support: 'required', deferred: true } },
    async (_, ctx) => {
      const answer = await askName(ctx)
      await ctx.background()
      await wait(100, undefined, { signal: ctx.signal })
      return `Finished for ${answer.action === 'accept' ? answer.content.name : 'nobody'}`
    },
  )
}
