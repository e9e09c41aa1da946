/** Faults of clients, one at a time, each with the scenario that must notice it. */
import type { Carrier, RevisionId } from '../../../src/conformance/index.ts'
import type { Fault, Message } from './wrapping.ts'

export interface Mutation {
  /** A sentence: what such a client does. */
  readonly says: string
  readonly caught: string
  readonly fault: Fault
  readonly revision?: RevisionId
  readonly carrier?: Carrier
}

const NS = 'dev.vivarium'
const MODERN: RevisionId = '2026-07-28'
type Params = Record<string, unknown>

const params = (message: Message): Params => (message['params'] ?? {}) as Params
const meta = (message: Message): Params => (params(message)['_meta'] ?? {}) as Params
const result = (message: Message): Params => (message['result'] ?? {}) as Params
const withParams = (message: Message, more: Params): Message => ({ ...message, params: { ...params(message), ...more } })
const withMeta = (message: Message, more: Params): Message => withParams(message, { _meta: { ...meta(message), ...more } })
const withResult = (message: Message, more: Params): Message => ({ ...message, result: { ...result(message), ...more } })
const without = (object: Params, name: string): Params =>
  Object.fromEntries(Object.entries(object).filter(([key]) => key !== name))
const isCall = (message: Message): boolean => message['method'] === 'tools/call' && params(message)['name'] !== 'test-report'
const under = (message: Message, name: string): Params => (meta(message)[`${NS}/${name}`] ?? {}) as Params
const drop = (method: string) => (message: Message) => (message['method'] === method ? undefined : message)

/** Every tool of a list, changed. */
function tools(message: Message, change: (tool: Params) => Params): Message {
  const list = result(message)['tools']
  return Array.isArray(list) ? withResult(message, { tools: list.map(tool => change(tool as Params)) }) : message
}

export const clientFaults: readonly Mutation[] = [
  // ── the envelope
  { says: 'says jsonrpc "1.0"', caught: 'client/run/envelopes', fault: { out: message => ({ ...message, jsonrpc: '1.0' }) } },
  {
    says: 'sends messages in arrays',
    caught: 'client/run/envelopes',
    fault: { out: message => (message['method'] === 'notifications/initialized' ? [message] : message) },
  },
  {
    says: 'numbers its requests with fractions',
    caught: 'client/run/ids',
    fault: {
      out: message =>
        typeof message['id'] === 'number' && 'method' in message ? { ...message, id: message['id'] + 0.5 } : message,
      in: message =>
        typeof message['id'] === 'number' && !('method' in message) ? { ...message, id: message['id'] - 0.5 } : message,
    },
  },
  {
    says: 'uses one id for all',
    caught: 'client/run/ids',
    fault: {
      out: (message, { memory }) => {
        if (!('method' in message && 'id' in message)) return message
        memory.set('id', message['id'])
        return { ...message, id: 1 }
      },
      in: (message, { memory }) => ('method' in message ? message : { ...message, id: memory.get('id') }),
    },
  },
  { says: 'does not say that it is ready', caught: 'client/run/initialized', fault: { out: drop('notifications/initialized') } },
  {
    says: 'asks before it is ready',
    caught: 'client/run/initialized',
    fault: {
      out: (message, { memory, send }) => {
        if (message['method'] === 'notifications/initialized') return void memory.set('ready', message)
        const ready = memory.get('ready')
        if (ready !== undefined) queueMicrotask(() => send(ready))
        memory.delete('ready')
        return message
      },
    },
  },
  {
    says: 'does not name itself',
    caught: 'client/run/initialize',
    fault: { out: message => (message['method'] === 'initialize' ? withParams(message, { clientInfo: {} }) : message) },
  },
  {
    says: 'asks for prompts of a server that has none',
    caught: 'client/run/undeclared',
    fault: {
      out: (message, { send }) => {
        if (isCall(message)) send({ jsonrpc: '2.0', id: 'p', method: 'prompts/list', params: {} })
        return message
      },
    },
  },
  {
    says: 'uses a word of another wire',
    caught: 'client/run/words',
    fault: {
      out: (message, { send }) => {
        if (isCall(message)) send({ jsonrpc: '2.0', id: 'p', method: 'subscriptions/listen', params: {} })
        return message
      },
    },
  },
  {
    says: 'leaves its version out of requests',
    caught: 'client/run/meta',
    revision: MODERN,
    fault: {
      out: message =>
        isCall(message)
          ? withParams(message, { _meta: without(meta(message), 'io.modelcontextprotocol/protocolVersion') })
          : message,
    },
  },
  {
    says: 'continues at a version that does not exist',
    caught: 'client/versions/leaves',
    fault: {
      in: message =>
        result(message)['protocolVersion'] === '1999-01-01' ? withResult(message, { protocolVersion: '2025-11-25' }) : message,
    },
  },
  // ── lists
  {
    says: 'takes the first page for the whole list',
    caught: 'client/lists/pages',
    fault: {
      in: message => ('nextCursor' in result(message) ? { ...message, result: without(result(message), 'nextCursor') } : message),
    },
  },
  {
    says: 'trims cursors',
    caught: 'client/lists/pages',
    fault: {
      out: message =>
        typeof params(message)['cursor'] === 'string'
          ? withParams(message, { cursor: String(params(message)['cursor']).trim() })
          : message,
    },
  },
  {
    says: 'takes an empty cursor for none',
    caught: 'client/lists/empty-cursor',
    revision: MODERN,
    fault: {
      in: message =>
        result(message)['nextCursor'] === '' ? { ...message, result: without(result(message), 'nextCursor') } : message,
    },
  },
  {
    says: 'fetches the schemas that a tool refers to',
    caught: 'client/lists/no-dereference',
    fault: {
      in: message => {
        const [, address] = /"\$ref":"(http[^"]+)"/.exec(JSON.stringify(message)) ?? []
        if (address !== undefined) void fetch(address).catch(() => {})
        return message
      },
    },
  },
  // ── answers
  {
    says: 'takes errors for results',
    caught: 'client/answers/refused',
    fault: { in: message => ('error' in message ? { jsonrpc: '2.0', id: message['id'], result: { content: [] } } : message) },
  },
  {
    says: 'does not see that a tool failed',
    caught: 'client/answers/tool-error',
    fault: { in: message => (result(message)['isError'] === true ? withResult(message, { isError: false }) : message) },
  },
  {
    says: 'makes every call twice',
    caught: 'client/answers/refused',
    fault: {
      out: (message, { send }) => {
        if (isCall(message)) send({ ...message, id: `again-${String(message['id'])}` })
        return message
      },
    },
  },
  {
    says: 'gives answers to the wrong calls',
    caught: 'client/answers/matched',
    fault: {
      out: (message, { memory }) => {
        if (isCall(message)) memory.set(String((params(message)['arguments'] as Params | undefined)?.['n']), message['id'])
        return message
      },
      in: (message, { memory }) => {
        if ('method' in message || !JSON.stringify(message).includes('answer ')) return message
        return { ...message, id: message['id'] === memory.get('1') ? memory.get('2') : memory.get('1') }
      },
    },
  },
  // ── while a call runs
  {
    says: 'has one progress token for all calls',
    caught: 'client/progress/token',
    fault: { out: message => ('progressToken' in meta(message) ? withMeta(message, { progressToken: 1 }) : message) },
  },
  { says: 'does not hear progress', caught: 'client/progress/heard', fault: { in: drop('notifications/progress') } },
  { says: 'does not tell that it gave up', caught: 'client/cancel/said', fault: { out: drop('notifications/cancelled') } },
  // ── questions
  {
    says: 'does not answer pings',
    caught: 'client/asked/ping',
    fault: { in: drop('ping') },
  },
  {
    says: 'answers under an id of another type',
    caught: 'client/asked/ping',
    fault: { out: message => ('method' in message ? message : { ...message, id: String(message['id']) }) },
  },
  {
    says: 'says yes to methods that it does not know',
    caught: 'client/asked/unknown',
    fault: {
      out: message =>
        (message['error'] as Params | undefined)?.['code'] === -32601
          ? { jsonrpc: '2.0', id: message['id'], result: {} }
          : message,
    },
  },
  {
    says: 'answers samplings that it never declared',
    caught: 'client/asked/undeclared',
    fault: {
      out: message =>
        message['id'] === 'ask-sampling' ? { jsonrpc: '2.0', id: 'ask-sampling', result: { role: 'assistant' } } : message,
    },
  },
  {
    says: 'leaves out what a form requires',
    caught: 'client/asked/form',
    fault: {
      out: message => (result(message)['action'] === 'accept' ? withResult(message, { content: { age: 'old' } }) : message),
    },
  },
  {
    says: 'sends what was typed into a form that was declined',
    caught: 'client/asked/decline',
    fault: {
      out: message => (result(message)['action'] === 'decline' ? withResult(message, { content: { name: 'Ada' } }) : message),
    },
  },
  {
    says: 'leaves defaults out of forms',
    caught: 'client/asked/defaults',
    fault: { out: message => (result(message)['action'] === 'accept' ? withResult(message, { content: {} }) : message) },
  },
  {
    says: 'fetches the page that the user should see',
    caught: 'client/asked/page',
    fault: {
      in: message => {
        const { url } = params(message)
        if (typeof url === 'string') void fetch(url).catch(() => {})
        return message
      },
    },
  },
  {
    says: 'does not name the model that answered',
    caught: 'client/asked/sample',
    fault: { out: message => ('model' in result(message) ? { ...message, result: without(result(message), 'model') } : message) },
  },
  {
    says: 'gives roots that are not files',
    caught: 'client/asked/roots',
    fault: {
      out: message => ('roots' in result(message) ? withResult(message, { roots: [{ uri: 'https://example.com' }] }) : message),
    },
  },
  {
    says: 'does not tell of other roots',
    caught: 'client/asked/roots-changed',
    fault: { out: drop('notifications/roots/list_changed') },
  },
  // ── rounds
  {
    says: 'trims the state of a round',
    caught: 'client/rounds/state',
    revision: MODERN,
    fault: {
      out: message =>
        typeof params(message)['requestState'] === 'string'
          ? withParams(message, { requestState: String(params(message)['requestState']).trim() })
          : message,
    },
  },
  {
    says: 'sends the state of one call with another',
    caught: 'client/rounds/no-state',
    revision: MODERN,
    fault: {
      out: message =>
        isCall(message) && 'inputResponses' in params(message) ? withParams(message, { requestState: 'of another' }) : message,
    },
  },
  {
    says: 'wraps its answers into results',
    caught: 'client/rounds/answers',
    revision: MODERN,
    fault: {
      out: message => {
        const given = params(message)['inputResponses']
        if (given === undefined) return message
        const wrapped = Object.entries(given as Params).map(([key, value]) => [key, { result: value }])
        return withParams(message, { inputResponses: Object.fromEntries(wrapped) })
      },
    },
  },
  // ── changes, tasks
  {
    says: 'does not hear that a list changed',
    caught: 'client/changes/lists-again',
    fault: { in: drop('notifications/tools/list_changed') },
  },
  {
    says: 'does not fetch the result of a task',
    caught: 'client/tasks/chosen',
    fault: {
      out: (message, { memory }) => {
        if (message['method'] !== 'tasks/result') return message
        memory.set('result', message['id'])
        return { ...message, method: 'tasks/get' }
      },
      in: (message, { memory }) =>
        message['id'] === memory.get('result') ? withResult(message, { content: [{ type: 'text', text: 'made up' }] }) : message,
    },
  },
  // ── HTTP
  {
    says: 'does not repeat its version',
    caught: 'client/run/http-version',
    carrier: 'http',
    fault: { headers: headers => headers.delete('mcp-protocol-version') },
  },
  {
    says: 'forgets its session',
    caught: 'client/run/http-session',
    carrier: 'http',
    fault: { headers: (headers, body) => (body.includes('tools/call') ? headers.delete('mcp-session-id') : undefined) },
  },
  {
    says: 'takes no streams',
    caught: 'client/run/http-accept',
    carrier: 'http',
    fault: { headers: headers => headers.set('accept', 'application/json') },
  },
  {
    says: 'names another method than its body',
    caught: 'client/run/http-routing',
    carrier: 'http',
    revision: MODERN,
    fault: { headers: headers => headers.set('mcp-method', 'tools/list') },
  },
  {
    says: 'writes arguments into headers as they are',
    caught: 'client/headers/mirrored',
    carrier: 'http',
    revision: MODERN,
    fault: { headers: headers => (headers.has('mcp-param-city') ? headers.set('mcp-param-city', 'Zurich') : undefined) },
  },
  {
    says: 'comes back to a stream without saying where it was',
    caught: 'client/http/retry',
    carrier: 'http',
    fault: { headers: headers => headers.delete('last-event-id') },
  },
  // ── extensions
  {
    says: 'makes a new key for every attempt',
    caught: 'ext/client/E11-3',
    fault: {
      out: message =>
        'idempotency_key' in under(message, 'idempotency')
          ? withMeta(message, { [`${NS}/idempotency`]: { idempotency_key: crypto.randomUUID() } })
          : message,
    },
  },
  {
    says: 'has one key for all calls',
    caught: 'ext/client/E5-8',
    fault: {
      out: message =>
        'idempotency_key' in under(message, 'idempotency')
          ? withMeta(message, { [`${NS}/idempotency`]: { idempotency_key: 'the-key' } })
          : message,
    },
  },
  {
    says: 'tries again before the server wants it',
    caught: 'ext/client/E11-3',
    fault: {
      in: message => {
        const about = (result(message)['_meta'] ?? {}) as Params
        const problem = about[`${NS}/problem`] as Params | undefined
        if (problem === undefined) return message
        return withResult(message, { _meta: { ...about, [`${NS}/problem`]: { ...problem, retry_after_seconds: 0 } } })
      },
    },
  },
  {
    says: 'treats permanent failures as temporary ones',
    caught: 'ext/client/E11-4',
    fault: {
      in: message => {
        const about = (result(message)['_meta'] ?? {}) as Params
        const problem = about[`${NS}/problem`] as Params | undefined
        if (problem === undefined) return message
        return withResult(message, { _meta: { ...about, [`${NS}/problem`]: { ...problem, category: 'transient' } } })
      },
    },
  },
  {
    says: 'changes the token of a state',
    caught: 'ext/client/E14-1',
    fault: {
      out: message => {
        const { session_state: token } = under(message, 'state')
        return typeof token === 'string'
          ? withMeta(message, { [`${NS}/state`]: { session_state: encodeURIComponent(token) } })
          : message
      },
    },
  },
  {
    says: 'takes the state of one conversation into another',
    caught: 'ext/client/E14-6',
    fault: {
      out: (message, { memory }) => {
        const { session_state: token } = under(message, 'state')
        if (typeof token === 'string') memory.set('token', token)
        const last = memory.get('token')
        return isCall(message) && last !== undefined ? withMeta(message, { [`${NS}/state`]: { session_state: last } }) : message
      },
    },
  },
  {
    says: 'calls what needs a yes without one',
    caught: 'ext/client/E6-1',
    fault: { in: message => tools(message, tool => without(tool, '_meta')) },
  },
  {
    says: 'puts the yes among the arguments',
    caught: 'ext/client/E6-10',
    fault: {
      out: message =>
        isCall(message)
          ? withParams(message, { arguments: { ...(params(message)['arguments'] as Params), user_confirmed: true } })
          : message,
    },
  },
  {
    says: 'tells everybody what a call is for',
    caught: 'ext/client/E2-7',
    fault: { out: message => (isCall(message) ? withMeta(message, { [`${NS}/intent`]: { intent: 'to win' } }) : message) },
  },
  {
    says: 'spends more than its budget',
    caught: 'ext/client/E3-2',
    fault: {
      out: message =>
        'max_units' in under(message, 'operational') ? withMeta(message, { [`${NS}/operational`]: { max_units: 500 } }) : message,
    },
  },
  {
    says: 'does what an event suggests',
    caught: 'ext/client/E15-11',
    fault: {
      in: (message, { send, memory }) => {
        if (message['method'] === 'notifications/event' && 'action_hint' in params(message) && !memory.has('done')) {
          memory.set('done', true)
          send({ jsonrpc: '2.0', id: 'hinted', method: 'tools/call', params: { name: 'test-tool', arguments: {} } })
        }
        return message
      },
    },
  },
  {
    says: 'restarts events where it should continue',
    caught: 'ext/client/E15-6',
    fault: {
      out: message =>
        message['method'] === 'event/subscribe' ? { ...message, params: { ...without(params(message), 'cursor') } } : message,
    },
  },
  {
    says: 'leaves a failed transaction open',
    caught: 'ext/client/E5-14',
    fault: {
      out: message => (message['method'] === 'transaction/rollback' ? { ...message, method: 'transaction/get' } : message),
    },
  },
]
