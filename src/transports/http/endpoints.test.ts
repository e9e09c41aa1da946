/** Sentences that hold for both faces, each asked the same way: the node one over a socket, the fetch one by call. */
import { describe, expect, it } from 'vitest'
import { type Answer, ask, jsonHeaders, type Question, scriptedDoor, serve } from '../../../test/transports/scripted-acceptor.ts'
import type { Acceptor, Principal } from '../../jsonrpc/connection.ts'
import type { HttpOptions } from './endpoint.ts'
import { fetchHandler } from './fetch.ts'

type Asker = (question: Question) => Promise<Answer>
type Face = (parts?: Partial<Acceptor>, options?: HttpOptions) => Promise<Asker>

const nodeFace: Face = async (parts, options) => {
  const { port } = await serve(parts, options)
  return question => ask(port, question)
}

const fetchFace: Face = async (parts, options) => {
  const handler = fetchHandler(scriptedDoor(parts), options)
  return async ({ method = 'POST', headers = jsonHeaders, body }) => {
    const init = { method, headers, ...(body === undefined ? {} : { body: new Uint8Array(Buffer.from(body)) }) }
    const response = await handler(new Request('http://127.0.0.1/mcp', init))
    return { status: response.status, headers: Object.fromEntries(response.headers), text: await response.text() }
  }
}

const message = '{"jsonrpc":"2.0","id":1,"method":"echo"}'
const without = (name: keyof typeof jsonHeaders) =>
  Object.fromEntries(Object.entries(jsonHeaders).filter(([key]) => key !== name))

describe.each([
  ['node', nodeFace],
  ['fetch', fetchFace],
])('over the %s face', (_name, face) => {
  describe('a POST', () => {
    it('is answered with JSON when the first frame is the last', async () => {
      const asker = await face()
      const answer = await asker({ body: message })
      expect(answer).toMatchObject({ status: 200, text: message })
      expect(answer.headers['content-type']).toBe('application/json')
    })

    it('keeps text of any script as it came', async () => {
      const asker = await face()
      const body = JSON.stringify({ text: 'äöü 漢字 🙂 \u2028' })
      expect((await asker({ body })).text).toBe(body)
    })

    it('is answered 202 without a body when the lane ends without a word (rev B–E §1.2)', async () => {
      const asker = await face({ deliver: (_text, _caller, reply) => reply.end() })
      expect(await asker({ body: message })).toMatchObject({ status: 202, text: '' })
    })

    it('carries the status and headers that the door gives, also without a frame', async () => {
      const hints = { status: 404, headers: { 'mcp-session-id': 'abc' } }
      const asker = await face({
        deliver: (text, _caller, reply) => (text === '{}' ? reply.end(hints) : reply.send(text, { final: true, ...hints })),
      })
      for (const body of ['{}', message]) {
        const answer = await asker({ body })
        expect(answer.status).toBe(404)
        expect(answer.headers['mcp-session-id']).toBe('abc')
      }
    })

    it('becomes an event stream as soon as a frame precedes the last one', async () => {
      const asker = await face({
        deliver(_text, _caller, reply) {
          reply.send('{"aside":1}', { headers: { 'x-first': '1' } })
          setImmediate(() => {
            reply.send('{"aside":2}')
            reply.send('{"last":1}', { final: true, status: 400 })
            reply.send('{"late":1}')
          })
        },
      })
      const answer = await asker({ body: message })
      expect(answer.status).toBe(200)
      expect(answer.headers).toMatchObject({ 'content-type': 'text/event-stream', 'x-accel-buffering': 'no', 'x-first': '1' })
      expect(answer.headers['cache-control']).toContain('no-cache')
      expect(answer.text.match(/data: .*/g)).toEqual(['data: {"aside":1}', 'data: {"aside":2}', 'data: {"last":1}'])
      expect(answer.text).not.toContain('id:')
    })

    it('drops what precedes the answer for a caller that takes no event stream', async () => {
      const asker = await face({
        deliver(text, _caller, reply) {
          reply.send('{"aside":1}')
          reply.send(text, { final: true })
        },
      })
      const answer = await asker({ body: message, headers: { ...jsonHeaders, accept: 'application/json' } })
      expect(answer).toMatchObject({ status: 200, text: message })
      expect(answer.headers['content-type']).toBe('application/json')
    })

    it('is answered by an event stream for a caller that takes no JSON, but an error by JSON', async () => {
      const asker = await face({
        deliver: (text, _caller, reply) => reply.send(text, { final: true, status: text === '{}' ? 400 : 200 }),
      })
      const headers = { ...jsonHeaders, accept: 'text/event-stream' }
      expect((await asker({ body: message, headers })).text).toBe(`event: message\ndata: ${message}\n\n`)
      expect(await asker({ body: '{}', headers })).toMatchObject({ status: 400, text: '{}' })
    })

    it('is answered 500 without details when the door throws', async () => {
      const asker = await face({
        deliver() {
          throw new Error('secret')
        },
      })
      const answer = await asker({ body: message })
      expect(answer.status).toBe(500)
      expect(JSON.parse(answer.text)).toMatchObject({ jsonrpc: '2.0', error: { code: -32603 } })
      expect(answer.text).not.toContain('secret')
    })

    it('gives the door its headers by lower-case name, and nothing for names of Object', async () => {
      const asker = await face({
        deliver(_text, caller, reply) {
          const said = [caller.carrier, caller.header?.('mcp-session-id'), caller.header?.('constructor')]
          reply.send(JSON.stringify(said), { final: true })
        },
      })
      const answer = await asker({ body: message, headers: { ...jsonHeaders, 'Mcp-Session-Id': 'S1' } })
      expect(JSON.parse(answer.text)).toEqual(['http', 'S1', null])
    })
  })

  describe('a POST is refused with an id-less error that names the rule', () => {
    const refused = async (question: Question, status: number, words: string, options?: HttpOptions) => {
      const asker = await face({ deliver: () => expect.unreachable('the door was reached') }, options)
      const answer = await asker({ body: message, ...question })
      expect(answer.status).toBe(status)
      const body = JSON.parse(answer.text)
      expect(body).toEqual({ jsonrpc: '2.0', error: { code: expect.any(Number), message: expect.stringContaining(words) } })
      expect(answer.headers['access-control-allow-origin']).toBeUndefined()
      return { ...answer, code: body.error.code }
    }

    it('415 for another Content-Type, or none, or a compressed body (§1.3)', async () => {
      await refused({ headers: { ...jsonHeaders, 'content-type': 'text/plain' } }, 415, 'application/json')
      await refused({ headers: without('content-type') }, 415, 'application/json')
      await refused({ headers: { ...jsonHeaders, 'content-encoding': 'gzip' } }, 415, 'uncompressed')
    })

    it('406 only when Accept excludes both forms of answer', async () => {
      await refused({ headers: { ...jsonHeaders, accept: 'text/html' } }, 406, 'Accept')
      const asker = await face()
      expect(await asker({ body: message, headers: without('accept') })).toMatchObject({ status: 200 })
    })

    it('413 for a body over the limit, named', async () => {
      await refused({ body: 'x'.repeat(101) }, 413, 'frameBytes', { limits: { frameBytes: 100 } })
      const asker = await face({}, { limits: { frameBytes: 100 } })
      expect(await asker({ body: 'x'.repeat(100) })).toMatchObject({ status: 200 })
    })

    it('400 and −32700 for a body that is not UTF-8 (§1.3)', async () => {
      const { code } = await refused({ body: new Uint8Array([0x22, 0xc3, 0x28, 0x22]) }, 400, 'UTF-8')
      expect(code).toBe(-32700)
    })

    it('403 for a foreign Host or Origin (rev D §1.3)', async () => {
      await refused({ headers: { ...jsonHeaders, host: 'evil.example.com' } }, 403, 'hosts')
      await refused({ headers: { ...jsonHeaders, origin: 'https://evil.example.com' } }, 403, 'origins')
    })

    it('405 with Allow for other methods', async () => {
      const { headers } = await refused({ method: 'PUT' }, 405, 'PUT')
      expect(headers.allow).toBe('GET, POST, DELETE')
    })
  })

  describe('GET and DELETE', () => {
    it('a GET that the door refuses is answered with its status', async () => {
      const asker = await face({
        listen: (_caller, lane) => lane.send('{"no":1}', { final: true, status: 405, headers: { allow: 'POST' } }),
      })
      const answer = await asker({ method: 'GET', headers: { accept: 'text/event-stream' } })
      expect(answer).toMatchObject({ status: 405, text: '{"no":1}' })
      expect(answer.headers.allow).toBe('POST')
    })

    it('a GET opens a stream that carries what the door says until it ends', async () => {
      const asker = await face({
        listen(_caller, lane) {
          setImmediate(() => {
            lane.send('{"said":1}')
            lane.end()
          })
        },
      })
      const answer = await asker({ method: 'GET', headers: { accept: 'text/event-stream' } })
      expect(answer).toMatchObject({ status: 200, text: 'event: message\ndata: {"said":1}\n\n' })
    })

    it('a GET that takes no event stream is answered 406', async () => {
      const asker = await face({ listen: () => expect.unreachable('the door was reached') })
      expect(await asker({ method: 'GET', headers: { accept: 'application/json' } })).toMatchObject({ status: 406 })
    })

    it('a DELETE reaches the door, which answers it', async () => {
      const asker = await face()
      expect(await asker({ method: 'DELETE', headers: {} })).toMatchObject({ status: 204, text: '' })
    })
  })

  describe('cross-origin', () => {
    const options = { origins: ['https://app.example.com'] }
    const page = { origin: 'https://app.example.com' }

    it('a listed origin may read answers, session header included', async () => {
      const asker = await face({}, options)
      const { headers } = await asker({ body: message, headers: { ...jsonHeaders, ...page } })
      expect(headers['access-control-allow-origin']).toBe(page.origin)
      expect(headers['access-control-expose-headers']).toContain('mcp-session-id')
      expect(headers.vary).toBe('origin')
      expect(headers['access-control-allow-credentials']).toBeUndefined()
    })

    it('its preflight is granted, with the headers it asks for', async () => {
      const asker = await face({}, options)
      const wish = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type, mcp-param-x' }
      const { status, headers } = await asker({ method: 'OPTIONS', headers: { ...page, ...wish } })
      expect(status).toBe(204)
      expect(headers['access-control-allow-headers']).toBe('content-type, mcp-param-x')
      expect(headers['access-control-allow-methods']).toBe('GET, POST, DELETE')
    })

    it('a loopback origin that is not listed may call, but its pages may not read, and a preflight is told what would let it pass', async () => {
      const asker = await face({}, options)
      const local = { origin: 'http://localhost:5173' }
      const answer = await asker({ body: message, headers: { ...jsonHeaders, ...local } })
      expect(answer.status).toBe(200)
      expect(answer.headers['access-control-allow-origin']).toBeUndefined()
      const preflight = await asker({ method: 'OPTIONS', headers: { ...local, 'access-control-request-method': 'POST' } })
      expect(preflight.status).toBe(403)
      expect(preflight.headers['access-control-allow-origin']).toBeUndefined()
      expect(preflight.text).toContain("origins: ['http://localhost:5173']")
    })

    it('OPTIONS that is no preflight is a method that is not served', async () => {
      const asker = await face({}, options)
      expect((await asker({ method: 'OPTIONS', headers: page })).status).toBe(405)
    })
  })

  describe('who calls', () => {
    const principals: Record<string, Principal> = { 'Bearer a': { id: 'ann' } }
    const seen: Partial<Acceptor> = {
      deliver: (_text, { principal }, reply) => reply.send(JSON.stringify(principal ?? null), { final: true }),
    }
    const refusal = { status: 401, message: 'Send a token', headers: { 'www-authenticate': 'Bearer' } }

    it.each(['at once', 'later'])('is found out %s and given to the door', async when => {
      const find = (token = '') => principals[token] ?? refusal
      const asker = await face(seen, {
        identify: header => (when === 'later' ? Promise.resolve(find(header('authorization'))) : find(header('authorization'))),
      })
      const known = await asker({ body: message, headers: { ...jsonHeaders, authorization: 'Bearer a' } })
      expect(known.text).toBe('{"id":"ann"}')
      const unknown = await asker({ body: message })
      expect(unknown.status).toBe(401)
      expect(unknown.headers['www-authenticate']).toBe('Bearer')
    })

    it.each(['throws', 'rejects'])('nobody gets in when finding out %s', async how => {
      const asker = await face(seen, {
        identify() {
          if (how === 'throws') throw new Error('secret')
          return Promise.reject(new Error('secret'))
        },
      })
      const answer = await asker({ body: message })
      expect(answer.status).toBe(500)
      expect(answer.text).not.toContain('secret')
    })
  })
})
