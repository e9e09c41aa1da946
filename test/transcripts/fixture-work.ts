/** Tools of the fixture that take their time, talk while they work, or change what is offered. */
import { type EventHandle, jsonSchema, type Registration, type Schema, type Server } from '../../src/server/index.ts'

export function addWork(server: Server): void {
  let stopped = 0
  let noticed: () => void = () => {}
  const pace = jsonSchema<{ slowly?: boolean }>({ type: 'object', properties: { slowly: { type: 'boolean' } } })
  server.tool('work', { description: 'Tells how far it has come', input: pace }, async ({ slowly = false }, ctx) => {
    const step = async (): Promise<void> => {
      // Some clients lose progress that comes together with the answer.
      if (slowly) await new Promise(resolve => setTimeout(resolve, 200))
    }
    ctx.log('debug', 'Looking for the fish', 'kitchen')
    ctx.progress(1, { total: 4, message: 'found' })
    await step()
    ctx.log('warning', { fish: 'small' }, 'kitchen')
    ctx.progress(3, { total: 4 })
    await step()
    ctx.progress(3.5, { message: 'nearly' })
    await step()
    return 'Done'
  })
  server.tool('wait', { description: 'Waits until it is told to stop' }, async (_, ctx) => {
    ctx.progress(1, { total: 2, message: 'waiting' })
    await new Promise<void>(resolve => {
      ctx.signal.addEventListener('abort', () => {
        stopped++
        noticed()
        resolve()
      })
    })
    return 'Stopped'
  })
  const atLeast = jsonSchema<{ atLeast?: number }>({ type: 'object', properties: { atLeast: { type: 'integer' } } })
  server.tool('stopped', { description: 'How many waits were stopped', input: atLeast }, async ({ atLeast: least = 0 }) => {
    while (stopped < least)
      await new Promise<void>(resolve => {
        noticed = resolve
      })
    return `${stopped}`
  })
  server.tool('wire', { description: 'Which wire the call came over' }, (_, ctx) => ctx.revision)
  addChange(server)
}

const input = jsonSchema<{ what: 'tools' | 'prompts' | 'resources' | 'content' | 'events' }>({
  type: 'object',
  properties: { what: { enum: ['tools', 'prompts', 'resources', 'content', 'events'] } },
  required: ['what'],
})

const memo: Schema = { type: 'object', properties: { title: { type: 'string' } } }

/** Adds one more of a kind, or takes it away again. */
function addChange(server: Server): void {
  const added = new Map<string, Registration<never>>()
  const toggle = (what: string, add: () => Registration<never>): string => {
    const there = added.get(what)
    there?.remove()
    if (there === undefined) added.set(what, add())
    else added.delete(what)
    return there === undefined ? 'Added' : 'Removed'
  }
  let memos: EventHandle<Schema> | undefined
  server.tool('change', { description: 'Changes what is offered', input }, async ({ what }) => {
    if (what === 'events') {
      if (memos !== undefined) return `Emitted ${await memos.emit({ title: 'Fish' }, { id: 'memo-1' })}`
      memos = server.event('memo_written', { description: 'A memo is there', payload: memo })
      return 'Offered'
    }
    if (what === 'tools') return toggle(what, () => server.tool('extra', { description: 'One more' }, () => 'Extra'))
    if (what === 'prompts') return toggle(what, () => server.prompt('extra', { arguments: {} }, () => 'Extra'))
    if (what === 'resources') return toggle(what, () => server.resource('memo://extra', { name: 'extra' }, () => 'Extra'))
    server.resourceUpdated('memo://today')
    return 'Updated'
  })
}
