/** Answers of that implementation, as any other server would give them. What already has the common form stays as it is. */
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { confirmationExtension, confirmationText } from '../confirmation/messages.ts'
import { operationalExtension } from '../cost/messages.ts'
import { idempotencyExtension } from '../idempotency/messages.ts'
import { intentExtension } from '../intent/messages.ts'
import { permissionsExtension } from '../permissions/messages.ts'
import { problemErrors, problemExtension } from '../problem/messages.ts'
import { provenanceExtension } from '../provenance/messages.ts'
import { stateExtension } from '../session-state/messages.ts'
import { transactionsExtension } from '../transactions/messages.ts'
import { tokens } from './dialect.ts'

/** A request of ours, as it was before it was translated. */
export interface SentRequest {
  readonly method: string
  readonly params: Params
}

export interface DavioeServerFacts {
  readonly name: string
  /** Whether it knows a handshake. */
  readonly opened: boolean
}

export const pingMethod = 'ping'

/** What it says of itself; where it knows no handshake, as much as it takes to make calls. */
export function opened(
  { params }: SentRequest,
  result: unknown,
): { readonly server: DavioeServerFacts; readonly result: unknown } {
  if (!isRecord(result)) {
    const hello = {
      protocolVersion: params['protocolVersion'],
      capabilities: { tools: {} },
      serverInfo: { name: '', version: '' },
    }
    return { server: { name: '', opened: false }, result: hello }
  }
  const info = isRecord(result['serverInfo']) ? result['serverInfo'] : {}
  const server = { name: typeof info['name'] === 'string' ? info['name'] : '', opened: true }
  const { capabilities } = result
  const listed = isRecord(capabilities) ? capabilities['extensions'] : undefined
  if (!isRecord(capabilities) || !Array.isArray(listed)) return { server, result }
  const known = listed.flatMap(token => (typeof token === 'string' ? tokens.get(token) : undefined) ?? [])
  const extensions = Object.fromEntries(known.map(id => [id, {}]))
  return { server, result: { ...result, capabilities: { ...capabilities, extensions } } }
}

/** Entries of its manifest become tools. What they promise of their results is not kept: it is said of another shape. */
export function listedTools(result: unknown): unknown {
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

/** What a result of its says beside the result itself: where that belongs. */
const beside: ReadonlyMap<string, (said: unknown) => Params> = new Map<string, (said: unknown) => Params>([
  ['idempotency', said => ({ [idempotencyExtension]: said })],
  ['transaction', said => ({ [transactionsExtension]: said })],
  ['session_state', said => ({ [stateExtension]: { session_state: said } })],
  ['provenance', said => ({ [provenanceExtension]: said })],
  ['suggestion', said => ({ [intentExtension]: { suggestion: said } })],
])

export function called(sent: SentRequest, result: unknown, server: DavioeServerFacts): unknown {
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

/** It gives no token: a second call that says that the user agreed is all it wants. */
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

/** What a tool answers in place of a method. */
export function answered(method: string, result: unknown): Params {
  if (!isRecord(result)) return { result }
  const value = isRecord(result['structuredContent']) ? result['structuredContent'] : result
  const { error } = value
  if (isRecord(error))
    return { error: { code: problemErrors.problem.default, message: String(error['message'] ?? ''), data: error } }
  return { result: method === 'transaction/rollback' ? rolledBack(value) : value }
}

/** It tells of steps only that they were taken back, the last one first. */
function rolledBack(value: Params): Params {
  const undone = value['steps_compensated']
  if (Array.isArray(value['steps']) || !Array.isArray(undone)) return value
  const steps = undone.filter(isRecord).map(({ step_id, status, error }) => {
    const why = typeof error === 'string' ? { code: 'SERVER_ERROR', message: error } : error
    return { step_id, tool: '', status, ...(why === undefined ? {} : { error: why }) }
  })
  return { ...value, steps: steps.reverse() }
}
