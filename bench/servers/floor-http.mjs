/** The floor over HTTP: node:http, body chunks, `content-length` answers, sessions as a set of ids. */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { createFloor } from './floor.mjs'
import { announce } from './ready.mjs'

const answer = createFloor(process.argv[2])
// A session is a small record: what a server must remember of `initialize`.
const sessions = new Map()

const server = createServer((request, response) => {
  if (request.method !== 'POST') return endEmpty(response, request.method === 'DELETE' ? drop(request) : 405)
  let first
  let rest
  request.on('data', chunk => {
    if (first === undefined) first = chunk
    else if (rest === undefined) rest = [first, chunk]
    else rest.push(chunk)
  })
  request.on('end', () => {
    const body = rest === undefined ? first : Buffer.concat(rest)
    receive(JSON.parse(body.utf8Slice()), request.headers['mcp-session-id'], response)
  })
})

function receive(message, session, response) {
  if (message.method === 'initialize') return open(message, response)
  if (session !== undefined && !sessions.has(session)) return endEmpty(response, 404)
  const result = answer(message)
  if (result === undefined) return endEmpty(response, 202)
  const json = JSON.stringify(result)
  response.writeHead(200, ['content-type', 'application/json', 'content-length', String(Buffer.byteLength(json))])
  response.end(json)
}

function open(message, response) {
  const session = randomUUID()
  sessions.set(session, { revision: message.params.protocolVersion, capabilities: message.params.capabilities })
  const json = JSON.stringify(answer(message))
  const length = String(Buffer.byteLength(json))
  response.writeHead(200, ['content-type', 'application/json', 'mcp-session-id', session, 'content-length', length])
  response.end(json)
}

const drop = request => (sessions.delete(request.headers['mcp-session-id']) ? 204 : 404)
const endEmpty = (response, status) => response.writeHead(status, ['content-length', '0']).end()

server.listen(0, '127.0.0.1', () => announce(server.address().port))
