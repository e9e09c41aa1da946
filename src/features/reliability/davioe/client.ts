/**
 * Client side of the profile `davioe`: a connection that translates each frame to and from the forms of davioe/mcp-extension-proposals.
 * Also works with servers that only answer calls and have no handshake. Loaded only if the profile is used.
 */
import {
  type Caller,
  type Carrier,
  type Connection,
  ConnectionError,
  type Outgoing,
  type Sink,
} from '../../../jsonrpc/connection.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { type Id, isId, isRecord, type Params } from '../../../jsonrpc/message.ts'
import { confirmationExtension, confirmationText } from '../confirmation/messages.ts'
import { operationalExtension } from '../cost/messages.ts'
import { idempotencyExtension } from '../idempotency/messages.ts'
import { intentExtension } from '../intent/messages.ts'
import { permissionsExtension } from '../permissions/messages.ts'
import { problemErrors, problemExtension } from '../problem/messages.ts'
import { provenanceExtension } from '../provenance/messages.ts'
import { stateExtension } from '../session-state/messages.ts'
import { transactionsExtension } from '../transactions/messages.ts'
import { bareMembers, tokens } from './runtime.ts'

const notFound = -32601

/** Limit of remembered requests; beyond it the oldest is considered lost. */
const mostSent = 10_000

/** A connection that translates frames for a server of this implementation. */
export class DavioeConnection implements Connection {
  readonly carrier: Carrier
  readonly caller?: Caller
  readonly #inner: Connection
  // Requests without a response yet, by id.
  readonly #sent = new Map<Id, SentRequest>()
  #sink: Sink | undefined = undefined
  #server: DavioeServerFacts = { name: '', opened: true }

  constructor(inner: Connection) {
    this.#inner = inner
    this.carrier = inner.carrier
    if (inner.caller !== undefined) this.caller = inner.caller
  }

  start(sink: Sink): void | Promise<void> {
    this.#sink = sink
    return this.#inner.start({ ...sink, frame: (text, status, within) => sink.frame(this.#heard(text), status, within) })
  }

  send(frame: string, outgoing?: Outgoing): void | Promise<void> {
    const message: unknown = JSON.parse(frame)
    if (!isRecord(message) || typeof message['method'] !== 'string') return this.#inner.send(frame, outgoing)
    const { id, method } = message
    const params = isRecord(message['params']) ? message['params'] : {}
    // Servers without a handshake do not understand notifications, so none are sent.
    if (!isId(id)) return this.#server.opened ? this.#inner.send(frame, outgoing) : undefined
    const said = spoken(method, params)
    if (said === undefined) return this.#refuse(id, method)
    this.#remember(id, { method, params })
    return this.#inner.send(JSON.stringify({ jsonrpc: '2.0', id, ...said }), outgoing)
  }

  drop(id: Id, reason: unknown): void {
    this.#sent.delete(id)
    this.#inner.drop?.(id, reason)
  }

  close(): Promise<void> {
    return this.#inner.close()
  }

  #remember(id: Id, sent: SentRequest): void {
    this.#sent.set(id, sent)
    const [oldest] = this.#sent.keys()
    if (this.#sent.size > mostSent && oldest !== undefined) this.#sent.delete(oldest)
  }

  /** Methods that such servers do not have are answered locally. */
  #refuse(id: Id, method: string): Promise<void> | undefined {
    const sink = this.#sink
    if (sink === undefined) return Promise.reject(new ConnectionError('lost', 'The connection was not started'))
    const error = { code: notFound, message: `Servers with the profile davioe do not support ${method}` }
    queueMicrotask(() => sink.frame(JSON.stringify({ jsonrpc: '2.0', id, error })))
    return undefined
  }

  #heard(text: string): string {
    try {
      return this.#translated(text, JSON.parse(text))
    } catch {
      // Invalid frames are passed on; the next reader reports them.
      return text
    }
  }

  #translated(text: string, message: unknown): string {
    if (!isRecord(message) || !isId(message['id']) || typeof message['method'] === 'string') return text
    const sent = this.#sent.get(message['id'])
    if (sent === undefined) return text
    this.#sent.delete(message['id'])
    if (sent.method === 'initialize') this.#server = serverOf(message['result'])
    return JSON.stringify({ jsonrpc: '2.0', id: message['id'], ...understood(sent, message, this.#server) })
  }
}

/** The translated response: its result or error in the common form. */
export function understood(sent: SentRequest, { result, error }: Params, server: DavioeServerFacts): Params {
  const { method } = sent
  if (method === 'initialize') return { result: opened(sent, result) }
  if (error !== undefined)
    return method === pingMethod && isRecord(error) && error['code'] === notFound ? { result: {} } : { error }
  if (method === 'tools/list') return { result: listedTools(result) }
  if (method === 'tools/call') return { result: called(sent, result, server) }
  return asTool.has(method) ? answered(method, result) : { result }
}

/** The translated request; undefined if it must not be sent. */
export function spoken(method: string, params: Params): { readonly method: string; readonly params: Params } | undefined {
  if (method === 'tools/call') return { method, params: bareCall(params) }
  const tool = asTool.get(method)
  if (tool === undefined) return unknownMethods.has(method) ? undefined : { method, params }
  const asked = tool.arguments(params)
  return asked === undefined
    ? undefined
    : { method: 'tools/call', params: bareCall({ name: tool.name, arguments: asked, _meta: params['_meta'] }) }
}

const unknownMethods: ReadonlySet<string> = new Set(['server/discover', 'transaction/get', 'idempotency/get'])

// Responses in the common form. A response that already has it stays unchanged.

/** A request before its translation. */
interface SentRequest {
  readonly method: string
  readonly params: Params
}

interface DavioeServerFacts {
  readonly name: string
  /** Whether it has a handshake. */
  readonly opened: boolean
}

const pingMethod = 'ping'

/** Without a handshake a server has no name. */
function serverOf(result: unknown): DavioeServerFacts {
  const info = isRecord(result) && isRecord(result['serverInfo']) ? result['serverInfo'] : {}
  return { name: typeof info['name'] === 'string' ? info['name'] : '', opened: isRecord(result) }
}

/** Translates the response to `initialize`; without a handshake a minimal one is made up. */
function opened({ params }: SentRequest, result: unknown): unknown {
  const { protocolVersion } = params
  if (!isRecord(result)) return { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: '', version: '' } }
  const { capabilities } = result
  const listed = isRecord(capabilities) ? capabilities['extensions'] : undefined
  if (!isRecord(capabilities) || !Array.isArray(listed)) return result
  const known = listed.flatMap(token => (typeof token === 'string' ? tokens.get(token) : undefined) ?? [])
  const extensions = Object.fromEntries(known.map(id => [id, {}]))
  return { ...result, capabilities: { ...capabilities, extensions } }
}

/** Translates manifest entries to tools. Output schemas are dropped, because they describe another shape. */
function listedTools(result: unknown): unknown {
  if (!isRecord(result) || !Array.isArray(result['tools'])) return result
  return { ...result, tools: result['tools'].map(toolOf) }
}

function toolOf(entry: unknown): unknown {
  if (!isRecord(entry) || isRecord(entry['inputSchema']) || !isRecord(entry['input_schema'])) return entry
  const { name, description, idempotent, risk_level: risk, required_scopes: scopes, cost, latency } = entry
  const confirms = entry['requires_confirmation'] === true
  const message = entry['confirmation_message'] ?? ''
  const meta = {
    ...(confirms
      ? { [confirmationExtension]: { requires_confirmation: true, confirmation_message: message, risk_level: risk } }
      : {}),
    ...(Array.isArray(scopes) ? { [permissionsExtension]: { required_scopes: scopes } } : {}),
    ...(cost === undefined && latency === undefined ? {} : { [operationalExtension]: { cost, latency } }),
  }
  const annotations = {
    ...(typeof idempotent === 'boolean' ? { idempotentHint: idempotent } : {}),
    ...(risk === undefined ? {} : { destructiveHint: risk === 'destructive' }),
  }
  return { name, description, inputSchema: entry['input_schema'], annotations, _meta: meta }
}

/** Members beside a result, and the extension they belong to. */
const beside: ReadonlyMap<string, (said: unknown) => Params> = new Map<string, (said: unknown) => Params>([
  ['idempotency', said => ({ [idempotencyExtension]: said })],
  ['transaction', said => ({ [transactionsExtension]: said })],
  ['session_state', said => ({ [stateExtension]: { session_state: said } })],
  ['provenance', said => ({ [provenanceExtension]: said })],
  ['suggestion', said => ({ [intentExtension]: { suggestion: said } })],
])

/** Translates the result of a tool call. */
function called(sent: SentRequest, result: unknown, server: DavioeServerFacts): unknown {
  if (!isRecord(result) || Array.isArray(result['content']) || 'structuredContent' in result) return result
  const members = Object.entries(result)
  const meta: Params = Object.assign({}, ...members.map(([name, said]) => beside.get(name)?.(said)))
  const value: Params = Object.fromEntries(members.filter(([name]) => !beside.has(name)))
  const { error } = value
  if (isRecord(error)) return failed(String(error['message'] ?? ''), { ...meta, [problemExtension]: error })
  if (value['requires_confirmation'] === true) return unconfirmed(sent, value, server, meta)
  const given = Object.hasOwn(value, 'result') ? value['result'] : value
  return { content: [{ type: 'text', text: JSON.stringify(given) }], structuredContent: given, _meta: meta }
}

/** Such servers give no token; they expect a second call that says the user has agreed. */
function unconfirmed({ params }: SentRequest, said: Params, { name }: DavioeServerFacts, meta: Params): unknown {
  const args = isRecord(params['arguments']) ? params['arguments'] : {}
  const tool = String(params['name'])
  const text = confirmationText(name, tool, clip(String(said['confirmation_message'] ?? ''), 1000), args)
  const { confirmation_token: token = '' } = said
  const offer = {
    status: 'confirmation_required',
    confirmation_message: text,
    risk_level: said['risk_level'],
    confirmation_token: token,
  }
  const problem = { code: 'CONFIRMATION_REQUIRED', message: text, category: 'auth_required', user_actionable: true }
  return failed(text, { ...meta, [problemExtension]: problem, [confirmationExtension]: offer })
}

function failed(text: string, meta: Params): unknown {
  return { content: [{ type: 'text', text: clip(text, 1000) }], isError: true, _meta: meta }
}

/** Translates the result of a tool that replaces a method. */
function answered(method: string, result: unknown): Params {
  if (!isRecord(result)) return { result }
  const value = isRecord(result['structuredContent']) ? result['structuredContent'] : result
  const { error } = value
  if (isRecord(error))
    return { error: { code: problemErrors.problem.default, message: String(error['message'] ?? ''), data: error } }
  return { result: method === 'transaction/rollback' ? rolledBack(value) : value }
}

/** Such servers list only compensated steps, last first. */
function rolledBack(value: Params): Params {
  const undone = value['steps_compensated']
  if (Array.isArray(value['steps']) || !Array.isArray(undone)) return value
  const steps = undone.filter(isRecord).map(({ step_id, status, error }) => {
    const why = typeof error === 'string' ? { code: 'SERVER_ERROR', message: error } : error
    return { step_id, tool: '', status, ...(why === undefined ? {} : { error: why }) }
  })
  return { ...value, steps: steps.reverse() }
}

// Requests in the form of that implementation: methods become tools, and `_meta` members move beside the arguments.

/** A method that such servers implement as a tool. */
interface MethodTool {
  readonly name: string
  /** The tool's arguments; undefined if the tool does not support this request. */
  arguments(params: Params): Params | undefined
}

const same = ({ _meta, ...params }: Params): Params => params

/** Methods that are tools in that implementation. */
export const asTool: ReadonlyMap<string, MethodTool> = new Map([
  ['transaction/begin', { name: 'begin_transaction', arguments: same }],
  ['transaction/commit', { name: 'commit_transaction', arguments: same }],
  ['transaction/rollback', { name: 'rollback_transaction', arguments: same }],
  [
    'permissions/check',
    // One check at a time; the schema requires `scopes_held`, which has no effect.
    {
      name: 'check_permissions',
      arguments: (params: Params) => ('checks' in params ? undefined : { scopes_held: [], ...same(params) }),
    },
  ],
  ['permissions/negotiate', { name: 'negotiate_scopes', arguments: same }],
])

/** Adds the members beside the arguments, which its servers read, and the key in `_meta`, which its clients write too. */
function bareCall(params: Params): Params {
  const meta = isRecord(params['_meta']) ? params['_meta'] : undefined
  if (meta === undefined) return params
  const bare: Record<string, unknown> = {}
  for (const [name, extension] of bareMembers) {
    const said = meta[extension]
    const value = isRecord(said) ? said[name] : undefined
    if (value !== undefined && value !== '') bare[name] = value
  }
  const key = bare['idempotency_key']
  return { ...params, ...bare, _meta: key === undefined ? meta : { ...meta, idempotency_key: key } }
}
