/** Tools of the fixture that may run as tasks. They end when another tool says so, never by the clock. */
import { jsonSchema, reply, type Server, text } from '../../src/server/index.ts'

export function addTasks(server: Server): void {
  let pour: () => void = () => {}
  let poured = new Promise<void>(resolve => {
    pour = resolve
  })
  server.tool(
    'brew',
    {
      description: 'Brews coffee, which takes until it is poured',
      input: jsonSchema<{ sugar?: boolean }>({ type: 'object', properties: { sugar: { type: 'boolean' } } }),
      task: { support: 'optional', ttl: '1m', pollInterval: '1s' },
    },
    async ({ sugar = false }, ctx) => {
      if (sugar && !(await ctx.confirm('Brown sugar?'))) return 'No coffee then'
      await Promise.race([poured, new Promise<void>(resolve => ctx.signal.addEventListener('abort', () => resolve()))])
      return 'Coffee'
    },
  )
  server.tool('pour', { description: 'Pours all coffee that is brewing' }, () => {
    pour()
    poured = new Promise(resolve => {
      pour = resolve
    })
    return 'Poured'
  })
  server.tool('toast', { description: 'Makes toast, and burns it', task: { support: 'required', ttl: '1m' } }, () =>
    reply({ content: [text('The toast is burnt')], isError: true }),
  )
}
