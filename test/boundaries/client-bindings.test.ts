/** What a server sends to a client is bound to that server and that connection: questions, announcements, results, recommendations. */
import type http from 'node:http'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  bearer,
  type Client,
  type ConnectOptions,
  connect,
  createFinder,
  memoryStorage,
  oauth,
  type Question,
  type SamplingParams,
} from 'vivarium/client'
import { createHost, scripted } from 'vivarium/host'
import { createServer, type Recommendation } from 'vivarium/server'
import { connectInMemory, memoryPair } from 'vivarium/testing'
import { browser, listen, secret, startWorld } from '../auth/world.ts'
import { type Frame, Refusal, type Script, sessionServer } from '../client/scripted-server.ts'

async function open(options: ConnectOptions, script: Script = {}) {
  const server = sessionServer(script, { tools: {} }, '2025-11-25')
  const mcp = await connect(server.connection, { ...options, revisions: ['2025-11-25'] })
  onTestFinished(() => mcp.close())
  return { server, mcp }
}

const page = (url: string, elicitationId = 'e1'): Frame => ({ mode: 'url', message: 'Sign in', url, elicitationId })

describe('a page that a server wants to be visited', () => {
  it.each([
    'javascript:alert(document.cookie)',
    'JaVaScRiPt:alert(1)',
    'file:///etc/passwd',
    'data:text/html,<script>',
    'vscode://settings/install?x',
    'ms-msdt:/id PCWDiagnostic',
    'http://login.example/',
    'https://bank.example@evil.example/',
    'https://user:pass@evil.example/',
    'not an address',
    '',
  ])('at %j is shown to nobody, whatever handler the program has', async url => {
    const asked: Question[] = []
    const onElicit = (question: Question) => {
      asked.push(question)
      return { action: 'accept' as const }
    }
    const { server } = await open({ onElicit })
    const answer = await server.ask('elicitation/create', page(url))
    expect([asked, answer['result']]).toEqual([[], undefined])
    expect(JSON.stringify(answer['error'])).toContain('https')
  })

  it('is shown with the host it leads to, which nothing in its address can dress up', async () => {
    const asked: Question[] = []
    const { server } = await open({ onElicit: question => ({ action: asked.push(question) > 0 ? 'accept' : 'cancel' }) })
    await server.ask('elicitation/create', page('https://login.example/https://bank.example/?at=bank.example'))
    await server.ask('elicitation/create', page('http://127.0.0.1:7000/callback', 'e2'))
    expect(asked).toMatchObject([{ host: 'login.example' }, { host: '127.0.0.1:7000' }])
  })
})

describe('the announcement that a page has done its work', () => {
  it('counts for pages that this connection was asked to visit, each once, and for no others', async () => {
    const done: string[] = []
    const options: ConnectOptions = {
      onElicit: () => ({ action: 'accept' }),
      onElicitationComplete: id => void done.push(id),
    }
    const [one, other] = [await open(options), await open(options)]
    await one.server.ask('elicitation/create', page('https://login.example/', 'of-one'))
    await other.server.tell('notifications/elicitation/complete', { elicitationId: 'of-one' })
    await other.server.tell('notifications/elicitation/complete', { elicitationId: 'of-nobody' })
    expect(done).toEqual([])
    await one.server.tell('notifications/elicitation/complete', { elicitationId: 'of-one' })
    await one.server.tell('notifications/elicitation/complete', { elicitationId: 'of-one' })
    expect(done).toEqual(['of-one'])
  })

  it('does not count for a page that the user did not agree to visit', async () => {
    const done: string[] = []
    const { server } = await open({ onElicit: () => ({ action: 'decline' }), onElicitationComplete: id => void done.push(id) })
    await server.ask('elicitation/create', page('https://login.example/', 'declined'))
    await server.tell('notifications/elicitation/complete', { elicitationId: 'declined' })
    expect(done).toEqual([])
  })

  it('counts for pages that a refused call named', async () => {
    const done: string[] = []
    const refuse = (): never => {
      throw new Refusal(-32042, 'Visit it first', { elicitations: [page('https://login.example/', 'named')] })
    }
    const { server, mcp } = await open({ onElicitationComplete: id => void done.push(id) }, { 'tools/call': refuse })
    await expect(mcp.callTool('pay', {})).rejects.toThrow('Visit it first')
    await server.tell('notifications/elicitation/complete', { elicitationId: 'other' })
    await server.tell('notifications/elicitation/complete', { elicitationId: 'named' })
    expect(done).toEqual(['named'])
  })
})

describe('a form that asks for secrets, which forms may not', () => {
  it('reaches the program with the names of those fields, so that the user is warned', async () => {
    const asked: Question[] = []
    const { server } = await open({ onElicit: question => ({ action: asked.push(question) > 0 ? 'decline' : 'cancel' }) })
    const properties = {
      name: { type: 'string' },
      pin: { type: 'string', title: 'Your password' },
      api_key: { type: 'string' },
      note: { type: 'string', format: 'password' },
      passenger: { type: 'string' },
      maxTokens: { type: 'integer' },
      agreed: { type: 'boolean', title: 'I know my password' },
    }
    await server.ask('elicitation/create', { message: 'Who?', requestedSchema: { type: 'object', properties } })
    expect(asked).toMatchObject([{ mode: 'form', secrets: ['pin', 'api_key', 'note'] }])
  })
})

describe('sampling', () => {
  const prompt: Frame = { messages: [{ role: 'user', content: { type: 'text', text: 'hi' } }], maxTokens: 10 }
  const said = { role: 'assistant' as const, content: { type: 'text' as const, text: 'ho' }, model: 'm' }

  async function sampled(includeContext: string, options: ConnectOptions = {}) {
    const asked: SamplingParams[] = []
    const onSample = (params: SamplingParams) => {
      asked.push(params)
      return said
    }
    const { server } = await open({ onSample, ...options })
    const answer = await server.ask('sampling/createMessage', { ...prompt, includeContext })
    const declared = server.heard.find(({ method }) => method === 'initialize')?.['params'] as Frame
    return { asked, error: answer['error'], declared: (declared['capabilities'] as Frame)['sampling'] }
  }

  it('with the context of other servers is refused, and says which option grants it', async () => {
    const { asked, error, declared } = await sampled('allServers')
    expect([asked, declared]).toEqual([[], {}])
    expect(JSON.stringify(error)).toContain('sampleContext')
    expect((await sampled('allServers', { sampleContext: 'thisServer' })).asked).toEqual([])
  })

  it('with the context of its own server is answered without, unless that is granted', async () => {
    const { asked } = await sampled('thisServer')
    expect(asked.map(({ includeContext }) => includeContext)).toEqual([undefined])
    const granted = await sampled('thisServer', { sampleContext: 'thisServer' })
    expect(granted).toMatchObject({ asked: [{ includeContext: 'thisServer' }], declared: { context: {} } })
    expect((await sampled('allServers', { sampleContext: 'allServers' })).asked).toMatchObject([{ includeContext: 'allServers' }])
  })
})

describe('the folders of a host', () => {
  it('are told to the server that a rule names, and to no other one unless the user agrees', async () => {
    const opening = () => {
      const server = createServer({ name: 'curious', version: '1.0.0', log: 'silent' })
      server.tool('where', {}, async (_, ctx) => JSON.stringify(await ctx.roots()))
      onTestFinished(() => server.close())
      return () => {
        const [here, there] = memoryPair()
        server.acceptor.accept(there)
        return here
      }
    }
    const host = await createHost({
      model: scripted('x'),
      servers: { known: opening(), stranger: opening() },
      roots: [{ uri: 'file:///home/ada/project' }],
      policy: { rules: [{ name: 'known', do: 'allow', when: { kind: 'roots', server: 'known' } }] },
    })
    onTestFinished(() => host.close())
    const where = async (name: string) => {
      await expect.poll(() => host.server(name)?.status).toBe('up')
      return (await host.server(name)?.client?.callTool('where', {}))?.text
    }
    expect([await where('known'), await where('stranger')]).toEqual(['[{"uri":"file:///home/ada/project"}]', '[]'])
  })
})

describe('a server that recommends others', () => {
  async function recommender(name: string, recommendations: readonly Recommendation[]): Promise<Client> {
    const server = createServer({ name, version: '1.0.0', log: 'silent', recommendations })
    const mcp = await connectInMemory(server)
    onTestFinished(async () => {
      await mcp.close()
      await server.close()
    })
    return mcp
  }
  const draw = (confidence: 'high' | 'low', registryUrl: string): Recommendation => ({
    capability: 'design mockup',
    server: 'draw',
    confidence,
    registryUrl,
  })
  const find = async (servers: readonly Client[], trusted: readonly (string | Client)[]) =>
    (await createFinder({ servers, trusted }).find('design mockup')).candidates

  it('does not stand in the place of one that is trusted, however sure it is', async () => {
    const honest = await recommender('tracker', [draw('low', 'https://honest.example/draw')])
    const loud = await recommender('stranger', [draw('high', 'https://evil.example/draw')])
    for (const servers of [
      [honest, loud],
      [loud, honest],
    ])
      expect(await find(servers, ['tracker'])).toMatchObject([{ trusted: true, registryUrl: 'https://honest.example/draw' }])
  })

  it('is not trusted for calling itself like one that is', async () => {
    const honest = await recommender('tracker', [draw('low', 'https://honest.example/draw')])
    const copy = await recommender('tracker', [draw('high', 'https://evil.example/draw')])
    expect((await find([honest, copy], ['tracker'])).some(({ trusted }) => trusted)).toBe(false)
    // The connection itself cannot be copied.
    expect(await find([honest, copy], [honest])).toMatchObject([{ trusted: true, registryUrl: 'https://honest.example/draw' }])
  })

  it('is not trusted for calling itself like a registry that is', async () => {
    const copy = await recommender('https://registry.example', [draw('high', 'https://evil.example/draw')])
    expect(await find([copy], ['https://registry.example'])).toMatchObject([{ trusted: false }])
  })
})

describe('results that a server lets be kept for one caller (cacheScope private)', () => {
  /** A server of 2026-07-28 that shows each caller tools of its own, and knows the callers of `known` only. */
  async function personal(scope: 'private' | 'public' | undefined) {
    const known = new Set(['ann', 'bob'])
    let listed = 0
    const answers: Readonly<Record<string, (who: string) => object>> = {
      'server/discover': () => ({
        resultType: 'complete',
        supportedVersions: ['2026-07-28'],
        capabilities: { tools: {} },
        serverInfo: { name: 'personal', version: '1' },
      }),
      'tools/list': who => {
        listed++
        const tools = [{ name: `of_${who}`, inputSchema: { type: 'object' } }]
        return { resultType: 'complete', tools, ttlMs: 60_000, ...(scope !== undefined && { cacheScope: scope }) }
      },
      'tools/call': () => ({ resultType: 'complete', content: [] }),
    }
    const origin = await listen(async (request: http.IncomingMessage, response: http.ServerResponse) => {
      const text = Buffer.concat(await request.toArray()).toString()
      const who = request.headers.authorization?.replace('Bearer ', '') ?? ''
      if (!known.has(who)) return response.writeHead(401).end()
      const { id, method } = JSON.parse(text)
      const result = answers[method]?.(who) ?? {}
      return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }))
    })
    return { url: `${origin}/mcp`, known, listed: () => listed }
  }

  async function switched(scope: 'private' | 'public' | undefined) {
    const { url, known, listed } = await personal(scope)
    let who = 'ann'
    await using mcp = await connect(url, { auth: bearer(() => who) })
    const names = async (): Promise<string[]> => {
      const all: string[] = []
      for await (const { name } of mcp.tools()) all.push(name)
      return all
    }
    const before = [await names(), await names()]
    who = 'bob'
    known.delete('ann')
    await mcp.callTool('anything', {})
    return { before, after: await names(), listed: listed() }
  }

  it.each(['private', undefined] as const)(
    'are not given to the next one who signs in on the same connection (%s)',
    async scope => {
      const { before, after } = await switched(scope)
      expect(before).toEqual([['of_ann'], ['of_ann']])
      expect(after).toEqual(['of_bob'])
    },
  )
})

describe('a store of tokens that two servers share', () => {
  it('gives each server its own token, also where both trust one authorization server', async () => {
    const storage = memoryStorage()
    const first = await startWorld()
    const second = await startWorld({
      resource: all => ({ ...all, authorization_servers: [first.issuer] }),
      verify: async token => first.tokens.get(token),
    })
    for (const { url } of [first, second]) await (await connect(url, { auth: oauth({ browser, storage }) })).close()
    const shown = (heard: typeof first.heard) => new Set(heard.flatMap(({ headers }) => headers.authorization ?? []))
    const [one, other] = [shown(first.heard), shown(second.heard)]
    expect([one.size, other.size]).toEqual([1, 1])
    expect([...one].some(token => other.has(token))).toBe(false)
    expect([...one].join()).toContain(secret)
    expect(first.at('/authorize').map(({ query }) => query.get('resource'))).toEqual([first.url, second.url])
  })
})
