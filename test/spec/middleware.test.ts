/** Middleware that only passes on changes nothing on any wire; one that acts is held to the wire all the same (item 6). */
import { afterEach, describe, expect, it } from 'vitest'
import type { RevisionId } from '../../src/revisions/index.ts'
import { createServer, McpError, type Server } from '../../src/server/index.ts'
import { expectLog } from '../log-lines/lines.ts'
import { accept, askingServer, drive, everything } from './asking-server.ts'
import { richServer } from './rich-server.ts'
import { callName, errorOf, everyRevision, type Frame, official, requestRevisions, resultOf, speak, textOf } from './wire.ts'

expectLog('tool-failed', /tool=fails error="Error: It broke/)
expectLog('internal', /method=prompts\/list error="Error: secret detail/)
expectLog('internal', /method=tools\/list error="TypeError: Cannot assign to read only property/)

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const made = (server: Server): Server => {
  closers.push(() => server.close())
  return server
}

function requests(revision: RevisionId): readonly (readonly [string, Frame])[] {
  const call = callName(revision)
  return [
    ['tools/list', {}],
    ...['rich', 'numbers', 'tree', 'picture', 'bars', 'word', 'plain', 'fails', 'nobody'].map(name => [call, { name }] as const),
    [call, { name: 'rich', arguments: { region: 7 } }],
    ['resources/list', {}],
    ['resources/read', { uri: 'file:///rich.txt' }],
    ['resources/read', { uri: 'file:///none' }],
    ['prompts/list', {}],
    ['prompts/get', { name: 'rich', arguments: { topic: 'x' } }],
    ['prompts/get', { name: 'rich' }],
    ['completion/complete', { ref: { type: 'ref/prompt', name: 'rich' }, argument: { name: 'topic', value: '' } }],
    ['no/such', {}],
    ['ping', {}],
  ]
}

describe.each(everyRevision)('at %s', revision => {
  it('what only passes on changes no answer', async () => {
    const plain = await speak(made(richServer()), revision)
    const wrapped = await speak(
      made(
        richServer()
          .use((call, next) => next(call))
          .use(async (call, next) => next(call)),
      ),
      revision,
    )
    for (const [method, params] of requests(revision)) {
      const [one, two] = [await plain.ask(method, params, 'same'), await wrapped.ask(method, params, 'same')]
      expect([method, params, two]).toEqual([method, params, one])
    }
  })

  it('what throws a protocol failure is numbered by the wire, anything else is an internal failure without its words', async () => {
    const server = made(richServer())
    server.use((call, next) => {
      if (call.method === 'tools/list') throw new McpError('resource-not-found', 'not here')
      if (call.method === 'prompts/list') throw new Error('secret detail')
      return next(call)
    })
    const wire = await speak(server, revision)
    expect(errorOf(await wire.ask('tools/list')).code).toBe(revision === '2026-07-28' ? -32602 : -32002)
    const { code, message } = errorOf(await wire.ask('prompts/list'))
    expect([code, message]).toEqual([-32603, expect.not.stringContaining('secret')])
  })

  it('sees the canonical name of a method, and may change its params', async () => {
    const server = made(richServer())
    const seen: string[] = []
    server.use((call, next) => {
      seen.push(call.method)
      return next(call.method === 'tools/call' ? { ...call, params: { ...call.params, name: 'plain' } } : call)
    })
    const wire = await speak(server, revision)
    const { content, output } = resultOf(await wire.ask(callName(revision), { name: 'fails' }))
    expect([revision === 's3' ? output : (content as Frame[])[0]?.['text'], seen]).toEqual([
      'just text',
      expect.arrayContaining(['tools/call']),
    ])
  })
})

/** What only Ada may see is left out for the others, whatever the list. */
function hideSecrets(server: Server): void {
  const shown = ({ name }: { readonly name: string }): boolean => !name.startsWith('secret')
  server.use(async (call, next) => {
    if (call.context.principal?.id === 'ada') return next(call)
    switch (call.method) {
      case 'tools/list': {
        const page = await next(call)
        return { ...page, tools: page.tools.filter(shown) }
      }
      case 'prompts/list': {
        const page = await next(call)
        return { ...page, prompts: page.prompts.filter(shown) }
      }
      case 'resources/list': {
        const page = await next(call)
        return { ...page, resources: page.resources.filter(shown) }
      }
      case 'resources/templates/list': {
        const page = await next(call)
        return { ...page, resourceTemplates: page.resourceTemplates.filter(shown) }
      }
      default:
        return next(call)
    }
  })
}

const lists = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list'] as const

describe.each(everyRevision)('lists through middleware at %s', revision => {
  const namesOf = ({ result }: Frame): unknown => {
    const entries = Array.isArray(result) ? result : Object.values(result as Frame).find(value => Array.isArray(value))
    return (entries as { name: string }[]).map(({ name }) => name)
  }

  it('can be filtered for each caller: one sees what the other does not, and calls are as before', async () => {
    const server = made(createServer({ name: 'lists', version: '1.0.0', revisions: everyRevision }))
    for (const name of ['open', 'secret']) {
      server.tool(name, { title: name }, () => name)
      server.prompt(name, {}, () => name)
      server.resource(`memo://${name}`, { name }, () => name)
      server.resource(`${name}://{id}`, { name }, () => name)
    }
    hideSecrets(server)
    const [ada, eve] = [await speak(server, revision, { principal: 'ada' }), await speak(server, revision, { principal: 'eve' })]
    for (const method of lists) {
      for (const again of [1, 2]) {
        expect([method, again, namesOf(await eve.ask(method))]).toEqual([method, again, ['open']])
        expect([method, again, namesOf(await ada.ask(method))]).toEqual([method, again, ['open', 'secret']])
      }
    }
  })

  it('are those of the wire, whether somebody made another list of them or not', async () => {
    const [plain, filtered] = [made(richServer()), made(richServer())]
    filtered.use(async (call, next) => {
      const result = await next(call)
      return lists.some(method => method === call.method) ? { ...(result as object) } : result
    })
    const [one, two] = [await speak(plain, revision), await speak(filtered, revision)]
    for (const method of lists) expect(await two.ask(method, {}, 'same')).toEqual(await one.ask(method, {}, 'same'))
  })
})

it('a page that came in several, and one that a template lists, can be filtered too', async () => {
  const server = made(createServer({ name: 'pages', version: '1.0.0', pageSize: 1 }))
  for (const name of ['open', 'secret']) server.tool(name, {}, () => name)
  const listed = [
    { uri: 'memo://1', name: 'open' },
    { uri: 'memo://2', name: 'secret' },
  ]
  server.resource('memo://{id}', { name: 'memo', list: () => listed }, () => 'x')
  hideSecrets(server)
  const wire = await speak(server, '2025-11-25')
  const seen: unknown[] = []
  for (const method of ['tools/list', 'resources/list']) {
    for (let cursor: unknown, page = 0; page === 0 || cursor !== undefined; page++) {
      const { nextCursor, tools, resources } = resultOf(await wire.ask(method, cursor === undefined ? {} : { cursor }))
      seen.push(...((tools ?? resources) as Frame[]).map(({ name }) => name))
      cursor = nextCursor
    }
  }
  expect(seen).toEqual(['open', 'open'])
})

it('what all callers share cannot be changed in place', async () => {
  const server = made(richServer())
  server.use(async (call, next) => {
    const page = await next(call)
    if (call.method === 'tools/list') (page as { tools: unknown[] }).tools.length = 0
    return page
  })
  const wire = await speak(server, '2025-11-25')
  expect(errorOf(await wire.ask('tools/list')).code).toBe(-32603)
})

describe.each(official)('a result of middleware at %s', revision => {
  it('goes down the same steps as any other', async () => {
    const server = made(richServer())
    const instead = { content: [{ type: 'resource_link', uri: 'x://y', name: 'y' }], structuredContent: [1] }
    server.use((call, next) => (call.method === 'tools/call' ? instead : next(call)))
    server.use((call, next) => next(call))
    const wire = await speak(server, revision)
    const { content, structuredContent } = resultOf(await wire.ask('tools/call', { name: 'plain' }))
    const old = revision === '2024-11-05' || revision === '2025-03-26'
    expect((content as Frame[])[0]?.['type']).toBe(old ? 'text' : 'resource_link')
    expect(structuredContent).toEqual(revision === '2026-07-28' ? [1] : old ? undefined : { result: [1] })
  })
})

describe.each(requestRevisions)('asking through middleware at %s', revision => {
  it('works as without: what was asked is not taken for a failure', async () => {
    const { server, traces } = askingServer()
    made(server)
    const outcomes: string[] = []
    server.use(async (call, next) => {
      try {
        const result = await next(call)
        outcomes.push('result')
        return result
      } catch (error) {
        outcomes.push(error instanceof McpError ? error.kind : 'other')
        throw error
      }
    })
    const wire = await speak(server, revision, { capabilities: everything })
    const { last, rounds } = await drive(wire, 'tools/call', { name: 'book', arguments: {} }, accept)
    expect([textOf(last), rounds.length, outcomes, traces]).toEqual([
      'booked for Ada',
      2,
      ['suspended', 'suspended', 'result'],
      [],
    ])
  })
})
