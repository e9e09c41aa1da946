/**
 * The per-request envelope of the stateless wires: `_meta` keys in, `_meta` keys and headers out.
 * Checks come in the order that lets the most telling failure win (2026-07-28 basic/transports, basic/index#_meta).
 */
import type { Caller } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import { clip } from '../jsonrpc/limits.ts'
import { isRecord, type Params } from '../jsonrpc/message.ts'
import type { Capabilities, Implementation, Peer, Revision } from './revision.ts'

/** In the `_meta` of every request: the version of the wire. */
export const versionKey = 'io.modelcontextprotocol/protocolVersion'
export const capabilitiesKey = 'io.modelcontextprotocol/clientCapabilities'
const infoKey = 'io.modelcontextprotocol/clientInfo'
/** In the `_meta` of a request: the log messages that its sender wants. */
export const logLevelKey = 'io.modelcontextprotocol/logLevel'

/** In the `_meta` of every result: who answers. */
export const serverInfoKey = 'io.modelcontextprotocol/serverInfo'

/** The keys that belong to the envelope: never handed to authors, never forwarded. */
export const envelopeKeys: ReadonlySet<string> = new Set([versionKey, capabilitiesKey, infoKey, logLevelKey])

const levels = new Set(['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'])

/** Reads the envelope of a message that `identify` has found to carry one. */
export function openEnvelope(revision: Revision, method: string, params: Params | undefined, caller: Caller): Peer {
  const meta = metaOf(params)
  const info = meta?.[infoKey]
  if (info === undefined ? revision.clientInfo === 'required' : !isImplementation(info)) {
    throw envelopeFault(infoKey, 'an object with the strings name and version')
  }
  const level = meta?.[logLevelKey]
  if (level !== undefined && !(typeof level === 'string' && levels.has(level))) {
    throw envelopeFault(logLevelKey, `one of ${[...levels].join(', ')}`)
  }
  if (caller.header !== undefined && caller.carrier === 'http') checkMethodHeader(method, caller.header('mcp-method'))
  return {
    revision,
    // A request under the name of a notification passes for one that needs no envelope.
    capabilities: (meta?.[capabilitiesKey] ?? {}) as Capabilities,
    info: info as Implementation | undefined,
    logLevel: level as string | undefined,
  }
}

/** The refusal of an envelope that lacks a member or has it wrong. */
export function envelopeFault(key: string, expected: string): McpError {
  return new McpError('invalid-envelope', `params._meta["${key}"] is missing or malformed: it must be ${expected}`)
}

function checkMethodHeader(method: string, header: string | undefined): void {
  if (header === undefined) throw headerFault(`The header Mcp-Method is missing; send Mcp-Method: ${clip(method)}`)
  if (header.trim() !== method) {
    throw headerFault(`The header Mcp-Method says "${clip(header)}", but the body says "${clip(method)}"; both must be equal`)
  }
}

/** The refusal of a header that differs from the body. */
export function headerFault(message: string): McpError {
  return new McpError('header-mismatch', message)
}

/** Compares `Mcp-Name` with the body's value at the method's name parameter. */
export function checkNameHeader(value: unknown, caller: Caller): void {
  if (caller.header === undefined || caller.carrier !== 'http' || typeof value !== 'string') return
  const header = caller.header('mcp-name')
  if (header === undefined) throw headerFault(`The header Mcp-Name is missing; send Mcp-Name: ${clip(encodeHeaderValue(value))}`)
  // What looks encoded stands for what it encodes, never for itself.
  if ((header !== value || wrapped.test(value)) && decodeHeaderValue(header) !== value) {
    throw headerFault(`The header Mcp-Name says "${clip(header)}", but the body says "${clip(value)}"; both must be equal`)
  }
}

/** What a request carries in its `_meta`. */
export function requestEnvelope(
  version: string,
  capabilities: Capabilities,
  info: Implementation,
  logLevel: string | undefined,
): Record<string, unknown> {
  const meta: Record<string, unknown> = { [versionKey]: version, [infoKey]: info, [capabilitiesKey]: capabilities }
  if (logLevel !== undefined) meta[logLevelKey] = logLevel
  return meta
}

/** What a request repeats in its headers. */
export function requestHeaders(
  version: string,
  method: string | undefined,
  params: Params | undefined,
  nameParam: string | undefined,
): Record<string, string> {
  const headers: Record<string, string> = { 'mcp-protocol-version': version }
  if (method !== undefined) headers['mcp-method'] = method
  const name = nameParam === undefined ? undefined : params?.[nameParam]
  if (typeof name === 'string') headers['mcp-name'] = encodeHeaderValue(name)
  return headers
}

const plain = /^(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?$/
const wrapped = /^=\?base64\?(.*)\?=$/s

/** As it is when it is printable ASCII without edge blanks and does not look encoded; else base64 of its UTF-8 in a wrapper. */
export function encodeHeaderValue(value: string): string {
  if (plain.test(value) && !wrapped.test(value)) return value
  let binary = ''
  for (const byte of new TextEncoder().encode(value)) binary += String.fromCharCode(byte)
  return `=?base64?${btoa(binary)}?=`
}

/** Undefined when the wrapper holds no valid base64 of UTF-8 text; an incomplete wrapper is a plain value. */
export function decodeHeaderValue(header: string): string | undefined {
  const text = header.trim()
  const inner = wrapped.exec(text)?.[1]
  if (inner === undefined) return text
  if (inner.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(inner)) return undefined
  try {
    const bytes = Uint8Array.from(atob(inner), char => char.charCodeAt(0))
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

function isImplementation(value: unknown): value is Implementation {
  return isRecord(value) && typeof value['name'] === 'string' && typeof value['version'] === 'string'
}

/** The `_meta` of params, where it is an object. */
export function metaOf(params: Params | undefined): Params | undefined {
  const meta = params?.['_meta']
  return isRecord(meta) ? meta : undefined
}
