/** Header values: the codec of mirrored arguments, media types, and the checks of Host and Origin, on whatever may stand in a header. */
import { checkMirrored, mirroredParams, mirrorHeaders } from '../../../src/features/mcp/tools/headers.ts'
import { McpError } from '../../../src/jsonrpc/error.ts'
import type { Params } from '../../../src/jsonrpc/message.ts'
import { decodeHeaderValue, encodeHeaderValue } from '../../../src/revisions/index.ts'
import { Guard, isJson, takes } from '../../../src/transports/http/endpoint.ts'
import { object, scalar, value, word } from '../json.ts'
import type { Source } from '../source.ts'
import { attempt, demand, demandSame, target } from '../target.ts'

const visible = /^[\x20-\x7e]*$/
const isFault = (error: unknown): boolean => error instanceof McpError && error.kind === 'header-mismatch'

interface Mirrored {
  readonly schema: Readonly<Record<string, unknown>>
  readonly args: Params
  readonly foreign: string
}

export const headers = target<Mirrored>({
  name: 'headers',
  make: source => ({ schema: schemaOf(source, 3), args: argsOf(source), foreign: headerText(source) }),
  check: ({ schema, args, foreign }) => {
    const encoded = encodeHeaderValue(foreign)
    demand(visible.test(encoded) && encoded.trim() === encoded, () => `cannot be sent: ${encoded}`)
    demandSame(decodeHeaderValue(encoded), foreign.toWellFormed(), 'decoded again')
    const decoded = decodeHeaderValue(foreign)
    demand(decoded === undefined || typeof decoded === 'string', () => 'decoded to no text')
    const params = mirroredParams(schema)
    if ('fault' in params) return
    const sent = mirrorHeaders(params, args)
    for (const text of Object.values(sent)) demand(visible.test(text), () => `cannot be sent: ${text}`)
    // What we send we must take, but for text with half a surrogate pair, which no header can say.
    attempt(
      () => checkMirrored(params, args, name => sent[name]),
      error => isFault(error) && /\\ud[89a-f]/i.test(JSON.stringify(args)),
    )
    attempt(() => checkMirrored(params, args, () => foreign), isFault)
  },
})

/** Properties within properties, some of them mirrored, some wrongly. */
function schemaOf(source: Source, depth: number): Record<string, unknown> {
  const properties = source.list(3, () => {
    const inner: Record<string, unknown> = depth === 0 || source.int(3) < 2 ? {} : schemaOf(source, depth - 1)
    inner['type'] = source.pick(['string', 'integer', 'boolean', 'object', 'number'])
    if (source.int(2) === 0)
      inner['x-mcp-header'] = source.once(6) ? scalar(source) : source.pick(['Region', 'X', 'Y-Z', 'q', 'bad name'])
    return [name(source), inner] as const
  })
  return { type: 'object', [source.once(12) ? '$defs' : 'properties']: object(properties) }
}

function name(source: Source): string {
  return source.once(4) ? word(source) : source.pick(['a', 'b', 'c', '__proto__', 'toString'])
}

function argsOf(source: Source): Params {
  return object(source.list(4, () => [name(source), source.int(2) === 0 ? scalar(source) : value(source, 2)] as const))
}

const pieces = [
  'a',
  'utf-8',
  '=?base64?',
  '?=',
  'YQ==',
  '4p2k',
  '=',
  ' ',
  '\t',
  ',',
  ';',
  '"',
  'é',
  '\u0000',
  '\r\n',
  '\ud83d',
  '😀',
  '%',
  '\x7f',
]

function headerText(source: Source): string {
  const parts = source.list(6, () => source.pick(pieces))
  if (source.once(500)) parts.push(source.pick(pieces).repeat(source.int(20_000)))
  return parts.join('')
}

const mediaPieces = [
  'application/json',
  'text/event-stream',
  '*/*',
  'application/*',
  'text/*',
  ';',
  'q=0',
  'q=0.1',
  'q=nan',
  ', ',
  ' ',
  'charset=utf-8',
  'charset="UTF-8"',
  'charset=latin1',
  'x',
  '=',
  '"',
  'APPLICATION/JSON',
  'text/plain',
  '\t',
]

export const media = target<string>({
  name: 'media',
  make: source => {
    const parts = source.list(10, () => source.pick(mediaPieces))
    if (source.once(500)) parts.push(source.pick(mediaPieces).repeat(source.int(4_000)))
    return parts.join('')
  },
  check: text => {
    if (isJson(text))
      demand(text.split(';', 1)[0]?.trim().toLowerCase() === 'application/json', () => 'not JSON, yet taken for it')
    const both = takes(text)
    demand(both >= 0 && both <= 3, () => `takes ${both}`)
    demand(takes(text.toUpperCase()) === both, () => 'case makes a difference')
    demand(takes(` ${text} `) === both, () => 'blanks make a difference')
    if (both !== 3 && both !== 0) demand(/json|event-stream|\*/i.test(text), () => 'takes what it does not name')
  },
})

interface Head {
  readonly host: string | undefined
  readonly origin: string | undefined
  readonly rawHeaders: readonly string[]
}

const listed = ['api.example.com', 'shop.example.com:8443']
const loopback = ['localhost', '127.0.0.1', '[::1]']
const hostPieces = [
  ...loopback,
  ...listed,
  ':',
  '80',
  '8443',
  '.',
  '@',
  '/',
  ',',
  ' ',
  '[',
  ']',
  'evil.example',
  '::1',
  'LOCALHOST',
  '\u0000',
  'ｌ',
  '%',
  '#',
  '?',
  '\\',
]
const guard = new Guard({ hosts: listed, origins: ['https://app.example.com'], host: '0.0.0.0' })

export const heads = target<Head>({
  name: 'heads',
  make: source => {
    const host = hostText(source)
    const origin =
      source.int(3) === 0
        ? undefined
        : `${source.pick(['http://', 'https://', '', 'file://', 'null', 'HTTPS://'])}${hostText(source) ?? ''}`
    const more = source.list(2, () => [source.pick(['Host', 'host', 'hOST', 'Hosts', 'X']), hostText(source) ?? '']).flat()
    return { host, origin, rawHeaders: host === undefined ? more : ['Host', host, ...more] }
  },
  check: ({ host, origin, rawHeaders }) => {
    const refusal = guard.checkRequest({ headers: { host, origin }, rawHeaders })
    if (refusal !== undefined) {
      demand([400, 403].includes(refusal.status) && refusal.message.length < 300, () => JSON.stringify(refusal))
      demand(!/[\u0000-\u001f]/.test(refusal.message), () => 'control characters come back')
      return
    }
    const hosts = rawHeaders.filter((each, at) => at % 2 === 0 && each.toLowerCase() === 'host')
    demand(hosts.length <= 1, () => 'two hosts were let through')
    demand(isKnown(host, [...loopback, 'api.example.com'], ['shop.example.com:8443']), () => `let through as host: ${host}`)
    if (origin === undefined || origin.toLowerCase() === 'https://app.example.com') return
    demand(
      /^https?:\/\//i.test(origin) && isKnown(origin.replace(/^https?:\/\//i, ''), loopback, []),
      () => `let through as origin: ${origin}`,
    )
  },
})

function hostText(source: Source): string | undefined {
  if (source.once(10)) return undefined
  const parts = [source.pick(hostPieces), ...source.list(source.int(3), () => source.pick(hostPieces))]
  if (source.once(500)) parts.push(source.pick(hostPieces).repeat(source.int(4_000)))
  return parts.join('')
}

/** A name with any port, or one whose port is fixed. */
function isKnown(text: string | undefined, anyPort: readonly string[], exact: readonly string[]): boolean {
  const low = text?.toLowerCase() ?? ''
  return (
    exact.includes(low) ||
    anyPort.some(known => low === known || (low.startsWith(`${known}:`) && /^\d{1,5}$/.test(low.slice(known.length + 1))))
  )
}
