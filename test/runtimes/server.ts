/** The server that every runtime serves: only `vivarium/server`, only `server.fetch`. */
import { createServer, jsonSchema, type Server } from 'vivarium/server'

export function smallServer(): (request: Request) => Promise<Response> {
  // As one says it where several processes answer: what a question, a session or a task needs travels sealed, or is in the store.
  const secret = 'shared by all who answer, 32 characters'
  return withTools(createServer({ name: 'small', version: '1.0.0', secret, store: 'memory:' })).fetchWith({ hosts: ['*'] })
}

/** A tool for each thing that a runtime may get wrong. */
export function withTools(server: Server): Server {
  server.tool(
    'greet',
    {
      description: 'Greets',
      input: jsonSchema<{ name: string }>({
        type: 'object',
        properties: { name: { type: 'string', minLength: 1 } },
        required: ['name'],
      }),
    },
    ({ name }) => `Hello, ${name}`,
  )
  server.tool('count', { description: 'Counts to three and says so on the way' }, async (_input, ctx) => {
    for (let at = 1; at <= 3; at++) ctx.progress(at, { total: 3 })
    return 'three'
  })
  server.tool('wipe', { description: 'Asks before it acts' }, async (_input, ctx) => {
    if (!(await ctx.confirm('Wipe everything?'))) return 'Nothing was wiped'
    const answer = await ctx.elicit({
      message: 'Why?',
      schema: jsonSchema<{ reason: string }>({
        type: 'object',
        properties: { reason: { type: 'string' } },
        required: ['reason'],
      }),
      key: 'why',
    })
    return answer.action === 'accept' ? `Wiped: ${answer.content.reason}` : 'Not wiped'
  })
  server.tool('report', { description: 'Takes its time', task: 'optional' }, async (_input, ctx) => {
    ctx.task?.describe('collecting')
    await new Promise(done => setTimeout(done, 20))
    return ctx.task ? 'written as a task' : 'written at once'
  })
  return server
}
