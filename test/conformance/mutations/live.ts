/** Mutations of MCP Live. */
import { isRecord } from '../../../src/jsonrpc/message.ts'
import type { Json } from './box.ts'
import { objectIn, own, request, result, toolIn } from './faults.ts'
import { at, type Mutation } from './mutation.ts'

const session = at('2025-11-25')
const stateless = at('2026-07-28')

const changed = (message: Json, change: (params: Json) => Json): Json => ({
  ...message,
  params: change(objectIn(message, 'params')),
})
const unselected = (message: Json): Json | undefined =>
  message['method'] === 'featureSets/update' &&
  Array.isArray(objectIn(message, 'params')['disabled']) &&
  (objectIn(message, 'params')['disabled'] as Json[]).length > 0
    ? undefined
    : message
const declared = (answer: Json, change: (mcpl: Json) => Json): Json => {
  const given = objectIn(answer, 'result')
  const capabilities = objectIn(given, 'capabilities')
  const experimental = objectIn(capabilities, 'experimental')
  return {
    ...answer,
    result: {
      ...given,
      capabilities: { ...capabilities, experimental: { ...experimental, mcpl: change(objectIn(experimental, 'mcpl')) } },
    },
  }
}
const hello = (change: (mcpl: Json) => Json) => () => ({
  answer: (answer: Json, asked: Json) => (asked['method'] === 'initialize' ? declared(answer, change) : answer),
})
const sets = (mcpl: Json, change: (set: Json) => Json): Json => ({
  ...mcpl,
  featureSets: Object.fromEntries(
    Object.entries(objectIn(mcpl, 'featureSets')).map(([name, set]) => [name, change(isRecord(set) ? set : {})]),
  ),
})
const state = (change: (state: Json) => Json) => () =>
  result('tools/call', given => (isRecord(given['state']) ? { ...given, state: change(given['state']) } : given))

export const liveMutations: readonly Mutation[] = [
  session(
    'live-versionless',
    'MCP Live is declared without a version',
    ['live/L3.1-1'],
    hello(({ version: _, ...mcpl }) => mcpl),
  ),
  session('live-for-all', 'Hosts that announced nothing are sent pushes', ['live/L3.2-1'], () => ({
    answer: (answer, asked) =>
      asked['method'] === 'tools/call' && toolIn(asked) === 'remind'
        ? [{ jsonrpc: '2.0', id: 'p', method: 'push/event', params: {} }, answer]
        : answer,
  })),
  session('live-wrong-way', 'A method of the other direction is served', ['live/L4.1-3'], () => ({
    answer: (answer, asked) =>
      asked['method'] === 'push/event' ? { jsonrpc: '2.0', id: answer['id'], result: { accepted: true } } : answer,
  })),
  session(
    'live-undeclared-use',
    'A set uses what is not announced',
    ['live/L5.1-1'],
    hello(mcpl => ({ ...mcpl, pushEvents: false })),
  ),
  session(
    'live-undescribed',
    'Feature sets have no description',
    ['live/L6.2-1'],
    hello(mcpl => sets(mcpl, ({ description: _, ...set }) => set)),
  ),
  session(
    'live-uses-missing',
    'Feature sets do not name what they use',
    ['live/L6.2-1'],
    hello(mcpl => sets(mcpl, ({ uses: _, ...set }) => set)),
  ),
  session('live-too-early', 'Pushes come before the host has chosen', ['live/L6.4-1'], () => {
    let said = false
    return {
      incoming: (message, box) => {
        if (message['method'] === 'tools/call' && toolIn(message) === 'remind' && !said) {
          said = true
          box.say({
            jsonrpc: '2.0',
            id: 'early',
            method: 'push/event',
            params: {
              featureSet: 'memory.proactive',
              eventId: 'e',
              timestamp: new Date().toISOString(),
              payload: { content: [{ type: 'text', text: objectIn(message, 'params', 'arguments')['content'] }] },
            },
          })
        }
        return message
      },
      answer: answer => {
        said = false
        return answer
      },
    }
  }),
  session('live-disabled-pushes', 'A set that is switched off still pushes', ['live/L6.7-2'], () => ({ incoming: unselected })),
  session('live-disabled-injects', 'A hook of a set that is off still injects', ['live/L6.7-2h'], () => ({
    incoming: unselected,
  })),
  session('live-disabled-tools', 'Tools of a set that is off still work', ['live/L6.7-2t'], () => ({ incoming: unselected })),
  session('live-refusal-nameless', 'A refusal does not name the set', ['live/L6.7-2t'], () => ({
    answer: answer =>
      objectIn(answer, 'error')['code'] === -32001
        ? { ...answer, error: { code: -32001, message: 'Feature set not enabled' } }
        : answer,
  })),
  session('live-change-unsaid', 'Sets that come or go are not announced', ['live/L6.7-4'], () =>
    own('featureSets/changed', () => undefined),
  ),
  session('live-receiptless', 'A selection that is a request gets no receipt', ['live/A21'], () =>
    result('featureSets/update', () => ({})),
  ),
  session('live-push-setless', 'Pushes do not name their set', ['live/L9.2-1'], () =>
    own('push/event', message => changed(message, ({ featureSet: _, ...params }) => params)),
  ),
  session('live-push-timeless', 'Pushes have no time', ['live/L9.2-1'], () =>
    own('push/event', message => changed(message, ({ timestamp: _, ...params }) => params)),
  ),
  session('live-push-told', 'Pushes are notifications', ['live/L9.2-1'], () =>
    own('push/event', ({ id: _, ...message }) => message),
  ),
  session('live-push-renamed', 'A push that is repeated has another id', ['live/L9.4-2'], () =>
    own('push/event', message => changed(message, params => ({ ...params, eventId: crypto.randomUUID() }))),
  ),
  session('live-push-once', 'A push that failed is not repeated', ['live/L9.4-2'], () => {
    const seen = new Set<unknown>()
    return own('push/event', message => {
      const { eventId } = objectIn(message, 'params')
      if (seen.has(eventId)) return undefined
      seen.add(eventId)
      return message
    })
  }),
  session('live-hook-setless', 'The result of a hook names no set', ['live/L10.2-1'], () =>
    result('context/beforeInference', ({ featureSet: _, ...given }) => given),
  ),
  session('live-hook-place', 'An injection has a position that there is not', ['live/L10.2-1'], () => ({
    answer: answer => JSON.parse(JSON.stringify(answer).replaceAll('"position":"beforeUser"', '"position":"somewhere"')),
  })),
  session('live-hook-blocks', 'Blocks are not of the form of MCP Live 0.2', ['live/L10.2-1'], () => ({
    answer: (answer, asked) =>
      asked['method'] === 'context/beforeInference'
        ? JSON.parse(JSON.stringify(answer).replaceAll('"media_type"', '"mimeType"'))
        : answer,
  })),
  session('live-hook-after', 'A blocking hook after inference names no set', ['live/L10.5-2'], () =>
    result('context/afterInference', ({ featureSet: _, ...given }) => given),
  ),
  session('live-hook-infers', 'A hook asks for an inference before it answers', ['live/L10.7-1'], () => ({
    answer: (answer, asked) =>
      asked['method'] === 'context/beforeInference'
        ? [
            {
              jsonrpc: '2.0',
              id: 'i',
              method: 'inference/request',
              params: { featureSet: 'memory.consolidation', messages: [{ role: 'user', content: 'x' }] },
            },
            answer,
          ]
        : answer,
  })),
  session('live-infers-setless', 'A request for inference names no set', ['live/L11.2-1'], () =>
    own('inference/request', message => changed(message, ({ featureSet: _, ...params }) => params)),
  ),
  session('live-scope-ignored', 'It asks for a scope that came with the call', ['live/L7.7-1'], () =>
    request('tools/call', ({ scope: _, ...params }) => params),
  ),
  session('live-whitelist-asked', 'It asks for what is on the whitelist', ['live/L7.4-1'], () =>
    request('featureSets/update', ({ scopes: _, ...params }) => params),
  ),
  session('live-denied-done', 'What was not approved is done', ['live/L7.7-2', 'live/L7.4-1'], () =>
    result('tools/call', (given, asked) =>
      toolIn(asked) === 'edit_file' && given['isError'] === true
        ? { content: [{ type: 'text', text: 'Edited' }], structuredContent: { edits: 1 } }
        : given,
    ),
  ),
  session(
    'live-stateless',
    'A result has no checkpoint',
    ['live/L8.2-1', 'live/L8.6-1'],
    state(({ checkpoint: _, ...given }) => given),
  ),
  session(
    'live-parentless',
    'A result does not say what its state follows',
    ['live/L8.2-1', 'live/L8.6-1'],
    state(given => ({ ...given, parent: 'other' })),
  ),
  session('live-remembers', 'State that the host keeps is remembered by the server', ['live/L8.2-1'], () => {
    let last: unknown
    return {
      incoming: message => {
        const params = objectIn(message, 'params')
        return toolIn(message) === 'write_line' && params['state'] === undefined && last !== undefined
          ? { ...message, params: { ...params, state: last } }
          : message
      },
      answer: answer => {
        last = objectIn(answer, 'result', 'state')['data'] ?? last
        return answer
      },
    }
  }),
  session('live-rollback-silent', 'A rollback does not say whether it succeeded', ['live/L8.6-1'], () =>
    result('state/rollback', ({ success: _, ...given }) => given),
  ),
  session('live-rollback-anywhere', 'A checkpoint that is not there is gone back to', ['live/L8.8-1'], () => ({
    answer: (answer, asked) =>
      asked['method'] === 'state/rollback' && answer['error'] !== undefined
        ? { jsonrpc: '2.0', id: answer['id'], result: { checkpoint: objectIn(asked, 'params')['checkpoint'], success: true } }
        : answer,
  })),
  stateless('live-answers-twice', 'A second answer to a delivery counts', ['live/A17'], () =>
    result('live/answer', given => ({ ...given, known: true })),
  ),
  stateless('live-not-again', 'What was not answered does not come again', ['live/A17'], () =>
    own('live/listening', message => changed(message, params => ({ ...params, redelivers: 0 }))),
  ),
  stateless('live-listens-all', 'Who declared nothing may listen', ['live/A17n'], () => ({
    answer: (answer, asked) =>
      asked['method'] === 'live/listen' && answer['error'] !== undefined
        ? { jsonrpc: '2.0', id: answer['id'], result: { resultType: 'complete', reason: 'closing' } }
        : answer,
  })),
]
