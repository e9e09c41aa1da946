/** Mutations of the base protocol. */
import { isRecord } from '../../../src/jsonrpc/message.ts'
import type { Json } from './box.ts'
import { objectIn, own, result } from './faults.ts'
import { at, type Mutation } from './mutation.ts'

const session = at('2025-11-25')
const stateless = at('2026-07-28')
const batching = at('2025-03-26')

const text = (words: string): Json => ({ content: [{ type: 'text', text: words }] })

export const baseMutations: readonly Mutation[] = [
  session('wrong-id', 'Answers to requests whose id is text come under another one', ['base/envelope/id-string'], () => ({
    answer: (answer, { id }) => (typeof id === 'string' ? { ...answer, id: `${id}-other` } : answer),
  })),
  session('id-as-text', 'Numeric ids come back as text', ['base/envelope/id-zero', 'base/envelope/id-negative'], () => ({
    answer: (answer, { id }) =>
      id === 0 || id === -1 || (typeof id === 'number' && id < 0) ? { ...answer, id: String(id) } : answer,
  })),
  session('answered-twice', 'A request is answered twice', ['base/lifecycle/answered-once', 'live/L4-1'], () => ({
    answer: (answer, { method }) => (method === 'initialize' ? answer : [answer, answer]),
  })),
  session(
    'unknown-method-served',
    'A method that does not exist gets an empty result',
    ['base/lifecycle/unknown-method'],
    () => ({
      answer: answer =>
        objectIn(answer, 'error')['code'] === -32601 ? { jsonrpc: '2.0', id: answer['id'], result: {} } : answer,
    }),
  ),
  session(
    'unknown-method-number',
    'A method that does not exist is refused with another number',
    ['base/lifecycle/unknown-method', 'live/L4.1-3'],
    () => ({
      answer: answer =>
        objectIn(answer, 'error')['code'] === -32601
          ? { ...answer, error: { ...objectIn(answer, 'error'), code: -32603 } }
          : answer,
    }),
  ),
  session(
    'unknown-tool-succeeds',
    'A tool that does not exist answers with a result',
    ['base/tools/unknown', 'ext/E11-10', 'ext/E4-2'],
    () => ({
      answer: (answer, asked) =>
        asked['method'] === 'tools/call' && objectIn(answer, 'error')['code'] === -32602
          ? { jsonrpc: '2.0', id: answer['id'], result: text('Done') }
          : answer,
    }),
  ),
  session(
    'unknown-tool-is-error',
    'A tool that does not exist is a failed result instead of an error',
    ['base/tools/unknown', 'ext/E11-10'],
    () => ({
      answer: (answer, asked) =>
        asked['method'] === 'tools/call' && objectIn(answer, 'error')['code'] === -32602
          ? { jsonrpc: '2.0', id: answer['id'], result: { ...text('There is no such tool'), isError: true } }
          : answer,
    }),
  ),
  session('failure-hidden', 'A tool that fails does not say isError', ['base/tools/is-error', 'ext/E11-2'], () =>
    result('tools/call', ({ isError: _, ...rest }) => rest),
  ),
  session('arguments-unchecked', 'Arguments that do not fit are taken', ['base/tools/invalid-arguments', 'ext/E11-1'], () =>
    result('tools/call', given =>
      objectIn(given, '_meta', 'dev.vivarium/problem')['code'] === 'INVALID_INPUT' ||
      /argument|invalid/i.test(JSON.stringify(given['content']))
        ? text('Done')
        : given,
    ),
  ),
  session(
    'structured-missing',
    'The result of a tool with an outputSchema has no structuredContent',
    ['base/tools/structured-output'],
    () => result('tools/call', ({ structuredContent: _, ...rest }) => rest),
  ),
  session('text-mangled', 'Letters outside of ASCII are lost', ['base/tools/text-unchanged'], () =>
    result('tools/call', given => JSON.parse(JSON.stringify(given).replace(/[^\x20-\x7e]/g, '?'))),
  ),
  session('content-missing', 'Results of calls have no content', ['base/tools/call-text'], () =>
    result('tools/call', ({ content: _, ...rest }) => rest),
  ),
  session('listed-twice', 'A tool is listed twice', ['base/tools/list-unique'], () =>
    result('tools/list', given => ({
      ...given,
      tools: [...(given['tools'] as Json[]), ...(given['tools'] as Json[]).slice(0, 1)],
    })),
  ),
  session('cursor-loops', 'nextCursor always leads to the same page', ['base/tools/list-unique'], {
    options: { pageSize: 20 },
    fault: () => {
      let first: unknown
      return result('tools/list', given => {
        first ??= given['nextCursor']
        return { ...given, nextCursor: first }
      })
    },
  }),
  session('cursor-number-taken', 'A number is taken for a cursor', ['base/tools/cursor-type'], {
    options: { pageSize: 20 },
    fault: () => ({
      answer: (answer, { method }) =>
        method === 'tools/list' && answer['error'] !== undefined
          ? { jsonrpc: '2.0', id: answer['id'], result: { tools: [] } }
          : answer,
    }),
  }),
  session('schema-missing', 'Tools are listed without inputSchema', ['base/tools/list'], () =>
    result('tools/list', given => ({ ...given, tools: (given['tools'] as Json[]).map(({ inputSchema: _, ...tool }) => tool) })),
  ),
  session('progress-after-answer', 'Progress comes after the answer', ['base/progress/over', 'ext/E8-5'], () => {
    let last: Json | undefined
    return {
      own: message => {
        if (message['method'] === 'notifications/progress') last = message
        return message
      },
      answer: (answer, asked, box) => {
        const late = last
        last = undefined
        if (asked['method'] === 'tools/call' && late !== undefined)
          box.say({ ...late, params: { ...objectIn(late, 'params'), progress: 1_000 } })
        return answer
      },
    }
  }),
  session('progress-falls', 'Progress does not rise', ['base/progress/string-token', 'ext/E8-2'], () =>
    own('notifications/progress', message => ({ ...message, params: { ...objectIn(message, 'params'), progress: 1 } })),
  ),
  session('progress-unasked', 'Progress comes without a token', ['base/progress/unasked', 'ext/E8-1'], () => ({
    answer: (answer, asked) =>
      asked['method'] === 'tools/call' && objectIn(asked, 'params', '_meta')['progressToken'] === undefined
        ? [{ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'none', progress: 1 } }, answer]
        : answer,
  })),
  session('cancelled-answered', 'A cancelled request is answered', ['base/cancellation/no-answer'], () => ({
    incoming: (message, box) => {
      if (message['method'] !== 'notifications/cancelled') return message
      box.say({ jsonrpc: '2.0', id: objectIn(message, 'params')['requestId'], result: text('Too late') })
      return message
    },
  })),
  session('resource-empty', 'A resource that does not exist has empty contents', ['base/resources/missing'], () => ({
    answer: (answer, asked) =>
      asked['method'] === 'resources/read' && answer['error'] !== undefined
        ? { jsonrpc: '2.0', id: answer['id'], result: { contents: [] } }
        : answer,
  })),
  session('update-unheard', 'A subscriber of a resource is not notified', ['base/resources/updated'], () =>
    own('notifications/resources/updated', () => undefined),
  ),
  session('change-unheard', 'A change of the tools is not notified', ['base/changes/tools', 'ext/E1-5'], () =>
    own('notifications/tools/list_changed', () => undefined),
  ),
  session('prompt-unknown', 'A prompt that does not exist has no messages instead of an error', ['base/prompts/unknown'], () => ({
    answer: (answer, asked) =>
      asked['method'] === 'prompts/get' && answer['error'] !== undefined
        ? { jsonrpc: '2.0', id: answer['id'], result: { messages: [] } }
        : answer,
  })),
  session('log-level-ignored', 'Messages below the level that was set are sent', ['base/logging/below-level'], () => ({
    incoming: message =>
      message['method'] === 'logging/setLevel' && objectIn(message, 'params')['level'] !== 'loud'
        ? { ...message, params: { level: 'debug' } }
        : message,
  })),
  session('asks-undeclared', 'A client that did not declare elicitation is asked', ['base/elicitation/undeclared'], () => ({
    incoming: message =>
      message['method'] === 'initialize'
        ? { ...message, params: { ...objectIn(message, 'params'), capabilities: { elicitation: { form: {}, url: {} } } } }
        : message,
  })),
  batching('batch-halved', 'The second request of a batch is not answered', ['base/batch/requests', 'base/batch/mixed'], () => ({
    answer: answer => (answer['id'] === 'b2' ? undefined : answer),
  })),
  ...statelessMutations(),
]

function statelessMutations(): readonly Mutation[] {
  return [
    stateless('result-type-missing', 'Results do not say which kind they are', ['base/discovery/result-type'], () => ({
      answer: answer => {
        if (!isRecord(answer['result'])) return answer
        const { resultType: _, ...rest } = answer['result']
        return { ...answer, result: rest }
      },
    })),
    stateless('ping-served', 'ping is answered where it no longer exists', ['base/discovery/removed-ping'], () => ({
      answer: (answer, { method }) =>
        method === 'ping' ? { jsonrpc: '2.0', id: answer['id'], result: { resultType: 'complete' } } : answer,
    })),
    stateless('state-tampered-taken', 'requestState that was changed is taken', ['base/rounds/tampered-state'], () => {
      let good: unknown
      return {
        incoming: message => {
          const state = objectIn(message, 'params')['requestState']
          if (state === undefined) return message
          return { ...message, params: { ...objectIn(message, 'params'), requestState: good ?? state } }
        },
        answer: answer => {
          good = objectIn(answer, 'result')['requestState'] ?? good
          return answer
        },
      }
    }),
    stateless('server-asks', 'The server sends a request', ['base/rounds/no-requests'], () => ({
      answer: answer =>
        objectIn(answer, 'result')['resultType'] === 'input_required'
          ? [{ jsonrpc: '2.0', id: 's1', method: 'elicitation/create', params: {} }, answer]
          : answer,
    })),
    stateless('listens-to-all', 'A client that listens for prompts is notified of tools too', ['base/listen/only-asked'], () => ({
      incoming: message =>
        message['method'] === 'subscriptions/listen'
          ? {
              ...message,
              params: {
                ...objectIn(message, 'params'),
                notifications: {
                  toolsListChanged: true,
                  promptsListChanged: true,
                  ...objectIn(message, 'params', 'notifications'),
                },
              },
            }
          : message,
    })),
    stateless(
      'capabilities-remembered',
      'What one request declared holds for the next',
      ['base/discovery/nothing-remembered'],
      () => {
        let known: unknown
        const key = 'io.modelcontextprotocol/clientCapabilities'
        return {
          incoming: message => {
            const params = objectIn(message, 'params')
            const meta = objectIn(params, '_meta')
            known = meta[key] ?? known
            const isRequest = meta['io.modelcontextprotocol/protocolVersion'] !== undefined
            return !isRequest || known === undefined
              ? message
              : { ...message, params: { ...params, _meta: { ...meta, [key]: known } } }
          },
        }
      },
    ),
    stateless('kept-unsaid', 'Lists do not say how long they may be kept', ['base/caching/tools-list'], () =>
      result('tools/list', ({ ttlMs: _, cacheScope: __, ...rest }) => rest),
    ),
    stateless('version-unknown-served', 'A version that nobody speaks is served', ['base/discovery/unknown-version'], () => ({
      incoming: message => {
        const params = objectIn(message, 'params')
        const meta = objectIn(params, '_meta')
        const key = 'io.modelcontextprotocol/protocolVersion'
        return meta[key] === undefined ? message : { ...message, params: { ...params, _meta: { ...meta, [key]: '2026-07-28' } } }
      },
    })),
  ]
}

export const webMutations: readonly Mutation[] = [
  session('delete-ignored', 'A session is not ended by DELETE', ['base/http/session-ended'], {
    web: () => ({ answer: method => (method === 'DELETE' ? { status: 200 } : undefined) }),
  }),
  session('session-unneeded', 'A request without the session id is served', ['base/http/session-missing'], {
    web: () => {
      let known: unknown
      return {
        incoming: (_, headers) => {
          known = headers['mcp-session-id'] ?? known
          return known === undefined ? { ...headers } : { ...headers, 'mcp-session-id': String(known) }
        },
        head: web => {
          known = web.headers['mcp-session-id'] ?? known
          return web
        },
      }
    },
  }),
  session('notification-status', 'A notification is answered with 200', ['base/http/notification'], {
    web: () => ({ head: (web, method) => (method === 'POST' && web.status === 202 ? { ...web, status: 200 } : web) }),
  }),
  session('not-json-served', 'A body that is not JSON is answered with 200', ['base/http/not-json'], {
    web: () => ({ head: web => (web.status === 400 ? { ...web, status: 200 } : web) }),
  }),
  session('origin-unchecked', 'Pages elsewhere may call a server on loopback', ['base/http/foreign-origin'], {
    web: () => ({ incoming: (_, { origin: _o, ...headers }) => headers }),
  }),
  stateless('method-header-unneeded', 'A call without Mcp-Method is served', ['base/headers/method-missing'], {
    web: () => ({
      incoming: (method, headers) =>
        method === 'POST' && headers['mcp-method'] === undefined ? { ...headers, 'mcp-method': 'tools/call' } : { ...headers },
    }),
  }),
  stateless('retry-after-missing', 'Who calls too often gets no header Retry-After', ['ext/E3-5'], {
    web: () => ({
      head: web => {
        const { 'retry-after': _, ...headers } = web.headers
        return { ...web, headers }
      },
    }),
  }),
  stateless('rate-headers-missing', 'Who calls too often gets no headers RateLimit and RateLimit-Policy', ['ext/E3-5'], {
    web: () => ({
      head: web => {
        const { ratelimit: _, 'ratelimit-policy': _policy, ...headers } = web.headers
        return { ...web, headers }
      },
    }),
  }),
  session('idempotency-header-ignored', 'The header Idempotency-Key is not looked at', ['ext/E5-2h'], {
    web: () => ({ incoming: (_, { 'idempotency-key': _k, ...headers }) => headers }),
  }),
]
