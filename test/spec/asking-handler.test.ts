/** What a handler that asks may rely on: re-entry, effects that happen once, questions together, finally (item 5, house §7). */
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Context, Server } from '../../src/server/index.ts'
import { fakeClock } from '../../src/testing/clock.ts'
import { accept, askingServer, drive, everything, round } from './asking-server.ts'
import { errorOf, everyRevision, type Frame, requestRevisions, resultOf, speak, textOf, type Wire } from './wire.ts'

const E = '2026-07-28'
const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

type Handler = (args: Record<string, never>, ctx: Context) => unknown

interface Met {
  readonly wire: Wire
  readonly server: Server
  readonly traces: string[]
  readonly trail: string[]
}

/** A client and a server with one tool, `t`. */
async function withTool(
  handler: Handler,
  capabilities: Frame = everything,
  revision: (typeof everyRevision)[number] = E,
): Promise<Met> {
  const asked = askingServer()
  closers.push(() => asked.server.close())
  asked.server.tool('t', {}, handler)
  const wire = await speak(asked.server, revision, { capabilities })
  return { ...asked, wire }
}

const t = { name: 't' }
const yes = { action: 'accept', content: { confirm: true } }
const turn = (): Promise<void> => new Promise(resolve => setImmediate(() => resolve()))

describe('re-entry', () => {
  it('replays earlier answers: the handler gets each of them once, in its order', async () => {
    const seen: unknown[] = []
    const { wire } = await withTool(async (_, ctx) => {
      for (const word of ['one', 'two', 'three']) {
        const answer = await ctx.elicit({ message: word, schema: z.object({ name: z.string() }) })
        seen.push([word, answer.action === 'accept' && answer.content.name])
      }
      return 'done'
    })
    const { last, rounds } = await drive(wire, 'tools/call', t, (_key, _method, params) => ({
      action: 'accept',
      content: { name: `${params['message']}!` },
    }))
    expect([textOf(last), rounds.length]).toEqual(['done', 3])
    expect(seen.slice(-3)).toEqual([
      ['one', 'one!'],
      ['two', 'two!'],
      ['three', 'three!'],
    ])
  })

  it('runs finally each time the handler is left', async () => {
    const { wire, trail } = await withTool(() => 'unused')
    await drive(wire, 'tools/call', { name: 'book' }, accept)
    expect(trail).toEqual(['enter', 'finally', 'enter', 'finally', 'enter', 'finally'])
  })

  it('asks again at a key where another question stands now, and keeps the answers of the others', async () => {
    let price = 10
    const { wire } = await withTool(async (_, ctx) => {
      const who = await ctx.elicit({ message: 'Who?', schema: z.object({ name: z.string() }), key: 'who' })
      const sure = await ctx.confirm(`Pay ${price}?`, { key: 'pay' })
      return `${who.action === 'accept' ? who.content.name : '?'} ${sure} ${price}`
    })
    const asked: unknown[] = []
    const { last } = await drive(wire, 'tools/call', t, (key, method, params) => {
      asked.push([key, params['message']])
      if (params['message'] === 'Pay 10?') price = 20
      return accept(key, method, params)
    })
    expect([textOf(last), asked]).toEqual([
      'Ada true 20',
      [
        ['who', 'Who?'],
        ['pay', 'Pay 10?'],
        ['pay', 'Pay 20?'],
      ],
    ])
  })

  it('is bounded: a call that never comes to an end is ended, and the next one is served', async () => {
    let count = 0
    const { wire } = await withTool(async (_, ctx) => {
      for (;;) await ctx.confirm(`Again ${count++}?`)
    })
    const { last, rounds } = await drive(wire, 'tools/call', t, () => yes)
    expect([errorOf(last).code, rounds.length]).toEqual([-32603, 16])
    expect(await wire.ask('tools/call', { name: 'book' })).toHaveProperty('result')
  })

  it('a key that Object.prototype knows is a key like any other', async () => {
    const { wire } = await withTool(async (_, ctx) => {
      for (const key of ['constructor', '__proto__', 'toString']) await ctx.confirm(key, { key })
      return 'done'
    })
    const { last, rounds } = await drive(wire, 'tools/call', t, () => yes)
    expect([textOf(last), rounds.map(({ requests }) => Object.keys(requests))]).toEqual([
      'done',
      [['constructor'], ['__proto__'], ['toString']],
    ])
  })
})

describe('answers', () => {
  const nameIt: Handler = async (_, ctx) => {
    const answer = await ctx.elicit({ message: 'Who?', schema: z.object({ name: z.string().min(2) }), key: 'who' })
    return answer.action === 'accept' ? answer.content.name : answer.action
  }

  it.each([
    ['no object', 7],
    ['an unknown action', { action: 'maybe' }],
    ['content that does not fit', { action: 'accept', content: { name: 7 } }],
    ['content that breaks a rule', { action: 'accept', content: { name: 'x' } }],
    ['no content', { action: 'accept' }],
    ['null', null],
    ['an answer wrapped as a result', { result: { action: 'accept', content: { name: 'Ada' } } }],
  ])('that are %s are asked for anew', async (_name, answer) => {
    const { wire } = await withTool(nameIt)
    const first = round(await wire.ask('tools/call', t))
    const again = await wire.ask('tools/call', { ...t, requestState: first.state, inputResponses: { who: answer } })
    expect(Object.keys(round(again).requests)).toEqual(['who'])
  })

  it.each([[{ action: 'accept', content: {} }], [{ action: 'accept' }]])(
    'to a question of yes or no that come without its box are asked for anew, and are no yes: %j',
    async answer => {
      const { wire } = await withTool(async (_, ctx) => String(await ctx.confirm('Sure?', { key: 'sure' })))
      const first = round(await wire.ask('tools/call', t))
      const again = await wire.ask('tools/call', { ...t, requestState: first.state, inputResponses: { sure: answer } })
      expect(Object.keys(round(again).requests)).toEqual(['sure'])
    },
  )

  it('that are missing are asked for anew, those given are kept, unknown keys are ignored', async () => {
    const { wire } = await withTool(async (_, ctx) => {
      const both = await Promise.all([ctx.confirm('A?', { key: 'a' }), ctx.confirm('B?', { key: 'b' })])
      return both.join(' ')
    })
    const first = round(await wire.ask('tools/call', t))
    expect(Object.keys(first.requests).sort()).toEqual(['a', 'b'])
    const second = round(
      await wire.ask('tools/call', { ...t, requestState: first.state, inputResponses: { a: yes, z: yes, constructor: yes } }),
    )
    expect(Object.keys(second.requests)).toEqual(['b'])
    expect(
      textOf(await wire.ask('tools/call', { ...t, requestState: second.state, inputResponses: { b: { action: 'decline' } } })),
    ).toBe('true false')
  })

  it('that refuse are answers', async () => {
    for (const action of ['decline', 'cancel']) {
      const { wire } = await withTool(nameIt)
      expect(textOf((await drive(wire, 'tools/call', t, () => ({ action }))).last)).toBe(action)
    }
  })

  it.each([7, 'x', [], null])('inputResponses %j are −32602', async inputResponses => {
    const { wire } = await withTool(nameIt)
    const first = round(await wire.ask('tools/call', t))
    expect(errorOf(await wire.ask('tools/call', { ...t, requestState: first.state, inputResponses })).code).toBe(-32602)
  })

  it('for another question than the one asked are not taken for this one', async () => {
    const { wire } = await withTool(async (_, ctx) => {
      const sure = await ctx.confirm('First?', { key: 'k' })
      return String(sure)
    })
    const { wire: other } = await withTool(async (_, ctx) => {
      const sure = await ctx.confirm('Second, and dear?', { key: 'k' })
      return String(sure)
    })
    const first = round(await wire.ask('tools/call', t))
    const answer = await other.ask('tools/call', { ...t, requestState: first.state, inputResponses: { k: yes } })
    expect(round(answer).requests['k']?.params['message']).toBe('Second, and dear?')
  })
})

describe('several questions at once', () => {
  it('travel in one result, under keys of their own', async () => {
    const { wire } = await withTool(async (_, ctx) => {
      const [a, b, model, roots] = await Promise.all([
        ctx.confirm('A?'),
        ctx.confirm('B?'),
        ctx.sample({ messages: [{ role: 'user', content: { type: 'text', text: 'Hi' } }], maxTokens: 5 }),
        ctx.roots(),
      ])
      return JSON.stringify([a, b, (model.content as unknown as Frame)['text'], roots.length])
    })
    const { last, rounds } = await drive(wire, 'tools/call', t, (_key, method) => {
      if (method === 'roots/list') return { roots: [{ uri: 'file:///x' }] }
      if (method === 'sampling/createMessage') return { role: 'assistant', content: { type: 'text', text: 'Hello' }, model: 'm' }
      return yes
    })
    expect([JSON.parse(textOf(last)), rounds.map(({ requests }) => Object.keys(requests).sort())]).toEqual([
      [true, true, 'Hello', 1],
      [['elicit-1', 'elicit-2', 'roots-1', 'sample-1']],
    ])
  })

  it('also when one of them takes long to be made ready', async () => {
    const { wire } = await withTool(async (_, ctx) => {
      const long = 'x'.repeat(1_000_000)
      const all = await Promise.all([ctx.confirm('short?'), ctx.confirm(long), ctx.confirm('brief?')])
      return all.join(' ')
    })
    const { requests } = round(await wire.ask('tools/call', t))
    expect(Object.keys(requests).length).toBe(3)
  })

  it('asked with allSettled are one result too', async () => {
    const { wire } = await withTool(async (_, ctx) => {
      const all = await Promise.allSettled([ctx.confirm('A?'), ctx.confirm('B?')])
      return all.map(({ status }) => status).join(' ')
    })
    const { last, rounds } = await drive(wire, 'tools/call', t, () => yes)
    expect([textOf(last), rounds.length]).toEqual(['fulfilled fulfilled', 1])
  })
})

describe('a handler that swallows the suspension', () => {
  it.each([
    ['returns something else', async (_: unknown, ctx: Context) => ctx.confirm('Sure?').catch(() => 'swallowed')],
    [
      'throws something else',
      async (_: unknown, ctx: Context) => {
        try {
          return String(await ctx.confirm('Sure?'))
        } catch {
          throw new Error('mine')
        }
      },
    ],
    ['races it', async (_: unknown, ctx: Context) => Promise.race([ctx.confirm('Sure?'), new Promise(() => {})])],
  ] as [string, Handler][])('%s: the question is asked all the same', async (_name, handler) => {
    const { wire } = await withTool(handler)
    expect(Object.keys(round(await wire.ask('tools/call', t)).requests)).toEqual(['elicit-1'])
  })

  it('and comes to a result leaves a trace', async () => {
    const { wire, traces } = await withTool(async (_, ctx) => ctx.confirm('Sure?').catch(() => 'swallowed'))
    await wire.ask('tools/call', t)
    expect(traces).toContain('suspension-swallowed')
  })

  it('one that behaves leaves none', async () => {
    const { wire, traces } = await withTool(async (_, ctx) => ctx.confirm('Sure?'))
    await wire.ask('tools/call', t)
    expect(traces).toEqual([])
  })

  it.each(requestRevisions)('%s: one that never awaits its question does not bring the process down', async revision => {
    const loose: unknown[] = []
    const note = (reason: unknown): void => {
      loose.push(reason)
    }
    process.on('unhandledRejection', note)
    closers.push(() => process.off('unhandledRejection', note))
    const { wire } = await withTool(
      (_, ctx) => {
        ctx.confirm('Sure?')
        ctx.sample({ messages: [], maxTokens: 1 })
        ctx.roots()
        ctx.elicit({ message: 'x', url: 'https://example.com' })
        return 'gone on'
      },
      everything,
      revision,
    )
    await wire.ask('tools/call', t)
    for (let turns = 0; turns < 20; turns++) await turn()
    await wire.ask('tools/list')
    expect(loose).toEqual([])
  })
})

describe('ctx.once', () => {
  it.each(everyRevision.filter(id => id !== 's3' && id !== '2024-11-05' && id !== '2025-03-26'))(
    '%s: does its work at most once per call, and gives what it gave',
    async revision => {
      let charged = 0
      const asked = askingServer()
      closers.push(() => asked.server.close())
      asked.server.tool('t', {}, async (_, ctx) => {
        const receipt = await ctx.once('charge', () => ({ number: ++charged }))
        await ctx.confirm('Sure?')
        const again = await ctx.once('charge', () => ({ number: ++charged }))
        return `${receipt.number} ${again.number}`
      })
      const wire = await speak(asked.server, revision, {
        capabilities: everything,
        answers: { 'elicitation/create': () => yes },
      })
      expect([textOf((await drive(wire, 'tools/call', t, () => yes)).last), charged]).toEqual(['1 1', 1])
      expect(textOf((await drive(wire, 'tools/call', t, () => yes)).last)).toBe('2 2')
    },
  )

  it('is not begun twice while it is under way', async () => {
    let begun = 0
    const { wire } = await withTool(async (_, ctx) => {
      const work = async (): Promise<number> => {
        await turn()
        return ++begun
      }
      return (await Promise.all([ctx.once('k', work), ctx.once('k', work)])).join(' ')
    })
    expect([textOf(await wire.ask('tools/call', t)), begun]).toEqual(['1 1', 1])
  })

  it('that was under way when the question came up is waited for, not done again', async () => {
    let charged = 0
    const { wire } = await withTool(async (_, ctx) => {
      const slow = async (): Promise<number> => {
        for (let turns = 0; turns < 20; turns++) await turn()
        await new Promise<void>(resolve => setTimeout(resolve, 5))
        return ++charged
      }
      const [sure, receipt] = await Promise.all([ctx.confirm('Sure?'), ctx.once('charge', slow)])
      return `${sure} ${receipt}`
    })
    expect([textOf((await drive(wire, 'tools/call', t, () => yes)).last), charged]).toEqual(['true 1', 1])
  })

  it('that never comes to an end is not waited for without one', async () => {
    const clock = fakeClock()
    const turning = setInterval(() => clock.advance(0), 1)
    closers.push(() => clearInterval(turning))
    const asked = askingServer({ clock, askTimeout: '1m' })
    closers.push(() => asked.server.close())
    let begun = false
    asked.server.tool('t', {}, async (_, ctx) => {
      const hang = (): Promise<never> => {
        begun = true
        return new Promise(() => {})
      }
      return Promise.all([ctx.confirm('Sure?'), ctx.once('hang', hang)])
    })
    const wire = await speak(asked.server, E, { capabilities: everything })
    const id = wire.begin('tools/call', t)
    const answer = wire.next(frame => frame['id'] === id)
    const hurry = setInterval(() => begun && clock.advance(30_000), 1)
    closers.push(() => clearInterval(hurry))
    expect(errorOf(await answer).code).toBe(-32603)
  })

  it('keeps null, false and nothing apart across re-entry', async () => {
    const { wire } = await withTool(async (_, ctx) => {
      const all = [await ctx.once('a', () => null), await ctx.once('b', () => false), await ctx.once('c', () => undefined)]
      await ctx.confirm('Sure?')
      return all.map(value => String(value)).join(' ')
    })
    expect(textOf((await drive(wire, 'tools/call', t, () => yes)).last)).toBe('null false undefined')
  })

  it('that failed has not happened', async () => {
    let tries = 0
    const { wire } = await withTool(async (_, ctx) => {
      await ctx
        .once('flaky', () => {
          if (++tries === 1) throw new Error('not yet')
        })
        .catch(() => {})
      await ctx.confirm('Sure?')
      return String(tries)
    })
    expect(textOf((await drive(wire, 'tools/call', t, () => yes)).last)).toBe('2')
  })
})

describe('trap 17: kinds that the client did not declare', () => {
  const url: Handler = async (_, ctx) => JSON.stringify(await ctx.elicit({ message: 'Visit', url: 'https://example.com/x' }))
  const form: Handler = async (_, ctx) => String(await ctx.confirm('Sure?'))
  const params = { messages: [{ role: 'user' as const, content: { type: 'text' as const, text: 'Hi' } }], maxTokens: 5 }
  const plain: Handler = async (_, ctx) => JSON.stringify(await ctx.sample(params))
  const withTools: Handler = async (_, ctx) =>
    JSON.stringify(await ctx.sample({ ...params, tools: [{ name: 'x', inputSchema: { type: 'object' } }] }))
  const choice: Handler = async (_, ctx) => JSON.stringify(await ctx.sample({ ...params, toolChoice: { mode: 'none' } }))
  const roots: Handler = async (_, ctx) => JSON.stringify(await ctx.roots())

  const kinds: readonly [string, Handler, Frame, boolean][] = [
    ['a form, of elicitation: {}', form, { elicitation: {} }, true],
    ['a form, of elicitation: { form: {} }', form, { elicitation: { form: {} } }, true],
    ['a form, of elicitation: { url: {} }', form, { elicitation: { url: {} } }, false],
    ['a page, of elicitation: {}', url, { elicitation: {} }, false],
    ['a page, of elicitation: { form: {} }', url, { elicitation: { form: {} } }, false],
    ['a page, of elicitation: { url: {} }', url, { elicitation: { url: {} } }, true],
    ['the model, of sampling: {}', plain, { sampling: {} }, true],
    ['the model with tools, of sampling: {}', withTools, { sampling: {} }, false],
    ['the model with a choice of tools, of sampling: {}', choice, { sampling: {} }, false],
    ['the model with tools, of sampling: { tools: {} }', withTools, { sampling: { tools: {} } }, true],
    ['roots, of roots: {}', roots, { roots: {} }, true],
    ['roots, of nothing', roots, { elicitation: {}, sampling: {} }, false],
    ['a form, of a capability that is no object', form, { elicitation: true }, false],
  ]

  it.each(kinds)('%s: allowed or −32021 (E)', async (_name, handler, capabilities, allowed) => {
    const { wire } = await withTool(handler, capabilities)
    const answer = await wire.ask('tools/call', t)
    if (allowed) expect(Object.keys(round(answer).requests).length).toBe(1)
    else expect(errorOf(answer).code).toBe(-32021)
  })

  it.each(kinds)('%s: asked, or the tool reports that it cannot (D)', async (_name, handler, capabilities, allowed) => {
    const { wire } = await withTool(handler, capabilities, '2025-11-25')
    const id = wire.begin('tools/call', t)
    const first = await wire.next(frame => frame['id'] === id || (frame['method'] !== undefined && frame['id'] !== undefined))
    if (allowed) expect(first['method']).toMatch(/create|list/)
    else expect(resultOf(first)['isError']).toBe(true)
    await wire.close()
  })

  it('a page is never asked for at 2025-06-18, which has none, whatever is declared', async () => {
    const { wire } = await withTool(url, everything, '2025-06-18')
    expect(resultOf(await wire.ask('tools/call', t))['isError']).toBe(true)
  })

  it('the identity of a page is D’s and the draft’s word; E has none', async () => {
    for (const revision of requestRevisions) {
      const { wire } = await withTool(url, everything, revision)
      const [request] = Object.values(round(await wire.ask('tools/call', t)).requests)
      expect('elicitationId' in (request?.params ?? {})).toBe(revision === 'draft-2026-v1')
    }
  })

  it('context of other servers is asked for only where it was declared', async () => {
    for (const [sampling, kept] of [
      [{}, false],
      [{ context: {} }, true],
    ] as const) {
      const { wire } = await withTool(
        async (_, ctx) => JSON.stringify(await ctx.sample({ ...params, includeContext: 'allServers' })),
        { sampling },
      )
      const [request] = Object.values(round(await wire.ask('tools/call', t)).requests)
      expect(request?.params['includeContext']).toBe(kept ? 'allServers' : undefined)
    }
  })

  it('a handler that can do without is not stopped by it', async () => {
    const { wire } = await withTool(
      async (_, ctx) => {
        const model = await ctx.sample(params).catch(() => undefined)
        return `${model === undefined ? 'alone' : 'asked'} ${await ctx.confirm('Sure?')}`
      },
      { elicitation: {} },
    )
    expect(textOf((await drive(wire, 'tools/call', t, () => yes)).last)).toBe('alone true')
  })
})
