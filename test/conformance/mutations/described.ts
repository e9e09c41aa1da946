/** Mutations of the extensions by which servers explain themselves: manifest, cost, intent, provenance, streaming, references, media, problems, events. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { digestOf } from '../../../src/conformance/extensions/manifest.ts'
import { isRecord } from '../../../src/jsonrpc/message.ts'
import type { Box, Json } from './box.ts'
import { done, objectIn, own, problem, request, result, saying, toolIn, unsaid, waved, wishIn } from './faults.ts'
import { at, type Mutation } from './mutation.ts'

const session = at('2025-11-25')
const stateless = at('2026-07-28')

const manifestTools = (given: Json): readonly Json[] => {
  const tools = objectIn(given, 'manifest')['tools']
  return Array.isArray(tools) ? tools : []
}
const chunk = (message: Json): Json => objectIn(message, 'params', '_meta', 'dev.vivarium/streaming')
const rechunked = (message: Json, change: (said: Json) => Json): Json => {
  const params = objectIn(message, 'params')
  const meta = objectIn(params, '_meta')
  return chunk(message)['type'] === undefined
    ? message
    : { ...message, params: { ...params, _meta: { ...meta, 'dev.vivarium/streaming': change(chunk(message)) } } }
}

export const describedMutations: readonly Mutation[] = [
  session('manifest-version', 'The manifest has no version', ['ext/E1-1'], () =>
    result('manifest/get', given => ({ ...given, manifest: { ...objectIn(given, 'manifest'), manifest_version: undefined } })),
  ),
  session('manifest-tool-lost', 'The manifest lacks a tool that is listed', ['ext/E1-2'], () =>
    result('manifest/get', given => ({
      ...given,
      manifest: { ...objectIn(given, 'manifest'), tools: manifestTools(given).slice(1) },
    })),
  ),
  session('manifest-revision', 'The revision of the manifest is not its digest', ['ext/E1-3'], () =>
    result('manifest/get', given => ({ ...given, revision: 'sha256:abc' })),
  ),
  session('manifest-revision-of-connection', 'Each connection has its own revision', ['ext/E1-3r'], () => {
    let asked = 0
    return {
      incoming: message => {
        if (message['method'] === 'initialize') asked++
        return message
      },
      answer: (answer, { method }) => {
        if (method !== 'manifest/get' || !isRecord(answer['result']) || answer['result']['manifest'] === undefined) return answer
        const manifest = { ...objectIn(answer['result'], 'manifest'), started: asked }
        return { ...answer, result: { ...answer['result'], manifest, revision: digestOf(manifest) } }
      },
    }
  }),
  session('manifest-says-free', 'What says nothing of its cost is free in the manifest', ['ext/E3-7'], () =>
    result('manifest/get', given => {
      const tools = manifestTools(given).map(tool => ({ cost: { category: 'free', estimated_units: 0 }, ...tool }))
      const manifest = { ...objectIn(given, 'manifest'), tools }
      return given['manifest'] === undefined ? given : { ...given, manifest, revision: digestOf(manifest) }
    }),
  ),
  session('manifest-always-whole', 'Who has the manifest already gets it again', ['ext/E1-4'], () =>
    request('manifest/get', ({ if_revision: _, ...params }) => params),
  ),
  session('change-twice', 'One change of the tools is notified twice', ['ext/E1-5'], () =>
    own('notifications/tools/list_changed', message => [message, message]),
  ),
  session('manifest-extensions', 'The manifest names an extension that is not declared', ['ext/E1-7'], () =>
    result('manifest/get', given => ({
      ...given,
      manifest: { ...objectIn(given, 'manifest'), supported_extensions: ['idempotency'] },
    })),
  ),
  session('manifest-public', 'A manifest with counters of its caller is public', ['ext/E1-8'], () =>
    result('manifest/get', given => ({ ...given, cacheScope: 'public' })),
  ),
  session('intent-refuses', 'A call with an intent is only suggested about', ['ext/E2-1'], () =>
    request('tools/call', (params, message) => {
      const said = wishIn(message, 'intent')
      return said['intent'] === undefined
        ? params
        : { ...params, _meta: { ...objectIn(params, '_meta'), 'dev.vivarium/intent': { ...said, mode: 'suggest_only' } } }
    }),
  ),
  session('intent-unlisted', 'A suggestion names a tool that there is not', ['ext/E2-2'], () =>
    saying('intent', () => ({ suggestion: { recommended_tool: 'bulk_everything', reason: 'It is faster' } })),
  ),
  session('intent-runs', 'A call for a suggestion only is made', ['ext/E2-3'], () => unsaid('intent')),
  session('intent-long', 'An intent of any length is taken', ['ext/E2-5'], () =>
    unsaid('intent', ({ intent }) => String(intent).length > 1_000),
  ),
  session('intent-in-key', 'Another intent makes another call of a key', ['ext/E2-6'], () =>
    request('tools/call', (params, message) => {
      const [key, { intent }] = [wishIn(message, 'idempotency')['idempotency_key'], wishIn(message, 'intent')]
      const meta = objectIn(params, '_meta')
      return key === undefined || intent === undefined
        ? params
        : {
            ...params,
            _meta: {
              ...meta,
              'dev.vivarium/idempotency': { idempotency_key: `${String(key)}-${String(intent).replaceAll(' ', '')}` },
            },
          }
    }),
  ),
  ...costs(),
  ...sources(),
  ...streams(),
  ...failures(),
  ...events(),
]

function costs(): readonly Mutation[] {
  return [
    session('budget-ignored', 'A call may cost more than its caller allows', ['ext/E3-2'], () => unsaid('operational')),
    session('cost-unsaid', 'A call does not say what it cost', ['ext/E3-3'], () => saying('operational', () => undefined)),
    session('replay-charged', 'A replay is charged again', ['ext/E3-3', 'ext/E5-10'], () =>
      saying('operational', said => ({ ...said, units_used: 3 })),
    ),
    session('quota-stands', 'What remains of a quota does not fall', ['ext/E3-4'], () =>
      saying('operational', said => (isRecord(said['quota']) ? { ...said, quota: { ...said['quota'], remaining: 2 } } : said)),
    ),
    session('wait-unsaid', 'A client that calls too often does not learn how long to wait', ['ext/E3-5'], () => ({
      answer: answer => JSON.parse(JSON.stringify(answer), (name, value) => (name === 'retry_after_seconds' ? undefined : value)),
    })),
    session('replay-limited', 'A replay is refused when nothing is left of the quota', ['ext/X1l'], () => {
      let exhausted: Json | undefined
      return result('tools/call', (given, asked) => {
        const code = objectIn(given, '_meta', 'dev.vivarium/problem')['code']
        if (code === 'QUOTA_EXHAUSTED') exhausted = given
        const replayed = objectIn(given, '_meta', 'dev.vivarium/idempotency')['was_replay'] === true
        return replayed && exhausted !== undefined && wishIn(asked, 'idempotency')['idempotency_key'] !== undefined
          ? exhausted
          : given
      })
    }),
    session('list-counts', 'The list of tools has counters', ['ext/E3-0'], () =>
      result('tools/list', given => ({
        ...given,
        tools: (given['tools'] as Json[]).map(tool => ({
          ...tool,
          _meta: {
            ...objectIn(tool, '_meta'),
            'dev.vivarium/operational': { ...objectIn(tool, '_meta', 'dev.vivarium/operational'), quota: { remaining: 1 } },
          },
        })),
      })),
    ),
  ]
}

function sources(): readonly Mutation[] {
  return [
    session('provenance-wrapped', 'Results are wrapped with their provenance', ['ext/E7-1'], () =>
      result('tools/call', given => ({ ...done(given), result: given, provenance: [] })),
    ),
    session('provenance-sourceless', 'A source has no name', ['ext/E7-1'], () =>
      result('tools/call', given => JSON.parse(JSON.stringify(given).replaceAll('"source":"pond.csv"', '"from":"pond.csv"'))),
    ),
    session('provenance-time', 'A replay has the time of the repetition', ['ext/E7-3'], () =>
      result('tools/call', given =>
        JSON.parse(
          JSON.stringify(given).replace(
            /"retrieved_at":"[^"]+"/g,
            () => `"retrieved_at":"${new Date(Date.now() + Math.random() * 1e9).toISOString()}"`,
          ),
        ),
      ),
    ),
    session('stamp-other-tool', 'A stamp names another tool', ['ext/E7-4'], () =>
      result('tools/call', given => JSON.parse(JSON.stringify(given).replaceAll('"tool":"sum_up"', '"tool":"other"'))),
    ),
    session('provenance-endless', 'Sources take as much as they like', ['ext/E7-7'], () =>
      result('tools/call', (given, asked) =>
        toolIn(asked) === 'cite_much'
          ? {
              ...given,
              _meta: {
                ...objectIn(given, '_meta'),
                'dev.vivarium/provenance': Array.from({ length: 400 }, () => ({ source: 'book '.repeat(20) })),
              },
            }
          : given,
      ),
    ),
    session('media-any-size', 'Media of any size are taken', ['ext/E10-1'], () => waved('PAYLOAD_TOO_LARGE')),
    session('media-disguised', 'A page that says it is a picture is taken', ['ext/E10-4', 'ext/E10-3'], () =>
      waved('INVALID_INPUT'),
    ),
    session('media-case', 'Types are compared with regard to case', ['ext/E10-5'], () =>
      result('tools/call', (given, asked) =>
        JSON.stringify(asked).includes('IMAGE/PNG') ? { content: [{ type: 'text', text: 'no' }], isError: true } : given,
      ),
    ),
    session('media-unwarned', 'A type that is not announced is given without a warning', ['ext/E10-6'], () =>
      saying('media', () => undefined),
    ),
    session('recommended-unsorted', 'Recommendations come worst first', ['ext/E13-1'], () =>
      result('servers/recommend', given => ({
        ...given,
        recommendations: [...((given['recommendations'] as Json[] | undefined) ?? [])].reverse(),
      })),
    ),
    session('recommended-none', 'Nothing to recommend is a failure', ['ext/E13-5'], () => ({
      answer: (answer, asked) =>
        asked['method'] === 'servers/recommend' &&
        Array.isArray(objectIn(answer, 'result')['recommendations']) &&
        (objectIn(answer, 'result')['recommendations'] as Json[]).length === 0
          ? { jsonrpc: '2.0', id: answer['id'], error: { code: -31000, message: 'None', data: {} } }
          : answer,
    })),
    session('reference-inline', 'A content by reference shows its signed address to the model', ['ext/E9-1'], () =>
      result('tools/call', given => {
        const blocks = Array.isArray(given['content']) ? (given['content'] as Json[]) : []
        return {
          ...given,
          content: blocks.map(block =>
            block['type'] === 'resource_link'
              ? { ...block, description: objectIn(block, '_meta', 'dev.vivarium/data-references')['access_url'] }
              : block,
          ),
        }
      }),
    ),
    session(
      'contents-open',
      'URLs of contents accept every caller and method, without expiry',
      ['ext/E9-2', 'ext/E9-3', 'ext/E9-6'],
      () => {
        const url = givingAll('id,name\n'.repeat(500))
        return {
          answer: answer =>
            JSON.parse(JSON.stringify(answer), (name, value) => (name === 'access_url' ? `${url}/x?signature=abcd` : value)),
        }
      },
    ),
    session('import-any-size', 'A content of any size is taken', ['ext/E9-7'], () => ({
      answer: answer => JSON.parse(JSON.stringify(answer).replaceAll('PAYLOAD_TOO_LARGE', 'SERVER_ERROR')),
    })),
    session('checksum-unchecked', 'A content is imported though its checksum is another', ['ext/E9-4'], () =>
      result('tools/call', (given, asked) =>
        toolIn(asked) === 'import_from_ref' ? { content: [], structuredContent: { status: 'imported' } } : given,
      ),
    ),
    session('fetches-anything', 'Contents are fetched from anywhere', ['ext/E9-5'], () =>
      result('tools/call', (given, asked) =>
        toolIn(asked) === 'import_from_ref' ? { content: [], structuredContent: { status: 'imported' } } : given,
      ),
    ),
  ]
}

function streams(): readonly Mutation[] {
  return [
    session('chunk-lost', 'A chunk is lost', ['ext/E8-3', 'ext/E8-4'], () =>
      own('notifications/progress', message => (chunk(message)['sequence'] === 1 ? undefined : message)),
    ),
    session('chunk-twice', 'A chunk comes twice', ['ext/E8-3', 'ext/E8-4'], () =>
      own('notifications/progress', message => (chunk(message)['sequence'] === 1 ? [message, message] : message)),
    ),
    session('chunk-endless', 'No chunk is the last one', ['ext/E8-3'], () =>
      own('notifications/progress', message => rechunked(message, ({ is_final: _, ...said }) => said)),
    ),
    session('stream-partial', 'The result of a stream is only its last part', ['ext/E8-4'], () =>
      result('tools/call', (given, asked) =>
        toolIn(asked) === 'count_slowly' || toolIn(asked) === 'export_log'
          ? { ...given, content: [{ type: 'text', text: '5' }] }
          : given,
      ),
    ),
    stateless('stream-forgotten', 'A call that was cut off cannot be resumed', ['ext/E8-6'], {
      web: () => ({}),
      options: { streaming: { grace: 1, keep: 1 } },
    }),
    session('checkpoint-restarts', 'An invalid checkpoint restarts the stream', ['ext/E8-7'], () => unsaid('streaming')),
    session('resume-repeats', 'A resumed call begins from the first chunk', ['ext/E8-8'], () => unsaid('streaming')),
  ]
}

/** A server of contents that looks at nothing. */
function givingAll(content: string): string {
  const server = createServer((_, response) => response.end(content))
  server.listen(0).unref()
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function failures(): readonly Mutation[] {
  return [
    session('problem-category', 'A problem is of a category that there is not', ['ext/E11-1', 'ext/E11-2'], () =>
      problem(said => ({ ...said, category: 'bad' })),
    ),
    session('transient-permanent', 'A temporary failure is reported as permanent', ['ext/E11-1t'], () =>
      problem(said => (said['category'] === 'transient' ? { ...said, category: 'permanent' } : said)),
    ),
    session('problem-missing', 'Failures have no problem', ['ext/E11-1', 'ext/E11-7'], () => problem(() => undefined)),
    session('problem-wordless', 'Failures have no words', ['ext/E11-2'], () =>
      result('tools/call', given => (given['isError'] === true ? { ...given, content: [] } : given)),
    ),
    session('problem-leaks', 'A mistake in a tool shows its stack', ['ext/E11-7'], () =>
      result('tools/call', given =>
        given['isError'] === true
          ? { ...given, content: [{ type: 'text', text: 'TypeError\n    at swim (/srv/app/fish.js:12:7)' }] }
          : given,
      ),
    ),
    session('problem-plain-link', 'A link to documentation is not https', ['ext/E11-8'], () =>
      problem(said => ({ ...said, documentation_url: 'http://docs.example' })),
    ),
    session('problem-endless', 'Details have no limit', ['ext/E11-9'], () =>
      problem(said => ({ ...said, details: { long: 'x'.repeat(10_000) } })),
    ),
    session('problem-untraceable', 'Failures have no correlation id', ['ext/X8'], () =>
      problem(({ correlation_id: _, ...said }) => said),
    ),
    session('extras-for-all', 'A client that knows no extensions gets what they add', ['ext/plain-client-writes'], () => ({
      incoming: message =>
        message['method'] === 'initialize'
          ? {
              ...message,
              params: {
                ...objectIn(message, 'params'),
                capabilities: {
                  ...objectIn(message, 'params', 'capabilities'),
                  extensions: { 'dev.vivarium/problem': {}, 'dev.vivarium/operational': {}, 'dev.vivarium/provenance': {} },
                },
              },
            }
          : message,
    })),
    session('plain-differs', 'A client that knows no extensions gets other results', ['ext/plain-client'], () => {
      const plain = new WeakSet<Box>()
      return {
        incoming: (message, box) => {
          if (message['method'] === 'initialize' && Object.keys(objectIn(message, 'params', 'capabilities')).length === 0)
            plain.add(box)
          return message
        },
        answer: (answer, asked, box) =>
          asked['method'] === 'tools/call' && plain.has(box)
            ? { ...answer, result: { content: [{ type: 'text', text: 'Buy the full version' }] } }
            : answer,
      }
    }),
  ]
}

function events(): readonly Mutation[] {
  const event = 'notifications/event'
  return [
    session('events-unfiltered', 'Filters of events are not applied', ['ext/E15-1'], () =>
      request('event/subscribe', ({ filter: _, ...params }) => params),
    ),
    session('events-unknown', 'An event that does not exist can be subscribed to', ['ext/E15-2'], () =>
      result('event/subscribe', ({ reason: _, ...given }) => ({ ...given, status: 'active' })),
    ),
    session('events-doubled', 'Events come twice', ['ext/E15-3'], () => own(event, message => [message, message])),
    session('events-lost', 'Every third event is lost without a word', ['ext/E15-3'], () => {
      let count = 0
      return own(event, message => (++count % 3 === 0 ? undefined : message))
    }),
    session('events-unnamed', 'Events do not name what they follow', ['ext/E15-3', 'ext/E15-6'], () =>
      own(event, message => ({ ...message, params: { ...objectIn(message, 'params'), previous_cursor: 'none' } })),
    ),
    session('events-denied-unsaid', 'A denial has no reason', ['ext/E15-12', 'ext/E15-2'], () =>
      result('event/subscribe', given => (given['status'] === 'denied' ? { ...given, reason: undefined } : given)),
    ),
    session('events-outlive', 'A subscription outlives the grant behind it', ['ext/X5'], () =>
      own('notifications/event/terminated', () => undefined),
    ),
    session('events-end-unsaid', 'The end of a subscription is not notified', ['ext/E15-5'], () =>
      own('notifications/event/terminated', () => undefined),
    ),
    session('events-replay-none', 'A client that resumes with a cursor starts from now', ['ext/E15-6'], () =>
      request('event/subscribe', ({ cursor: _, ...params }) => params),
    ),
    session('unsubscribe-ignored', 'Unsubscribing does not end anything', ['ext/E15-7'], () => ({
      incoming: (message, box) => {
        if (message['method'] !== 'event/unsubscribe') return message
        box.say({ jsonrpc: '2.0', id: message['id'], result: { status: 'cancelled' } })
        return undefined
      },
    })),
    session('events-id-taken', 'An id that stands for another subscription is taken', ['ext/E15-8'], () =>
      result('event/subscribe', given => ({ ...given, status: 'active' })),
    ),
    session('poll-repeats', 'What was polled comes again', ['ext/E15-9'], () => {
      let first: unknown
      return request('event/poll', params => {
        first ??= params['cursor']
        return first === undefined ? params : { ...params, cursor: first }
      })
    }),
    stateless('events-untagged', 'Events do not name the listen that they belong to', ['ext/E15-3'], () =>
      own(event, message => {
        const { _meta, ...params } = objectIn(message, 'params')
        return { ...message, params }
      }),
    ),
  ]
}
