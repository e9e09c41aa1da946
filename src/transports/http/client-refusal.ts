/** HTTP answers that carry no message, as errors that say what came and what to look at. */
import { redact } from '../../core/redact.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { type HeaderView, maxUntaken } from './client-wire.ts'

/** `application/json; charset=utf-8` → `application/json`. */
export function mediaType(value: string | null | undefined): string {
  if (value === null || value === undefined) return ''
  if (value === 'application/json' || value === 'text/event-stream') return value
  const end = value.indexOf(';')
  return (end === -1 ? value : value.slice(0, end)).trim().toLowerCase()
}

export function headerRecord(headers: HeaderView): Readonly<Record<string, string>> {
  const entries: [string, string][] = []
  headers.forEach((value, name) => {
    entries.push([name, value])
  })
  return Object.fromEntries(entries)
}

/** An answer that asks for credentials: its headers are what counts, whatever its body says. */
export function isChallenge(status: number, headers: HeaderView): boolean {
  return status === 401 || (status === 403 && typeof headers.get('www-authenticate') === 'string')
}

/** Not a success: `status`, with the headers, which may hold a challenge or a wait. */
export function httpRefusal(status: number, headers: HeaderView, hint: string): ConnectionError {
  const said = hint === '' ? '' : `: ${clip(redact(hint))}`
  const fix = status === 401 ? '. It wants credentials: give the option auth' : ''
  const message = `The server answered HTTP ${status}${said}${fix}`
  return new ConnectionError('status', message, { status, headers: headerRecord(headers) })
}

/** The server has forgotten the session, so it did nothing with what was sent in it. */
export function sessionGone(status: number): ConnectionError {
  const message = `The server no longer knows this session (HTTP ${status}); a new one must be opened`
  return new ConnectionError('session', message, { status })
}

/** Redirects are not followed: the body and its credentials are for the server that was named. */
export function redirection(status: number, headers: HeaderView): ConnectionError {
  const to = headers.get('location')
  const where = to === null || to === undefined ? 'elsewhere' : clip(redact(to))
  return new ConnectionError(
    'status',
    `The server redirects to ${where} (HTTP ${status}), which is not followed; connect to that address if you trust it`,
    {
      status,
      headers: headerRecord(headers),
    },
  )
}

/** A success whose content is not what was asked for. */
export function wrongContent(status: number, headers: HeaderView): ConnectionError {
  const type = mediaType(headers.get('content-type'))
  const said = type === '' ? 'no content type' : clip(type)
  return new ConnectionError(
    'protocol',
    `The server answered HTTP ${status} with ${said}; expected application/json or text/event-stream`,
    {
      status,
      headers: headerRecord(headers),
    },
  )
}

/** The server takes in less than it asks for. One error for all: they come in such numbers that making each would be the dearest part. */
export const untaken: ConnectionError = new ConnectionError(
  'too-large',
  `${maxUntaken} messages wait for the server to take them; this one is not sent`,
)

/** A body longer than this is not parsed for the sake of a hint. */
const parsedHint = 64 * 1024
const lenient = new TextDecoder()

/** The most telling words of a refusal's body: of JSON its message, else its beginning. */
export function hintFrom(body: Uint8Array): string {
  const text = lenient.decode(body.length > parsedHint ? body.subarray(0, 1024) : body)
  return saidIn(text) ?? text.slice(0, 200).replace(/\s+/g, ' ').trim()
}

function saidIn(text: string): string | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isRecord(value)) return undefined
  const inner = isRecord(value['error']) ? value['error']['message'] : undefined
  const words = inner ?? value['error_description'] ?? value['message'] ?? value['error']
  return typeof words === 'string' ? words : undefined
}
