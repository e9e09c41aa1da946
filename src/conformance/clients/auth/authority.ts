/**
 * An authorization server that signs everybody in at once: its page sends the visitor straight back. It writes down all it is asked,
 * and does one thing wrong where a play says so.
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Frame } from '../stage/book.ts'

/** How it differs from one that does everything right. */
export interface AuthorityWishes {
  /** Path of its issuer: below it nothing is found at the first places where metadata may be. Default: none. */
  readonly tenant?: string
  /** Where its metadata are, as the path of the request. Default: where RFC 8414 puts them. */
  readonly metadataAt?: string
  /** Members of its metadata; undefined takes one away. */
  readonly metadata?: (issuer: string) => Frame
  /** What it sends back with the code, beside the state; `state` in it takes the place of the right one. */
  readonly sendsBack?: (issuer: string) => Readonly<Record<string, string>>
}

/** One request to it. */
export interface Asked {
  readonly at: number
  readonly method: string
  /** Without the query. */
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
  /** Of a form, or of JSON. */
  readonly body: Frame
  readonly text: string
}

export interface Authority {
  readonly issuer: string
  readonly origin: string
  readonly asked: readonly Asked[]
  /** Whether it has given out this access token, and for which scope. */
  scopeOf(token: string): string | undefined
  close(): Promise<void>
}

const most = 500
const mostBytes = 256 * 1024

export async function openAuthority(now: () => number, wishes: AuthorityWishes = {}): Promise<Authority> {
  const asked: Asked[] = []
  const tokens = new Map<string, string>()
  const server = createServer((request, response) => {
    response.on('error', () => {})
    readAsked(request, now()).then(
      one => {
        if (asked.length < most) asked.push(one)
        answer(one, response, { issuer, wishes, tokens, codes })
      },
      () => response.destroy(),
    )
  })
  const codes = new Map<string, Frame>()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as { port: number }).port}`
  const issuer = `${origin}${wishes.tenant ?? ''}`
  return {
    issuer,
    origin,
    asked,
    scopeOf: token => tokens.get(token),
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

async function readAsked(request: IncomingMessage, at: number): Promise<Asked> {
  const { method = '', url = '/', headers } = request
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > mostBytes) throw new Error('More than a request for a token can be')
    chunks.push(chunk)
  }
  const text = Buffer.concat(chunks).toString()
  const [path = '/', query = ''] = url.split('?', 2)
  const flat = Object.entries(headers).map(([name, value]) => [name, String(value)] as const)
  return { at, method, path, query: formOf(query), headers: Object.fromEntries(flat), body: bodyOf(text, headers), text }
}

function formOf(text: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(text))
}

function bodyOf(text: string, headers: IncomingMessage['headers']): Frame {
  if (!String(headers['content-type']).startsWith('application/json')) return formOf(text)
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : {}
  } catch {
    return {}
  }
}

interface House {
  readonly issuer: string
  readonly wishes: AuthorityWishes
  readonly tokens: Map<string, string>
  /** What was asked for, by the code that was given for it. */
  readonly codes: Map<string, Frame>
}

function answer(asked: Asked, response: ServerResponse, house: House): void {
  const { issuer, wishes } = house
  const { tenant = '' } = wishes
  const path = asked.path
  const metadataAt = wishes.metadataAt ?? `/.well-known/oauth-authorization-server${tenant}`
  if (path === metadataAt) return json(response, 200, { ...metadata(issuer), ...wishes.metadata?.(issuer) })
  if (path === `${tenant}/register` && asked.method === 'POST') return json(response, 201, registered(asked.body))
  if (path === `${tenant}/authorize`) return sendBack(asked, response, house)
  if (path === `${tenant}/token` && asked.method === 'POST') return giveToken(asked, response, house)
  json(response, 404, { error: 'not_found' })
}

function metadata(issuer: string): Frame {
  return {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    registration_endpoint: `${issuer}/register`,
    response_types_supported: ['code'],
    grant_types_supported: ['authorization_code', 'refresh_token', 'client_credentials'],
    token_endpoint_auth_methods_supported: ['none', 'client_secret_basic', 'client_secret_post'],
    code_challenge_methods_supported: ['S256'],
    scopes_supported: ['mcp:use', 'mcp:call', 'offline_access'],
    // OpenID discovery demands these, and a client may look at them.
    jwks_uri: `${issuer}/jwks`,
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
  }
}

/** A public client, whatever it wished for: it has no secret to keep. */
function registered(wished: Frame): Frame {
  return { ...wished, client_id: 'registered-client', token_endpoint_auth_method: 'none', client_id_issued_at: 0 }
}

function sendBack({ query }: Asked, response: ServerResponse, { issuer, wishes, codes }: House): void {
  const { redirect_uri: uri = '', state } = query
  if (!URL.canParse(uri)) return json(response, 400, { error: 'invalid_request' })
  const code = `code-${codes.size + 1}`
  codes.set(code, query)
  const back = new URL(uri)
  const sent = { code, ...(state === undefined ? {} : { state }), ...wishes.sendsBack?.(issuer) }
  for (const [name, value] of Object.entries(sent)) back.searchParams.set(name, value)
  response.writeHead(302, { location: back.href }).end()
}

function giveToken({ body }: Asked, response: ServerResponse, { codes, tokens }: House): void {
  const { grant_type: grant, code, code_verifier: verifier } = body
  const authorized = codes.get(String(code))
  if (grant === 'authorization_code') {
    codes.delete(String(code))
    const challenge = createHash('sha256').update(String(verifier)).digest('base64url')
    if (authorized === undefined || authorized['code_challenge'] !== challenge)
      return json(response, 400, { error: 'invalid_grant', error_description: 'The code is not good for this verifier' })
  } else if (grant !== 'refresh_token' && grant !== 'client_credentials')
    return json(response, 400, { error: 'unsupported_grant_type' })
  const scope = String(authorized?.['scope'] ?? body['scope'] ?? 'mcp:use')
  const token = `token-${tokens.size + 1}`
  tokens.set(token, scope)
  const refresh = grant === 'client_credentials' ? {} : { refresh_token: `refresh-${tokens.size}` }
  json(response, 200, { access_token: token, token_type: 'Bearer', expires_in: 3600, scope, ...refresh })
}

function json(response: ServerResponse, status: number, value: Frame): void {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' }).end(JSON.stringify(value))
}
