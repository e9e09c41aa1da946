/** Raw servers over Streamable HTTP: one with a session and its stream, one without, on which messages come by the listen binding. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { isRecord } from '../../../src/jsonrpc/message.ts'
import type { RawServer } from './raw-server.ts'
import { type Answer, type Frame, Script } from './script.ts'

type Answers = Readonly<Record<string, Answer>>
type Handle = (frame: Frame, response: ServerResponse) => void

async function listening(post: Handle, get: (response: ServerResponse) => void) {
  const server = createServer((request, response) => {
    response.on('error', () => {})
    if (request.method === 'GET') return get(response)
    if (request.method === 'DELETE') return void response.writeHead(200).end()
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => post(JSON.parse(Buffer.concat(chunks).toString()), response))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  return {
    target: `http://127.0.0.1:${port}/mcp`,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

function json(response: ServerResponse, frame: Frame, headers: Readonly<Record<string, string>> = {}): void {
  response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(frame))
}

function stream(response: ServerResponse): ServerResponse {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write(': open\n\n')
  return response
}

function event(response: ServerResponse, text: string): void {
  response.write(`data: ${text}\n\n`)
}

export async function sessionHttpServer(answers: Answers): Promise<RawServer> {
  const script = new Script(answers)
  const unsent: string[] = []
  let own: ServerResponse | undefined
  const write = (text: string): void => {
    if (own === undefined) unsent.push(text)
    else event(own, text)
  }
  const http = await listening(
    (frame, response) => {
      script.note(frame)
      script.answer(frame).then(answer => {
        if (frame['id'] === undefined || frame['method'] === undefined) response.writeHead(202).end()
        else if (answer === undefined) stream(response)
        else json(response, answer, frame['method'] === 'initialize' ? { 'mcp-session-id': 'raw-session' } : {})
      })
    },
    response => {
      own = stream(response)
      for (const text of unsent.splice(0)) event(own, text)
    },
  )
  const self: RawServer = {
    ...http,
    carrier: 'http 2025-11-25',
    script,
    write,
    options: { revisions: ['2025-11-25'] },
    begin: (method, params, id = script.nextId()) => {
      write(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
      return id
    },
    tell: (method, params) => write(JSON.stringify({ jsonrpc: '2.0', method, params })),
    answerTo: id => script.until(() => script.heard.find(frame => frame['id'] === id && frame['method'] === undefined)),
    ask: (method, params, id) => self.answerTo(self.begin(method, params, id)),
  }
  return self
}

/** What the host answers is in `live/answer`: it is given as the response that it would be elsewhere. */
export async function statelessHttpServer(answers: Answers): Promise<RawServer> {
  const script = new Script(answers)
  const unsent: string[] = []
  let own: ServerResponse | undefined
  let cursor = 0
  const write = (text: string): void => {
    if (own === undefined) unsent.push(text)
    else event(own, text)
  }
  const tell = (method: string, params: Frame): void => write(JSON.stringify({ jsonrpc: '2.0', method, params }))
  const http = await listening(
    (frame, response) => {
      script.note(frame)
      if (frame['method'] === 'live/listen') {
        if (self.refuse !== undefined) return json(response, { jsonrpc: '2.0', id: frame['id'], error: self.refuse.body })
        own = stream(response)
        response.on('close', () => {
          if (own === response) own = undefined
        })
        if (self.mute !== true) tell('live/listening', { cursor: String(cursor), redelivers: 0 })
        for (const text of unsent.splice(0)) event(own, text)
        return
      }
      script.answer(frame).then(answer => {
        if (frame['id'] === undefined) response.writeHead(202).end()
        else if (answer !== undefined) json(response, whole(answer))
      })
    },
    response => void response.writeHead(405).end(),
  )
  script.on('live/answer', () => ({ known: true }))
  const deliver = (deliveryId: string, answer: boolean, method: string, params: unknown): void =>
    tell('live/deliver', { deliveryId, cursor: String(++cursor), answer, method, params })
  const self: RawServer = {
    ...http,
    carrier: 'http 2026-07-28',
    script,
    write,
    options: { revisions: ['2026-07-28'] },
    begin: (method, params, id = script.nextId()) => {
      deliver(String(id), true, method, params)
      return id
    },
    tell: (method, params) => deliver(`told-${script.nextId()}`, false, method, params),
    answerTo: async id => {
      const { deliveryId, ...answer } = await script.until(() =>
        script
          .of('live/answer')
          .map(({ params }) => params as Frame)
          .find(params => params['deliveryId'] === String(id) && params['chunks'] === undefined),
      )
      const { _meta, ...told } = answer
      return { jsonrpc: '2.0', id: deliveryId, ...told }
    },
    ask: (method, params, id) => self.answerTo(self.begin(method, params, id)),
    hangUp: () => void own?.end(),
  }
  return self
}

/** Results of this wire say what they are. */
function whole(answer: Frame): Frame {
  return isRecord(answer['result']) ? { ...answer, result: { resultType: 'complete', ...answer['result'] } } : answer
}
