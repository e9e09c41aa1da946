import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { connect } from '../../src/client/index.ts'
import { createServer, type RevisionId, reply, type Server } from '../../src/server/index.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { Refusal, type Script, ScriptedServer, silence } from '../client/scripted-server.ts'
import { oracle } from '../oracle/index.ts'
import { rawWire } from '../raw-wire.ts'
import { inMemory, openGateway } from './open.ts'

function serverOf(revisions: readonly RevisionId[]): Server {
  const server = createServer({ name: 'own', version: '1.0.0', revisions, log: 'silent', limits: { rates: false } })
  onTestFinished(() => server.close())
  return server
}

const provenance = 'dev.vivarium/provenance'
const tool = (name: string) => ({ name, inputSchema: { type: 'object' } })

/** A server of 2025-11-25 that says what it is told to say. */
function scripted(script: Script, made: ScriptedServer[] = []) {
  return () => {
    const server = new ScriptedServer({
      initialize: () => ({
        protocolVersion: '2025-11-25',
        capabilities: { tools: { listChanged: true }, resources: {}, prompts: {}, completions: {} },
        serverInfo: { name: 'scripted', version: '1.0.0' },
      }),
      'tools/list': () => ({ tools: [] }),
      'resources/list': () => ({ resources: [] }),
      'resources/templates/list': () => ({ resourceTemplates: [] }),
      'prompts/list': () => ({ prompts: [] }),
      ...script,
    })
    made.push(server)
    return server.connection
  }
}

test('what a server says in _meta of any result crosses; who answers is the gateway (2026-07-28 basic/index#_meta)', async () => {
  const said = { 'org.example/said': [1], 'io.modelcontextprotocol/serverInfo': { name: 'behind', version: '9' } }
  const { gateway } = await openGateway({
    it: scripted({
      'tools/list': () => ({ tools: [tool('t')] }),
      'resources/list': () => ({ resources: [{ uri: 'x://1', name: 'x' }] }),
      'prompts/list': () => ({ prompts: [{ name: 'p', arguments: [{ name: 'a' }] }] }),
      'tools/call': () => ({ content: [], _meta: said }),
      'resources/read': () => ({ contents: [{ uri: 'x://1', text: '' }], _meta: said }),
      'prompts/get': () => ({ messages: [], _meta: said }),
      'completion/complete': () => ({ completion: { values: [] }, _meta: said }),
    }),
  })
  const ref = { type: 'ref/prompt', name: 'p' }
  const requests = [
    ['tools/call', { name: 't' }],
    ['resources/read', { uri: 'x://1' }],
    ['prompts/get', { name: 'p' }],
    ['completion/complete', { ref, argument: { name: 'a', value: '' } }],
  ] as const
  for (const revision of ['2025-06-18', '2026-07-28'] as const) {
    const wire = await rawWire(gateway.server.acceptor, revision)
    onTestFinished(() => wire.close())
    for (const [method, params] of requests) {
      const { result } = (await wire.ask(method, params)) as { result: { _meta: Record<string, unknown> } }
      const info = result._meta['io.modelcontextprotocol/serverInfo']
      expect([method, result._meta['org.example/said']]).toEqual([method, [1]])
      expect(info).toEqual(revision === '2026-07-28' ? expect.objectContaining({ name: 'vivarium-gateway' }) : undefined)
    }
  }
})

test('addresses inside results are those that clients can read, and what is in no list is read where it was told of', async () => {
  const server = (name: string) =>
    scripted({
      'tools/list': () => ({ tools: [tool(`of_${name}`)] }),
      'resources/list': () => ({ resources: [{ uri: 'x://1', name: 'x' }] }),
      'prompts/list': () => ({ prompts: [{ name: `p_${name}` }] }),
      'tools/call': () => ({
        content: ['x://1', 'hidden://1'].map(uri => ({ type: 'resource_link', uri, name: 'x' })),
      }),
      'prompts/get': () => ({
        messages: [{ role: 'user', content: { type: 'resource', resource: { uri: 'x://1', text: name } } }],
      }),
      'resources/read': ({ uri }) => ({ contents: [{ uri, text: `${uri} of ${name}` }] }),
    })
  const { client } = await openGateway({ a: server('a'), b: server('b') })
  const mcp = await client('2025-11-25')
  for (const name of ['a', 'b']) {
    const { content } = await mcp.callTool(`of_${name}`)
    const uris = content.flatMap(block => (block.type === 'resource_link' ? [block.uri] : []))
    const texts = await Promise.all(uris.map(async uri => (await mcp.readResource(uri)).contents))
    expect(uris[0]).toBe(`${name}+x://1`)
    expect(texts).toMatchObject([[{ text: `x://1 of ${name}` }], [{ text: `hidden://1 of ${name}` }]])
    const { messages } = await mcp.getPrompt(`p_${name}`)
    expect(messages[0]?.content).toMatchObject({ resource: { uri: `${name}+x://1` } })
  }
  await expect(mcp.readResource('hidden://2')).rejects.toThrow(/no resource/)
})

test('a list that cannot be read is told by name, and what was read of it before stays', async () => {
  const made: ScriptedServer[] = []
  const script = {
    'tools/list': () => ({ tools: [tool('t')] }),
    'prompts/list': () => {
      throw new Refusal(-32000, 'No prompts today')
    },
    'tools/call': () => ({ content: [{ type: 'text', text: 'done' }] }),
  }
  const { gateway, client } = await openGateway({ it: scripted(script, made) })
  const left = () => gateway.upstreams()[0]?.left.map(({ message }) => message)
  expect(left()).toEqual([expect.stringMatching(/prompts of "it".*No prompts today/)])
  const server = made.at(-1)
  server?.on('tools/list', () => {
    throw new Refusal(-32000, 'The shelf fell over')
  })
  await server?.tell('notifications/tools/list_changed')
  await expect.poll(left).toContainEqual(expect.stringMatching(/tools of "it".*The shelf fell over/))
  const mcp = await client('2025-11-25')
  expect((await mcp.callTool('t')).text).toBe('done')
})

const counting = (name: string, revisions: readonly RevisionId[]) => {
  const server = serverOf(revisions)
  server.tool(`count_${name}`, { state: 'branch' }, async (_, ctx) => {
    const count = (((await ctx.state.get()) as number | undefined) ?? 0) + 1
    await ctx.state.set(count)
    return `${name}${count}`
  })
  return inMemory(server)
}

test('state that servers keep crosses, one token for all of them, and is worth nothing to another client (E14-1, E14-3)', async () => {
  const auth = { tokens: { ada: 'token-of-ada-and-long-enough-for-it', bob: 'token-of-bob-and-long-enough-for-it' } }
  const { gateway } = await openGateway({ a: counting('a', ['2025-11-25']), b: counting('b', ['2026-07-28']) }, { auth })
  const { url } = await gateway.listen()
  const clientOf = async (token: string) => {
    const made = await connect(url, { headers: { authorization: `Bearer ${token}` } })
    onTestFinished(() => made.close())
    return made
  }
  const [ada, bob] = [await clientOf(auth.tokens.ada), await clientOf(auth.tokens.bob)]
  const texts: string[] = []
  for (const name of ['count_a', 'count_b', 'count_a', 'count_b']) texts.push((await ada.callTool(name)).text)
  expect(texts).toEqual(['a1', 'b1', 'a2', 'b2'])
  const { meta } = await ada.callTool('count_a')
  const stolen = { 'dev.vivarium/state': meta?.['dev.vivarium/state'] }
  expect(await bob.callTool('count_a', {}, { meta: stolen })).toMatchObject({
    isError: true,
    problem: { code: 'STATE_INVALID', details: { recovery: 'restart' } },
  })
})

test('sources that a server of any wire names itself come first, and the gateway adds its own (E7-5)', async () => {
  for (const revision of ['2025-11-25', '2026-07-28'] as const) {
    const server = serverOf([revision])
    server.tool('read', { provenance: true }, () => 'read')
    const { client } = await openGateway({ it: inMemory(server) })
    const mcp = await client('2026-07-28')
    const { provenance } = await mcp.callTool('read')
    expect(provenance.records.map(({ stamp }) => stamp?.server)).toEqual(['own', 'vivarium-gateway'])
  }
})

test('E7-5: what a server says of its sources crosses as it was written, on the result and on its blocks, and nothing is put before it', async () => {
  const odd = { source: 'x', retrieved_at: '2026-01-01T00:00:00+01:00', confidence: 'exact', grade: 7 }
  const block = { type: 'text', text: 'a', _meta: { [provenance]: { source: 'y', location: { page: 3 }, grade: 8 } } }
  for (const said of [[odd, { source: 'z', derived_from: [0] }], [odd]]) {
    const { client } = await openGateway({
      it: scripted({
        'tools/list': () => ({ tools: [tool('read')] }),
        'tools/call': () => ({ content: [block], _meta: { [provenance]: said.length === 1 ? odd : said } }),
      }),
    })
    for (const revision of ['2025-11-25', '2026-07-28'] as const) {
      const { meta, content } = await (await client(revision)).callTool('read')
      const records = meta?.[provenance] as readonly { stamp?: { server?: string } }[]
      expect(records.slice(0, -1)).toEqual(said)
      expect(records.at(-1)?.stamp?.server).toBe('vivarium-gateway')
      expect(content).toMatchObject([block])
    }
  }
})

test('E2-7: what a call is for is not told to the server behind, be it one that would hear of it', async () => {
  const heard: unknown[] = []
  const server = createServer({
    name: 'own',
    version: '1.0.0',
    log: 'silent',
    intent: { suggest: ({ intent }) => void heard.push(intent) },
  })
  onTestFinished(() => server.close())
  server.tool('open', {}, (_, ctx) => void heard.push(ctx.intent))
  const { gateway } = await openGateway({ it: inMemory(server) })
  for (const revision of ['2025-11-25', '2026-07-28'] as const) {
    const wire = await rawWire(gateway.server.acceptor, revision)
    const _meta = { 'dev.vivarium/intent': { intent: 'a secret of mine' } }
    expect(await wire.ask('tools/call', { name: 'open', _meta })).toHaveProperty('result')
  }
  expect(heard).toEqual([undefined, undefined])
})

test('what only works with the server itself is said of none of its tools here, and whoever runs the gateway is told (E0 C4)', async () => {
  const server = serverOf(['2026-07-28'])
  server.tool('undo', { idempotent: true }, () => 'undone')
  server.tool('make', { undo: { tool: 'undo', arguments: () => ({}) } }, () => 'made')
  server.tool('stream', {}, async function* () {
    yield 'one'
  })
  const set = server.featureSet('notes.edit', { description: 'Edits notes' })
  set.tool('note', {}, () => 'noted')
  const { client, gateway } = await openGateway({ it: inMemory(server) })
  expect(gateway.upstreams()[0]?.left).toMatchObject([
    {
      code: 'NOT_CARRIED',
      message: expect.stringMatching(/dev\.vivarium\/streaming.*dev\.vivarium\/transactions.*dev\.vivarium\/live/),
    },
  ])
  const mcp = await client('2026-07-28')
  for await (const { name, _meta } of mcp.tools())
    expect([name, Object.keys(_meta ?? {})]).toEqual([name, ['dev.vivarium/origin']])
})

test('what is left of a quota behind the gateway is told (E3-4)', async () => {
  const server = serverOf(['2025-11-25'])
  server.tool('search', { cost: { category: 'metered', estimatedUnits: 3 }, quota: { calls: 5, per: '1d' } }, () => 'found')
  const { client } = await openGateway({ it: inMemory(server) })
  const mcp = await client('2026-07-28')
  expect((await mcp.callTool('search')).cost).toMatchObject({ units: 3, quota: { remaining: 4 } })
})

/** Wants a page visited before it pays. */
function payer(made: ScriptedServer[] = []) {
  let visited = false
  const page = { mode: 'url', url: 'https://example.com/pay', elicitationId: 'e-1', message: 'Pay there' }
  const script = {
    'tools/list': () => ({ tools: [tool('pay')] }),
    'tools/call': () => {
      if (visited) return { content: [{ type: 'text', text: 'paid' }] }
      visited = true
      throw new Refusal(-32042, 'First the page', { elicitations: [page] })
    },
  }
  return scripted(script, made)
}

test('pages that a 2025-11-25 server wants visited first are a question where there is no such refusal (rev §1.6)', async () => {
  const { client } = await openGateway({ it: payer() })
  const asked: string[] = []
  const mcp = await client('2026-07-28', {
    onElicit: question => {
      if (question.mode === 'url') asked.push(question.url)
      return { action: 'accept' }
    },
  })
  expect((await mcp.callTool('pay')).text).toBe('paid')
  expect(asked).toEqual(['https://example.com/pay'])
})

test('who is refused until a page was visited hears that it has done its work; who cannot be asked reads the refusal', async () => {
  const made: ScriptedServer[] = []
  const { client } = await openGateway({ it: payer(made) })
  const done: string[] = []
  const mcp = await client('2025-11-25', {
    onElicit: () => ({ action: 'accept' }),
    onElicitationComplete: id => void done.push(id),
  })
  await expect(mcp.callTool('pay')).rejects.toMatchObject({ code: -32042, data: { elicitations: [{ elicitationId: 'e-1' }] } })
  await made[0]?.tell('notifications/elicitation/complete', { elicitationId: 'e-1' })
  await expect.poll(() => done).toEqual(['e-1'])
  const { client: other } = await openGateway({ it: payer() })
  await expect((await other('2026-07-28')).callTool('pay')).rejects.toThrow('First the page')
})

test('a question of a call that was cancelled is answered in these words', async () => {
  const made: ScriptedServer[] = []
  const answers: unknown[] = []
  const form = { message: 'Which?', requestedSchema: { type: 'object', properties: {} } }
  const script: Script = {
    'tools/list': () => ({ tools: [tool('ask')] }),
    'tools/call': async () => {
      answers.push(await made[0]?.ask('elicitation/create', form))
      return { content: [] }
    },
  }
  const { client } = await openGateway({ it: scripted(script, made) })
  const abort = new AbortController()
  const mcp = await client('2025-11-25', {
    onElicit: () => {
      abort.abort()
      return new Promise(() => {})
    },
  })
  await expect(mcp.callTool('ask', {}, { signal: abort.signal })).rejects.toThrow()
  await expect.poll(() => answers).toMatchObject([{ error: { message: expect.stringContaining('was cancelled') } }])
})

test('what is asked for a call that was given up comes to nobody else on that pipe, and the next caller gets its own', async () => {
  const [clock, made, traced] = [fakeClock(), [] as ScriptedServer[], [] as string[]]
  const form = { message: 'For ada?', requestedSchema: { type: 'object', properties: {} } }
  const script: Script = {
    'tools/list': () => ({ tools: [tool('stay'), tool('ask')] }),
    'tools/call': async ({ name }) => {
      if (name === 'stay') return silence
      const { result } = (await made[0]?.ask('elicitation/create', { ...form, message: 'For bob?' })) ?? {}
      return { content: [{ type: 'text', text: JSON.stringify(result) }] }
    },
    'notifications/cancelled': () => made[0]?.send({ id: 'ada', method: 'elicitation/create', params: form }),
  }
  const { client } = await openGateway({ it: scripted(script, made) }, { clock, onTrace: event => void traced.push(event) })
  const asked: string[] = []
  const bob = await client('2025-11-25', {
    onElicit: ({ message }) => {
      asked.push(message)
      return { action: 'accept', content: {} }
    },
  })
  const [ada, abort] = [await client('2025-11-25'), new AbortController()]
  const given = ada.callTool('stay', {}, { signal: abort.signal })
  bob.callTool('stay').catch(() => {})
  await made[0]?.saw('tools/call', 2)
  abort.abort()
  await expect(given).rejects.toThrow()
  await expect.poll(() => traced).toContain('upstream-question')
  await made[0]?.tell('notifications/cancelled', { requestId: 'ada' })
  const own = bob.callTool('ask')
  await made[0]?.saw('tools/call', 3)
  clock.advance(5_000)
  expect((await own).text).toContain('accept')
  expect(asked).toEqual(['For bob?'])
})

test('what a task asks comes to the caller of its call, whoever has tasks (rev §1.6)', async () => {
  const behind = ['2025-11-25', '2026-07-28'] as const
  const wires = ['2025-06-18', '2025-11-25', '2026-07-28'] as const
  const texts = behind.map(async revision => {
    const server = serverOf([revision])
    server.tool('brew', { task: { support: 'required', pollInterval: '50ms' } }, async (_, ctx) => {
      const answer = await ctx.elicit({ message: 'Sugar?', schema: z.object({ lumps: z.number() }) })
      return answer.action === 'accept' ? `${answer.content.lumps} lumps` : answer.action
    })
    const { url } = await server.listen()
    const { client } = await openGateway({ it: url })
    const each = wires.map(async (wire, lumps) => {
      const mcp = await client(wire, { onElicit: () => ({ action: 'accept', content: { lumps } }) })
      return (await mcp.callTool('brew', {}, { task: true })).text
    })
    return Promise.all(each)
  })
  for (const each of await Promise.all(texts)) expect(each).toEqual(['0 lumps', '1 lumps', '2 lumps'])
})

test('what a server lists without a name hurts nobody, and is told', async () => {
  const { gateway } = await openGateway({
    it: scripted({
      'tools/list': () => ({ tools: [tool(''), tool('t')] }),
      'resources/list': () => ({ resources: [{ name: 'nowhere' }, { uri: 'x://1', name: 'x' }] }),
      'resources/templates/list': () => ({ resourceTemplates: [{ name: 'none' }, 7] }),
      'prompts/list': () => ({ prompts: [{ name: 7 }, { name: 'p', arguments: null }] }),
    }),
  })
  expect(gateway.names().map(({ name }) => name)).toEqual(['t', 'x://1'])
  const left = gateway
    .upstreams()[0]
    ?.left.map(({ message }) => message)
    .toSorted()
  expect(left).toEqual([
    expect.stringMatching(/prompts.*1 without name$/),
    expect.stringMatching(/templates.*2 without uriTemplate$/),
    expect.stringMatching(/resources.*1 without uri$/),
    expect.stringMatching(/tools.*1 without name$/),
    expect.stringContaining('prompt "p"'),
  ])
})

test('who declared no extension gets nothing of one that its server has (E0 C4)', async () => {
  const server = serverOf(['2025-11-25'])
  server.tool('search', { cost: { category: 'metered', estimatedUnits: 3 } }, (_, ctx) => {
    throw ctx.problem('RATE_LIMIT_EXCEEDED', 'Too fast')
  })
  const linked = { type: 'resource_link', uri: 'x://1', name: 'x', _meta: { 'dev.vivarium/data-references': {} } } as const
  server.tool('link', {}, () => reply({ content: [linked] }))
  const { gateway } = await openGateway({ it: inMemory(server) })
  const wire = await rawWire(gateway.server.acceptor, '2025-11-25')
  onTestFinished(() => wire.close())
  const { result } = await wire.ask('tools/call', { name: 'search' })
  expect(result).toEqual({ content: [{ type: 'text', text: 'Too fast' }], isError: true })
  const { result: link } = await wire.ask('tools/call', { name: 'link' })
  expect(link).toMatchObject({ content: [{ type: 'resource_link', uri: 'x://1', name: 'x' }] })
  expect(JSON.stringify(link)).not.toContain('dev.vivarium')
  // Its server says less than a reference needs, which the judge of all frames hears too.
  oracle?.take()
})

test('a client is told that it watches a resource when its server knows, so that no update in between is lost', async () => {
  const made: ScriptedServer[] = []
  const { promise: taken, resolve } = Promise.withResolvers<object>()
  const script = {
    'resources/list': () => ({ resources: [{ uri: 'x://1', name: 'x' }] }),
    'resources/subscribe': () => taken,
    'resources/unsubscribe': () => ({}),
  }
  const { gateway } = await openGateway({ it: scripted(script, made) })
  const wire = await rawWire(gateway.server.acceptor, '2025-11-25')
  onTestFinished(() => wire.close())
  const answered = wire.ask('resources/subscribe', { uri: 'x://1' }, 'watch')
  await made[0]?.saw('resources/subscribe')
  await wire.ask('ping')
  expect(wire.heard.some(({ id }) => id === 'watch')).toBe(false)
  resolve({})
  expect(await answered).toMatchObject({ result: {} })
  await made[0]?.tell('notifications/resources/updated', { uri: 'x://1' })
  expect(await wire.next('notifications/resources/updated')).toMatchObject({ params: { uri: 'x://1' } })
})

test('sources take no more of a result for the one that the gateway adds, and what finds no room is counted (E7-7)', async () => {
  const server = serverOf(['2026-07-28'])
  const record = { source: 'https://example.com/', transformation: 'x'.repeat(50) }
  const meta = { 'dev.vivarium/provenance': Array.from({ length: 400 }, () => record) }
  server.tool('read', { provenance: true }, () => reply({ content: [], meta }))
  const { client } = await openGateway({ it: inMemory(server) })
  const mcp = await client('2026-07-28')
  const told = (await mcp.callTool('read')).meta?.['dev.vivarium/provenance']
  expect(JSON.stringify(told).length).toBeLessThanOrEqual(16 * 1024)
  expect((told as { stamp?: object }[]).at(-1)?.stamp).toMatchObject({ server: 'vivarium-gateway', omitted: expect.any(Number) })
})

test('how long to wait stands in a header too, when it is the server behind that says so (E3-5)', async () => {
  const server = serverOf(['2025-11-25'])
  server.tool('search', {}, (_, ctx) => {
    throw ctx.problem('RATE_LIMIT_EXCEEDED', 'Too fast', { retryAfter: 7_000 })
  })
  const { gateway } = await openGateway({ it: inMemory(server) })
  const { url } = await gateway.listen()
  const version = 'io.modelcontextprotocol/protocolVersion'
  const meta = { [version]: '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} }
  const answer = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'search',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'search', _meta: meta } }),
  })
  await answer.text()
  expect(answer.headers.get('retry-after')).toBe('7')
})
