/** What a live server does by itself: pushes, hooks, inference (MCP Live §9–§12). */
import { isRecord } from '../../jsonrpc/message.ts'
import { isTime, listOf } from '../extensions/scenario-of.ts'
import type { Json, Scenario } from '../scenario.ts'
import { Refusal, turn } from './host.ts'
import { bringingSet, live, setNamed, usesOf, using } from './scenario-of.ts'

const pushing = bringingSet('push')
const inferring = bringingSet('inference')
const mark = (): string => `kit-${crypto.randomUUID()}`
const holds = (text: string) => (params: Json) => JSON.stringify(params).includes(text)
const positions = ['system', 'beforeUser', 'afterUser']

/** What is wrong with a block as MCP Live 0.2 has it; undefined where nothing is. */
function faultOfBlock(block: Json): string | undefined {
  const { type, text, source, uri } = block
  if (type === 'text') return typeof text === 'string' ? undefined : 'a text block has no text'
  if (type === 'resource_link') return typeof uri === 'string' ? undefined : 'a resource_link has no uri'
  if (type !== 'image' && type !== 'audio') return `there is no block of the type ${String(type)}`
  const whole =
    isRecord(source) &&
    source['type'] === 'base64' &&
    typeof source['media_type'] === 'string' &&
    typeof source['data'] === 'string'
  return whole ? undefined : `an ${type} has no source of base64, media_type and data`
}

function faultOfContent(content: unknown): string | undefined {
  if (typeof content === 'string') return undefined
  if (!Array.isArray(content)) return 'content is neither text nor blocks'
  for (const block of content) {
    const fault = isRecord(block) ? faultOfBlock(block) : 'a block is no object'
    if (fault !== undefined) return fault
  }
  return undefined
}

export const actScenarios: readonly Scenario[] = [
  live({
    id: 'L9.2-1',
    also: ['L6.5-1', 'L10.3-1', 'L4.1-1'],
    title: 'A push has its set, an id, a time and content, and wants an answer',
    tools: { pushing },
    tries: 3,
    run: async ({ host, tools, expect, sets }) => {
      const text = mark()
      const called = await host.call(tools.pushing.name, { ...tools.pushing.args, content: text })
      const said = await host.next('push/event', holds(text))
      expect(said !== undefined, 'A push did not come', called.frames)
      const params = said?.params ?? {}
      expect(
        params['featureSet'] === setNamed(tools.pushing.listed, 'push') && sets.has(String(params['featureSet'])),
        'A push names no declared set',
        [said?.frame],
      )
      expect(
        typeof params['eventId'] === 'string' && params['eventId'] !== '' && isTime(params['timestamp']),
        'A push has no eventId, or no time in ISO 8601',
        [said?.frame],
      )
      const payload = isRecord(params['payload']) ? params['payload'] : {}
      const fault = faultOfContent(payload['content'])
      expect(Array.isArray(payload['content']) && fault === undefined, `payload.content is wrong: ${fault ?? 'it is no list'}`, [
        said?.frame,
      ])
      expect(said?.id !== undefined, 'A push is a notification', [said?.frame])
    },
  }),
  live({
    id: 'L9.4-2',
    title: 'A push that failed comes again as it was; another one has another id',
    tools: { pushing },
    tries: 3,
    run: async ({ host, tools, expect }) => {
      let refused = false
      const text = mark()
      host.answer('push/event', params => {
        if (refused || !holds(text)(params)) return { accepted: true }
        refused = true
        throw new Refusal(-32603, 'Could not be written')
      })
      const seen = (): readonly Json[] =>
        host.said.filter(({ method, params }) => method === 'push/event' && holds(text)(params)).map(({ params }) => params)
      await host.call(tools.pushing.name, { ...tools.pushing.args, content: text })
      await host.next('push/event', params => holds(text)(params) && seen().length > 1, 8_000)
      const [first, second] = seen()
      expect(second !== undefined, 'A push that failed did not come again', host.peer.frames.slice(-3))
      expect(
        JSON.stringify(first) === JSON.stringify(second),
        'A push comes again with another eventId, timestamp or content',
        host.peer.heard('push/event'),
      )
      const other = mark()
      await host.call(tools.pushing.name, { ...tools.pushing.args, content: other })
      const next = await host.next('push/event', holds(other))
      expect(next !== undefined && next.params['eventId'] !== first?.['eventId'], 'Two pushes share an eventId', [next?.frame])
    },
  }),
  live({
    id: 'L10.2-1',
    also: ['L6.5-2', 'L10.3-1', 'L10.4-1', 'L4.1-2'],
    title: 'A hook before inference names its set and gives injections with namespace, position and content',
    needs: using('contextHooks.beforeInference'),
    run: async ({ host, sets, expect }) => {
      for (const message of ['How is the project?', null]) {
        const called = await host.request('context/beforeInference', turn(message))
        expect(called.code === undefined, 'A hook was refused', called.frames)
        const set = sets.get(String(called.result['featureSet']))
        expect(
          usesOf(set).includes('contextHooks.beforeInference'),
          'The result of a hook names no set that uses it',
          called.frames,
        )
        expect(Array.isArray(called.result['contextInjections']), 'contextInjections is no list', called.frames)
        for (const one of listOf(called.result['contextInjections'])) {
          expect(
            typeof one['namespace'] === 'string' && positions.includes(String(one['position'])),
            'An injection has no namespace, or a position that there is not',
            called.frames,
          )
          const fault = faultOfContent(one['content'])
          expect(fault === undefined, `An injection's content is wrong: ${fault}`, called.frames)
        }
      }
      const { turnIndex: _, ...broken } = turn('x')
      const wrong = await host.request('context/beforeInference', broken)
      expect(wrong.code === -32602, 'A hook without turnIndex is not refused with -32602', wrong.frames)
    },
  }),
  live({
    id: 'L10.5-2',
    also: ['L6.5-2'],
    title: 'A blocking hook after inference names its set, and may give another response',
    needs: using('contextHooks.afterInference'),
    run: async ({ host, sets, declared, expect, leave }) => {
      const hooks = isRecord(declared['contextHooks']) ? declared['contextHooks']['afterInference'] : undefined
      if (!isRecord(hooks) || hooks['blocking'] !== true) return leave('No hook after inference blocks')
      const called = await host.request(
        'context/afterInference',
        turn('x', { assistantMessage: 'A secret', usage: { inputTokens: 1, outputTokens: 1 } }),
      )
      expect(
        usesOf(sets.get(String(called.result['featureSet']))).includes('contextHooks.afterInference'),
        'The result of a hook names no set that uses it',
        called.frames,
      )
      const { modifiedResponse: modified, metadata } = called.result
      expect(
        (modified === undefined || typeof modified === 'string') && (metadata === undefined || isRecord(metadata)),
        'modifiedResponse is no text, or metadata no object',
        called.frames,
      )
    },
  }),
  live({
    id: 'L10.7-1',
    title: 'While a hook is answered, no inference is asked for',
    needs: using('contextHooks.beforeInference'),
    run: async ({ host, expect }) => {
      await host.request('context/beforeInference', turn('Think about it'))
      const asked = host.said.filter(({ method }) => method === 'inference/request')
      expect(
        asked.length === 0,
        'A hook asked for an inference before it answered',
        asked.map(({ frame }) => frame),
      )
    },
  }),
  live({
    id: 'L11.2-1',
    also: ['L6.5-1'],
    title: 'A request for inference names its set and has messages',
    tools: { inferring },
    run: async ({ host, tools, expect }) => {
      host.answer('inference/request', () => ({
        content: 'The sum',
        model: 'kit',
        finishReason: 'end_turn',
        usage: { inputTokens: 1, outputTokens: 1 },
      }))
      const called = await host.call(tools.inferring.name, tools.inferring.args)
      const said = await host.next('inference/request')
      const { featureSet, messages, stream, preferences } = said?.params ?? {}
      expect(
        featureSet === setNamed(tools.inferring.listed, 'inference') && said?.id !== undefined,
        'A request for inference names no set, or is a notification',
        [said?.frame],
      )
      expect(
        listOf(messages).length > 0 &&
          listOf(messages).every(one => typeof one['role'] === 'string' && faultOfContent(one['content']) === undefined),
        'messages are not messages',
        [said?.frame],
      )
      expect(
        (stream === undefined || typeof stream === 'boolean') && (preferences === undefined || isRecord(preferences)),
        'stream is no boolean, or preferences no object',
        [said?.frame],
      )
      expect(JSON.stringify(called.result).includes('The sum'), 'What was inferred did not reach the tool', called.frames)
    },
  }),
]
