/** Takes webhooks on loopback: one path for each sender. Put a tunnel or a reverse proxy before it for senders elsewhere. */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { checks, isName, type Received, type Source, sources } from './signatures.ts'

export interface Webhook {
  readonly source: Source
  readonly id: string
  readonly event: string
  readonly digest: string | undefined
  readonly body: string
  readonly value: Readonly<Record<string, unknown>>
}

export interface ListenerOptions {
  readonly port: number
  readonly secrets: Readonly<Partial<Record<Source, string>>>
  readonly now: () => number
  /** Resolves when it is kept for good, or was before; only then the sender is told so. */
  readonly take: (webhook: Webhook) => Promise<'taken' | 'known'>
}

export interface Listener {
  readonly url: string
  close(): Promise<void>
}

interface Answer {
  readonly status: number
  readonly said: Readonly<Record<string, unknown>>
}

const mostBytes = 1024 * 1024

export async function listen(options: ListenerOptions): Promise<Listener> {
  const http = createServer({ requestTimeout: 10_000, headersTimeout: 5_000, keepAliveTimeout: 5_000 }, (request, response) => {
    answer(options, request).then(
      ({ status, said }) => {
        const late = status === 503 ? { 'retry-after': '30' } : {}
        response.writeHead(status, { 'content-type': 'application/json', ...late }).end(JSON.stringify(said))
      },
      () => response.destroy(),
    )
  })
  http.maxConnections = 100
  await new Promise<void>((resolve, reject) => {
    const failed = (error: Error & { code?: string }): void =>
      reject(
        error.code === 'EADDRINUSE' ? new Error(`Port ${options.port} is already in use. Set another one (WEBHOOK_PORT)`) : error,
      )
    http.once('error', failed).listen(options.port, '127.0.0.1', resolve)
  })
  const { port } = http.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise(resolve => {
        http.close(() => resolve())
        http.closeAllConnections()
      }),
  }
}

async function answer({ secrets, now, take }: ListenerOptions, request: IncomingMessage): Promise<Answer> {
  const path = (request.url ?? '').split('?')[0]
  const source = sources.find(each => `/${each}` === path)
  const secret = source === undefined ? undefined : secrets[source]
  if (source === undefined || secret === undefined) return refusal(404, 'This path accepts no webhooks')
  if (request.method !== 'POST') return refusal(405, 'Webhooks must be sent by POST')
  const body = await read(request)
  if (body === undefined) return refusal(413, `The webhook is larger than ${mostBytes} bytes (the limit)`)
  const webhook = readWebhook(source, secret, { headers: request.headers, body, now: now() })
  if ('status' in webhook) return webhook
  try {
    const done = await take(webhook)
    return { status: 200, said: { received: true, ...(done === 'known' && { duplicate: true }) } }
  } catch (error) {
    console.error(`webhook: not stored: ${error instanceof Error ? error.message : error}`)
    return refusal(503, 'The webhook could not be stored')
  }
}

function readWebhook(source: Source, secret: string, received: Received): Webhook | Answer {
  const checked = checks[source](secret, received)
  if (!checked.ok) return refusal(checked.status, checked.reason)
  const value = parse(received.body)
  if (value === undefined) return refusal(400, 'The body is not a JSON object')
  const id = checked.id ?? value['id']
  if (!isName(id)) return refusal(400, 'The id is missing')
  const type = checked.event ?? value['type']
  const event = typeof type === 'string' && type !== '' ? type.slice(0, 100) : 'event'
  return { source, id, event, digest: checked.digest, body: received.body.toString('utf8'), value }
}

function parse(body: Buffer): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

/** Undefined: too large. What is left of it is not read. */
async function read(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > mostBytes) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const refusal = (status: number, error: string): Answer => ({ status, said: { error } })
