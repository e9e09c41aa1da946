/** What each wire gets as the result of a call, a read and a prompt: its own words, and for what it lacks the named fallback (§1.5). */
import { afterAll, describe, expect, it } from 'vitest'
import type { RevisionId } from '../../src/revisions/index.ts'
import { expectLog } from '../log-lines/lines.ts'
import { annotations, icons, meta, pixel, richServer, sound } from './rich-server.ts'
import { callName, everyRevision, type Frame, official, resultOf, speak } from './wire.ts'

expectLog('tool-failed', /tool=fails error="Error: It broke/)

const server = richServer()
afterAll(() => server.close())

const at = (revision: RevisionId): number => everyRevision.indexOf(revision)
const since = (revision: RevisionId, first: RevisionId): boolean => at(revision) >= at(first)

const { lastModified, ...plain } = annotations
const shownAnnotations = (revision: RevisionId): Frame => (since(revision, '2025-06-18') ? annotations : plain)
const shownMeta = (revision: RevisionId): Frame => (since(revision, '2025-06-18') ? { _meta: meta } : {})

async function call(revision: RevisionId, name: string, args: Frame = {}): Promise<Frame> {
  const wire = await speak(server, revision)
  const result = resultOf(await wire.ask(callName(revision), { name, arguments: args }))
  await wire.close()
  return result
}

/** Without what every result of the stateless wires carries. */
function body({ resultType, _meta, ...rest }: Frame): Frame {
  return rest
}

function audioAt(revision: RevisionId): Frame {
  const shown = { annotations: shownAnnotations(revision), ...shownMeta(revision) }
  if (revision !== '2024-11-05') return { type: 'audio', data: sound, mimeType: 'audio/wav', ...shown }
  return { type: 'resource', resource: { uri: 'content:audio', mimeType: 'audio/wav', blob: sound }, ...shown }
}

function embeddedAt(revision: RevisionId, contents: Frame): Frame {
  return {
    type: 'resource',
    resource: { ...contents, ...shownMeta(revision) },
    annotations: shownAnnotations(revision),
    ...shownMeta(revision),
  }
}

function linkAt(revision: RevisionId, more: Frame): Frame {
  if (!since(revision, '2025-06-18')) return { type: 'text', text: 'The B: file:///b.txt' }
  const shown = since(revision, '2025-11-25') ? { icons } : {}
  return { type: 'resource_link', uri: 'file:///b.txt', name: 'b', title: 'The B', ...more, ...shown, annotations, _meta: meta }
}

describe.each(official)('tools/call at %s', revision => {
  const shown = { annotations: shownAnnotations(revision), ...shownMeta(revision) }

  it('shows blocks and members of the wire alone; links become text that names the URI, audio an embedded resource', async () => {
    expect(body(await call(revision, 'rich'))).toEqual({
      content: [
        { type: 'text', text: 'words', ...shown },
        { type: 'image', data: pixel, mimeType: 'image/png', ...shown },
        audioAt(revision),
        embeddedAt(revision, { uri: 'file:///a.txt', mimeType: 'text/plain', text: 'A' }),
        linkAt(revision, { description: 'second', mimeType: 'text/plain', size: 2 }),
      ],
      ...(since(revision, '2025-06-18') ? { structuredContent: { ok: true } } : {}),
    })
  })

  it('takes a string for the value where the output schema says so, not for mere text (trap 27)', async () => {
    const structured = revision === '2026-07-28' ? 'said' : { result: 'said' }
    expect(body(await call(revision, 'word'))).toEqual({
      content: [{ type: 'text', text: expect.stringContaining('said') }],
      ...(since(revision, '2025-06-18') ? { structuredContent: structured } : {}),
    })
  })

  it("keeps the author's _meta, which every wire has on results, beside what the wire adds", async () => {
    const { _meta } = await call(revision, 'rich')
    const stamp =
      revision === '2026-07-28' ? { 'io.modelcontextprotocol/serverInfo': expect.objectContaining({ name: 'rich' }) } : {}
    expect(_meta).toEqual({ ...meta, ...stamp })
  })

  it('carries resultType on the stateless wires alone (trap 9)', async () => {
    const { resultType } = await call(revision, 'plain')
    expect(resultType).toBe(revision === '2026-07-28' || revision === 'draft-2026-v1' ? 'complete' : undefined)
  })

  it('sends a value that is no object as text too; wrapped like its schema up to D and on the draft, as it is on E (trap 27)', async () => {
    const structured = revision === '2026-07-28' ? [1, 2] : { result: [1, 2] }
    expect(body(await call(revision, 'numbers'))).toEqual({
      content: [{ type: 'text', text: '[1,2]' }],
      ...(since(revision, '2025-06-18') ? { structuredContent: structured } : {}),
    })
  })

  it('wraps an object too where its schema had to be wrapped (trap 27)', async () => {
    const tree = { label: 'root', children: [{ label: 'leaf' }] }
    const { structuredContent } = await call(revision, 'tree')
    const wrapped = since(revision, '2025-06-18') ? { result: tree } : undefined
    expect(structuredContent).toEqual(revision === '2026-07-28' ? tree : wrapped)
  })

  it.each([[null], [0], [false], ['']])('takes %j for a value, not for none (trap 27)', async value => {
    const { structuredContent, content } = await call(revision, 'falsy', { value })
    const wrapped = since(revision, '2025-06-18') ? { result: value } : undefined
    expect(structuredContent).toEqual(revision === '2026-07-28' ? value : wrapped)
    expect(content).toEqual([{ type: 'text', text: JSON.stringify(value) }])
  })

  it('loses no structured value that its author gave no text for: where the wire has none it is text (§1.5)', async () => {
    const { content } = await call(revision, 'picture')
    const picture = { type: 'image', data: pixel, mimeType: 'image/png' }
    expect(content).toEqual(since(revision, '2025-06-18') ? [picture] : [picture, { type: 'text', text: '{"width":1}' }])
  })

  it('adds the text that a value without object root must have, if its author gave none (SEP-2106)', async () => {
    const { content } = await call(revision, 'bars')
    expect(content).toEqual([
      { type: 'image', data: pixel, mimeType: 'image/png' },
      { type: 'text', text: '[3,4]' },
    ])
  })

  it('reports what a handler threw as a result that is an error, in every wire', async () => {
    expect(body(await call(revision, 'fails'))).toEqual({ content: [{ type: 'text', text: 'It broke' }], isError: true })
  })
})

describe('tools/invoke on the dialect (§3.1)', () => {
  it('gives structured content as output', async () => {
    expect(await call('s3', 'rich')).toEqual({ status: 'success', output: { ok: true } })
  })

  it.each([
    ['numbers', {}, [1, 2]],
    ['tree', {}, { label: 'root', children: [{ label: 'leaf' }] }],
    ['falsy', { value: null }, null],
    ['falsy', { value: 0 }, 0],
  ])('gives the value of %s as it is, whatever JSON it is', async (name, args, output) => {
    expect(await call('s3', name, args)).toEqual({ status: 'success', output })
  })

  it('gives the text of a single text block', async () => {
    expect(await call('s3', 'plain')).toEqual({ status: 'success', output: 'just text' })
  })

  it('says of a failure that it is one', async () => {
    expect(await call('s3', 'fails')).toEqual({ status: 'error', output: 'It broke' })
  })

  it('takes the common name of the method too', async () => {
    const wire = await speak(server, 's3')
    expect(resultOf(await wire.ask('tools/call', { name: 'plain' }))).toEqual({ status: 'success', output: 'just text' })
    await wire.close()
  })
})

describe.each(everyRevision)('resources/read and prompts/get at %s', revision => {
  const shape = revision === 's3' ? '2025-06-18' : revision

  it('shows contents with the members of the wire', async () => {
    const wire = await speak(server, revision)
    const result = resultOf(await wire.ask('resources/read', { uri: 'file:///rich.txt' }))
    expect(body(result)).toEqual({
      contents: [
        { uri: 'file:///rich.txt', mimeType: 'text/plain', text: 'rich', ...shownMeta(shape) },
        { uri: 'file:///rich.txt#2', mimeType: 'image/png', blob: pixel },
      ],
      ...(revision === '2026-07-28' ? { ttlMs: 5_000, cacheScope: 'public' } : {}),
    })
    await wire.close()
  })

  it('shows messages with the blocks of the wire, and nothing of caching (trap 10)', async () => {
    const wire = await speak(server, revision)
    const result = resultOf(await wire.ask('prompts/get', { name: 'rich', arguments: { topic: 'whales' } }))
    expect(body(result)).toEqual({
      description: 'Says everything',
      messages: [
        { role: 'user', content: { type: 'text', text: 'About whales' } },
        { role: 'assistant', content: audioAt(shape) },
        { role: 'user', content: linkAt(shape, {}) },
        { role: 'user', content: embeddedAt(shape, { uri: 'file:///a.txt', text: 'A' }) },
      ],
    })
    await wire.close()
  })
})
