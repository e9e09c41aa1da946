/**
 * A server of the other implementation, made of canned answers: their shapes are retyped from what its reference server was seen to say,
 * with tickets of our own. It has no handshake worth the name, no content in its results, and takes keys only beside the arguments.
 */
import { createServer as createHttp, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import type { Connection } from '../../src/jsonrpc/connection.ts'
import { isRecord, type Params } from '../../src/jsonrpc/message.ts'
import { memoryPair } from '../../src/transports/memory.ts'

export interface CannedPeer {
  readonly connection: Connection
  /** Every request, in order. */
  readonly heard: readonly Params[]
  readonly tickets: Map<string, string>
  /** Held by whoever calls. */
  readonly scopes: Set<string>
}

type Answer = { readonly result: unknown } | { readonly error: { readonly code: number; readonly message: string } }

const refusal = (code: string, message: string, category = 'permanent', more: Params = {}) => ({
  error: { code, message, category, user_actionable: true, ...more },
})

const tools = [
  {
    name: 'search_tickets',
    description: 'Finds tickets',
    input_schema: { type: 'object', properties: { status: { type: 'string' } } },
    cost: { category: 'free' },
    latency: 'instant',
    idempotent: true,
  },
  {
    name: 'create_ticket',
    description: 'Makes a ticket',
    input_schema: { type: 'object', required: ['title'], properties: { title: { type: 'string' } } },
    required_scopes: ['write:tickets'],
  },
  {
    name: 'delete_ticket',
    description: 'Removes a ticket for good',
    input_schema: { type: 'object', required: ['ticket_id'], properties: { ticket_id: { type: 'string' } } },
    cost: { category: 'free' },
    latency: 'instant',
    idempotent: true,
    requires_confirmation: true,
    confirmation_message: 'The ticket {ticket_id} and all that hangs on it will be gone. Proceed?',
    risk_level: 'destructive',
    required_scopes: ['delete:tickets'],
  },
]

const hello = {
  protocolVersion: '2025-06-18',
  capabilities: {
    tools: { listChanged: true },
    extensions: ['streaming', 'idempotency', 'transactions', 'session_state', 'intent_hints', 'human_in_the_loop'],
  },
  serverInfo: { name: 'canned-tracker', version: '1.0.0' },
}

export function cannedPeer(): CannedPeer {
  const [near, far] = memoryPair()
  const heard: Params[] = []
  const shop = { tickets: new Map([['P-1', 'Fix the door']]), scopes: new Set(['write:tickets']) }
  const answer = answering(shop)
  void far.start({
    frame: text => {
      const message = JSON.parse(text)
      heard.push(message)
      if (message.id !== undefined) void far.send(JSON.stringify({ jsonrpc: '2.0', id: message.id, ...answer(message) }))
    },
    fault: () => {},
    closed: () => {},
  })
  return { connection: near, heard, ...shop }
}

function answering(shop: Pick<CannedPeer, 'tickets' | 'scopes'>): (message: Params) => Answer {
  const remembered = new Map<string, { readonly result: Params; readonly at: string }>()
  const open = new Map<string, string[]>()
  let calls = 0
  const call = (name: string, args: Params, params: Params): Params => {
    const { idempotency_key: key, transaction_id: transaction } = params as Readonly<Record<string, string | undefined>>
    const id = String(args['transaction_id'])
    const steps = open.get(id)
    if (name === 'check_permissions') return permission(shop.scopes, args)
    if (name === 'begin_transaction') {
      if (steps !== undefined) return refusal('TRANSACTION_CONFLICT', `There is a transaction ${id}.`)
      open.set(id, [])
      return { status: 'begun', transaction_id: id }
    }
    if (name === 'commit_transaction' || name === 'rollback_transaction') {
      if (steps === undefined) return refusal('RESOURCE_NOT_FOUND', `No open transaction has the id ${id}.`)
      open.delete(id)
      if (name === 'commit_transaction') return { status: 'committed', transaction_id: id, steps_completed: steps.length }
      const undone = steps.toReversed()
      for (const ticket of undone) shop.tickets.delete(ticket)
      const compensated = undone.map(ticket => ({ step_id: `create-${ticket}`, status: 'compensated' }))
      return { status: 'rolled_back', transaction_id: id, steps_compensated: compensated }
    }
    const session_state = btoa(JSON.stringify({ calls: ++calls, last_tool: name }))
    const tool = tools.find(one => one.name === name)
    const missing = (tool?.required_scopes ?? []).filter(scope => !shop.scopes.has(scope))
    if (tool === undefined || missing.length > 0)
      return refusal('SCOPE_INSUFFICIENT', `Not allowed: ${name}`, 'auth_required', { details: { missing_scopes: missing } })
    if (tool.requires_confirmation && params['user_confirmed'] !== true) {
      const { confirmation_message, risk_level } = tool
      return { requires_confirmation: true, confirmation_message, risk_level, tool: name, parameters: args }
    }
    const source = { source: 'canned:tickets', retrieved_at: new Date(0).toISOString(), confidence: 'exact' }
    if (name === 'search_tickets') return { result: { total_count: shop.tickets.size }, provenance: source, session_state }
    if (name === 'delete_ticket') {
      const ticket = String(args['ticket_id'])
      if (!shop.tickets.delete(ticket)) return refusal('RESOURCE_NOT_FOUND', `There is no ticket ${ticket}.`)
      return { deleted: true, ticket_id: ticket, session_state }
    }
    const before = key === undefined ? undefined : remembered.get(key)
    if (before !== undefined) {
      const idempotency = { idempotency_key: key, was_replay: true, original_timestamp: before.at }
      return { result: before.result, provenance: source, idempotency, session_state }
    }
    const ticket = `P-${shop.tickets.size + 1}`
    shop.tickets.set(ticket, String(args['title']))
    const result = { ticket: { id: ticket, title: args['title'] }, created: true }
    if (key !== undefined) remembered.set(key, { result, at: new Date(0).toISOString() })
    open.get(transaction ?? '')?.push(ticket)
    const compensation = { tool: 'delete_ticket', parameters: { ticket_id: ticket } }
    return {
      result,
      provenance: source,
      ...(key === undefined ? {} : { idempotency: { idempotency_key: key, was_replay: false } }),
      ...(transaction === undefined
        ? {}
        : { transaction: { transaction_id: transaction, step_id: `create-${ticket}`, compensation } }),
      session_state,
    }
  }
  return ({ method, params }) => {
    const said = isRecord(params) ? params : {}
    if (method === 'initialize') return { result: hello }
    if (method === 'tools/list') return { result: { tools } }
    if (method !== 'tools/call') return { error: { code: -32601, message: `Method not found: ${String(method)}` } }
    return { result: call(String(said['name']), isRecord(said['arguments']) ? said['arguments'] : {}, said) }
  }
}

function permission(held: ReadonlySet<string>, args: Params): Params {
  const needed = tools.find(({ name }) => name === args['tool'])?.required_scopes ?? []
  const missing = needed.filter(scope => !held.has(scope))
  if (missing.length === 0) return { allowed: true }
  return { allowed: false, missing_scopes: missing, reason: `Missing: ${missing}`, elevation_url: 'https://example.com/elevate' }
}

/** A bare HTTP endpoint that answers calls of two tools by POST, and nothing else: no handshake, no list. */
export interface BareServer {
  readonly url: string
  readonly tickets: Set<string>
  readonly heard: Params[]
  close(): Promise<void>
}

export async function bareServer(
  prefix: string,
  knows: readonly string[] = ['create_ticket', 'delete_ticket'],
): Promise<BareServer> {
  const tickets = new Set<string>()
  const heard: Params[] = []
  let made = 0
  const answer = (message: Params): Answer => {
    const params = isRecord(message['params']) ? message['params'] : {}
    const args = isRecord(params['arguments']) ? params['arguments'] : {}
    if (message['method'] !== 'tools/call' || !knows.includes(String(params['name'])))
      return { error: { code: -32601, message: 'Method not found' } }
    if (params['name'] === 'delete_ticket') {
      const id = String(args['ticket_id'])
      tickets.delete(id)
      return { result: { deleted: true, ticket_id: id } }
    }
    const id = `${prefix}-${++made}`
    tickets.add(id)
    return { result: { ticket: { id, title: args['title'] }, created: true } }
  }
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    let body = ''
    for await (const part of request) body += part
    if (request.method !== 'POST') return void response.writeHead(404).end()
    const message = JSON.parse(body)
    heard.push(message)
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id ?? null, ...answer(message) }))
  }
  const http = createHttp((request, response) => void serve(request, response))
  await new Promise<void>(resolve => http.listen(0, '127.0.0.1', resolve))
  const close = (): Promise<void> => {
    http.closeAllConnections()
    return new Promise(resolve => http.close(() => resolve()))
  }
  onTestFinished(close)
  return { url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/`, tickets, heard, close }
}
