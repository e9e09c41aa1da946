/** Servers that misbehave at random moments, but the same ones for the same seed: they die, hang, close, or answer with garbage. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { type Acceptor, type Connection, ConnectionError, type Sink } from '../../src/jsonrpc/connection.ts'

/** Numbers from 0 up to 1, the same for the same seed. */
export type Random = () => number

const garbage: readonly string[] = [
  '',
  'null',
  '[]',
  '42',
  '{"jsonrpc":"2.0"',
  '{"jsonrpc":"2.0","id":null,"result":{}}',
  '{"jsonrpc":"2.0","id":1,"result":null}',
  '{"jsonrpc":"2.0","id":1,"error":{}}',
  '{"jsonrpc":"2.0","id":2,"result":{"tools":[null,{"name":7}],"content":{},"_meta":[]}}',
  '{"jsonrpc":"2.0","method":"notifications/progress","params":[]}',
  '{"jsonrpc":"2.0","id":9,"method":"elicitation/create"}',
  `{"deep":${'['.repeat(5_000)}${']'.repeat(5_000)}}`,
  '\u0000\ufffd',
]

function oneOf<T>(list: readonly T[], random: Random): T {
  return list[Math.floor(random() * list.length)] as T
}

/** The same answer with its contents spoiled: the id is right, and nothing else need be. */
function spoiled(text: string, random: Random): string {
  try {
    const message = JSON.parse(text) as Record<string, unknown>
    const result = oneOf([null, [], 'text', {}, { content: 'x', tools: {}, _meta: 7 }, { structuredContent: [] }], random)
    return JSON.stringify(message['id'] === undefined ? { ...message, params: result } : { ...message, result })
  } catch {
    return text
  }
}

type UndoOutcome = 'hang' | 'close' | 'garbage' | 'spoil'
const fates: readonly UndoOutcome[] = ['hang', 'close', 'garbage', 'spoil', 'spoil']

/** The door of a server: each connection has its fate, some frames after it was opened. The first ones are spared. */
export function unrulyAcceptor(acceptor: Acceptor, random: Random, spared: number): Acceptor {
  let opened = 0
  const refuse = (): never => {
    throw new Error('memory alone')
  }
  return {
    accept: connection => acceptor.accept(opened++ < spared ? connection : unruly(connection, random)),
    deliver: refuse,
    listen: refuse,
    leave: refuse,
  }
}

function unruly(connection: Connection, random: Random): Connection {
  const fate = oneOf(fates, random)
  let left = Math.floor(random() * 12)
  const say = (text: string): void => {
    const sent = connection.send(text)
    if (sent instanceof Promise) sent.catch(error => void (error instanceof ConnectionError))
  }
  return {
    carrier: connection.carrier,
    ...(connection.caller === undefined ? {} : { caller: connection.caller }),
    start: (sink: Sink) => connection.start(sink),
    close: () => connection.close(),
    send: text => {
      if (--left > 0) return say(text)
      if (fate === 'garbage') return say(oneOf(garbage, random))
      if (fate === 'spoil') return say(random() < 0.5 ? spoiled(text, random) : text)
      if (fate === 'close') void connection.close()
      return undefined
    },
  }
}

export interface UnrulyProxy extends AsyncDisposable {
  readonly url: string
}

/** In front of a server over HTTP: hangs, hangs up (also in the middle of an answer), and answers with what is no answer. */
export async function unrulyProxy(target: string, random: Random, spared: number): Promise<UnrulyProxy> {
  let asked = 0
  const server = createServer((incoming, outgoing) => {
    outgoing.on('error', () => {})
    const isSpared = asked++ < spared || random() < 0.85
    const fate = isSpared ? undefined : oneOf(['hang', 'close', 'garbage', 'half', 'status', 'no-http'] as const, random)
    if (fate === undefined || fate === 'half') return void pass(target, incoming, outgoing, fate === 'half')
    incoming.resume()
    if (fate === 'close') outgoing.destroy()
    else if (fate === 'no-http') outgoing.socket?.end('this is no HTTP\r\n\r\n')
    else if (fate === 'garbage') outgoing.writeHead(200, { 'content-type': 'application/json' }).end(oneOf(garbage, random))
    else if (fate === 'status') outgoing.writeHead(oneOf([204, 302, 404, 418, 500, 503], random)).end('<html>')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

function pass(target: string, incoming: IncomingMessage, outgoing: ServerResponse, half: boolean): void {
  const { method = 'GET', headers } = incoming
  const { host: _, ...rest } = headers
  const onward = request(target, { method, headers: rest }, response => {
    outgoing.writeHead(response.statusCode ?? 502, response.headers)
    response.on('error', () => outgoing.destroy())
    if (half) response.once('data', (chunk: Buffer) => outgoing.write(chunk.subarray(0, 20), () => outgoing.destroy()))
    else response.pipe(outgoing)
  })
  onward.on('error', () => outgoing.destroy())
  outgoing.on('close', () => onward.destroy())
  incoming.pipe(onward)
}

/** A server over stdio that dies, hangs, closes its ends or babbles after some messages: a program for `node -e`. */
export const unrulyProgram = `
const [seed] = process.argv.slice(1).map(Number)
let left = 2 + (seed % 5), fate = ['die', 'hang', 'deaf', 'mute', 'babble', 'kill'][seed % 6]
const say = value => process.stdout.write(JSON.stringify(value) + '\\n')
const answers = {
  initialize: params => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'unruly', version: '1.0.0' } }),
  'tools/list': () => ({ tools: [{ name: 'echo', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } }] }),
  'tools/call': () => ({ content: [{ type: 'text', text: 'x' }] }),
  ping: () => ({}),
}
require('readline').createInterface({ input: process.stdin }).on('line', line => {
  let message; try { message = JSON.parse(line) } catch { return say({ jsonrpc: '2.0', id: null, error: { code: -32700, message: 'no' } }) }
  if (message === null || typeof message !== 'object' || message.id === undefined) return
  if (--left < 0) {
    if (fate === 'die') process.exit(3)
    if (fate === 'kill') process.kill(process.pid, 'SIGKILL')
    if (fate === 'deaf') { process.stdin.destroy(); return setTimeout(() => {}, 5000).unref() }
    if (fate === 'mute') process.stdout.end()
    if (fate === 'babble') process.stdout.write('Traceback: something went wrong\\n{"half":')
    return
  }
  const answer = answers[message.method]
  say(answer ? { jsonrpc: '2.0', id: message.id, result: answer(message.params ?? {}) } : { jsonrpc: '2.0', id: message.id, error: { code: -32601, message: 'no' } })
})
`
