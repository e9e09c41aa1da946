import { afterEach, describe, expect, it } from 'vitest'
import { call, codeOf, revisions, type World, world } from '../../../../test/reliability/keyed-world.ts'
import { textOf } from '../../../../test/spec/wire.ts'
import { fakeClock } from '../../../testing/index.ts'

const worlds: World[] = []
afterEach(async () => {
  for (const { server } of worlds.splice(0)) await server.close()
})

function make(options: Parameters<typeof world>[0] = {}): World {
  const made = world({ store: 'memory:', ...options })
  worlds.push(made)
  return made
}

const bare = (name: string, args = {}) => ({ name, arguments: args })

describe.each(revisions)('calls without a key of a tool that takes equal ones for repetitions, at %s', revision => {
  it('are done once, and again when the time is over', async () => {
    const clock = fakeClock()
    const { server, speak, runs } = make({ clock })
    server.tool(
      'pay',
      { dedupe: '30s', input: { type: 'object' } },
      () => `paid ${runs.set('pay', (runs.get('pay') ?? 0) + 1).get('pay')}`,
    )
    const wire = await speak(revision)
    const texts = [
      textOf(await wire.ask('tools/call', bare('pay', { to: 'a' }))),
      textOf(await wire.ask('tools/call', bare('pay', { to: 'a' }))),
    ]
    expect(texts).toEqual(['paid 1', 'paid 1'])
    expect(textOf(await wire.ask('tools/call', bare('pay', { to: 'b' })))).toBe('paid 2')
    clock.advance(31_000)
    expect(textOf(await wire.ask('tools/call', bare('pay', { to: 'a' })))).toBe('paid 3')
  })

  it('are what they are by their key where they have one', async () => {
    const { server, speak, runs } = make()
    server.tool('pay', { dedupe: '30s' }, () => `paid ${runs.set('pay', (runs.get('pay') ?? 0) + 1).get('pay')}`)
    const wire = await speak(revision)
    await wire.ask('tools/call', call('pay', 'k1'))
    await wire.ask('tools/call', call('pay', 'k2'))
    expect(runs.get('pay')).toBe(2)
  })

  it('are calls of their own where a function says nothing of them', async () => {
    const { server, speak, runs } = make()
    server.tool('pay', { input: { type: 'object' }, dedupe: ({ to }) => (to === 'a' ? '30s' : undefined) }, () => {
      runs.set('pay', (runs.get('pay') ?? 0) + 1)
      return 'paid'
    })
    const wire = await speak(revision)
    for (const to of ['a', 'a', 'b', 'b']) await wire.ask('tools/call', bare('pay', { to }))
    expect(runs.get('pay')).toBe(3)
  })

  it('that ask something go on as the same call', async () => {
    const { server, speak, runs } = make()
    server.tool('sure', { dedupe: '30s' }, async (_, ctx) => {
      const yes = await ctx.confirm('Sure?')
      runs.set('sure', (runs.get('sure') ?? 0) + 1)
      return `${yes}`
    })
    const yes = { action: 'accept', content: { confirm: true } }
    const wire = await speak(revision, { answers: { 'elicitation/create': () => yes } })
    const first = await wire.ask('tools/call', bare('sure'))
    const { inputRequests = {}, requestState } = (first['result'] ?? {}) as { inputRequests?: object; requestState?: string }
    const inputResponses = Object.fromEntries(Object.keys(inputRequests).map(key => [key, yes]))
    if (requestState !== undefined) await wire.ask('tools/call', { ...bare('sure'), inputResponses, requestState })
    expect(runs.get('sure')).toBe(1)
    expect(codeOf(await wire.ask('tools/call', bare('sure')))).toBeUndefined()
    expect(runs.get('sure')).toBe(1)
  })
})
