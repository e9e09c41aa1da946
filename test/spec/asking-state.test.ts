/** The sealed state of a call that asks: whose it is, what it is good for, and for how long (item 5; traps 15 and 16). */
import { afterEach, describe, expect, it } from 'vitest'
import { fakeClock } from '../../src/testing/clock.ts'
import { type Asked, accept, askingServer, drive, everything, round, secret } from './asking-server.ts'
import { httpPeer } from './http.ts'
import { errorOf, type Frame, requestRevisions, resultOf, speak, textOf, type Wire } from './wire.ts'

const E = '2026-07-28'
const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function meet(
  asked: Asked,
  more: { principal?: string } = {},
  revision: (typeof requestRevisions)[number] = E,
): Promise<Wire> {
  closers.push(() => asked.server.close())
  return speak(asked.server, revision, { capabilities: everything, ...more })
}

const call = (more: Frame = {}): Frame => ({ name: 'book', arguments: { room: 'blue' }, ...more })
const named = { action: 'accept', content: { name: 'Ada' } }

/** The first round of a booking. */
async function begun(wire: Wire): Promise<{ state: string; inputResponses: Frame }> {
  const { requests, state } = round(await wire.ask('tools/call', call()))
  return { state, inputResponses: Object.fromEntries(Object.keys(requests).map(key => [key, named])) }
}

function refused(frame: Frame): void {
  const { code, message } = errorOf(frame)
  expect([code, message]).toEqual([-32602, expect.stringContaining('requestState')])
  expect(message.length).toBeLessThan(300)
}

describe('trap 15: rounds', () => {
  it.each(requestRevisions)(
    '%s: a call that asks twice is answered in three requests, and the handler runs as linear code',
    async revision => {
      const asked = askingServer()
      const wire = await meet(asked, {}, revision)
      const { last, rounds } = await drive(wire, 'tools/call', call(), accept)
      expect([textOf(last), rounds.length]).toEqual(['booked for Ada', 2])
      expect(
        rounds.map(({ requests }) => Object.values(requests).map(({ method, params }) => [method, params['message']])),
      ).toEqual([[['elicitation/create', 'Who?']], [['elicitation/create', 'Book blue for Ada?']]])
    },
  )

  it.each(requestRevisions)('%s: prompts and resources ask just so', async revision => {
    const wire = await meet(askingServer(), {}, revision)
    const prompt = await drive(wire, 'prompts/get', { name: 'plan', arguments: { goal: 'x' } }, accept)
    expect([prompt.rounds.length, JSON.stringify(resultOf(prompt.last)['messages'])]).toEqual([
      1,
      expect.stringContaining('planned'),
    ])
    const read = await drive(wire, 'resources/read', { uri: 'memo://7' }, accept)
    expect([read.rounds.length, resultOf(read.last)['contents']]).toEqual([1, [{ uri: 'memo://7', text: 'read' }]])
  })

  it('what is embedded is bare: method and params, none of the keys of a request', async () => {
    const wire = await meet(askingServer())
    const { requests } = round(await wire.ask('tools/call', call()))
    for (const request of Object.values(requests)) {
      expect(Object.keys(request).sort()).toEqual(['method', 'params'])
      expect(request.params).not.toHaveProperty('_meta')
    }
  })

  it('each round carries another state, and an older one can be gone on from too', async () => {
    const wire = await meet(askingServer())
    const first = await begun(wire)
    const again = async (): Promise<string> =>
      round(await wire.ask('tools/call', call({ requestState: first.state, inputResponses: first.inputResponses }))).state
    expect(new Set([first.state, await again(), await again()]).size).toBe(3)
  })

  it('nothing but the three methods may ask: elsewhere the question is refused, and the process lives', async () => {
    const asked = askingServer()
    asked.server.resource(
      'list://{id}',
      { name: 'list', list: async ctx => ((await ctx.confirm('Really?')) ? [] : []) },
      ({ id }) => id,
    )
    asked.server.prompt(
      'typed',
      { arguments: { x: { complete: async (_value, { ctx }) => ((await ctx.confirm('Really?')) ? ['a'] : []) } } },
      () => 'x',
    )
    const wire = await meet(asked)
    const completion = { ref: { type: 'ref/prompt', name: 'typed' }, argument: { name: 'x', value: '' } }
    for (const answer of [await wire.ask('resources/list'), await wire.ask('completion/complete', completion)]) {
      expect(errorOf(answer).code).toBe(-32603)
    }
  })

  it('a state sent where none belongs is not looked at', async () => {
    const wire = await meet(askingServer())
    expect(await wire.ask('tools/list', { requestState: 'made up', inputResponses: 7 })).toHaveProperty('result')
  })
})

describe('trap 16: the state is hostile', () => {
  it.each(requestRevisions)(
    '%s: tampered with anywhere, cut, padded or made up it is a JSON-RPC error, and the handler is not entered',
    async revision => {
      const asked = askingServer()
      const wire = await meet(asked, {}, revision)
      const { state, inputResponses } = await begun(wire)
      const entered = asked.trail.length
      const flip = (at: number): string => `${state.slice(0, at)}${state[at] === 'A' ? 'B' : 'A'}${state.slice(at + 1)}`
      const forged = [0, 1, 8, 12, 20, 28, 40, Math.floor(state.length / 2), state.length - 2].map(flip)
      for (const requestState of [
        ...forged,
        state.slice(1),
        state.slice(0, -4),
        `${state}AAAA`,
        '',
        'made up',
        '{}',
        'x'.repeat(100_000),
        7,
        null,
        {},
        [state],
      ]) {
        refused(await wire.ask('tools/call', call({ requestState, inputResponses })))
      }
      expect(asked.trail.length).toBe(entered)
      expect(await wire.ask('tools/call', call({ requestState: state, inputResponses }))).toHaveProperty('result')
    },
  )

  it('is good for the same arguments alone, in whatever order they are written', async () => {
    const wire = await meet(askingServer())
    const { state, inputResponses } = await begun(wire)
    for (const args of [{ room: 'red' }, {}, { room: 'blue', more: 1 }]) {
      refused(await wire.ask('tools/call', { name: 'book', arguments: args, requestState: state, inputResponses }))
    }
    const swapped = { requestState: state, inputResponses, arguments: { room: 'blue' }, name: 'book' }
    expect(await wire.ask('tools/call', swapped)).toHaveProperty('result')
  })

  it('is good for the same tool and the same method alone', async () => {
    const asked = askingServer()
    asked.server.tool('other', {}, async (_, ctx) => ((await ctx.confirm('Sure?')) ? 'yes' : 'no'))
    asked.server.prompt('book', { arguments: { room: {} } }, async (_, ctx) => ((await ctx.confirm('Sure?')) ? 'yes' : 'no'))
    const wire = await meet(asked)
    const { state, inputResponses } = await begun(wire)
    refused(await wire.ask('tools/call', { name: 'other', arguments: { room: 'blue' }, requestState: state, inputResponses }))
    refused(await wire.ask('prompts/get', call({ requestState: state, inputResponses })))
    refused(await wire.ask('resources/read', { uri: 'memo://7', requestState: state, inputResponses }))
  })

  it('is good for its principal alone', async () => {
    const asked = askingServer()
    const ada = await meet(asked, { principal: 'ada' })
    const { state, inputResponses } = await begun(ada)
    for (const wire of [await meet(asked, { principal: 'eve' }), await meet(asked)]) {
      refused(await wire.ask('tools/call', call({ requestState: state, inputResponses })))
    }
    expect(await ada.ask('tools/call', call({ requestState: state, inputResponses }))).toHaveProperty('result')
    const anyone = await meet(asked)
    const open = await begun(anyone)
    refused(await ada.ask('tools/call', call({ requestState: open.state, inputResponses: open.inputResponses })))
  })

  it('is good for as long as a client may take to answer, and then no more', async () => {
    const clock = fakeClock()
    const turning = setInterval(() => clock.advance(0), 1)
    closers.push(() => clearInterval(turning))
    const wire = await meet(askingServer({ clock, askTimeout: '2m' }))
    const { state, inputResponses } = await begun(wire)
    clock.advance(119_999)
    expect(await wire.ask('tools/call', call({ requestState: state, inputResponses }))).toHaveProperty('result')
    clock.advance(2)
    refused(await wire.ask('tools/call', call({ requestState: state, inputResponses })))
  })

  it('says the same whatever is wrong with it: a forger learns nothing', async () => {
    const asked = askingServer()
    const wire = await meet(asked, { principal: 'ada' })
    const eve = await meet(asked, { principal: 'eve' })
    const { state } = await begun(wire)
    const messages = [
      await wire.ask('tools/call', call({ requestState: 'made up' })),
      await wire.ask('tools/call', { name: 'book', arguments: {}, requestState: state }),
      await eve.ask('tools/call', call({ requestState: state })),
    ].map(frame => errorOf(frame).message)
    expect(new Set(messages).size).toBe(1)
  })

  it('goes by HTTP 200 like any bad parameter (§2.4)', async () => {
    const { server } = askingServer()
    closers.push(() => server.close())
    const peer = await httpPeer((await server.listen()).url, E, everything)
    const answer = await peer.ask('tools/call', call({ requestState: 'made up' }))
    expect([answer.status, errorOf(answer.frame).code]).toEqual([200, -32602])
  })
})

describe('replicas', () => {
  it('that share the secret go on with what another began; every round may be at another', async () => {
    const wires = [await meet(askingServer()), await meet(askingServer()), await meet(askingServer())]
    const { state, inputResponses } = await begun(wires[0] as Wire)
    const second = round(await (wires[1] as Wire).ask('tools/call', call({ requestState: state, inputResponses })))
    const answers = Object.fromEntries(
      Object.keys(second.requests).map(key => [key, { action: 'accept', content: { confirm: true } }]),
    )
    expect(
      textOf(await (wires[2] as Wire).ask('tools/call', call({ requestState: second.state, inputResponses: answers }))),
    ).toBe('booked for Ada')
  })

  it('that have another secret, or none, cannot', async () => {
    const { state, inputResponses } = await begun(await meet(askingServer()))
    for (const other of ['another secret of thirty-two characters', undefined]) {
      refused(
        await (await meet(askingServer({ secret: other }))).ask('tools/call', call({ requestState: state, inputResponses })),
      )
    }
  })

  it('go on while the secret is being changed: the newest seals, older ones still open', async () => {
    const fresh = 'the newer one of thirty-two characters at least'
    const old = await begun(await meet(askingServer({ secret })))
    const rotated = await meet(askingServer({ secret: [fresh, secret] }))
    expect(await rotated.ask('tools/call', call({ requestState: old.state, inputResponses: old.inputResponses }))).toHaveProperty(
      'result',
    )
    const young = await begun(rotated)
    refused(
      await (await meet(askingServer({ secret }))).ask(
        'tools/call',
        call({ requestState: young.state, inputResponses: young.inputResponses }),
      ),
    )
  })

  it('without any secret one process still goes on with its own', async () => {
    const wire = await meet(askingServer({ secret: undefined }))
    expect(textOf((await drive(wire, 'tools/call', call(), accept)).last)).toBe('booked for Ada')
  })
})

describe('what a state may hold', () => {
  it('is bounded at 64 KiB: the refusal names the limit, and the next call is served', async () => {
    const asked = askingServer()
    asked.server.tool('hoard', {}, async (_, ctx) => {
      await ctx.once('bytes', () => 'x'.repeat(70_000))
      return (await ctx.confirm('Sure?')) ? 'yes' : 'no'
    })
    const wire = await meet(asked)
    const refused = await wire.ask('tools/call', { name: 'hoard' })
    expect(resultOf(refused)['isError']).toBe(true)
    expect(textOf(refused)).toContain('65536')
    expect(await begun(wire)).toBeDefined()
  })

  it('is opaque: neither question nor answer can be read in it', async () => {
    const wire = await meet(askingServer())
    const { requests, state } = round(await wire.ask('tools/call', call()))
    // Long enough, and with characters outside base64url, that sealed bytes do not spell them by chance.
    const answer = { action: 'accept', content: { name: 'Ada King, Countess of Lovelace' } }
    const inputResponses = Object.fromEntries(Object.keys(requests).map(key => [key, answer]))
    const second = round(await wire.ask('tools/call', call({ requestState: state, inputResponses })))
    for (const text of [second.state, Buffer.from(second.state, 'base64url').toString('latin1')])
      expect(text).not.toMatch(/Ada King|Lovelace|Who\?/)
  })
})
