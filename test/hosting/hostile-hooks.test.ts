/** Servers whose hooks hang, lie, inject too much, or die: the turn goes on within its bounds, and what must fail closed does. */
import { describe, expect, test } from 'vitest'
import { scripted } from '../../src/host/models/scripted.ts'
import { entry, hostile, opened, thinking } from './hostile.ts'

const closed = { guard: { after: { fail: 'closed' } } } as const

async function heard(turn: AsyncIterable<unknown>): Promise<string> {
  const parts: unknown[] = []
  for await (const part of turn) parts.push(part)
  return JSON.stringify(parts)
}

describe('L13.3-1 an answer that a server must look at first is not shown', () => {
  test('where the server is not there', async () => {
    const host = await opened({
      model: scripted('Secret.'),
      servers: { guard: { target: { command: '/nowhere/at-all' }, live: { enable: ['*'] } } },
      hooks: closed,
    })
    const turn = await host.conversation('c').send('Go')
    expect(await heard(turn)).not.toContain('Secret.')
    await expect(turn.done).rejects.toThrow('The answer is not shown')
    expect(turn.why?.code).toBe('ANSWER_WITHHELD')
  })

  test('where it dies while the model thinks', async () => {
    const raw = await hostile()
    const model = thinking('Secret.', () => raw.close())
    const host = await opened({ model, servers: { guard: entry(raw) }, hooks: closed })
    const turn = await host.conversation('c').send('Go')
    expect(await heard(turn)).not.toContain('Secret.')
    await expect(turn.done).rejects.toThrow('The answer is not shown')
  })

  test('where it takes its feature set away while the model thinks', async () => {
    const raw = await hostile()
    const model = thinking('Secret.', async () => {
      raw.tell('featureSets/changed', { removed: ['hooks'] })
      await raw.script.hears('featureSets/update', 2)
    })
    const host = await opened({ model, servers: { guard: entry(raw) }, hooks: closed })
    const turn = await host.conversation('c').send('Go')
    expect(await heard(turn)).not.toContain('Secret.')
    await expect(turn.done).rejects.toThrow('The answer is not shown')
  })

  test('where it answers for a set that nobody enabled (L6.6-3)', async () => {
    const raw = await hostile({ answers: { 'context/afterInference': () => ({ featureSet: 'other' }) } })
    const host = await opened({ model: scripted('Secret.'), servers: { guard: entry(raw) }, hooks: closed })
    const turn = await host.conversation('c').send('Go')
    expect(await heard(turn)).not.toContain('Secret.')
    await expect(turn.done).rejects.toThrow('The answer is not shown')
  })

  test('where it says that it only wants to be told', async () => {
    const raw = await hostile({
      mcpl: {
        version: '0.2',
        contextHooks: { afterInference: { blocking: false } },
        featureSets: { hooks: { description: 'Hooks', uses: ['contextHooks.afterInference'] } },
      },
    })
    const host = await opened({ model: scripted('Secret.'), servers: { guard: entry(raw) }, hooks: closed })
    const turn = await host.conversation('c').send('Go')
    expect(await heard(turn)).not.toContain('Secret.')
    await expect(turn.done).rejects.toThrow('The answer is not shown')
  })
})

test('L13.3-1 there is no inference without the before-hook of a server that must not fail, also where it is not there', async () => {
  const model = scripted('Never said.')
  const host = await opened({
    model,
    servers: { guard: { target: { command: '/nowhere/at-all' } } },
    hooks: { guard: { before: { fail: 'closed' } } },
  })
  const turn = await host.conversation('c').send('Go')
  await expect(turn.done).rejects.toThrow('guard')
  expect(model.requests).toHaveLength(0)
})

describe('what a server injects is bounded in every member', () => {
  const prompt = async (contextInjections: unknown) => {
    const raw = await hostile({ answers: { 'context/beforeInference': () => ({ featureSet: 'hooks', contextInjections }) } })
    const model = scripted('Fine.')
    const host = await opened({ model, servers: { guard: entry(raw) } })
    const turn = await host.conversation('c').send('Go')
    expect((await turn.done).text).toBe('Fine.')
    return { turn, size: JSON.stringify(model.requests[0]).length, notes: (await host.audit({ limit: 1_000 })).notes }
  }
  const block = (text: string) => [{ type: 'text', text }]

  test('its namespace', async () => {
    const { size, turn } = await prompt([{ namespace: 'n'.repeat(2_000_000), position: 'beforeUser', content: block('x') }])
    expect(size).toBeLessThan(10_000)
    expect(JSON.stringify(turn.prompt).length).toBeLessThan(10_000)
  })

  test('the number of injections, also of empty ones', async () => {
    const one = { namespace: 'n', position: 'beforeUser', content: block('') }
    const { size, notes } = await prompt(Array.from({ length: 20_000 }, () => one))
    expect(size).toBeLessThan(200_000)
    expect(notes.length).toBeLessThan(200)
  })

  test('the number of those that are none', async () => {
    const { notes } = await prompt(Array.from({ length: 20_000 }, () => ({ position: 'nowhere' })))
    expect(notes.length).toBeLessThan(200)
  })

  test('the number of blocks, and their types', async () => {
    const content = Array.from({ length: 30_000 }, () => ({ type: 'image', data: '', mimeType: 'x'.repeat(100) }))
    const { size } = await prompt([{ namespace: 'n', position: 'beforeUser', content }])
    expect(size).toBeLessThan(200_000)
  })

  test('10 MB of text', async () => {
    const { size } = await prompt([{ namespace: 'n', position: 'system', content: block('x'.repeat(10_000_000)) }])
    expect(size).toBeLessThan(10_000)
  })
})

test('L10.5-2 an answer that a hook blows up to 10 MB stays as it was, and the audit says why', async () => {
  const raw = await hostile({
    answers: { 'context/afterInference': () => ({ featureSet: 'hooks', modifiedResponse: 'x'.repeat(10_000_000) }) },
  })
  const host = await opened({ model: scripted('Fine.'), servers: { guard: entry(raw) } })
  const turn = await host.conversation('c').send('Go')
  expect((await turn.done).text).toBe('Fine.')
  expect((await host.audit({ kind: 'hook.after' })).notes).toMatchObject([{ outcome: 'failure' }])
})

test('L10.6-1 a hook that answers after its time changes nothing, then or later', async () => {
  const late = Promise.withResolvers<unknown>()
  const raw = await hostile({ answers: { 'context/afterInference': () => late.promise } })
  const hooks = { guard: { after: { timeout: '50ms' } } } as const
  const host = await opened({ model: scripted('Fine.', { again: true }), servers: { guard: entry(raw) }, hooks })
  const talk = host.conversation('c')
  expect((await (await talk.send('Go')).done).text).toBe('Fine.')
  late.resolve({ featureSet: 'hooks', modifiedResponse: 'Changed.' })
  expect((await (await talk.send('Go')).done).text).not.toBe('')
  expect((await talk.turns())[0]?.answer).toBe('Fine.')
})
