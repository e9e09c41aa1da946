/**
 * The least that an event can cost: an emitter, one message per subscriber as JSON, one write to its socket. Nothing is kept,
 * checked or filtered. A line on stdin is how many to emit; `emitted` says that they are.
 */
import { EventEmitter } from 'node:events'
import http from 'node:http'
import { createInterface } from 'node:readline'
import { announce } from './ready.mjs'

const emitter = new EventEmitter().setMaxListeners(0)
let count = 0

const server = http.createServer((request, response) => {
  request.resume()
  const subscription_id = crypto.randomUUID()
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write('data: {"jsonrpc":"2.0","method":"acknowledged"}\n\n')
  const told = event => {
    const params = { type: 'event', subscription_id, ...event }
    response.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/event', params })}\n\n`)
  }
  emitter.on('happened', told)
  response.on('close', () => emitter.off('happened', told))
})

createInterface({ input: process.stdin }).on('line', line => {
  for (let left = Number(line); left > 0; left--) {
    const payload = { title: 'A ticket', at: performance.timeOrigin + performance.now() }
    const place = { event_id: crypto.randomUUID(), cursor: `floor.${count}`, previous_cursor: `floor.${count++}` }
    emitter.emit('happened', { event: 'happened', timestamp: new Date().toISOString(), payload, ...place })
  }
  process.stdout.write('emitted\n')
})
process.stdin.on('end', () => process.exit(0))
server.listen(0, '127.0.0.1', () => announce(server.address().port))
