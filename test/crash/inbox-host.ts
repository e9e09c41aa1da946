/**
 * A host with nothing but an inbox: `node inbox-host.ts '{"store": …}'`. Says its port when it listens, takes events as lines of JSON
 * and answers them likewise. Its turn is one line of a log, in the commit that marks the event done.
 */
import { createServer, type Socket } from 'node:net'
import type { PushEvent } from '../../src/features/live/push-events/messages.ts'
import { createInbox } from '../../src/host/inbox/inbox.ts'
import { openStore } from '../../src/stores/open.ts'
import { append } from '../../src/stores/ops.ts'

export interface InboxHostSpec {
  readonly store: string
  /** How long a turn takes, at most. */
  readonly turnMs: number
  /** No limit of events in a time. */
  readonly unlimited?: boolean
}

export interface InboxLine {
  readonly id: number
  readonly server: string
  readonly event: PushEvent
}

/** A turn, as it lies in the log of its server. */
export interface TurnLine {
  readonly eventId: string
  readonly inferenceId: string
}

const spec = JSON.parse(process.argv[2] ?? '{}') as InboxHostSpec
const store = await openStore(spec.store)
const rate = spec.unlimited ? { rate: { perSecond: 1e6, burst: 1e6 } } : {}
const inbox = createInbox({ store, lease: '600ms', concurrency: 24, perServer: 8, ...rate })
const sockets = new Set<Socket>()
const saying = new Map<Socket, string>()
/** Those that want to hear of turns. */
const listens = new WeakSet<Socket>()

await inbox.open(async entry => {
  const { eventId } = entry.event
  if (spec.turnMs > 0) await new Promise(resolve => setTimeout(resolve, Math.random() * spec.turnMs))
  const turn: TurnLine = { eventId, inferenceId: entry.inferenceId }
  if (!(await entry.commit([append(`turns/${entry.server}`, JSON.stringify(turn))]))) return
  const told = `${JSON.stringify({ done: eventId })}\n`
  for (const socket of sockets) if (listens.has(socket)) say(socket, told)
})

const door = createServer(socket => {
  sockets.add(socket)
  socket.setNoDelay(true)
  socket.on('error', () => {})
  socket.on('close', () => sockets.delete(socket))
  let rest = ''
  socket.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) void take(socket, line)
  })
})
door.listen(0, '127.0.0.1', () => {
  const address = door.address()
  process.stdout.write(`${typeof address === 'object' && address !== null ? address.port : ''}\n`)
})
process.stdin.resume().once('end', async () => {
  await inbox.close()
  await store.close()
  process.exit(0)
})

async function take(socket: Socket, line: string): Promise<void> {
  if (line === 'listen') {
    listens.add(socket)
    return
  }
  const { id, server, event } = JSON.parse(line) as InboxLine
  const answer = await inbox.accept(server, event).catch((error: unknown) => ({ failed: String(error) }))
  say(socket, `${JSON.stringify({ id, answer })}\n`)
}

/** What is said in one turn goes out together, as a transport does it. */
function say(socket: Socket, text: string): void {
  const said = saying.get(socket)
  saying.set(socket, (said ?? '') + text)
  if (said !== undefined) return
  setImmediate(() => {
    const all = saying.get(socket) ?? ''
    saying.delete(socket)
    if (!socket.destroyed) socket.write(all)
  })
}
