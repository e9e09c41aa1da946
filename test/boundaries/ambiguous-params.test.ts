/** What a guard looks at is what the handler gets: params that name two targets reach one of them, the guarded one, or nobody. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { connect } from 'vivarium/client'
import { createServer, jsonSchema, type Server, type ServerOptions } from 'vivarium/server'
import type { Method } from '../../src/engine/method.ts'
import { dataReference, readReference, referencesExtension } from '../../src/features/reliability/data-references/messages.ts'
import { isRecord } from '../../src/jsonrpc/message.ts'
import type { RevisionId } from '../../src/revisions/index.ts'
import { sessionServer } from '../client/scripted-server.ts'
import { gatewayBefore, upstreamOf } from '../gateway/world.ts'
import { live, places, rawHost } from '../live/raw-host.ts'
import { errorOf, everyRevision, type Frame, requestRevisions, sessionRevisions, speak, type Wire } from '../spec/wire.ts'

const anything = jsonSchema<Record<string, unknown>>({ type: 'object' })
const scopes = ['secret']
const wires: readonly RevisionId[] = ['2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28', 'draft-2026-v1']
const permissions = 'dev.vivarium/permissions'

/** Of each kind one thing that anybody may use, and one that needs a scope which the caller does not have. */
function vault(options: Partial<ServerOptions> = {}): { readonly server: Server; readonly ran: string[] } {
  const server = createServer({ name: 'vault', version: '1.0.0', log: 'silent', revisions: everyRevision, ...options })
  const ran: string[] = []
  const run = (what: string) => () => {
    ran.push(what)
    return what
  }
  const complete = (what: string) => ({ id: () => [run(what)()] })
  server.tool('open', { input: anything }, run('open tool'))
  server.tool('secret', { input: anything, scopes }, run('secret tool'))
  server.resource('open://1', { name: 'open' }, run('open resource'))
  server.resource('secret://1', { name: 'secret', scopes }, run('secret resource'))
  server.resource('open://{id}', { name: 'openOnes', complete: complete('open template') }, run('open templated'))
  server.resource('secret://{id}', { name: 'secretOnes', scopes, complete: complete('secret template') }, run('secret templated'))
  const input = { type: 'object', properties: { id: { type: 'string' } } } as const
  for (const [name, more] of [['open', {}] as const, ['secret', { scopes }] as const])
    server.prompt(
      name,
      { ...more, arguments: jsonSchema(input), complete: complete(`${name} prompt`) } as never,
      run(`${name} prompt`),
    )
  onTestFinished(() => server.close())
  return { server, ran }
}

const nobody = { principal: 'ann', scopes: [] } as const

/** Each method that aims at something, aimed at what anybody may use and at what needs a scope. */
const argument = { name: 'id', value: '' }
const methods: readonly (readonly [method: string, open: Frame, secret: Frame])[] = [
  ['tools/call', { name: 'open', arguments: {} }, { name: 'secret', arguments: {} }],
  ['prompts/get', { name: 'open' }, { name: 'secret' }],
  ['resources/read', { uri: 'open://1' }, { uri: 'secret://1' }],
  ['resources/read', { uri: 'open://2' }, { uri: 'secret://2' }],
  ['resources/subscribe', { uri: 'open://1' }, { uri: 'secret://1' }],
  [
    'completion/complete',
    { ref: { type: 'ref/prompt', name: 'open' }, argument },
    { ref: { type: 'ref/prompt', name: 'secret' }, argument },
  ],
  [
    'completion/complete',
    { ref: { type: 'ref/resource', uri: 'open://{id}' }, argument },
    { ref: { type: 'ref/resource', uri: 'secret://{id}' }, argument },
  ],
]

/** Members that name a target on some method, or look as if they did. */
const decoys: readonly Frame[] = [
  { name: 'open' },
  { uri: 'open://1' },
  { ref: { name: 'open' } },
  { ref: { type: 'ref/prompt', name: 'open' } },
  { ref: { uri: 'open://1' } },
  { tool: 'open', target: 'open', Name: 'open', URI: 'open://1', taskId: 'open' },
  { _meta: { name: 'open', uri: 'open://1', ref: { name: 'open' } } },
  { params: { name: 'open', uri: 'open://1' } },
]

describe.each(wires)('params that name two targets, at %s', revision => {
  it.each([
    ['the scopes of a token', {}],
    ['grants', { permissions: { grant: () => [] } }],
  ] as const)('reach nothing that %s do not allow', async (_, options) => {
    const { server, ran } = vault(options)
    const wire = await speak(server, revision, nobody)
    for (const [method, open, secret] of methods) {
      for (const decoy of decoys) {
        const frame = await wire.ask(method, { ...decoy, ...secret, ...withMeta(decoy, secret) })
        expect([method, decoy, ran, 'error' in frame || isFailure(frame)]).toEqual([method, decoy, [], true])
      }
      // Without a decoy the open one is reached: it is the scope that keeps the other one shut.
      if (method !== 'resources/subscribe') {
        expect(await wire.ask(method, open)).toHaveProperty('result')
        expect(ran.splice(0)).toHaveLength(1)
      }
    }
    await wire.close()
  })

  it('are refused where a completion refers to a prompt and a template at once, whichever is which', async () => {
    const { server, ran } = vault()
    const wire = await speak(server, revision, nobody)
    for (const ref of [
      { type: 'ref/resource', uri: 'secret://{id}', name: 'open' },
      { type: 'ref/resource', uri: 'open://{id}', name: 'secret' },
      { type: 'ref/prompt', name: 'secret', uri: 'open://{id}' },
      { type: 'ref/prompt', name: 'open', uri: 'secret://{id}' },
      { type: 'ref/prompt', name: 'open', uri: 7 },
    ])
      expect(errorOf(await wire.ask('completion/complete', { ref, argument })).code).toBe(-32602)
    expect(ran).toEqual([])
    // What a newer revision adds to a reference is nobody's target.
    const titled = { type: 'ref/prompt', name: 'open', title: 'Open', icons: [] }
    expect(await wire.ask('completion/complete', { ref: titled, argument })).toHaveProperty('result')
    await wire.close()
  })
})

/** A decoy in `_meta` goes beside what the request has there. */
function withMeta(decoy: Frame, params: Frame): Frame {
  return isRecord(decoy['_meta']) ? { _meta: { ...decoy['_meta'], ...(isRecord(params['_meta']) ? params['_meta'] : {}) } } : {}
}

function isFailure({ result }: Frame): boolean {
  return isRecord(result) && result['isError'] === true
}

describe('grants', () => {
  it('for one tool let nobody call another by a reference beside its name', async () => {
    const { server, ran } = vault({ permissions: { grant: () => [] } })
    const wire = await speak(server, '2025-11-25', { principal: 'ann', capabilities: { extensions: { [permissions]: {} } } })
    await wire.ask('tools/call', { name: 'secret', arguments: {}, ref: { name: 'open' } })
    expect(ran).toEqual([])
    await wire.close()
  })

  it('are needed by a tool whose arguments say so, whatever the call refers to beside its name', async () => {
    const { server, ran } = vault()
    server.tool('wide', { input: anything, scopesFor: () => ['admin'] }, () => String(ran.push('wide')))
    const wire = await speak(server, '2025-11-25', nobody)
    expect(await wire.ask('tools/call', { name: 'wide', arguments: {}, ref: { name: 'open' } })).not.toMatchObject({
      result: { isError: false },
    })
    expect(ran).toEqual([])
    await wire.close()
  })

  it('are asked about one tool or about a list, not about both in one request', async () => {
    const { server } = vault({ permissions: { grant: () => [] } })
    const wire = await speak(server, '2025-11-25', { ...nobody, capabilities: { extensions: { [permissions]: {} } } })
    const both = { tool: 'secret', checks: [{ tool: 'open' }] }
    expect(errorOf(await wire.ask('permissions/check', both)).code).toBe(-32602)
    await wire.close()
  })
})

describe('rules of a gateway', () => {
  const rules = [
    { name: 'no-payroll', prompt: 'payroll', do: 'deny' },
    { name: 'no-secrets', resource: 'secret://*', do: 'deny' },
  ] as const

  async function guarded(revision: RevisionId): Promise<{ wire: Wire; asked: string[]; watched: string[] }> {
    const bank = upstreamOf()
    const asked: string[] = []
    const watched: string[] = []
    const complete = (what: string) => ({
      id: () => {
        asked.push(what)
        return [what]
      },
    })
    bank.server.resource('secret://{id}', { name: 'secrets', complete: complete('secret') }, () => 'secret')
    const shape = jsonSchema({ type: 'object', properties: { id: { type: 'string' } } })
    bank.server.prompt('payroll', { arguments: shape, complete: complete('payroll') } as never, () => 'payroll')
    bank.server.engine.onWatch.add(uri => watched.push(uri))
    const gateway = await gatewayBefore({ bank }, { rules })
    return { wire: await speak(gateway.server, revision), asked, watched }
  }

  it.each(wires)('decide on the prompt or template whose values are given, at %s', async revision => {
    const { wire, asked } = await guarded(revision)
    for (const ref of [
      { type: 'ref/prompt', name: 'payroll', uri: 'x:y' },
      { type: 'ref/prompt', name: 'payroll' },
      { type: 'ref/resource', uri: 'secret://{id}', name: 'greet' },
      { type: 'ref/resource', uri: 'secret://{id}' },
    ])
      expect(await wire.ask('completion/complete', { ref, argument })).toHaveProperty('error')
    expect(asked).toEqual([])
    await wire.close()
  })

  it('decide on what is watched, whatever else a listen request names', async () => {
    const { wire, watched } = await guarded('2026-07-28')
    const listening = { uri: 'secret://1', notifications: { resourceSubscriptions: ['note://1'] } }
    wire.begin('subscriptions/listen', listening)
    await wire.next(({ method }) => method === 'notifications/subscriptions/acknowledged')
    expect(watched).toEqual(['note://1'])
    await wire.close()
  })

  it('decide on the resource that is read, not on a template of another server that reads alike', async () => {
    const other = upstreamOf('other')
    other.server.resource('plain://{id}', { name: 'plain' }, () => 'plain')
    // Listed as an address, though it reads like the other one's template.
    const [uri, reads] = ['plain://{id}', [] as unknown[]]
    const script = {
      'resources/list': () => ({ resources: [{ uri, name: 'decoy' }] }),
      'resources/read': (params: Frame) => {
        reads.push(params)
        return { contents: [{ uri, text: 'decoy' }] }
      },
    }
    const bank = { ...upstreamOf('bank'), target: () => sessionServer(script, { resources: {} }).connection }
    const gateway = await gatewayBefore({ other, bank }, { rules: [{ name: 'no-bank', upstream: 'bank', do: 'deny' }] })
    const exposed = gateway.names().find(({ upstream, kind }) => upstream === 'bank' && kind === 'resource')?.name
    const wire = await speak(gateway.server, '2025-11-25')
    expect(errorOf(await wire.ask('resources/read', { uri: exposed })).message).toContain('no-bank')
    expect(reads).toEqual([])
    await wire.close()
  })
})

describe('questions to a person', () => {
  const form = { type: 'object', properties: {} }

  it('are a form or a page: one that is both is refused and nobody sees it', async () => {
    const scripted = sessionServer()
    const seen: unknown[] = []
    const onElicit = (question: unknown) => {
      seen.push(question)
      return { action: 'accept' } as const
    }
    const client = await connect(scripted.connection, { revisions: ['2025-11-25'], onElicit })
    for (const more of [
      { mode: 'form', requestedSchema: form, url: 'https://evil.example/' },
      { requestedSchema: form, url: 'https://evil.example/' },
      { mode: 'url', url: 'https://a.example/', requestedSchema: form },
    ])
      expect(await scripted.ask('elicitation/create', { message: 'Who?', ...more })).toMatchObject({ error: { code: -32602 } })
    expect(seen).toEqual([])
    expect(await scripted.ask('elicitation/create', { message: 'Who?', requestedSchema: form })).toHaveProperty('result')
    await client.close()
  })
})

describe('a task', () => {
  it('is answered under one name: two that differ are refused', async () => {
    const server = createServer({ name: 'tasks', version: '1.0.0', revisions: ['draft-2026-v1'], log: 'silent' })
    onTestFinished(() => server.close())
    server.tool('work', { task: 'required' }, async () => 'done')
    const wire = await speak(server, 'draft-2026-v1', { capabilities: { tasks: {} } })
    const _meta = { 'io.modelcontextprotocol/related-task': { taskId: 'a' } }
    const { message, code } = errorOf(await wire.ask('tasks/input_response', { taskId: 'b', inputResponses: {}, _meta }))
    expect([code, message]).toEqual([-32602, expect.stringContaining('different tasks')])
    await wire.close()
  })
})

describe('a scope that a host sends along with a call', () => {
  it.each(places)('is asked about where it is said twice and differently, on %s', async place => {
    const host = await rawHost(place)
    onTestFinished(() => host.close())
    const scope = (label: string): Frame => ({ label, payload: { path: label } })
    const _meta = { [live]: { scope: scope('/b') } }
    host.begin('tools/call', { name: 'edit', arguments: { path: '/a' }, scope: scope('/a'), _meta })
    expect((await host.next('scope/elevate')).params['scope']).toEqual(scope('/a'))
  })
})

describe('a data reference', () => {
  const reference = (url: string): Frame => ({
    ref_id: 'r1',
    origin_server: 'a',
    mime_type: 'text/plain',
    size_bytes: 1,
    access_url: url,
    checksum: { algorithm: 'sha256', value: '0'.repeat(64) },
  })

  it('that carries another one is none: what was judged is what would be fetched', () => {
    const decoy = { ...reference('https://good.example/'), _meta: { [referencesExtension]: reference('https://evil.example/') } }
    expect(dataReference(decoy)).toBeUndefined()
    expect(() => readReference(decoy)).toThrow('is not valid')
    expect(readReference(reference('https://good.example/')).uri).toBe('https://good.example/')
  })
})

/** Every request that some feature describes. */
async function described(): Promise<readonly Method[]> {
  const features = join(import.meta.dirname, '../../src/features')
  const files = readdirSync(features, { recursive: true, encoding: 'utf8' }).filter(file => file.endsWith('messages.ts'))
  const modules = await Promise.all(files.map(file => import(join(features, file)) as Promise<Record<string, unknown>>))
  return modules.flatMap(module => Object.values(module)).filter(isRequest)
}

function isRequest(value: unknown): value is Method {
  return isRecord(value) && value['kind'] === 'request' && isRecord(value['params']) && typeof value['name'] === 'string'
}

describe('each method that any feature describes', () => {
  const all = described()
  const full = createServer({
    revisions: everyRevision,
    name: 'full',
    version: '1.0.0',
    log: 'silent',
    facade: true,
    manifest: true,
    live: {},
  } as ServerOptions)
  afterAll(() => full.close())

  it('refuses each of its members where it has another type, before anybody looks at it', async () => {
    const checked: string[] = []
    for (const { name, params } of await all) {
      const { properties = {} } = params.schema() as { properties?: Record<string, Record<string, unknown>> }
      for (const [member, schema] of Object.entries(properties)) {
        if (Object.keys(schema).length === 0) continue
        const wrong = schema['type'] === 'boolean' ? 'no' : true
        expect([name, member, params.check({ [member]: wrong })]).not.toEqual([name, member, undefined])
        checked.push(`${name} ${member}`)
      }
    }
    expect(checked.length).toBeGreaterThan(60)
  })

  it.each([...sessionRevisions.filter(id => id !== 's3'), ...requestRevisions])(
    'answers nonsense with a refusal, at %s',
    async revision => {
      const wire = await speak(full, revision)
      for (const { name, to, in: known } of await all) {
        if (to === 'client' || !known.includes(revision) || name === 'initialize') continue
        const nonsense = { name: 7, uri: [], ref: true, taskId: {}, notifications: 'x', level: 7, subscription_id: 7, events: 7 }
        const more = { inputResponses: 7, transaction_id: 7, ref_id: 7, idempotency_key: 7, tool: 7, cursor: 7, argument: 7 }
        const frame = await wire.ask(name, { ...nonsense, ...more, requested_scopes: 7, capability_needed: 7, if_revision: 7 })
        if (['ping', 'server/discover'].includes(name)) expect(frame).toHaveProperty('result')
        else
          expect([name, errorOf(frame).code]).toEqual([
            name,
            expect.toSatisfy(code => [-32601, -32602, -32003, -32021].includes(code)),
          ])
      }
      await wire.close()
    },
  )
})
