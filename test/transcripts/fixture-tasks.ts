/** Tools of the fixture that may run as tasks. They go on when another tool says so, never by the clock. */
import { jsonSchema, reply, type Server, text } from '../../src/server/index.ts'

export function addTasks(server: Server): void {
  const cups = createCups()
  server.tool(
    'brew',
    {
      description: 'Brews coffee, which takes until it is poured',
      input: jsonSchema<{ sugar?: boolean }>({ type: 'object', properties: { sugar: { type: 'boolean' } } }),
      task: { support: 'optional', ttl: '1m', pollInterval: '100ms' },
    },
    async ({ sugar = false }, ctx) => {
      await cups.take(ctx.signal)
      return sugar && !(await ctx.confirm('Brown sugar?')) ? 'No coffee then' : 'Coffee'
    },
  )
  server.tool('pour', { description: 'Pours one cup of what is brewing' }, () => {
    cups.give()
    return 'Poured'
  })
  server.tool(
    'toast',
    { description: 'Burns the toast when coffee is poured', task: { support: 'required', ttl: '1m', pollInterval: '100ms' } },
    async (_, ctx) => {
      await cups.take(ctx.signal)
      return reply({ content: [text('The toast is burnt')], isError: true })
    },
  )
}

/** A cup may be given before anybody waits for it: a task begins a moment after it was made. */
function createCups() {
  const waiting = new Set<() => void>()
  let spare = 0
  return {
    give: () => {
      const [first] = waiting
      if (first === undefined) spare++
      else first()
    },
    take: (signal: AbortSignal) =>
      new Promise<void>(resolve => {
        const done = (): void => {
          waiting.delete(done)
          resolve()
        }
        signal.addEventListener('abort', done)
        if (spare === 0) waiting.add(done)
        else {
          spare--
          resolve()
        }
      }),
  }
}
