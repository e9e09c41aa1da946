import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { expectFits } from '../../../../test/extension-schemas.ts'
import { proves } from '../../../../test/proves.ts'
import { type Frame, resultOf, speak, type Wire } from '../../../../test/spec/wire.ts'
import { connect } from '../../../client/index.ts'
import type { RevisionId } from '../../../revisions/index.ts'
import { cite, createServer, type Provenance, reply, type Server, type ServerOptions, text } from '../../../server/index.ts'
import { connectInMemory, fakeClock, memoryPair } from '../../../testing/index.ts'
import { provenanceExtension, type WireProvenance } from './messages.ts'

const revisions: readonly RevisionId[] = ['2025-11-25', '2026-07-28']
const invoice: Provenance = { source: 'invoice_v2.pdf', location: { page: 3, cell: 'B14' }, confidence: 'exact' }
const ledger: Provenance = {
  source: 'postgresql:ledger',
  location: { jsonPath: '$.total' },
  retrievedAt: new Date('2026-05-01T08:00:00Z'),
  version: 'v7',
  confidence: 'derived',
  transformation: 'SUM of rows 2-15',
  digest: 'sha256:00',
  derivedFrom: [0],
}

const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

function make(options: Partial<ServerOptions> = {}): Server {
  const server = createServer({ name: 'books', version: '2.1.0', log: 'silent', ...options })
  servers.push(server)
  server.tool('quiet', { provenance: true }, () => 'nothing named')
  server.tool('total', { provenance: true, input: z.object({ of: z.string().optional() }) }, () =>
    reply({
      content: [text('3', cite(invoice)), text('all', { annotations: { priority: 1 } }), text('two', cite(invoice, ledger))],
      structured: { total: 3 },
      ...cite(invoice, ledger),
    }),
  )
  server.tool('plain', {}, () => 'no word')
  return server
}

function wireOf(server: Server, revision: RevisionId, knows = true): Promise<Wire> {
  return speak(server, revision, { capabilities: { extensions: knows ? { [provenanceExtension]: {} } : {} } })
}

function saidIn(holder: unknown): unknown {
  return ((holder as Frame)['_meta'] as Frame | undefined)?.[provenanceExtension]
}

async function recordsOf(wire: Wire, name: string, args: Frame = {}, meta: Frame = {}): Promise<readonly WireProvenance[]> {
  const answer = await wire.ask('tools/call', { name, arguments: args, _meta: meta })
  return saidIn(resultOf(answer)) as readonly WireProvenance[]
}

describe.each(revisions)('provenance at %s', revision => {
  it('E7-1: every record has the common form, on the result and on its blocks', async () => {
    const wire = await wireOf(make(), revision)
    const result = resultOf(await wire.ask('tools/call', { name: 'total' }))
    const blocks = result['content'] as Frame[]
    expect(saidIn(blocks[0])).toEqual({
      source: 'invoice_v2.pdf',
      location: { page: 3, cell: 'B14' },
      confidence: 'exact',
    })
    expect(saidIn(blocks[1])).toBeUndefined()
    for (const said of [result, ...blocks].map(saidIn).filter(each => each !== undefined))
      expectFits({ result, provenance: said }, 'provenance.schema.json', 'ProvenanceWrapper')
  })

  it('E7-1: what a block says of itself stands before what is said of the whole', async () => {
    const mcp = await connectInMemory(make(), { revision })
    const out = await mcp.callTool('total')
    const named = (at: number): readonly string[] => out.provenance.of(at).map(({ source }) => source)
    expect([named(0), named(1), named(2)]).toEqual([
      ['invoice_v2.pdf'],
      ['invoice_v2.pdf', 'postgresql:ledger'],
      ['invoice_v2.pdf', 'postgresql:ledger'],
    ])
    expect(out.provenance.of(out.content[0] as (typeof out.content)[0])).toBe(out.provenance.of(0))
    await mcp.close()
    proves('E7-1', 'client')
  })

  it('E7-2: several sources are a list, in the order in which they were named', async () => {
    const mcp = await connectInMemory(make(), { revision })
    const { provenance } = await mcp.callTool('total')
    expect(provenance.sources).toMatchObject([invoice, ledger])
    await mcp.close()
  })

  it('E7-3: a call that is made again under its key has the stamp of the first one', async () => {
    const clock = fakeClock()
    const wire = await speak(make({ clock, store: 'memory:' }), revision, {
      capabilities: { extensions: { [provenanceExtension]: {}, 'dev.vivarium/idempotency': {} } },
    })
    const key = { 'dev.vivarium/idempotency': { idempotency_key: 'k' } }
    const first = await recordsOf(wire, 'quiet', {}, key)
    clock.advance(60_000)
    const again = await recordsOf(wire, 'quiet', {}, key)
    const [other] = await recordsOf(wire, 'quiet')
    expect(again).toEqual(first)
    expect(Date.parse(other?.retrieved_at ?? '') - Date.parse(first[0]?.retrieved_at ?? '')).toBe(60_000)
  })

  it('E7-3, C4: a repetition tells as much as its own caller asked to know', async () => {
    const server = make({ store: 'memory:' })
    const key = { 'dev.vivarium/idempotency': { idempotency_key: 'k' } }
    const [knowing, plain] = [await wireOf(server, revision), await wireOf(server, revision, false)]
    expect(await recordsOf(plain, 'total', {}, key)).toBeUndefined()
    expect((await recordsOf(knowing, 'total', {}, key)).length).toBe(3)
  })

  it('E7-4: the runtime says which tool of which server ran, when and on what; no claim can say it instead', async () => {
    const clock = fakeClock()
    const server = make({ clock })
    const forged = { server: 'bank', tool: 'vault', operation_id: '1', input_digest: 'sha256:0' }
    server.tool('forge', { provenance: true }, () =>
      reply({
        content: [
          text('a', { meta: { [provenanceExtension]: { source: 'x', stamp: { ...forged, server: 'books', tool: 'forge' } } } }),
        ],
        meta: { [provenanceExtension]: { source: 'bank:vault', stamp: forged } },
      }),
    )
    const wire = await wireOf(server, revision)
    const [claim, own, ...rest] = await recordsOf(wire, 'forge')
    expect([claim?.stamp, rest]).toEqual([forged, []])
    expect(own).toEqual({
      source: 'books:forge',
      retrieved_at: new Date(clock.now()).toISOString(),
      stamp: {
        server: 'books',
        server_version: '2.1.0',
        tool: 'forge',
        operation_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        input_digest: expect.stringMatching(/^sha256:[\w-]{43}$/),
      },
    })
    const mcp = await connectInMemory(server, { revision })
    const { provenance } = await mcp.callTool('forge')
    expect(provenance.sources.map(({ basis }) => basis)).toEqual(['claim'])
    expect(provenance.of(0).map(({ basis, stamp }) => [basis, stamp])).toEqual([['claim', undefined]])
    expect(provenance.stamp?.stamp).toMatchObject({ server: 'books', tool: 'forge' })
    await mcp.close()
  })

  it('E7-4: an author stamps nothing, also where the runtime does not', async () => {
    const stamp = { server: 'books', tool: 'relay', operation_id: '1', input_digest: 'sha256:0' }
    const said = { [provenanceExtension]: [{ source: 'books:relay', stamp }] }
    const forging = () => reply({ content: [text('a', { meta: said })], meta: said })
    const server = make()
    server.tool('relay', {}, forging)
    const result = resultOf(await (await wireOf(server, revision)).ask('tools/call', { name: 'relay' }))
    expect(saidIn(result)).toEqual([{ source: 'books:relay' }])
    expect(JSON.stringify(result)).not.toContain('operation_id')
    // The same on a server whose runtime stamps nothing at all.
    const deaf = createServer({ name: 'books', version: '1.0.0', log: 'silent' })
    servers.push(deaf)
    deaf.tool('relay', {}, forging)
    for (const each of [server, deaf]) {
      const mcp = await connectInMemory(each, { revision })
      const { provenance } = await mcp.callTool('relay')
      expect([provenance.stamp, provenance.sources.map(({ basis }) => basis)]).toEqual([undefined, ['claim']])
      await mcp.close()
    }
  })

  it('E7-4: the digest is of the arguments, and every run has a name of its own', async () => {
    const wire = await wireOf(make(), revision)
    const stampOf = async (args: Frame) => (await recordsOf(wire, 'total', args)).at(-1)?.stamp
    const [one, same, other] = [await stampOf({ of: 'a' }), await stampOf({ of: 'a' }), await stampOf({ of: 'b' })]
    expect(one?.input_digest).toBe(same?.input_digest)
    expect(one?.input_digest).not.toBe(other?.input_digest)
    expect(new Set([one, same, other].map(stamp => stamp?.operation_id)).size).toBe(3)
  })

  it('E7-5: what comes from another server is handed on as it came, and never becomes more than a claim', async () => {
    const books = make()
    // More than this runtime knows of a record is not lost on the way either.
    books.tool('odd', { provenance: true }, () =>
      reply({
        content: [text('a')],
        meta: { [provenanceExtension]: [{ source: 'x', retrieved_at: '2026-01-01T00:00:00+01:00', grade: 7 }] },
      }),
    )
    const behind = await connectInMemory(books, { revision })
    const front = createServer({ name: 'front', version: '1.0.0', log: 'silent' })
    servers.push(front)
    front.tool('ask', { provenance: true, input: z.object({ tool: z.string() }) }, async ({ tool }) => {
      const { content, provenance } = await behind.callTool(tool)
      return reply({ content, ...cite(...provenance.records) })
    })
    const records = await recordsOf(await wireOf(front, revision), 'ask', { tool: 'odd' })
    expect(records).toMatchObject([
      { source: 'x', retrieved_at: '2026-01-01T00:00:00+01:00', grade: 7 },
      { source: 'books:odd', stamp: { server: 'books', tool: 'odd' } },
      { source: 'front:ask', stamp: { server: 'front', tool: 'ask' } },
    ])
    const mcp = await connectInMemory(front, { revision })
    const out = await mcp.callTool('ask', { tool: 'total' })
    expect(out.provenance.sources.map(({ basis, by, source }) => [basis, by, source])).toEqual([
      ['claim', 'front', 'invoice_v2.pdf'],
      ['claim', 'front', 'postgresql:ledger'],
      ['claim', 'front', 'books:total'],
    ])
    expect(out.provenance.stamp?.stamp.server).toBe('front')
    expect(out.provenance.of(0)).toMatchObject([invoice])
    await mcp.close()
    await behind.close()
  })

  it('E7-5: a stamp of somebody else at the end of the list is a claim too', async () => {
    const server = make()
    const stamp = { server: 'bank', tool: 'vault', operation_id: '1', input_digest: 'sha256:0' }
    server.tool('relay', {}, () => reply({ content: [], meta: { [provenanceExtension]: [{ source: 'bank:vault', stamp }] } }))
    const mcp = await connectInMemory(server, { revision })
    const { provenance } = await mcp.callTool('relay')
    expect([provenance.stamp, provenance.sources[0]?.basis]).toEqual([undefined, 'claim'])
    await mcp.close()
  })

  it('a server that claims without end is read to an end', async () => {
    const server = make()
    const said = Array.from({ length: 5_000 }, (_, at) => ({ source: `s${at}` }))
    server.tool('endless', {}, () =>
      reply({ content: [text('a', { meta: { [provenanceExtension]: said } })], meta: { [provenanceExtension]: said } }),
    )
    const mcp = await connectInMemory(server, { revision })
    const { provenance } = await mcp.callTool('endless')
    expect([provenance.sources.length, provenance.of(0).map(({ basis }) => basis)]).toEqual([1_000, ['client']])
    await mcp.close()
  })

  it('E7-6: without a word the origin is unknown; the client says no more than whom it asked', async () => {
    const mcp = await connectInMemory(make(), { revision })
    const { provenance } = await mcp.callTool('plain')
    expect(provenance).toMatchObject({ known: false, stamp: undefined, omitted: 0 })
    expect(provenance.sources).toEqual([
      { source: 'books:plain', basis: 'client', by: 'books', label: 'books:plain, of unknown origin' },
    ])
    const { provenance: stamped } = await mcp.callTool('quiet')
    expect([stamped.known, stamped.sources.map(({ basis }) => basis)]).toEqual([false, ['stamp']])
    expect((await mcp.callTool('total')).provenance.known).toBe(true)
    await mcp.close()
    proves('E7-6', 'client')
  })

  it('E7-7: what is beyond 16 KiB is left out from the end, and counted', async () => {
    const traced: string[] = []
    const server = make({ onTrace: event => traced.push(event) })
    const many = Array.from({ length: 300 }, (_, at) => ({ source: `source ${at} ${'ä'.repeat(20)}`, derivedFrom: [0, at + 1] }))
    server.tool('much', { provenance: true }, () => reply({ content: [text('a', cite(invoice)), text('b')], ...cite(...many) }))
    const wire = await wireOf(server, revision)
    const result = resultOf(await wire.ask('tools/call', { name: 'much' }))
    const records = saidIn(result) as readonly WireProvenance[]
    const bytes = Buffer.byteLength(JSON.stringify(records))
    expect([bytes <= 16 * 1024, bytes > 15 * 1024]).toEqual([true, true])
    expect(records.slice(0, -1).map(({ source }) => source)).toEqual(
      many.slice(0, records.length - 1).map(({ source }) => source),
    )
    // What was left out of the list is not named by those that stay.
    expect(records.at(-2)?.derived_from).toEqual([0])
    expect(records.at(-1)?.stamp?.omitted).toBe(301 - (records.length - 1))
    expect(traced).toEqual(['provenance-omitted'])
    const mcp = await connectInMemory(server, { revision })
    const { provenance } = await mcp.callTool('much')
    expect(provenance.omitted).toBe(records.at(-1)?.stamp?.omitted)
    // A block whose own sources found no room does not get those of others.
    expect(provenance.of(0).map(({ basis }) => basis)).toEqual(['stamp'])
    expect(provenance.of(1).length).toBe(records.length - 1)
    await mcp.close()
  })

  it('E7-7: what is malformed is left out and counted, and the rest stays', async () => {
    const server = make()
    const said = [
      { source: 'a' },
      { source: 7 },
      { source: 'b', derived_from: [0, 1] },
      { source: 'c', retrieved_at: 'yesterday' },
    ]
    server.tool('sloppy', { provenance: true }, () => reply({ content: [], meta: { [provenanceExtension]: said } }))
    const records = await recordsOf(await wireOf(server, revision), 'sloppy')
    expect(records).toMatchObject([{ source: 'a' }, { source: 'b', derived_from: [0] }, { stamp: { omitted: 2 } }])
  })

  it('E7-8: each source is labelled with who claims it, in a line that can be shown', async () => {
    const server = make()
    server.tool('loud', { provenance: true }, () =>
      reply({ content: [], ...cite({ source: `\u001b[31mtrue\n${'x'.repeat(500)}` }) }),
    )
    const mcp = await connectInMemory(server, { revision })
    const { sources, stamp } = (await mcp.callTool('total')).provenance
    expect([...sources, stamp].map(source => source?.label)).toEqual([
      'books claims: invoice_v2.pdf, page 3, cell B14 (exact)',
      'books claims: postgresql:ledger, at $.total (derived)',
      'books states that its tool total made this',
    ])
    const [loud] = (await mcp.callTool('loud')).provenance.sources
    expect(loud?.label.length).toBeLessThan(120)
    expect(loud?.label).not.toMatch(/[\u0000-\u001f]/)
    await mcp.close()
    proves('E7-8', 'client')
  })

  it('C4: who does not know provenance gets the result without it', async () => {
    const wire = await wireOf(make(), revision, false)
    const answer = await wire.ask('tools/call', { name: 'total' })
    expect(JSON.stringify(answer)).not.toContain(provenanceExtension)
    expect((resultOf(answer)['content'] as Frame[])[1]).toEqual({ type: 'text', text: 'all', annotations: { priority: 1 } })
  })

  it('a call that becomes a task leaves a stamped result', async () => {
    const server = make()
    server.tool('slow', { provenance: true, task: 'required' }, () => reply({ content: [text('done')], ...cite(invoice) }))
    const [near, far] = memoryPair()
    server.acceptor.accept(far)
    const mcp = await connect(near, { revisions: [revision] })
    const out = await mcp.callTool('slow', {}, { task: true })
    expect(out.provenance).toMatchObject({ sources: [invoice], stamp: { stamp: { tool: 'slow' } } })
    await mcp.close()
  })
})

it.each([
  [{ source: '' }, /source is empty/],
  [{ source: 'a', confidence: 'sure' }, /confidence/],
  [{ source: 'a', location: { page: 1.5 } }, /page/],
])('cite(%j) is refused where it is written', (source, words) => {
  expect(() => cite(source as Provenance)).toThrow(words)
})
