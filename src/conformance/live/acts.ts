/** What a live server does by itself: pushes, hooks, inference (MCP Live §9–§12). */
import { isRecord } from '../../jsonrpc/message.ts'
import { hasCode, hasResult, isServed, type PeerAnswer, requesterOn } from '../calls.ts'
import { type Expectation, firstFault, fitsPattern, is, objectIn, objectsIn, sameJson } from '../expectations.ts'
import { broughtBy, extensionId } from '../said.ts'
import type { Frame, Json, Scenario } from '../scenario.ts'
import { newKey } from '../steps.ts'
import { bringingSet, inferred, type LiveScenarioContext, live, type ServerMessage, turn, usesOf, using } from './host.ts'

const pushing = bringingSet('push')
const inferring = bringingSet('inference')
/** Other hosts may take what is pushed. */
const pushes = { tries: 3, needs: [pushing] }
const holds = (text: string) => (params: Json) => JSON.stringify(params).includes(text)
const isMedia = { type: 'base64', media_type: is.string, data: is.string }

/** What is wrong with a block as MCP Live 0.2 has it; undefined where nothing is. */
function faultOfBlock(block: unknown): string | undefined {
  const { type, text, source, uri } = objectIn(block)
  if (!isRecord(block)) return 'a block is not an object'
  if (type === 'text') return is.string(text) ? undefined : 'a text block has no text'
  if (type === 'resource_link') return is.string(uri) ? undefined : 'a resource_link has no uri'
  if (type !== 'image' && type !== 'audio') return `${String(type)} is not a type of block`
  return fitsPattern(isMedia, source) ? undefined : `an ${type} has no source of base64, media_type and data`
}

function faultOfContent(content: unknown): string | undefined {
  if (is.string(content)) return undefined
  return Array.isArray(content) ? firstFault(content, faultOfBlock) : 'content is neither text nor blocks'
}

function faultOfInjection(one: Json): string | undefined {
  if (!fitsPattern({ namespace: is.string, position: is.oneOf('system', 'beforeUser', 'afterUser') }, one))
    return 'An injection has no namespace, or an unknown position'
  const fault = faultOfContent(one.content)
  return fault && `An injection's content is wrong: ${fault}`
}

/** The result of a hook names a set that uses it. */
function namesUserOf({ sets }: LiveScenarioContext, hook: string): Expectation<PeerAnswer> {
  return ({ result }) => usesOf(sets.get(String(result.featureSet))).includes(`contextHooks.${hook}`)
}

/** Has the server push something, and waits until it comes. */
async function push(x: LiveScenarioContext, text: string): Promise<ServerMessage | undefined> {
  await x.call(pushing, { args: { ...x.tool(pushing).args, content: text } })
  return x.host.next('push/event', holds(text))
}

/** Pushes, hooks and inference. */
export const actScenarios: readonly Scenario[] = [
  live('L9.2-1 L6.5-1 L10.3-1 L4.1-1', 'A push has its set, an id, a time and content, and is a request').by(pushes, async x => {
    const said = await push(x, newKey())
    if (said === undefined) return x.fail('A push did not come')
    const { featureSet, payload } = said.params
    const isOwn = featureSet === broughtBy(x.tool(pushing).listed, 'push') && x.sets.has(String(featureSet))
    const content = objectIn(payload).content
    const fault = faultOfContent(content) ?? (Array.isArray(content) ? undefined : 'it is not a list')
    x.hold(said, {
      'A push names no declared set': () => isOwn,
      'A push has no eventId, or no time in ISO 8601': it => fitsPattern({ eventId: is.word, timestamp: is.time }, it.params),
      'payload.content is wrong': (_, __, says) => fault === undefined || `${says}: ${fault}`,
      'A push is a notification': it => it.id !== undefined,
    })
  }),
  live('L9.4-2', 'A failed push is repeated unchanged; another push has another id').by(pushes, async x => {
    const { host } = x
    let refused = false
    const text = newKey()
    host.answer('push/event', params => {
      if (refused || !holds(text)(params)) return { accepted: true }
      refused = true
      throw Object.assign(new Error('Could not be written'), { code: -32603 })
    })
    const seen = (): readonly ServerMessage[] => host.said.filter(one => one.method === 'push/event' && holds(text)(one.params))
    await push(x, text)
    await host.next('push/event', params => holds(text)(params) && seen().length > 1, 8_000)
    const [first, second] = seen()
    x.expect(second !== undefined, 'A failed push was not repeated', host.peer.frames.slice(-3))
    x.expect(
      sameJson(first?.params, second?.params),
      'A repeated push has another eventId, timestamp or content',
      host.peer.heard('push/event'),
    )
    const next = await push(x, newKey())
    const isOther = next !== undefined && next.params.eventId !== first?.params.eventId
    x.expect(isOther, 'Two pushes have the same eventId', [next?.frame])
  }),
  live(
    'L10.2-1 L6.5-2 L10.3-1 L10.4-1 L4.1-2',
    'A hook before inference names its set and returns injections with namespace, position and content',
  ).by(using('contextHooks.beforeInference'), async x => {
    for (const message of ['How is the project?', null])
      x.hold(await x.ask('context/beforeInference', turn(message)), {
        'A hook was refused': ({ code }) => code === undefined,
        'The result of a hook names no set that uses it': namesUserOf(x, 'beforeInference'),
        'contextInjections is not a list': hasResult({ contextInjections: Array.isArray }),
        'An injection is wrong': ({ result }) => firstFault(objectsIn(result, 'contextInjections'), faultOfInjection),
      })
    const { turnIndex: _, ...broken } = turn('x')
    x.hold(await x.ask('context/beforeInference', broken), {
      'A hook without turnIndex is not refused with -32602': hasCode(-32602),
    })
  }),
  live('L10.5-2 L6.5-2', 'A blocking hook after inference names its set, and can change the response').by(
    using('contextHooks.afterInference'),
    async x => {
      const { blocking } = objectIn(x.declared, 'contextHooks', 'afterInference')
      if (blocking !== true) return x.leave('No hook after inference blocks')
      const said = { assistantMessage: 'A secret', usage: { inputTokens: 1, outputTokens: 1 } }
      x.hold(await x.ask('context/afterInference', turn('x', said)), {
        'The result of a hook names no set that uses it': namesUserOf(x, 'afterInference'),
        'modifiedResponse is not a string, or metadata is not an object': hasResult({
          modifiedResponse: is.optional(is.string),
          metadata: is.optional(isRecord),
        }),
      })
    },
  ),
  live('L10.7-1', 'A hook requests no inference before it has answered').by(using('contextHooks.beforeInference'), async x => {
    await x.ask('context/beforeInference', turn('Think about it'))
    const asked = x.host.said.filter(({ method }) => method === 'inference/request').map(({ frame }) => frame)
    x.expect(asked.length === 0, 'A hook requested an inference before it answered', asked)
  }),
  live('L11.2-1 L6.5-1', 'A request for inference names its set and has messages').by(inferring, async x => {
    x.host.answer('inference/request', () => inferred('The sum'))
    const called = await x.call(inferring)
    const said = await x.host.next('inference/request')
    const set = broughtBy(x.tool(inferring).listed, 'inference')
    const isMessage = (one: Json): boolean => is.string(one.role) && faultOfContent(one.content) === undefined
    const messages = objectsIn(said, 'params', 'messages')
    x.hold(said, {
      'A request for inference names no set, or is a notification': it => it?.params.featureSet === set && it?.id !== undefined,
      'messages are not messages': () => messages.length > 0 && messages.every(isMessage),
      'stream is not a boolean, or preferences is not an object': it =>
        fitsPattern({ stream: is.optional(is.boolean), preferences: is.optional(isRecord) }, it?.params),
    })
    x.expect(JSON.stringify(called.result).includes('The sum'), 'The result of the inference did not reach the tool')
  }),
]

// ── MCP Live where a server sends no requests: listening, deliveries and answers (docs/reference/live-binding.md).

const paramsOf = (frame: Frame | undefined): Json => objectIn(frame?.value, 'params')
const has =
  (pattern: Json): Expectation<Frame> =>
  frame =>
    fitsPattern(pattern, paramsOf(frame))
const isAsked = (message: Json): boolean =>
  message.method === 'live/deliver' && JSON.stringify(message).includes('inference/request')

/** A host that answers nothing by itself, and has this one set on. */
async function openListener({ bench, sets }: LiveScenarioContext, set: string) {
  const peer = await bench.open({ fresh: true, live: { version: '0.2' } })
  const hostId = crypto.randomUUID()
  const policy = { enabled: [set], disabled: [...sets.keys()].filter(name => name !== set) }
  const meta = { [extensionId('live')]: { hostId, policy } }
  const listen = (): Promise<Frame> => {
    peer.begin('live/listen', { hostId, policy, host: { version: '0.2' } }, { meta, ms: 60_000 })
    return peer.next('live/listening')
  }
  return { ...requesterOn(peer, () => meta), listen }
}

/** The binding of MCP Live to the stateless wire. */
export const listenScenarios: readonly Scenario[] = [
  live('A17', 'A request to a host is a delivery; unanswered it is repeated on the next stream, and one answer counts').by(
    { revisions: ['2026-07-28'], host: { declares: false }, needs: [inferring] },
    async x => {
      const tool = x.tool(inferring)
      const { peer, ask, begin, listen } = await openListener(x, String(broughtBy(tool.listed, 'inference')))
      const listening = await listen()
      x.hold(listening, {
        'live/listening has no cursor, or redelivers something to a new host': has({ cursor: is.string, redelivers: 0 }),
      })
      const asking = begin(tool)
      const first = await peer.next(isAsked)
      const isWhole = has({ deliveryId: is.string, method: 'inference/request', answer: true })
      x.hold(first, { 'A delivery has no deliveryId, method and answer': isWhole })
      const again = await listen()
      x.hold(again, { 'A new stream of the same host does not say what is redelivered': has({ redelivers: 1 }) })
      const { deliveryId, params } = paramsOf(first)
      const second = await peer.next(isAsked)
      const isSame = paramsOf(second).deliveryId === deliveryId && sameJson(paramsOf(second).params, params)
      x.expect(isSame, 'The repeated delivery differs', [first, second])
      const result = inferred('Yes')
      const known = await ask('live/answer', { deliveryId, result })
      x.hold(known, { 'The answer to a delivery is not accepted': hasResult({ known: true }) })
      const done = await asking.called
      x.hold(done, { 'The call that asked did not end': isServed })
      const late = await ask('live/answer', { deliveryId, result })
      x.hold(late, { 'A second answer is accepted': hasResult({ known: false }) })
    },
  ),
  live('A17n L4.1-1 L3.2-1', 'A server sends no requests on a stateless wire, and listening needs the declaration').by(
    { revisions: ['2026-07-28'], needs: [inferring] },
    async x => {
      await x.call(inferring)
      const requests = x.peer.heard(message => message.method !== undefined && message.id !== undefined)
      x.expect(requests.length === 0, 'The server sent a request', requests)
      const refused = await requesterOn(await x.bench.open({ fresh: true })).ask('live/listen', { hostId: crypto.randomUUID() })
      x.hold(refused, { 'live/listen of a host that declared nothing is not refused with -32021': hasCode(-32021) })
    },
  ),
]
