import { describe, expect, it } from 'vitest'
import { declaredAt, everyRevision, type Frame, rawWire } from '../../../../test/raw-wire.ts'
import type { RevisionId } from '../../../revisions/index.ts'
import { createServer, type Server } from '../../../server/server.ts'

const numbers = (count: number): string[] => Array.from({ length: count }, (_, at) => `${at}`)

function desk(): Server {
  const server = createServer({ name: 'desk', version: '1', revisions: everyRevision })
  server.prompt(
    'greet',
    {
      arguments: {
        name: { complete: value => ['ada', 'alan', 'bob'].filter(name => name.startsWith(value)) },
        city: {
          complete: (_, { arguments: { country } }) => Promise.resolve(country === undefined ? ['anywhere'] : [`in ${country}`]),
        },
        many: { complete: () => numbers(250) },
        known: { complete: () => ({ values: numbers(3), total: 40, hasMore: true }) },
        mute: {},
      },
    },
    () => 'Hello',
  )
  server.resource('ticket://{project}/{id}', { name: 'ticket', complete: { id: value => [`${value}1`, `${value}2`] } }, () => 'x')
  return server
}

async function complete(server: Server, revision: RevisionId, params: Frame): Promise<Frame> {
  return (await rawWire(server.acceptor, revision)).ask('completion/complete', params)
}

const prompt = (name: string, value = '', more: Frame = {}): Frame => ({
  ref: { type: 'ref/prompt', name: 'greet' },
  argument: { name, value },
  ...more,
})

describe('completion/complete', () => {
  it.each(everyRevision)('completes an argument of a prompt on %s', async revision => {
    const { result } = await complete(desk(), revision, prompt('name', 'a'))
    expect(result).toMatchObject({ completion: { values: ['ada', 'alan'], total: 2, hasMore: false } })
  })

  it('completes a variable of a resource template', async () => {
    const params = { ref: { type: 'ref/resource', uri: 'ticket://{project}/{id}' }, argument: { name: 'id', value: '4' } }
    expect((await complete(desk(), '2025-11-25', params))['result']).toMatchObject({ completion: { values: ['41', '42'] } })
  })

  it('sends at most a hundred values, and says how many there are (trap 29)', async () => {
    const { result } = await complete(desk(), '2025-11-25', prompt('many'))
    const { completion } = result as { completion: { values: string[]; total: number; hasMore: boolean } }
    expect(completion.values).toEqual(numbers(100))
    expect(completion).toMatchObject({ total: 250, hasMore: true })
  })

  it('passes on what an author counted', async () => {
    const { result } = await complete(desk(), '2025-11-25', prompt('known'))
    expect(result).toEqual({ completion: { values: numbers(3), total: 40, hasMore: true } })
  })

  it('shows earlier arguments to the completer, from 2025-06-18 on (rev C §1.5)', async () => {
    const params = prompt('city', '', { context: { arguments: { country: 'Chile' } } })
    const values = async (revision: RevisionId): Promise<unknown> =>
      ((await complete(desk(), revision, params))['result'] as { completion: Frame }).completion['values']
    expect(await values('2025-06-18')).toEqual(['in Chile'])
    expect(await values('2025-03-26')).toEqual(['anywhere'])
  })

  it('has nothing to say about an argument that nobody completes', async () => {
    expect((await complete(desk(), '2025-11-25', prompt('mute')))['result']).toEqual({ completion: { values: [] } })
  })

  it.each<[string, Frame]>([
    ['an unknown prompt', { ref: { type: 'ref/prompt', name: 'nope' }, argument: { name: 'a', value: '' } }],
    ['an unknown template', { ref: { type: 'ref/resource', uri: 'nope://{x}' }, argument: { name: 'x', value: '' } }],
    ['an unknown argument', prompt('constructor')],
    ['a reference without a name', { ref: { type: 'ref/prompt' }, argument: { name: 'a', value: '' } }],
    ['a reference of no known type', { ref: { type: 'ref/tool', name: 'greet' }, argument: { name: 'a', value: '' } }],
  ])('refuses %s with -32602', async (_, params) => {
    expect(await complete(desk(), '2025-11-25', params)).toMatchObject({ error: { code: -32602 } })
  })

  it('names the limit and the wait when it is asked too often', async () => {
    const limits = { rates: { completions: { perSecond: 0.1, burst: 1 } } }
    const server = createServer({ name: 'desk', version: '1', limits })
    server.prompt('greet', { arguments: { name: { complete: () => [] } } }, () => '')
    const wire = await rawWire(server.acceptor, '2025-11-25')
    await wire.ask('completion/complete', prompt('name'))
    const refused = await wire.ask('completion/complete', prompt('name'))
    expect(refused).toMatchObject({ error: { data: { limit: 'completions', retryAfterMs: expect.any(Number) } } })
  })
})

describe('the capability to complete', () => {
  it.each<[RevisionId, boolean]>([
    ['2024-11-05', false],
    ['2025-03-26', true],
    ['2025-06-18', true],
    ['2025-11-25', true],
    ['2026-07-28', true],
    ['draft-2026-v1', true],
    ['s3', false],
  ])('is declared at %s: %s (§1.1)', async (revision, declared) => {
    expect('completions' in (await declaredAt(desk().acceptor, revision))).toBe(declared)
  })

  it('is not there, and neither is the method, while nothing completes', async () => {
    const server = createServer({ name: 'desk', version: '1' })
    server.prompt('greet', { arguments: { name: {} } }, () => '')
    expect(await declaredAt(server.acceptor, '2025-11-25')).not.toHaveProperty('completions')
    expect(await complete(server, '2025-11-25', prompt('name'))).toMatchObject({ error: { code: -32601 } })
  })
})
