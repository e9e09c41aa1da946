import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { connectInMemory } from 'vivarium/testing'
import type { Client } from '../../src/client/index.ts'
import { patched } from '../../src/core/state/patch.ts'
import { command, liveHost, temporaryFolder, wires } from '../../test/examples/live-host.ts'
import { createNotes } from './notes.ts'

const set = 'notes.edit'

/** What a host does for a set whose state it keeps: every version by its checkpoint, and which one is the head. */
function keeper(mcp: Client) {
  const versions = new Map<string, unknown>()
  const book = {
    head: undefined as string | undefined,
    reports: [] as unknown[],
    get state() {
      return book.head === undefined ? undefined : versions.get(book.head)
    },
    call: async (name: string, args: Record<string, unknown>) => {
      const { head, state } = book
      const out = await mcp.callTool(name, args, { live: { ...(head !== undefined && { state, parent: head }) } })
      const { live: report } = out
      if (report === undefined) return out
      book.reports.push(report)
      const { checkpoint, data, patch, parent } = report
      versions.set(checkpoint, patch === undefined ? data : patched(versions.get(parent ?? ''), patch))
      book.head = checkpoint
      return out
    },
  }
  return book
}

describe.each(wires)('a live host on %s', revision => {
  test('keeps the notes itself: first all of them, then what changed, on the version that it sent', async () => {
    const { mcp } = await liveHost(createNotes(), { revision })
    const book = keeper(mcp)
    await book.call('write_note', { name: 'shopping', text: 'Bread' })
    const first = book.head
    expect((await book.call('extend_note', { name: 'shopping', line: 'Honey' })).text).toBe('2 lines')
    expect(book.reports).toEqual([
      { featureSet: 'notes.edit', checkpoint: first, parent: null, data: { shopping: 'Bread' } },
      {
        featureSet: 'notes.edit',
        checkpoint: book.head,
        parent: first,
        patch: [{ op: 'add', path: '/shopping', value: 'Bread\nHoney' }],
      },
    ])
    expect(book.state).toEqual({ shopping: 'Bread\nHoney' })
    expect((await book.call('find_notes', { text: 'Honey' })).structured).toEqual({ names: ['shopping'] })
    expect(book.reports).toHaveLength(2)
  })

  test('goes back to an earlier version, from which another branch grows', async () => {
    const { mcp, live } = await liveHost(createNotes(), {
      revision,
      onElicit: () => ({ action: 'accept', content: { confirm: true } }),
    })
    const book = keeper(mcp)
    await book.call('write_note', { name: 'a', text: '1' })
    const first = book.head ?? ''
    expect((await book.call('delete_note', { name: 'a' })).text).toBe('Deleted')
    expect(book.state).toEqual({})
    expect(await live.rollback(set, first)).toMatchObject({ success: true, checkpoint: first })
    book.head = first
    await book.call('write_note', { name: 'b', text: '2' })
    expect(book.state).toEqual({ a: '1', b: '2' })
    expect(book.reports.at(-1)).toMatchObject({ parent: first })
    expect(await live.rollback(set, 'chk_unheard_of')).toMatchObject({ success: false, missing: true })
  })

  test('that has the set disabled is refused, with the way out', async () => {
    const { mcp } = await liveHost(createNotes(), { revision, enabled: [] })
    await expect(mcp.callTool('write_note', { name: 'a', text: '1' })).rejects.toMatchObject({ data: { featureSet: set } })
  })
})

test('a plain host has its notes kept for it, each conversation its own', async () => {
  const mcp = await connectInMemory(createNotes())
  onTestFinished(() => mcp.close())
  await mcp.callTool('extend_note', { name: 'a', line: 'one' })
  expect((await mcp.callTool('extend_note', { name: 'a', line: 'two' })).text).toBe('2 lines')
  expect((await mcp.callTool('extend_note', { name: 'a', line: 'one' }, { conversation: 'other' })).text).toBe('1 lines')
})

test('as a process of its own it forgets nothing that its host remembers, checkpoints included', async () => {
  const target = command('notes', [], { NOTES_STORE: `sqlite:${join(temporaryFolder(), 'notes.db')}` })
  const first = await liveHost(target)
  const book = keeper(first.mcp)
  await book.call('write_note', { name: 'a', text: '1' })
  await first.mcp.close()
  const { mcp, live } = await liveHost(target)
  const given = { state: book.state, ...(book.head !== undefined && { parent: book.head }) }
  expect(await mcp.callTool('extend_note', { name: 'a', line: '2' }, { live: given })).toMatchObject({ text: '2 lines' })
  expect(await live.rollback(set, book.head ?? '')).toMatchObject({ success: true })
})
