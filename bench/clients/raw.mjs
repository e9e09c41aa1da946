/**
 * The yardstick: the least a client on plain Node can do. Over HTTP a `node:http` keep-alive agent, over stdio lines and a
 * map of waiters; both serialise the request, parse the answer and look for an error.
 */
import { spawn } from 'node:child_process'
import { Agent, request } from 'node:http'
import { floorCommand, serveRounds } from './rounds.mjs'

const INFO = { name: 'bench-raw', version: '1.0.0' }
let lastId = 0

await serveRounds(async ({ carrier, revision, url }) => {
  const wire = carrier === 'http' ? httpWire(new URL(url), revision) : stdioWire()
  const meta =
    revision === '2026-07-28'
      ? {
          'io.modelcontextprotocol/protocolVersion': revision,
          'io.modelcontextprotocol/clientInfo': INFO,
          'io.modelcontextprotocol/clientCapabilities': {},
        }
      : undefined
  if (meta === undefined) {
    const params = { protocolVersion: revision, capabilities: {}, clientInfo: INFO }
    await wire.send({ jsonrpc: '2.0', id: ++lastId, method: 'initialize', params })
    await wire.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
  }
  return {
    close: wire.close,
    async call(text) {
      const params = { name: 'echo', arguments: { text } }
      if (meta !== undefined) params._meta = meta
      const answer = await wire.send({ jsonrpc: '2.0', id: ++lastId, method: 'tools/call', params })
      if (answer.error !== undefined) throw new Error(answer.error.message)
      return answer.result.content[0].text
    },
  }
})

function httpWire(url, revision) {
  const agent = new Agent({ keepAlive: true })
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': revision,
  }
  // All calls are the same one here, so its routing headers are constant.
  const called = revision === '2026-07-28' ? { ...headers, 'mcp-method': 'tools/call', 'mcp-name': 'echo' } : headers
  const { hostname, port, pathname: path } = url

  function send(message) {
    return new Promise((resolve, reject) => {
      const body = JSON.stringify(message)
      const length = Buffer.byteLength(body)
      const options = { agent, hostname, port, path, method: 'POST', headers: { ...called, 'content-length': length } }
      const outgoing = request(options, incoming => {
        const session = incoming.headers['mcp-session-id']
        if (session !== undefined) called['mcp-session-id'] = session
        const chunks = []
        incoming.on('data', chunk => chunks.push(chunk))
        incoming.on('end', () => {
          const bytes = chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)
          resolve(bytes.length === 0 ? undefined : JSON.parse(bytes.utf8Slice()))
        })
      })
      outgoing.on('error', reject)
      outgoing.end(body)
    })
  }
  return { send, close: () => agent.destroy() }
}

function stdioWire() {
  const child = spawn(floorCommand.command, floorCommand.args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const waiters = new Map()
  let held = ''
  child.stdout.setEncoding('utf8').on('data', chunk => {
    const lines = (held + chunk).split('\n')
    held = lines.pop()
    for (const line of lines) {
      const message = JSON.parse(line)
      waiters.get(message.id)(message)
      waiters.delete(message.id)
    }
  })
  function send(message) {
    child.stdin.write(`${JSON.stringify(message)}\n`)
    if (message.id === undefined) return undefined
    return new Promise(resolve => waiters.set(message.id, resolve))
  }
  return { send, close: () => child.kill() }
}
