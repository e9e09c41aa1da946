/** A server for tests that speaks what providers speak: Anthropic's messages and the chat completions of OpenAI, both as event streams. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface ProviderAnswer {
  readonly text?: readonly string[]
  readonly calls?: readonly {
    readonly id: string
    readonly name: string
    readonly arguments: Readonly<Record<string, unknown>>
  }[]
  readonly stop?: string
  /** An error instead of an answer. */
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly error?: string
  /** Ends nothing after the words: whoever waits has to give up. */
  readonly stalls?: boolean
}

export interface ProviderRequest {
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: Readonly<Record<string, unknown>>
}

export interface ProviderServer {
  readonly url: string
  readonly requests: ProviderRequest[]
  /** What it answers next, in order. */
  readonly answers: ProviderAnswer[]
  /** Resolves when somebody hangs up amid an answer. */
  readonly hungUp: Promise<void>
  close(): Promise<void>
}

export async function providerServer(): Promise<ProviderServer> {
  const requests: ProviderRequest[] = []
  const answers: ProviderAnswer[] = []
  const hangUp = Promise.withResolvers<void>()
  const server = createServer((request, response) => {
    void read(request).then(body => {
      requests.push({ path: request.url ?? '', headers: request.headers, body })
      const answer = answers.shift() ?? {}
      response.on('close', () => {
        if (!response.writableEnded) hangUp.resolve()
      })
      if (answer.status !== undefined) return fail(response, request.url ?? '', answer)
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      if (request.url?.endsWith('/messages')) anthropic(response, answer, body)
      else chat(response, answer, body)
      if (answer.stalls !== true) response.end()
    })
  })
  await new Promise<void>(listening => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/v1`,
    requests,
    answers,
    hungUp: hangUp.promise,
    close: () => {
      server.closeAllConnections()
      return new Promise(closed => server.close(() => closed()))
    },
  }
}

async function read(request: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return JSON.parse(text) as Readonly<Record<string, unknown>>
}

function fail(response: ServerResponse, path: string, { status = 500, headers = {}, error = 'It failed' }: ProviderAnswer): void {
  const kind = status === 429 ? 'rate_limit_error' : status === 529 ? 'overloaded_error' : 'api_error'
  const body = path.endsWith('/messages')
    ? { type: 'error', error: { type: kind, message: error }, request_id: 'req_1' }
    : { error: { message: error, type: kind, param: null, code: null } }
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}

function anthropic(response: ServerResponse, answer: ProviderAnswer, body: Readonly<Record<string, unknown>>): void {
  const send = (event: Readonly<Record<string, unknown>>): void =>
    void response.write(`event: ${String(event['type'])}\ndata: ${JSON.stringify(event)}\n\n`)
  const { text = [], calls = [] } = answer
  const usage = { input_tokens: 25, output_tokens: 1 }
  const message = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: body['model'],
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage,
  }
  send({ type: 'message_start', message })
  let index = 0
  if (text.length > 0) {
    send({ type: 'content_block_start', index, content_block: { type: 'text', text: '' } })
    send({ type: 'ping' })
    for (const delta of text) send({ type: 'content_block_delta', index, delta: { type: 'text_delta', text: delta } })
    if (answer.stalls === true) return
    send({ type: 'content_block_stop', index: index++ })
  }
  for (const { id, name, arguments: args } of calls) {
    const json = JSON.stringify(args)
    send({ type: 'content_block_start', index, content_block: { type: 'tool_use', id, name, input: {} } })
    for (const part of [json.slice(0, 4), json.slice(4)])
      send({ type: 'content_block_delta', index, delta: { type: 'input_json_delta', partial_json: part } })
    send({ type: 'content_block_stop', index: index++ })
  }
  const stop = answer.stop ?? (calls.length > 0 ? 'tool_use' : 'end_turn')
  send({ type: 'message_delta', delta: { stop_reason: stop, stop_sequence: null }, usage: { output_tokens: 12 } })
  send({ type: 'message_stop' })
}

function chat(response: ServerResponse, answer: ProviderAnswer, body: Readonly<Record<string, unknown>>): void {
  const send = (chunk: Readonly<Record<string, unknown>>): void => {
    const common = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_700_000_000, model: body['model'] }
    response.write(`data: ${JSON.stringify({ ...common, ...chunk })}\n\n`)
  }
  const choice = (delta: unknown, finish: string | null = null) => ({
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
  })
  const { text = [], calls = [] } = answer
  send(choice({ role: 'assistant', content: text.length > 0 ? '' : null }))
  for (const content of text) send(choice({ content }))
  if (answer.stalls === true) return
  for (const [index, { id, name, arguments: args }] of calls.entries()) {
    const json = JSON.stringify(args)
    send(choice({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }))
    for (const part of [json.slice(0, 4), json.slice(4)]) send(choice({ tool_calls: [{ index, function: { arguments: part } }] }))
  }
  send(choice({}, answer.stop ?? (calls.length > 0 ? 'tool_calls' : 'stop')))
  send({ choices: [], usage: { prompt_tokens: 25, completion_tokens: 12, total_tokens: 37 } })
  response.write('data: [DONE]\n\n')
}
