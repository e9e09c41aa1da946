import { afterEach, describe, expect, it } from 'vitest'
import { confirmation, consentWorld, metaIn, places, problems } from '../../../../test/spec/consent.ts'
import { type Frame, resultOf, speak, type Wire } from '../../../../test/spec/wire.ts'
import type { StoreKind } from '../../../../test/stores-under-test.ts'
import { jsonSchema } from '../../../core/schema/index.ts'
import type { Server } from '../../../server/index.ts'
import { connectInMemory } from '../../../testing/index.ts'

const world = consentWorld()
let ran: unknown[] = []
afterEach(async () => {
  ran = []
  await world.close()
})

const tasks = 'io.modelcontextprotocol/tasks'
const extensions = { [confirmation]: {}, [problems]: {}, [tasks]: {} }
const asks = { capabilities: { extensions, elicitation: { form: {} } } }

function danger(kind: StoreKind): Server {
  const server = world.serve(kind)
  const input = jsonSchema({ type: 'object', properties: { id: { type: 'string' } } })
  server.tool('wipe', { input, confirm: { message: 'Wipe {id}?' }, task: 'required' }, args => {
    ran.push(args)
    return 'wiped'
  })
  return server
}

describe.each(places)('a task that needs a yes, at %s on %s', (revision, kind) => {
  const core = revision === '2025-11-25'
  const begin = async (wire: Wire, more: Frame = {}): Promise<unknown> => {
    const params = { name: 'wipe', arguments: { id: 'disk' }, ...(core ? { task: {} } : {}), ...more }
    const made = resultOf(await wire.ask('tools/call', params))
    return ((made['task'] ?? made) as Frame)['taskId']
  }
  const look = async (wire: Wire, taskId: unknown): Promise<Frame> => resultOf(await wire.ask('tasks/get', { taskId }))
  const until = async (wire: Wire, taskId: unknown, status: string): Promise<Frame> => {
    for (;;) {
      const task = await look(wire, taskId)
      if (task['status'] === status) return task
      if (task['status'] === 'failed') throw new Error(JSON.stringify(task))
      await new Promise<void>(resolve => setImmediate(() => resolve()))
    }
  }
  /** Answers what the task asks; gives what it asked, and what came of it. */
  const answer = async (wire: Wire, taskId: unknown, given: Frame): Promise<readonly [string, Frame]> => {
    const task = await until(wire, taskId, 'input_required')
    expect(ran).toEqual([])
    if (core) {
      const id = wire.begin('tasks/result', { taskId })
      const asked = await wire.next(frame => frame['method'] === 'elicitation/create')
      wire.say({ jsonrpc: '2.0', id: asked['id'], result: given })
      return [JSON.stringify(asked), resultOf(await wire.next(frame => frame['id'] === id && frame['method'] === undefined))]
    }
    const inputRequests = task['inputRequests'] as Frame
    const [key = ''] = Object.keys(inputRequests)
    await wire.ask('tasks/update', { taskId, inputResponses: { [key]: given } })
    return [JSON.stringify(inputRequests), (await until(wire, taskId, 'completed'))['result'] as Frame]
  }

  it('E6-2: asks for it itself, and runs only after it', async () => {
    const wire = await speak(danger(kind), revision, asks)
    const [asked, result] = await answer(wire, await begin(wire), { action: 'accept', content: { confirm: true } })
    expect(asked).toContain('Wipe disk?')
    expect(result['content']).toMatchObject([{ text: 'wiped' }])
    expect(ran).toEqual([{ id: 'disk' }])
  })

  it.each([
    ['declined', { action: 'decline' }],
    ['cancelled', { action: 'cancel' }],
    ['answered without a yes', { action: 'accept', content: { confirm: false } }],
  ])('E6-5: ends with a refusal where it was %s, and nothing runs', async (_, given) => {
    const wire = await speak(danger(kind), revision, asks)
    const [, result] = await answer(wire, await begin(wire), given)
    expect(result['isError']).toBe(true)
    expect(JSON.stringify(result)).toContain('user declined')
    expect(ran).toEqual([])
  })

  it('E6-3: does not run when the tool has become another one before the answer', async () => {
    const server = world.serve(kind)
    const facts = { confirm: true, task: 'required', description: 'Wipes' } as const
    const wipe = server.tool('wipe', facts, () => ran.push('wipe') && 'wiped')
    const wire = await speak(server, revision, asks)
    const taskId = await begin(wire, { arguments: {} })
    await until(wire, taskId, 'input_required')
    wipe.update({ description: 'Wipes all' })
    const [, result] = await answer(wire, taskId, { action: 'accept', content: { confirm: true } })
    expect(result['isError']).toBe(true)
    expect(ran).toEqual([])
  })

  it('E6-2: of a caller that cannot be asked is refused before there is a task', async () => {
    const wire = await speak(danger(kind), revision, { capabilities: { extensions } })
    const params = { name: 'wipe', arguments: { id: 'disk' }, ...(core ? { task: {} } : {}) }
    const refused = await wire.ask('tools/call', params)
    expect(metaIn(refused, confirmation)).toMatchObject({ status: 'confirmation_required' })
    expect(ran).toEqual([])
    const { confirmation_token } = metaIn(refused, confirmation)
    const taskId = await begin(wire, { _meta: { [confirmation]: { confirmation_token, user_confirmed: true } } })
    await until(wire, taskId, 'completed')
    expect(ran).toEqual([{ id: 'disk' }])
  })
})

it.each(['2025-11-25', '2026-07-28'] as const)('at %s the user of a client of ours is asked once', async revision => {
  const asked: string[] = []
  const mcp = await connectInMemory(danger('memory'), {
    revision,
    onConfirm: ({ message }) => asked.push(message) > 0,
    onElicit: () => {
      asked.push('elicited')
      return { action: 'decline' }
    },
  })
  try {
    expect((await mcp.callTool('wipe', { id: 'disk' }, { task: true })).text).toBe('wiped')
    expect(asked).toEqual([expect.stringContaining('Wipe disk?')])
    expect(ran).toEqual([{ id: 'disk' }])
  } finally {
    await mcp.close()
  }
})
