/** MCP Live where a server sends no requests: listening, deliveries and answers (docs/live-binding.md). */
import { isRecord } from '../../jsonrpc/message.ts'
import type { Bench, Frame, Json, Scenario } from '../scenario.ts'
import { extensionId } from '../tools.ts'
import type { RawPeer } from '../wire/raw-peer.ts'
import { setsOf } from './host.ts'
import { bringingSet, live, setNamed } from './scenario-of.ts'

const inferring = bringingSet('inference')
const key = extensionId('live')

function only(scenario: Scenario): Scenario {
  return { ...scenario, revisions: ['2026-07-28'] }
}

interface Listener {
  readonly peer: RawPeer
  readonly meta: Json
  listen(): Promise<Frame>
}

/** One that answers nothing by itself, and has this one set on. */
async function listener(bench: Bench, set: string): Promise<Listener> {
  const peer = await bench.open({ fresh: true, live: { version: '0.2' } })
  const hostId = crypto.randomUUID()
  const policy = { enabled: [set], disabled: [...setsOf(bench.peer).keys()].filter(name => name !== set) }
  const meta = { [key]: { hostId, policy } }
  return {
    peer,
    meta,
    listen: () => {
      peer.begin('live/listen', { hostId, policy, host: { version: '0.2' } }, { meta, ms: 60_000 })
      return peer.next('live/listening')
    },
  }
}

const paramsOf = (frame: Frame | undefined): Json =>
  isRecord(frame?.value) && isRecord(frame.value['params']) ? frame.value['params'] : {}

export const listenScenarios: readonly Scenario[] = [
  only(
    live({
      id: 'A17',
      title: 'What is asked of a host comes as a delivery; unanswered it comes again to its next stream, and one answer counts',
      tools: { inferring },
      host: { declares: false },
      run: async ({ bench, tools, expect }) => {
        const { peer, meta, listen } = await listener(bench, String(setNamed(tools.inferring.listed, 'inference')))
        const listening = await listen()
        expect(
          typeof paramsOf(listening)['cursor'] === 'string' && paramsOf(listening)['redelivers'] === 0,
          'live/listening has no cursor, or redelivers something to a new host',
          [listening],
        )
        const asking = peer.begin('tools/call', { name: tools.inferring.name, arguments: tools.inferring.args }, { meta })
        const asked = (message: Json): boolean =>
          message['method'] === 'live/deliver' && JSON.stringify(message).includes('inference/request')
        const first = await peer.next(asked)
        const { deliveryId, method, answer } = paramsOf(first)
        expect(
          typeof deliveryId === 'string' && method === 'inference/request' && answer === true,
          'A delivery has no deliveryId, method and answer',
          [first],
        )
        const again = await listen()
        expect(paramsOf(again)['redelivers'] === 1, 'A new stream of the same host is not told what comes again', [again])
        const second = await peer.next(asked)
        expect(
          paramsOf(second)['deliveryId'] === deliveryId &&
            JSON.stringify(paramsOf(second)['params']) === JSON.stringify(paramsOf(first)['params']),
          'What comes again is not the same',
          [first, second],
        )
        const result = { content: 'Yes', model: 'kit', finishReason: 'end_turn', usage: { inputTokens: 1, outputTokens: 1 } }
        const known = await peer.request('live/answer', { deliveryId, result }, { meta })
        expect(isRecord(known.result) && known.result['known'] === true, 'An answer to what was asked is not known', [
          known.frame,
        ])
        const done = await asking.answer
        expect(done.result !== undefined, 'The call that asked did not end', [done.frame])
        const late = await peer.request('live/answer', { deliveryId, result }, { meta })
        expect(isRecord(late.result) && late.result['known'] === false, 'A second answer is known', [late.frame])
      },
    }),
  ),
  only(
    live({
      id: 'A17n',
      also: ['L4.1-1', 'L3.2-1'],
      title: 'A server sends no requests of its own on a stateless wire, and listening needs the declaration',
      tools: { inferring },
      run: async ({ host, bench, tools, expect }) => {
        await host.call(tools.inferring.name, tools.inferring.args)
        const requests = host.peer.heard(message => message['method'] !== undefined && message['id'] !== undefined)
        expect(requests.length === 0, 'The server sent a request', requests)
        const plain = await bench.open({ fresh: true })
        const refused = await plain.request('live/listen', { hostId: crypto.randomUUID() })
        expect(refused.error?.code === -32021, 'live/listen of a host that declared nothing is not refused with -32021', [
          refused.frame,
        ])
      },
    }),
  ),
]
