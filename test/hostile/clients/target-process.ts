/**
 * The server under attack, in a process of its own, from the built package. What it is asked over the IPC channel shows
 * how it fares: how long one turn of its event loop took at most, which tools ran, whether a prototype was touched.
 */
import { createServer, jsonSchema } from 'vivarium/server'

export interface TargetSettings {
  readonly carrier: 'http' | 'stdio'
  readonly sessions?: boolean
  readonly limits?: Readonly<Record<string, number>>
  readonly http?: Readonly<Record<string, number>>
  /** No buckets: for floods that are to meet the limits behind them. */
  readonly unrated?: boolean
}

export interface Facts {
  /** Milliseconds of CPU that the longest turn since the last look took. */
  readonly turnMs: number
  /** How often a tool ran, from the start. */
  readonly runs: number
  /** Calls of `wait` that ended because they were cancelled. */
  readonly cancelled: number
  readonly waiting: number
  /** On stdio: the connection is over. */
  readonly ended: boolean
  readonly polluted: boolean
  /** Bytes in use, on the heap and beside it. */
  readonly used: number
}

const settings: TargetSettings = JSON.parse(process.argv[2] ?? '{}')
let runs = 0
let cancelled = 0
let waiting = 0
let turnMs = 0
let ended = false

const limits = { ...settings.limits, ...(settings.unrated === true ? { rates: false as const } : {}) }
const server = createServer({
  name: 'target',
  version: '1.0.0',
  limits,
  ...(settings.sessions === false ? { sessions: false } : {}),
})

const textInput = jsonSchema<{ text: string }>({ type: 'object', properties: { text: { type: 'string' } }, required: ['text'] })

server.tool('echo', { input: textInput }, ({ text }) => {
  runs++
  return text
})

// What good clients call meanwhile; it is not counted.
server.tool('health', { input: textInput }, ({ text }) => text)

server.tool('mirror', { input: jsonSchema<Record<string, unknown>>({ type: 'object' }) }, args => {
  runs++
  return JSON.stringify(args)
})

const waitInput = jsonSchema<{ ms: number; text?: string }>({ type: 'object', properties: { ms: { type: 'number' } } })

server.tool('wait', { input: waitInput }, async ({ ms, text = '' }, ctx) => {
  runs++
  waiting++
  try {
    await new Promise<void>((done, stop) => {
      const timer = setTimeout(done, Math.min(ms, 30_000))
      ctx.signal.addEventListener('abort', () => {
        clearTimeout(timer)
        cancelled++
        stop(new Error('cancelled'))
      })
    })
    return text
  } finally {
    waiting--
  }
})

const floodInput = jsonSchema<{ pieces: number; bytes: number; kind: 'log' | 'progress' }>({ type: 'object' })

server.tool('flood', { input: floodInput }, async ({ pieces, bytes, kind }, ctx) => {
  for (let at = 0; at < pieces && !ctx.signal.aborted; at++) {
    const text = 'x'.repeat(bytes)
    if (kind === 'log') ctx.log('emergency', `${at} ${text}`)
    else ctx.progress(at, { total: pieces, message: text })
    if (at % 16 === 0) await new Promise<void>(done => setImmediate(done))
  }
  return 'said it all'
})

const sizeInput = jsonSchema<{ bytes: number }>({ type: 'object' })
server.tool('big', { input: sizeInput }, ({ bytes }) => 'x'.repeat(Math.min(bytes, 16 * 1024 * 1024)))
server.tool('sure', {}, async (_, ctx) => ((await ctx.confirm('Sure?')) ? 'yes' : 'no'))

const failures: Readonly<Record<string, () => unknown>> = {
  throws: () => {
    throw new Error('thrown')
  },
  rejects: () => Promise.reject(new Error('rejected')),
  'throws-null': () => {
    // biome-ignore lint/style/useThrowOnlyError: authors do throw such things
    throw null
  },
  'throws-text': () => Promise.reject('only text'),
  'throws-getter': () => ({
    get content() {
      throw new Error('in a getter')
    },
  }),
  'returns-cycle': () => {
    const cycle: Record<string, unknown> = {}
    cycle['self'] = cycle
    return { content: [{ type: 'text', text: 'a' }], structuredContent: cycle }
  },
  'returns-bigint': () => ({ content: [], structuredContent: { big: 1n } }),
  'rejects-later': () => {
    queueMicrotask(() => {})
    return new Promise((_, fail) => setImmediate(() => fail(new Error('late'))))
  },
}
for (const [name, fail] of Object.entries(failures)) server.tool(`fail-${name}`, {}, fail)

server.prompt('greet', { arguments: { name: { required: true } } }, ({ name }) => `Greet ${name}`)
server.resource('memo://one', { name: 'one', mimeType: 'text/plain' }, () => 'the one memo')
server.resource('note://{id}', { name: 'note', mimeType: 'text/plain' }, ({ id }) => `note ${id}`)
server.resource('deep://{a}/{b}/{c}{?d,e}', { name: 'deep', mimeType: 'text/plain' }, ({ a, b, c }) => `${a} ${b} ${c}`)
server.resource('tree:///{+path}', { name: 'tree', mimeType: 'text/plain' }, ({ path }) => `leaf ${path}`)

watchTurns()
process.on('message', (message: { id: number; collect?: boolean; shrink?: boolean }) => {
  if (message.collect === true) globalThis.gc?.()
  // The last resort gives pages back, too: what is resident then is what is needed.
  if (message.shrink === true) globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' })
  const polluted = 'polluted' in {} || 'isAdmin' in {}
  const { heapUsed, external } = process.memoryUsage()
  process.send?.({ id: message.id, turnMs, runs, cancelled, waiting, ended, polluted, used: heapUsed + external })
  turnMs = 0
})
process.on('disconnect', () => process.exit(0))
// A server on stdio ends when its client has gone: being watched must not keep it alive.
if (settings.carrier === 'stdio') process.channel?.unref()

if (settings.carrier === 'stdio') {
  await server.stdio()
  ended = true
} else {
  const http = settings.http === undefined ? {} : { limits: settings.http }
  const { port } = await server.listen({ port: 0, ssePath: '/sse', wsPath: '/ws', ...http })
  process.send?.({ port })
}

/** A tick every few milliseconds; what the thread computed between two of them was at least one whole turn. */
function watchTurns(): void {
  let before = process.threadCpuUsage()
  const tick = (): void => {
    const { user, system } = process.threadCpuUsage(before)
    turnMs = Math.max(turnMs, (user + system) / 1000)
    before = process.threadCpuUsage()
  }
  setInterval(tick, 5).unref()
}
