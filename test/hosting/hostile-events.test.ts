/** Servers that push what they should not, change their minds, or have odd names: nothing is lost, grows, or runs against the policy. */
import { describe, expect, test } from 'vitest'
import type { HostOptions } from '../../src/host/index.ts'
import { scripted } from '../../src/host/models/scripted.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { declared, entry, hostile, opened, pushOf } from './hostile.ts'

const answering = (more: Partial<HostOptions> = {}): HostOptions => ({ model: scripted('Fine.', { again: true }), ...more })

describe('policy.update holds at once, also for what waits already', () => {
  const held = { rules: [{ name: 'later', do: 'hold', for: '300ms', when: { kind: 'push' } }] } as const

  test('an event that is forbidden while it is held never runs', async () => {
    const raw = await hostile()
    const model = scripted('Fine.', { again: true })
    const host = await opened({ model, servers: { raw: entry(raw) }, policy: held })
    await host.open()
    expect(await raw.ask('push/event', pushOf('e1'))).toMatchObject({ result: { accepted: true } })
    await host.policy.update({
      servers: { raw: { enable: ['*'] } },
      rules: [{ name: 'no-more', do: 'deny', when: { kind: 'push', server: 'raw' } }],
    })
    await expect.poll(async () => (await host.inbox.get('raw', 'e1'))?.state).toBe('refused')
    expect(await host.inbox.get('raw', 'e1')).toMatchObject({ why: { rule: 'no-more' } })
    expect(model.requests).toEqual([])
  })

  test('an event whose feature set is disabled while it is held never runs', async () => {
    const raw = await hostile()
    const model = scripted('Fine.', { again: true })
    const host = await opened({ model, servers: { raw: entry(raw) }, policy: held })
    await host.open()
    await raw.ask('push/event', pushOf('e1'))
    await host.policy.update({ servers: { raw: { enable: ['*'], disable: ['push'] } }, ...held })
    await expect.poll(async () => (await host.inbox.get('raw', 'e1'))?.state).toBe('refused')
    expect(model.requests).toEqual([])
  })

  test('what is only held, or too much for now, still runs when its time is there', async () => {
    const raw = await hostile()
    const host = await opened(
      answering({
        servers: { raw: entry(raw) },
        policy: { rules: [...held.rules, { name: 'rate', do: 'deny', when: { kind: 'push', above: { count: 1, per: '1h' } } }] },
      }),
    )
    await host.open()
    await raw.ask('push/event', pushOf('e1'))
    await expect.poll(async () => (await host.inbox.get('raw', 'e1'))?.state).toBe('done')
  })
})

test('events that were gathered into one run are done, also where each is as large as an event may be', async () => {
  const raw = await hostile()
  const policy = { rules: [{ name: 'few', do: 'coalesce', within: '2s', when: { kind: 'push' } }] } as const
  const host = await opened(answering({ servers: { raw: entry(raw) }, policy, inbox: { backoff: { first: 10, longest: 10 } } }))
  await host.open()
  const content = [{ type: 'text', text: 'x'.repeat(1_000_000) }]
  const ids = Array.from({ length: 12 }, (_, n) => `e${n}`)
  for (const id of ids)
    expect(await raw.ask('push/event', pushOf(id, { payload: { content } }))).toMatchObject({ result: { accepted: true } })
  for (const id of ids) await expect.poll(async () => (await host.inbox.get('raw', id))?.state).toBe('done')
})

describe('names of every kind', () => {
  const names = [
    'a/b',
    'a b',
    '__proto__',
    'constructor',
    '..',
    '~',
    '%2F',
    '名'.repeat(40),
    '🙂'.repeat(50),
    'x'.repeat(100),
    '\ud800',
  ]

  test.each(names)('a server called %j is heard, also after a restart, or is refused with the reason', async name => {
    const raw = await hostile()
    const store = memoryStore()
    const servers = Object.fromEntries([[name, entry(raw)]])
    const first = await opened(answering({ store, servers }))
    const [server] = first.servers
    if (server?.status === 'refused') return expect(server.why?.fix).toEqual(expect.any(String))
    expect(await raw.ask('push/event', pushOf('e1'))).toMatchObject({ result: { accepted: true } })
    await first.close()
    const second = await opened(answering({ store, servers }))
    await second.open()
    await expect.poll(async () => (await second.inbox.get(name, 'e1'))?.state).toBe('done')
    expect((await second.conversations()).map(({ id }) => id)).toEqual([`inbox/${name}`])
  })

  const ids = [...names, 'c'.repeat(200), '名'.repeat(200), 'a/turns', '../a', 'conversation/a']

  test('conversations keep apart, whatever they are called, and are there after a restart', async () => {
    const store = memoryStore()
    const first = await opened(answering({ store }))
    for (const id of ids) await (await first.conversation(id).send(`I am ${ids.indexOf(id)}`)).done
    await first.close()
    const second = await opened(answering({ store }))
    for (const id of ids)
      expect((await second.conversation(id).turns()).map(({ text }) => text)).toEqual([`I am ${ids.indexOf(id)}`])
    expect((await second.conversations()).map(({ id }) => id).sort()).toEqual([...ids].sort())
  })
})

describe('odd pushes', () => {
  test('an id of any characters is accepted, done and explained', async () => {
    const raw = await hostile()
    const host = await opened(answering({ servers: { raw: entry(raw) } }))
    await host.open()
    for (const id of ['名'.repeat(400), '🙂'.repeat(100), '__proto__', '../../x', '\u0000', '%00', ' ']) {
      expect(await raw.ask('push/event', pushOf(id))).toMatchObject({ result: { accepted: true } })
      await expect.poll(async () => (await host.inbox.get('raw', id))?.state).toBe('done')
      expect((await host.explain(id)).notes.length).toBeGreaterThan(1)
    }
  })

  test('members named like those of prototypes are data, and change nothing', async () => {
    const raw = await hostile()
    const host = await opened(answering({ servers: { raw: entry(raw) } }))
    await host.open()
    const text = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'push/event', params: pushOf('p', { origin: { a: 1 } }) })
    raw.write(`${text.replace('"a":1', '"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}')}\n`)
    expect(await raw.answerTo(7)).toMatchObject({ result: { accepted: true } })
    await expect.poll(async () => (await host.inbox.get('raw', 'p'))?.state).toBe('done')
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false)
  })

  test('nesting beyond all bounds is refused, and the server is heard all the same', async () => {
    const raw = await hostile()
    const host = await opened(answering({ servers: { raw: entry(raw) } }))
    raw.write(`{"jsonrpc":"2.0","id":8,"method":"push/event","params":{"origin":${'['.repeat(5000)}${']'.repeat(5000)}}}\n`)
    expect(await raw.ask('push/event', pushOf('after'))).toMatchObject({ result: { accepted: true } })
    expect(host.server('raw')?.status).toBe('up')
  })

  test('L9.4-1 one id with other bodies, all at once, is one event', async () => {
    const raw = await hostile()
    const model = scripted('Fine.', { again: true })
    const host = await opened({ model, servers: { raw: entry(raw) } })
    await host.open()
    const asked = Array.from({ length: 50 }, (_, n) =>
      raw.ask('push/event', pushOf('e', { payload: { content: [{ type: 'text', text: `${n}` }] } })),
    )
    const results = (await Promise.all(asked)).map(({ result }) => result as { accepted: boolean; data?: { code: string } })
    expect(results.filter(({ accepted }) => accepted)).toHaveLength(1)
    expect(new Set(results.filter(({ accepted }) => !accepted).map(({ data }) => data?.code))).toEqual(
      new Set(['EVENT_CONFLICT']),
    )
    await expect.poll(async () => (await host.inbox.get('raw', 'e'))?.state).toBe('done')
    expect(model.requests).toHaveLength(1)
  })
})

describe('a server that never stops declaring', () => {
  test('L6.7-4 keeps no more sets than a server may have, however often it adds some', async () => {
    const raw = await hostile()
    const host = await opened(answering({ servers: { raw: entry(raw, ['push']) } }))
    for (let round = 0; round < 20; round++) {
      const added = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`s.${round}.${n}`, { description: 'S', uses: [] }]))
      raw.tell('featureSets/changed', { added })
    }
    expect(await raw.ask('push/event', pushOf('e'))).toMatchObject({ result: { accepted: true } })
    expect(host.server('raw')?.live?.featureSets.size).toBeLessThanOrEqual(1_000)
  })

  test('is told what was selected in the end, not each time', async () => {
    const raw = await hostile()
    await opened(answering({ servers: { raw: entry(raw, ['push']) } }))
    for (let round = 0; round < 2_000; round++)
      raw.tell('featureSets/changed', { added: { extra: { description: `${round}`, uses: [] } } })
    await raw.ask('push/event', pushOf('e'))
    expect(raw.script.of('featureSets/update').length).toBeLessThan(200)
  })

  test('asks a user about one thing at a time', async () => {
    const raw = await hostile({ mcpl: { ...declared, featureSets: { push: declared.featureSets.push } } })
    let [open, most] = [0, 0]
    const host = await opened(
      answering({
        servers: { raw: entry(raw, ['push']) },
        onApproval: async () => {
          most = Math.max(most, ++open)
          await new Promise(resolve => setTimeout(resolve, 20))
          open--
          return false
        },
      }),
    )
    for (let round = 0; round < 20; round++) {
      raw.tell('featureSets/changed', { added: { [`s${round}`]: { description: 'S', uses: [] } } })
      await raw.ask('push/event', pushOf(`e${round}`))
    }
    expect(host.server('raw')?.live?.featureSets.size).toBe(21)
    await expect.poll(() => most).toBeGreaterThan(0)
    expect(most).toBe(1)
  })
})
