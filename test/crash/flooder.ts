/**
 * A live server that floods its host: `node flooder.ts PER_SECOND`. Says its address, floods while it is told to (`flood NAME`, then
 * `stop`), and says then how many it sent and how many were accepted. Its frames are made by hand: it is to cost as little as it can.
 */
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { type WebSocket, WebSocketServer } from 'ws'

export interface Flooded {
  readonly sent: number
  readonly answered: number
  readonly accepted: number
  /** What it took itself: it shares the processors with those that are measured. */
  readonly cores: number
}

const perSecond = Number(process.argv[2])
const tickMs = 2
const mcpl = {
  version: '0.2',
  pushEvents: true,
  featureSets: { 'crash.flood': { description: 'Too much', uses: ['pushEvents'] } },
}
let host: WebSocket | undefined
let flooding: NodeJS.Timeout | undefined
let counts = { sent: 0, answered: 0, accepted: 0 }
let since = { at: 0, cpu: process.cpuUsage() }

const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false })
await once(server, 'listening')
server.on('connection', socket => {
  host = socket
  socket.on('error', () => {})
  socket.on('message', data => hear(socket, String(data)))
})
const address = server.address()
process.stdout.write(`ws://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : ''}\n`)
createInterface(process.stdin)
  .on('line', line => {
    if (line.startsWith('flood ')) begin(line.slice(6))
    else end()
  })
  .on('close', () => process.exit(0))

function hear(socket: WebSocket, text: string): void {
  if (flooding !== undefined && text.includes('"id":"f')) {
    counts.answered++
    if (text.includes('"accepted":true')) counts.accepted++
    return
  }
  const { id, method, params } = JSON.parse(text)
  if (method === undefined || id === undefined) return
  const serverInfo = { name: 'flood', version: '1.0.0' }
  const hello = { protocolVersion: params?.protocolVersion, capabilities: { experimental: { mcpl } }, serverInfo }
  const results = new Map<string, unknown>([
    ['initialize', hello],
    ['featureSets/update', { accepted: true }],
    ['ping', {}],
  ])
  const result = results.get(method)
  const answer = result === undefined ? { error: { code: -32601, message: 'Method not found' } } : { result }
  socket.send(JSON.stringify({ jsonrpc: '2.0', id, ...answer }))
}

function begin(name: string): void {
  counts = { sent: 0, answered: 0, accepted: 0 }
  const began = performance.now()
  since = { at: began, cpu: process.cpuUsage() }
  flooding = setInterval(() => {
    const due = Math.floor(((performance.now() - began) / 1000) * perSecond)
    for (; counts.sent < due && host?.readyState === host?.OPEN; counts.sent++)
      host?.send(frame(`${name}-${counts.sent}`, counts.sent % 100))
  }, tickMs)
}

function frame(eventId: string, channel: number): string {
  const event = `"featureSet":"crash.flood","eventId":"${eventId}","timestamp":"2026-01-23T10:30:00Z","origin":{"channel":"${channel}"}`
  const content = `[{"type":"text","text":"Something happened: ${eventId}"}]`
  return `{"jsonrpc":"2.0","id":"f${eventId}","method":"push/event","params":{${event},"payload":{"content":${content}}}}`
}

function end(): void {
  clearInterval(flooding)
  flooding = undefined
  // What the host did not read goes with the connection.
  host?.terminate()
  const { user, system } = process.cpuUsage(since.cpu)
  const cores = (user + system) / 1000 / (performance.now() - since.at)
  process.stdout.write(`${JSON.stringify({ ...counts, cores } satisfies Flooded)}\n`)
}
