/** Programs with bad manners, for a client to start: each speaks the wire with a handshake over stdio, and misbehaves by its name. */
import { spawn } from 'node:child_process'
import { closeSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'

interface Message {
  readonly id?: number | string
  readonly method?: string
  readonly params?: Readonly<Record<string, unknown>>
}

const mebibyte = 1024 * 1024

/** Whole, however long the other end takes to read it. */
function write(data: string | Buffer, fd = 1): void {
  const bytes = typeof data === 'string' ? Buffer.from(data) : data
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(fd, bytes, at)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') process.exit(0)
    }
  }
}

const send = (message: object): void => write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const said = (text: string): object => ({ content: [{ type: 'text', text }] })
const line = (message: object): string => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`

/** Many lines at once, in pieces that a pipe takes. */
function flood(count: number, make: (index: number) => object, atOnce = 500): void {
  for (let from = 0; from < count; from += atOnce) {
    let text = ''
    for (let index = from; index < Math.min(count, from + atOnce); index++) text += line(make(index))
    write(text)
  }
}

type Script = Readonly<Record<string, (message: Message) => void>>

/** What each program does with a call of any tool but `fine`, and with what else it cares for. */
const programs: Readonly<Record<string, Script>> = {
  honest: {},
  // Duplicate answers.
  H40: {
    'tools/call': ({ id }) => {
      write(
        line({ id, result: said('first') }) +
          line({ id, result: said('second') }) +
          line({ id, error: { code: 1, message: 'third' } }),
      )
      flood(50_000, () => ({ id: id as number, result: said('again') }))
    },
  },
  // Answers what was cancelled, when it is cancelled.
  H41: {
    'tools/call': () => {},
    'notifications/cancelled': ({ params }) => send({ id: params?.['requestId'], result: said('late') }),
  },
  H42: {
    'tools/call': ({ id }) => {
      for (let sent = 0; sent < 100; sent++) write(`${'stderr '.repeat(mebibyte / 7)}\n`, 2)
      for (let sent = 0; sent < 100_000; sent++) write(`line ${sent} \u001b[31m\n`, 2)
      send({ id, result: said('done') })
    },
  },
  H43: {},
  H44: {
    'tools/call': ({ id }) => {
      const piece = Buffer.alloc(mebibyte, 'x')
      for (let sent = 0; sent < 100; sent++) write(piece)
      write('\n')
      send({ id, result: said('after') })
    },
  },
  H45: {
    'tools/call': ({ id }) => {
      write(line({ id, result: said('x'.repeat(mebibyte)) }).slice(0, -10))
      process.exit(3)
    },
  },
  // Takes nothing in any more: writing to it fails.
  H46: {
    'tools/call': () => {
      process.stdin.pause()
      closeSync(0)
      setInterval(() => {}, 1_000)
    },
  },
  // Ends, while a child of it holds its output open.
  H47: {
    'tools/call': () => {
      const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: ['ignore', 'inherit', 'inherit'] })
      child.unref()
      write(`${child.pid}\n`, 2)
      setTimeout(() => process.exit(0), 100)
    },
  },
  H48: {
    'tools/call': ({ id, params }) => {
      const token = (params?.['_meta'] as { progressToken?: unknown } | undefined)?.progressToken
      flood(200_000, index => ({ method: 'notifications/progress', params: { progressToken: token, progress: index } }))
      flood(200_000, index => ({ method: 'notifications/message', params: { level: 'info', data: `log ${index}` } }))
      send({ id, result: said('done') })
    },
  },
  // Asks without reading what is answered, then without end.
  H49: {
    'tools/call': ({ id, params }) => {
      const methods: Readonly<Record<string, object>> = {
        ping: {},
        'elicitation/create': { message: 'More?', requestedSchema: { type: 'object', properties: {} } },
        'sampling/createMessage': { messages: [{ role: 'user', content: { type: 'text', text: 'hi' } }], maxTokens: 1 },
        'roots/list': {},
        'unheard/of': {},
      }
      const name = String(params?.['name'])
      const count = name === 'ping' ? 1_000_000 : 50_000
      flood(count, index => ({ id: `${name} ${index}`, method: name, params: methods[name] }))
      send({ id, result: said('done') })
    },
  },
  H50: {
    'tools/call': ({ id }) => {
      flood(200_000, index => ({ method: 'notifications/resources/updated', params: { uri: `r:/${index}` } }))
      flood(100_000, () => ({ method: 'notifications/tools/list_changed' }))
      send({ id, result: said('done') })
    },
    'resources/subscribe': ({ id }) => send({ id, result: {} }),
  },
  // Asks under the ids of the client's own calls.
  H51: {
    'tools/call': ({ id }) => {
      for (const method of ['ping', 'roots/list', 'unheard/of']) send({ id, method })
      for (let next = 0; next < 100; next++) send({ id: next, method: 'ping' })
      send({ id, method: 'ping', result: said('both') })
      send({ id, result: said('right') })
    },
  },
  H52: {
    'tools/call': ({ id }) => {
      write(
        Buffer.concat([
          Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"`),
          Buffer.of(0xff, 0xfe, 0xc0, 0x80),
          Buffer.from('"}]}}\n'),
        ]),
      )
      write(`\u0000\n\u0000{"jsonrpc":"2.0","id":${id},"result":{"content":[]}}\n`)
      write(Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(line({ id, result: said('with a mark') }))]))
      write(Buffer.from(line({ id, result: said('wide') }), 'utf16le'))
      write('\n')
      send({ id, result: said('right') })
    },
  },
}

const name = process.argv[2] ?? ''
const script = programs[name] ?? {}
if (name === 'H43') for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {})

const honest: Script = {
  initialize: ({ id }) =>
    send({
      id,
      result: {
        protocolVersion: '2025-11-25',
        capabilities: { tools: { listChanged: true }, resources: { subscribe: true }, logging: {} },
        serverInfo: { name, version: '1' },
      },
    }),
  'tools/list': ({ id }) => send({ id, result: { tools: [{ name: 'fine', inputSchema: { type: 'object' } }] } }),
  'tools/call': ({ id }) => send({ id, result: said('fine') }),
}

const input = createInterface({ input: process.stdin })
input.on('line', text => {
  const message = JSON.parse(text) as Message
  const { method = '', id, params } = message
  const step = params?.['name'] === 'fine' ? honest[method] : (script[method] ?? honest[method])
  if (step !== undefined) step(message)
  else if (id !== undefined && method !== '') send({ id, error: { code: -32601, message: 'no such method' } })
})
// Its own end does not come with that of its input.
if (name === 'H43') {
  write(`${process.pid}\n`, 2)
  setInterval(() => {}, 1_000)
}
