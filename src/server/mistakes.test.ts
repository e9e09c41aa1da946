/** What authors get wrong where no compiler helps them: each is told at once, by the name of the option and what it may be. */
import { afterEach, describe, expect, it } from 'vitest'
import { createServer, type Server, type ServerOptions } from './index.ts'

const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

function make(more: Partial<ServerOptions> = {}): Server {
  const server = createServer({ name: 'mistakes', version: '1.0.0', ...more })
  servers.push(server)
  return server
}

/** What a program in plain JavaScript could pass. */
const loose = (value: unknown): never => value as never
const handler = (): string => 'x'

describe('createServer', () => {
  it.each([
    [{ limit: { calls: 1 } }, /createServer has no option "limit"\. The options are name, .*limits/],
    [{ limits: 5 }, /createServer: limits is 5; give an object/],
    [{ limits: { call: 1 } }, /limits has no limit "call"\. The limits are .*calls.*rates/],
    [{ limits: { calls: '9' } }, /limits\.calls is 9: give a number above 0/],
    [{ limits: { calls: 0 } }, /limits\.calls is 0/],
    [{ limits: { calls: Number.NaN } }, /limits\.calls is NaN/],
    [{ limits: { rates: 7 } }, /limits\.rates must be an object, or false/],
    [
      { limits: { rates: { call: false } } },
      /limits\.rates has no rate "call"\. The rates are calls, completions, log, progress/,
    ],
    [{ limits: { rates: { calls: 10 } } }, /limits\.rates\.calls must be \{ perSecond, burst \}/],
    [
      { limits: { rates: { calls: { perSec: 10 } } } },
      /limits\.rates\.calls has no option "perSec"\. The options are perSecond, burst/,
    ],
    [{ sessions: 'no' }, /createServer: sessions is "no"; give true or false/],
    [{ onTrace: 'console' }, /onTrace is "console"; give a function/],
  ])('refuses %j', (options, message) => {
    expect(() => createServer(loose({ name: 'x', version: '1', ...options }))).toThrow(message)
  })

  it('takes what is left undefined for what is left out, and its default holds', () => {
    const server = make({ limits: loose({ calls: undefined, rates: { calls: undefined } }), title: loose(undefined) })
    expect(server.engine.limits.calls).toBe(2_000)
  })
})

describe('tools', () => {
  it.each([
    [{ inputSchema: {} }, /Tool "t" has no option "inputSchema"\. The options are title, description, input, output/],
    [{ description: 7 }, /Tool "t": description is 7; give a string/],
    [{ icons: {} }, /icons is an object; give a list/],
    ['a tool', /Tool "t": the options must be an object, not "a tool"/],
  ])('refuse %j', (options, message) => {
    expect(() => make().tool('t', loose(options), handler)).toThrow(message)
  })
})

describe('resources', () => {
  it.each([
    [
      'note://1',
      { name: 'n', mimetype: 'x' },
      /Resource "note:\/\/1" has no option "mimetype"\. The options are name, .*mimeType/,
    ],
    ['note://1', { name: 'n', size: -1 }, /size is -1; give a number of at least 0/],
    ['note://1', { title: 'n' }, /Resource "note:\/\/1" needs a name/],
    ['note://1', { name: 7 }, /name is 7; give a string/],
    ['note://1', { name: 'n', cache: '5m' }, /cache is "5m"; give an object/],
    ['note://{id}', { name: 'n', lists: handler }, /Resource template "note:\/\/\{id\}" has no option "lists"/],
    ['note://{id}', { name: 'n', list: [] }, /list is a list; give a function/],
    ['note://{id}', { name: 'n', complete: { id: ['a'] } }, /complete\.id must be a function/],
  ])('%s refuses %j', (address, options, message) => {
    expect(() => make().resource(address, loose(options), loose(handler))).toThrow(message)
  })

  it('need a handler', () => {
    expect(() => make().resource('note://1', loose(handler), loose(undefined))).toThrow(/Resource "note:\/\/1" has no handler/)
  })

  it('keep what they are when an update is refused', () => {
    const server = make()
    const note = server.resource('note://1', { name: 'n' }, handler)
    expect(() => note.update(loose({ nam: 'm' }))).toThrow(/no option "nam"/)
    expect(() => note.update({ name: 'm' })).not.toThrow()
  })
})

describe('prompts', () => {
  it.each([
    [{ args: {} }, /Prompt "p" has no option "args"\. The options are title, description, arguments/],
    [{ description: {} }, /description is an object; give a string/],
    [{ arguments: ['id'] }, /arguments of prompt "p": give a record such as \{ id: \{ required: true \} \}/],
    [
      { arguments: { id: { require: true } } },
      /"id" has no option "require"\. The options are title, description, required, complete/,
    ],
    [{ arguments: { id: 'the id' } }, /"id": the options must be an object, not "the id"/],
    [{ arguments: { id: {} }, complete: { id: 'x' } }, /complete\.id must be a function/],
  ])('refuse %j', (options, message) => {
    expect(() => make().prompt('p', loose(options), handler)).toThrow(message)
  })

  it('need a handler', () => {
    expect(() => make().prompt('p', loose(handler), loose(undefined))).toThrow(/Prompt "p" has no handler/)
  })
})

describe('hosts and origins', () => {
  it.each([
    [{ hosts: 'api.example.com' }, /hosts is "api\.example\.com": give a list such as \['api\.example\.com'\]/],
    [{ hosts: ['https://api.example.com'] }, /hosts has "https:\/\/api\.example\.com": give names such as/],
    [{ origins: 'https://app.example.com' }, /origins is "https:\/\/app\.example\.com": give a list/],
    [{ origins: ['app.example.com'] }, /origins has "app\.example\.com": give names such as \['https:\/\/app\.example\.com'\]/],
    [{ origins: ['https://app.example.com/page'] }, /origins has/],
    [{ hosts: [7] }, /hosts has 7/],
  ])('%j is refused by listen and by fetchWith, before anybody calls', async (options, message) => {
    await expect(make().listen(loose(options))).rejects.toThrow(message)
    expect(() => make().fetchWith(loose(options))).toThrow(message)
  })

  it.each([
    { hosts: ['*'], origins: ['*'] },
    { hosts: ['API.example.com', 'api.example.com:8443', '[2001:db8::1]'], origins: ['https://App.example.com/', 'null'] },
    { origins: ['chrome-extension://abcdef', 'http://localhost:5173'] },
  ])('%j is taken', options => {
    expect(() => make().fetchWith(options)).not.toThrow()
  })
})

it('listen has limits of its own, and refuses those it does not know', async () => {
  await expect(make().listen({ limits: loose({ bodyBytes: 1 }) })).rejects.toThrow(
    /listen: limits has no limit "bodyBytes"\. The limits are/,
  )
  await expect(make().listen({ limits: { streams: -1 } })).rejects.toThrow(/listen: limits\.streams is -1/)
})

describe('listen', () => {
  it('refuses what it does not know, and says what may be meant', async () => {
    await expect(make().listen(loose({ prt: 1 }))).rejects.toThrow(
      /listen has no option "prt"\. The options are .*Did you mean port\?/,
    )
  })
})

it.each([{ secret: 'short' }, { store: 'redis:' }, { nmae: 'x' }])(
  'the stack of a mistake in the options begins at the call of the author: %j',
  mistake => {
    const stack = (() => {
      try {
        createServer({ name: 's', version: '1', ...mistake } as never)
      } catch (error) {
        return (error as Error).stack
      }
    })()
    expect(stack?.split('\n').find(line => /^ +at /.test(line))).toContain('mistakes.test.ts')
  },
)
