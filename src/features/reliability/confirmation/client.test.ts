import { afterEach, describe, expect, it } from 'vitest'
import { consentWorld, eras } from '../../../../test/spec/consent.ts'
import type { ConfirmQuestion } from '../../../client/index.ts'
import { jsonSchema } from '../../../core/schema/index.ts'
import type { RevisionId } from '../../../revisions/index.ts'
import type { Server } from '../../../server/index.ts'
import { connectInMemory } from '../../../testing/index.ts'

const world = consentWorld()
let ran: unknown[] = []
afterEach(async () => {
  ran = []
  await world.close()
})

const input = jsonSchema({ type: 'object', properties: { id: { type: 'string' } } })

function tracker(): Server {
  const server = world.serve('memory')
  server.tool('delete_ticket', { input, confirm: { message: 'Delete {id}?' } }, args => {
    ran.push(args)
    return 'deleted'
  })
  server.tool('list_tickets', {}, () => 'none')
  return server
}

/** Connects, and writes down which tools were called on the wire. */
async function host(server: Server, revision: RevisionId, options: Parameters<typeof connectInMemory>[1] = {}) {
  const sent: unknown[] = []
  const mcp = await connectInMemory(server, {
    revision,
    ...options,
    onFrame: ({ way, text }) => {
      const { method, params } = JSON.parse(text)
      if (way === 'out' && method === 'tools/call') sent.push(params.name)
    },
  })
  return { mcp, sent }
}

describe.each(eras)('a client at %s', revision => {
  it('E6-1: asks its callback with all there is to know, and sends the call only after its yes', async () => {
    const asked: ConfirmQuestion[] = []
    const { mcp, sent } = await host(tracker(), revision, {
      onConfirm: question => {
        expect(sent).toEqual([])
        asked.push(question)
        return true
      },
    })
    const { text } = await mcp.callTool('delete_ticket', { id: 'T-1' })
    expect(text).toBe('deleted')
    expect(asked).toEqual([
      {
        message: 'tracker: delete_ticket. Delete T-1?',
        risk: 'destructive',
        tool: 'delete_ticket',
        arguments: { id: 'T-1' },
      },
    ])
    expect([new Set(sent), ran]).toEqual([new Set(['delete_ticket']), [{ id: 'T-1' }]])
    await mcp.close()
  })

  it('E6-1: refuses by itself where nobody can be asked', async () => {
    const { mcp, sent } = await host(tracker(), revision)
    const refused = mcp.callTool('delete_ticket', { id: 'T-1' })
    await expect(refused).rejects.toMatchObject({
      code: 'CONFIRMATION_REQUIRED',
      suggestion: expect.stringContaining('onConfirm'),
    })
    expect(sent).toEqual([])
    expect((await mcp.callTool('list_tickets')).text).toBe('none')
    await mcp.close()
  })

  it('E6-5: sends nothing after a no, and does not ask again by itself', async () => {
    let asked = 0
    const { mcp, sent } = await host(tracker(), revision, {
      onConfirm: () => {
        asked++
        return false
      },
    })
    await expect(mcp.callTool('delete_ticket', { id: 'T-1' })).rejects.toMatchObject({ code: 'CONFIRMATION_DECLINED' })
    expect([asked, sent, ran]).toEqual([1, [], []])
    await mcp.close()
  })

  it('E6-1: with onElicit too the user is asked once', async () => {
    const asked: string[] = []
    const { mcp } = await host(tracker(), revision, {
      onConfirm: ({ message }) => asked.push(message) > 0,
      onElicit: ({ message }) => {
        asked.push(message)
        return { action: 'decline' }
      },
    })
    const calls = ['T-1', 'T-1', 'T-2'].map(id => mcp.callTool('delete_ticket', { id }))
    expect((await Promise.all(calls)).map(({ text }) => text)).toEqual(['deleted', 'deleted', 'deleted'])
    expect(asked).toHaveLength(3)
    await mcp.close()
  })

  it('a call to which the user has agreed is not asked about once more, while the same call beside it is', async () => {
    const asked: string[] = []
    const { mcp } = await host(tracker(), revision, { onConfirm: ({ message }) => asked.push(message) > 9 })
    const [agreed, other] = await Promise.allSettled([
      mcp.callTool('delete_ticket', { id: 'T-1' }, { confirmed: true }),
      mcp.callTool('delete_ticket', { id: 'T-1' }),
    ])
    expect(agreed).toMatchObject({ value: { text: 'deleted' } })
    expect(other).toMatchObject({ reason: { code: 'CONFIRMATION_DECLINED' } })
    expect([asked, ran]).toEqual([['tracker: delete_ticket. Delete T-1?'], [{ id: 'T-1' }]])
    await mcp.close()
  })

  it('a yes given before the call answers one question, not what the server asks next', async () => {
    const server = world.serve('memory')
    const tool = server.tool('wipe', { confirm: { message: 'Wipe the cache?' } }, () => ran.push('wipe') && 'wiped')
    const asked: string[] = []
    const mcp = await connectInMemory(server, {
      revision,
      onConfirm: ({ message }) => asked.push(message) > 9,
      onFrame: ({ way, text }) => {
        if (way === 'out' && text.includes('"tools/call"')) tool.update({ confirm: { message: 'Wipe all?' } })
      },
    })
    await expect(mcp.callTool('wipe', {}, { confirmed: true })).rejects.toMatchObject({ code: 'CONFIRMATION_DECLINED' })
    expect([asked, ran]).toEqual([['tracker: wipe. Wipe all?'], []])
    await mcp.close()
  })

  it('E6-1: with onElicit alone the server asks, and its no is an answer', async () => {
    const { mcp } = await host(tracker(), revision, { onElicit: () => ({ action: 'decline' }) })
    expect(await mcp.callTool('delete_ticket', { id: 'T-1' })).toMatchObject({ isError: true })
    expect(ran).toEqual([])
    await mcp.close()
  })

  it('a server that asks another question than the one that was agreed to is not answered by that yes', async () => {
    const server = world.serve('memory')
    const tool = server.tool('wipe', { confirm: { message: 'Wipe the cache?' } }, () => ran.push('wipe') && 'wiped')
    const asked: string[] = []
    const { mcp } = await host(server, revision, {
      onConfirm: ({ message }) => {
        tool.update({ confirm: { message: 'Wipe all?' } })
        return asked.push(message) > 0
      },
      onElicit: ({ message }) => {
        asked.push(message)
        return { action: 'decline' }
      },
    })
    expect(await mcp.callTool('wipe')).toMatchObject({ isError: true })
    expect(asked).toEqual(['tracker: wipe. Wipe the cache?', 'tracker: wipe. Wipe all?'])
    expect(ran).toEqual([])
    await mcp.close()
  })
})

it.each(['2024-11-05', '2025-03-26'] as const)(
  '%s: where lists do not tell and nobody can be elicited, the refusal does, and its token works',
  async revision => {
    const asked: string[] = []
    const { mcp } = await host(tracker(), revision, {
      onConfirm: ({ message }) => asked.push(message) > 0,
    })
    expect((await mcp.callTool('delete_ticket', { id: 'T-1' })).text).toBe('deleted')
    expect(asked).toEqual(['tracker: delete_ticket. Delete T-1?'])
    expect(ran).toHaveLength(1)
    await mcp.close()
  },
)
