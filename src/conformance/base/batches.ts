/** Arrays of messages: one revision has them, the others do not. */
import { isRecord } from '../../jsonrpc/message.ts'
import { scenario, since } from '../define.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { kitInfo } from '../wire/envelope.ts'
import type { RawPeer } from '../wire/raw-peer.ts'
import { harmless } from './harmless.ts'

const batching = ['MCP 2025-03-26 basic#batching']

/** All messages that came after this many frames, those in arrays too. */
function messagesAfter(peer: RawPeer, before: number): readonly Record<string, unknown>[] {
  const values = peer.frames.slice(before).filter(({ way }) => way === 'in')
  return values.flatMap(({ value }) => (Array.isArray(value) ? value : [value])).filter(isRecord)
}

function answers(peer: RawPeer, before: number, id: unknown): boolean {
  return messagesAfter(peer, before).some(message => message['id'] === id && 'result' in message)
}

async function bothAnswered(bench: Bench, batch: readonly unknown[]): Promise<void> {
  const peer = await bench.open({ listen: false })
  const before = peer.frames.length
  await peer.send(JSON.stringify(batch))
  // The answers may be one array or single messages; all of them count.
  await peer.hears(() => answers(peer, before, 'b1') && answers(peer, before, 'b2'), 3_000)
  const frames = peer.frames.slice(before)
  bench.expect(answers(peer, before, 'b1') && answers(peer, before, 'b2'), 'every request of a batch must be answered', frames)
}

export const batchScenarios: readonly Scenario[] = [
  scenario('base/batch/requests', {
    title: 'every request of a batch is answered',
    proves: batching,
    revisions: ['2025-03-26'],
    run: bench => bothAnswered(bench, [harmless(bench.revision, 'b1'), harmless(bench.revision, 'b2')]),
  }),
  scenario('base/batch/mixed', {
    title: 'notifications in a batch do not keep its requests from being answered',
    proves: batching,
    revisions: ['2025-03-26'],
    run: bench =>
      bothAnswered(bench, [
        harmless(bench.revision, 'b1'),
        { jsonrpc: '2.0', method: 'notifications/roots/list_changed' },
        harmless(bench.revision, 'b2'),
      ]),
  }),
  scenario('base/batch/notifications-only', {
    title: 'a batch of notifications is taken without an answer',
    proves: batching,
    revisions: ['2025-03-26'],
    async run(bench) {
      const peer = await bench.open({ listen: false })
      const before = peer.frames.length
      const one = { jsonrpc: '2.0', method: 'notifications/roots/list_changed' }
      const { status } = await peer.send(JSON.stringify([one, one]))
      if (bench.carrier === 'http')
        bench.expect(status === 202, `a batch of notifications must be answered with HTTP status 202, not ${status}`)
      else {
        await peer.settled()
        const answered = messagesAfter(peer, before).filter(({ method }) => method === undefined)
        bench.expect(answered.length === 1, 'notifications must not be answered', peer.frames.slice(before))
      }
    },
  }),
  scenario('base/batch/no-initialize', {
    title: 'initialize does not work inside a batch',
    proves: ['MCP 2025-03-26 basic/lifecycle#initialization'],
    revisions: ['2025-03-26'],
    async run(bench) {
      const peer = await bench.open({ hello: false })
      const params = { protocolVersion: bench.revision, capabilities: {}, clientInfo: kitInfo }
      const initialize = { jsonrpc: '2.0', id: 'i', method: 'initialize', params }
      await peer.send(JSON.stringify([initialize, harmless(bench.revision, 'p')]))
      const came = await peer.hears(() => answers(peer, 0, 'i'), 500)
      bench.expect(!came, 'initialize must not be part of a batch', peer.frames)
    },
  }),
  scenario('base/batch/refused', {
    title: 'revisions without batches do not serve arrays',
    proves: ['MCP 2025-06-18 changelog', 'MCP basic/transports'],
    revisions: since('2025-06-18'),
    async run(bench) {
      const peer = await bench.open({ listen: false })
      const before = peer.frames.length
      const batch = [harmless(bench.revision, 'b1'), harmless(bench.revision, 'b2')]
      const { status } = await peer.send(JSON.stringify(batch))
      await peer.settled()
      const served = answers(peer, before, 'b1') || answers(peer, before, 'b2')
      bench.expect(!served, 'a batch must not be served: this revision has none', peer.frames.slice(before))
      if (bench.carrier === 'http')
        bench.expect((status ?? 0) >= 400, `a batch must be refused with HTTP status 4xx, not ${status}`)
    },
  }),
]
