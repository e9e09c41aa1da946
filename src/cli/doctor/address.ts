/** Why an address does not serve: nobody there, another path, a web page, an old endpoint, a certificate, a sign-in. */
import { durationText } from '../../core/clock.ts'
import { challengeParameter, lacksScope } from '../../core/credentials.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { revisions } from '../../revisions/index.ts'
import { carriesToken, moreScopes, newToken } from '../server-errors.ts'
import { brief } from '../terminal/text.ts'
import { type Finding, fail, noServer, warn } from './finding.ts'

/** What every request of an examination is sent with. */
interface Probing {
  /** Those of the config and of the command line; sent to this address only. */
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  /** How long each request may take. */
  readonly waitMs: number
}

/** More of an answer is not read. */
const mostBytes = 64 * 1024
/** Where servers are mostly found. */
const paths = ['/mcp', '/sse', '/', '/api/mcp', '/mcp/sse', '/v1/mcp']

/** The newest revision with a handshake whose streams begin with the answer: of a stream only the beginning is read. */
const handshake = revisions.findLast(({ era, dialect, http }) => era === 'session' && !dialect && !http.prime)

/** A handshake, as a client sends it first. */
const opening = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: handshake?.wire, capabilities: {}, clientInfo: { name: 'vivarium-doctor', version: '1' } },
})

/** It is the wrong address, or nobody is there. */
const atAddress = (message: string, fix: string): Finding => noServer('address', message, fix)
/** Somebody answers, and not as a server does. */
const overHttp = (message: string, fix: string): Finding => noServer('http', message, fix)
/** The connection cannot be secured. */
const inTls = (message: string, fix: string): Finding => noServer('tls', message, fix)

/** Asked only where a client could not connect. */
export async function examineAddress(url: URL, probing: Probing): Promise<Finding> {
  if (url.protocol === 'ws:' || url.protocol === 'wss:')
    return atAddress('Nothing accepts WebSockets at this address', 'Correct the address. Most servers speak HTTP: https://…')
  const answer = await post(url, probing)
  if (!('status' in answer)) return unreachableAt(url, answer, probing.waitMs)
  const { status } = answer
  if (status === 401 || status === 403) return refused(url, answer, probing)
  if (answer.opens)
    return fail(
      'http',
      'The server answers the handshake, but this client cannot use the answer',
      'Run the command with --verbose, or test the server: vivarium test',
      1,
    )
  if (status >= 300 && status < 400)
    return atAddress(
      `The address redirects to ${clip(answer.location ?? '')}`,
      'Use that address: clients do not follow redirects of a POST',
    )
  const [old, elsewhere] = await Promise.all([isOldPair(url, probing), otherPath(url, probing)])
  if (old)
    return warn(
      'address',
      'This is an endpoint of the old HTTP+SSE transport of 2024-11-05',
      'Write "type": "sse" in configs, and ask the operator for Streamable HTTP',
    )
  if (elsewhere !== undefined)
    return atAddress(`No MCP server answers at ${clip(url.pathname)} (HTTP ${status})`, `Use ${elsewhere}`)
  if (answer.html)
    return atAddress(
      `This is a web page, not an MCP server (HTTP ${status})`,
      'Look up the address of the MCP endpoint; it often ends in /mcp',
    )
  if (status === 404 || status === 405)
    return atAddress(
      `No MCP server answers at ${clip(url.pathname)} (HTTP ${status}), nor at ${paths.slice(0, 3).join(', ')} and similar paths`,
      'Look up the address of the MCP endpoint, or start the server',
    )
  if (status === 429)
    return overHttp(
      'The server received too many requests (HTTP 429)',
      `Retry ${answer.wait === undefined ? 'later' : `after ${clip(answer.wait)} s`}`,
    )
  if (status >= 500) return overHttp(`The server failed with HTTP ${status}`, 'Look into the log of the server')
  return overHttp(
    `The address answers HTTP ${status}: ${clip(answer.text)}`,
    'Check that this is the address of the MCP endpoint',
  )
}

/** What a request came to. */
interface Answer {
  readonly status: number
  readonly text: string
  /** It is a web page. */
  readonly html: boolean
  /** It is the answer to a handshake. */
  readonly opens: boolean
  /** The header by which it asks for credentials. */
  readonly challenge: string | undefined
  /** Where a redirect leads. */
  readonly location: string | undefined
  /** Seconds, or a date. */
  readonly wait: string | undefined
}

/** Why there was no answer. */
interface UnreachableReason {
  /** Of the system or of TLS; TIMEOUT where nobody answered. */
  readonly code: string
  readonly message: string
}

/** Sends the handshake to an address. */
async function post(url: URL, { headers, signal, waitMs }: Probing): Promise<Answer | UnreachableReason> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      body: opening,
      redirect: 'manual',
      headers: { accept: 'application/json, text/event-stream', 'content-type': 'application/json', ...headers },
      signal: AbortSignal.any([signal, AbortSignal.timeout(waitMs)]),
    })
    const text = await beginning(response)
    return {
      status: response.status,
      text,
      html: /html/.test(response.headers.get('content-type') ?? ''),
      opens: /"protocolVersion"/.test(text),
      challenge: response.headers.get('www-authenticate') ?? undefined,
      location: response.headers.get('location') ?? undefined,
      wait: response.headers.get('retry-after') ?? undefined,
    }
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
    const { code = '', message = String(error), name = '' } = cause as { code?: string; message?: string; name?: string }
    return { code: name === 'TimeoutError' ? 'TIMEOUT' : code, message }
  }
}

/** As much as is needed to know what it is; a stream may never end. */
async function beginning(response: Response): Promise<string> {
  const reader = response.body?.getReader()
  if (reader === undefined) return ''
  const decoder = new TextDecoder()
  let text = ''
  try {
    while (text.length < mostBytes) {
      const { done, value } = await reader.read()
      if (done) break
      text += decoder.decode(value, { stream: true })
      if (text.includes('"protocolVersion"') || text.includes('event: endpoint')) break
    }
  } catch {
    // What came until then is what there is.
  }
  reader.cancel().catch(() => {})
  return text
}

/** The finding for an address that nobody answers at. */
function unreachableAt(url: URL, { code, message }: UnreachableReason, waitMs: number): Finding {
  const plain = url.href.replace(/^https/, 'http')
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return atAddress(`The host ${clip(url.hostname)} does not exist`, 'Correct the name, or check your network')
  if (message === 'bad port') return atAddress(`Web clients refuse to use port ${clip(url.port)}`, 'Serve at another port')
  if (code === 'ECONNREFUSED') return atAddress(`Nothing listens at ${clip(url.host)}`, 'Start the server, or correct the port')
  if (code === 'TIMEOUT')
    return overHttp(
      `The connection was accepted, but no response arrived within ${durationText(waitMs)}`,
      'Look into the log of the server, and check that the port belongs to it. If it is only slow, pass --timeout 30s',
    )
  if (/CERT_HAS_EXPIRED/.test(code)) return inTls('The TLS certificate has expired', 'Renew the certificate')
  if (/ALTNAME/.test(code))
    return inTls(`The TLS certificate is not valid for ${clip(url.hostname)}`, 'Use a host name that the certificate names')
  if (/SELF_SIGNED|UNABLE_TO_(VERIFY|GET)|CERT/.test(code))
    return inTls(
      'The TLS certificate is not signed by an authority that this machine trusts',
      'Trust its authority: NODE_EXTRA_CA_CERTS=file.pem',
    )
  if (/SSL|EPROTO|TLS/.test(code) || /SSL|wrong version/i.test(message))
    return inTls('The server does not speak TLS', `Use ${clip(plain)}`)
  if (url.protocol === 'http:' && /ECONNRESET|UND_ERR_SOCKET|HPE/.test(code))
    return inTls('The server closed the connection on plain HTTP', `Try ${clip(url.href.replace(/^http:/, 'https:'))}`)
  return atAddress(`The address cannot be reached: ${clip(message)}`, 'Check the address and your network')
}

/** A stream that is there says so soon. */
const streamMs = 2_000

/** GET opens the stream of the old pair. */
async function isOldPair(url: URL, { headers, signal }: Probing): Promise<boolean> {
  try {
    const response = await fetch(url, {
      headers: { accept: 'text/event-stream', ...headers },
      // The headers may be keys; they are for this address.
      redirect: 'manual',
      signal: AbortSignal.any([signal, AbortSignal.timeout(streamMs)]),
    })
    return /event-stream/.test(response.headers.get('content-type') ?? '') && (await beginning(response)).includes('endpoint')
  } catch {
    return false
  }
}

/** Where a server that was found at its old endpoint serves as servers do today. */
export async function streamableAt(url: URL, probing: Probing): Promise<string | undefined> {
  const found = await otherPath(url, probing)
  return found === undefined || found.includes(' ') ? undefined : found
}

/** The first of the usual ones that serves; they are asked side by side. */
async function otherPath(url: URL, probing: Probing): Promise<string | undefined> {
  const others = paths.filter(path => path !== url.pathname).map(path => new URL(path, url))
  const found = await Promise.all(
    others.map(async other => {
      const isPair = other.pathname.endsWith('sse') ? isOldPair(other, probing) : Promise.resolve(false)
      const answer = await post(other, probing)
      if ('status' in answer && (answer.opens || answer.status === 401)) return other.href
      return (await isPair) ? `${other.href} (an endpoint of the old HTTP+SSE transport)` : undefined
    }),
  )
  return found.find(each => each !== undefined)
}

/** It wants credentials: the command ends with 3. */
const refusedBy = (message: string, fix: string): Finding => fail('auth', message, fix, 3)

/** What a refusal says of how one gets in. Only what the same host tells is fetched. */
async function refused(url: URL, { status, challenge, text }: Answer, probing: Probing): Promise<Finding> {
  const signIn = 'Run vivarium list in a terminal to sign in, or pass --bearer-env NAME'
  if (status === 403 && challenge === undefined && /\b(Host|Origin)\b/.test(text))
    return fail(
      'host',
      `The server refuses the request: HTTP 403 ${brief(text, 300)}`,
      'Use a host name that the server accepts, or configure it to accept this one',
      4,
    )
  if (status === 403 && challenge === undefined)
    return fail(
      'auth',
      `The server refuses the request: HTTP 403 ${brief(text, 300)}`,
      'Check which Host and Origin names the server accepts, and your permissions',
      1,
    )
  const described = clip(challengeParameter(challenge, 'error_description') ?? '', 300)
  const because = described === '' ? '' : `: ${described}`
  if (lacksScope(status, challenge)) return fail('auth', `The token lacks a scope (HTTP 403)${because}`, moreScopes(challenge), 1)
  if (status === 401 && carriesToken(probing.headers))
    return refusedBy(`The server refuses the token (HTTP ${status})${because}`, newToken)
  const [, named] = /resource_metadata="([^"]+)"/.exec(challenge ?? '') ?? []
  const known = `/.well-known/oauth-protected-resource${url.pathname === '/' ? '' : url.pathname}`
  const metadata = named !== undefined && URL.canParse(named) ? new URL(named) : new URL(known, url)
  const about = metadata.origin === url.origin ? await metadataAt(metadata, probing) : undefined
  if (about !== undefined) return refusedBy(`The server requires a sign-in at ${about}`, signIn)
  if (challenge === undefined)
    return refusedBy(
      `The server refuses with HTTP ${status} and does not say which credentials it accepts`,
      'Look up which header takes your key, and pass it with --header',
    )
  if (named !== undefined) return refusedBy(`The server refuses: ${clip(challenge)}`, `${signIn} (metadata at ${clip(named)})`)
  const says =
    challenge.trim() === 'Bearer'
      ? 'The server requires a token, and does not say where to get one'
      : `The server refuses: ${clip(challenge)}`
  const header = `"headers": { "Authorization": "Bearer \${NAME}" }`
  return refusedBy(
    says,
    `Put your token into an environment variable and pass its name: --bearer-env NAME; in a config, write ${header}`,
  )
}

/** Where one signs in, as the metadata of a protected resource says. */
async function metadataAt(url: URL, { signal, waitMs }: Probing): Promise<string | undefined> {
  try {
    const response = await fetch(url, { redirect: 'error', signal: AbortSignal.any([signal, AbortSignal.timeout(waitMs)]) })
    const value: unknown = response.ok ? JSON.parse(await beginning(response)) : undefined
    const servers = isRecord(value) ? value['authorization_servers'] : undefined
    const scopes = isRecord(value) && Array.isArray(value['scopes_supported']) ? value['scopes_supported'] : []
    if (!Array.isArray(servers) || servers.length === 0) return undefined
    return `${clip(servers.join(', '))}${scopes.length > 0 ? `, scopes ${clip(scopes.join(' '))}` : ''}`
  } catch {
    return undefined
  }
}
