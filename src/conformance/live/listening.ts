/** MCP Live where a server sends no requests: listening, deliveries and answers (docs/live-binding.md). */
import { hasCode, hasResult, isServed, requesterOn } from '../calls.ts'
import { type Expectation, fitsPattern, isString, objectIn, sameJson } from '../expectations.ts'
import type { Frame, Json, Scenario } from '../scenario.ts'
import { broughtBy, extensionId } from '../tools.ts'
import { bringingSet, type LiveScene, live } from './host.ts'

const inferring = bringingSet('inference')
const paramsOf = (frame: Frame | undefined): Json => objectIn(frame?.value, 'params')
const has =
  (pattern: Json): Expectation<Frame> =>
  frame =>
    fitsPattern(pattern, paramsOf(frame))
const isAsked = (message: Json): boolean =>
  message.method === 'live/deliver' && JSON.stringify(message).includes('inference/request')

/** A host that answers nothing by itself, and has this one set on. */
async function openListener({ bench, sets }: LiveScene, set: string) {
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

export const listenScenarios: readonly Scenario[] = [
  live(
    'A17',
    'What is asked of a host comes as a delivery; unanswered it comes again to its next stream, and one answer counts',
    { revisions: ['2026-07-28'], tools: [inferring], host: { declares: false } },
    async x => {
      const tool = x.tool(inferring)
      const { peer, ask, begin, listen } = await openListener(x, String(broughtBy(tool.listed, 'inference')))
      const listening = await listen()
      const isNew = {
        'live/listening has no cursor, or redelivers something to a new host': has({ cursor: isString, redelivers: 0 }),
      }
      x.hold(listening, isNew, [listening])
      const asking = begin(tool)
      const first = await peer.next(isAsked)
      const isWhole = has({ deliveryId: isString, method: 'inference/request', answer: true })
      x.hold(first, { 'A delivery has no deliveryId, method and answer': isWhole }, [first])
      const again = await listen()
      x.hold(again, { 'A new stream of the same host is not told what comes again': has({ redelivers: 1 }) }, [again])
      const { deliveryId, params } = paramsOf(first)
      const second = await peer.next(isAsked)
      const isSame = paramsOf(second).deliveryId === deliveryId && sameJson(paramsOf(second).params, params)
      x.expect(isSame, 'What comes again is not the same', [first, second])
      const result = { content: 'Yes', model: 'kit', finishReason: 'end_turn', usage: { inputTokens: 1, outputTokens: 1 } }
      const known = await ask('live/answer', { deliveryId, result })
      x.hold(known, { 'An answer to what was asked is not known': hasResult({ known: true }) }, known.frames)
      const done = await asking.called
      x.hold(done, { 'The call that asked did not end': isServed }, done.frames)
      const late = await ask('live/answer', { deliveryId, result })
      x.hold(late, { 'A second answer is known': hasResult({ known: false }) }, late.frames)
    },
  ),
  live(
    'A17n L4.1-1 L3.2-1',
    'A server sends no requests of its own on a stateless wire, and listening needs the declaration',
    { revisions: ['2026-07-28'], tools: [inferring] },
    async x => {
      await x.call(inferring)
      const requests = x.peer.heard(message => message.method !== undefined && message.id !== undefined)
      x.expect(requests.length === 0, 'The server sent a request', requests)
      const refused = await requesterOn(await x.bench.open({ fresh: true })).ask('live/listen', { hostId: crypto.randomUUID() })
      x.hold(
        refused,
        { 'live/listen of a host that declared nothing is not refused with -32021': hasCode(-32021) },
        refused.frames,
      )
    },
  ),
]
