/** Lists that change: on wires with sessions it is said unasked, on stateless ones only to who listens. */
import { isRecord } from '../../jsonrpc/message.ts'
import { capability, listIn, objectIn, scenario, sessions, stateless, tool } from '../define.ts'
import type { Bench, Json, Scenario } from '../scenario.ts'
import { keys } from '../wire/envelope.ts'
import type { Begun, RawPeer } from '../wire/raw-peer.ts'
import { paramsOf } from './work.ts'

const kinds = [
  { name: 'tools', fixture: 'test_trigger_tool_change', filter: 'toolsListChanged' },
  { name: 'prompts', fixture: 'test_trigger_prompt_change', filter: 'promptsListChanged' },
] as const

const listening = ['MCP 2026-07-28 basic/patterns/subscriptions']

interface Listening {
  readonly peer: RawPeer
  readonly begun: Begun
  readonly acknowledged: Json
  /** Ends it as the wire says. */
  stop(): Promise<void>
}

async function listen(bench: Bench, notifications: Json): Promise<Listening> {
  const peer = await bench.open({ fresh: true })
  const begun = peer.begin('subscriptions/listen', { notifications }, { ms: 25_000 })
  const frame = await peer.next(message => message['method'] !== undefined || message['id'] === begun.id)
  const isFirst = isRecord(frame.value) && frame.value['method'] === 'notifications/subscriptions/acknowledged'
  bench.expect(isFirst, 'the first message must be notifications/subscriptions/acknowledged', [frame])
  expectTag(bench, begun, frame)
  const stop = async (): Promise<void> => {
    if (bench.carrier !== 'http') await peer.notify('notifications/cancelled', { requestId: begun.id })
    begun.abort()
  }
  return { peer, begun, acknowledged: objectIn(paramsOf(frame), 'notifications'), stop }
}

/** Every message on a listen says which one it belongs to; the draft shows the id as a string. */
function expectTag(bench: Bench, { id }: Begun, frame: Parameters<typeof paramsOf>[0]): void {
  const tag = objectIn(paramsOf(frame), '_meta')[keys.subscription]
  const fits = bench.revision === 'draft-2026-v1' ? String(tag) === String(id) : tag === id
  bench.expect(fits, `_meta must hold ${keys.subscription} with the id of the listen, type included`, [frame])
}

/**
 * A change made by somebody else; made again it is undone, which comes only when all was heard: of both together a server may rightly
 * say nothing. A process has one client only: over stdio and alike the change is made by the one who listens.
 */
async function trigger(bench: Bench, peer: RawPeer, fixture: string): Promise<void> {
  const by = bench.carrier === 'stdio' ? peer : await bench.open()
  await by.request('tools/call', { name: fixture })
}

export const changeScenarios: readonly Scenario[] = [
  ...kinds.map(({ name, fixture }) =>
    scenario(`base/changes/${name}`, {
      title: `a change of the ${name} is told to who is connected`,
      proves: [`MCP server/${name}#list-changed-notification`],
      revisions: sessions,
      needs: [capability(`${name}.listChanged`), tool(fixture)],
      async run(bench) {
        const peer = await bench.open({ fresh: true })
        await peer.request('tools/call', { name: fixture })
        const frame = await peer.next(`notifications/${name}/list_changed`)
        await peer.request('tools/call', { name: fixture })
        bench.expect(isRecord(frame.value) && frame.value['id'] === undefined, 'it must be a notification', [frame])
      },
    }),
  ),
  ...kinds.map(({ name, fixture, filter }) =>
    scenario(`base/listen/${name}`, {
      title: `who listens for the ${name} hears of their change`,
      proves: listening,
      revisions: stateless,
      needs: [capability(`${name}.listChanged`), tool(fixture)],
      async run(bench) {
        const { peer, begun, acknowledged, stop } = await listen(bench, { [filter]: true })
        bench.expect(acknowledged[filter] === true, `the acknowledgement must repeat ${filter}`)
        await trigger(bench, peer, fixture)
        const frame = await peer.next(`notifications/${name}/list_changed`)
        await trigger(bench, peer, fixture)
        expectTag(bench, begun, frame)
        await stop()
      },
    }),
  ),
  scenario('base/listen/only-asked', {
    title: 'who listens for prompts does not hear of tools',
    proves: listening,
    revisions: stateless,
    needs: [capability('tools.listChanged'), capability('prompts.listChanged'), tool('test_trigger_tool_change')],
    async run(bench) {
      const { peer, stop } = await listen(bench, { promptsListChanged: true })
      await trigger(bench, peer, 'test_trigger_tool_change')
      await peer.settled()
      const came = await peer.hears('notifications/tools/list_changed', 300)
      await trigger(bench, peer, 'test_trigger_tool_change')
      bench.expect(!came, 'nothing must be told that was not asked for')
      await stop()
    },
  }),
  scenario('base/listen/unasked', {
    title: 'who does not listen hears of no change',
    proves: listening,
    revisions: stateless,
    needs: [capability('tools.listChanged'), tool('test_trigger_tool_change')],
    async run(bench) {
      const peer = await bench.open({ fresh: true })
      await peer.request('tools/call', { name: 'test_trigger_tool_change' })
      await peer.settled()
      const came = await peer.hears('notifications/tools/list_changed', 300)
      await peer.request('tools/call', { name: 'test_trigger_tool_change' })
      bench.expect(!came, 'changes must be told on a listen only')
    },
  }),
  scenario('base/listen/resource-updated', {
    title: 'who listens for a resource hears that it was updated',
    proves: listening,
    revisions: stateless,
    needs: [
      capability('resources.subscribe'),
      tool('test_trigger_resource_update'),
      peer =>
        peer.resources.some(({ uri }) => uri === 'test://watched-resource')
          ? undefined
          : 'it has no resource test://watched-resource',
    ],
    async run(bench) {
      const uri = 'test://watched-resource'
      const { peer, begun, acknowledged, stop } = await listen(bench, { resourceSubscriptions: [uri] })
      bench.expect(listIn(acknowledged, 'resourceSubscriptions').includes(uri), 'the acknowledgement must repeat the URI')
      const other = bench.carrier === 'stdio' ? peer : await bench.open()
      await other.request('tools/call', { name: 'test_trigger_resource_update' })
      const frame = await peer.next('notifications/resources/updated')
      expectTag(bench, begun, frame)
      bench.expect(paramsOf(frame)['uri'] === uri, 'the notification must name the resource', [frame])
      await stop()
    },
  }),
  scenario('base/listen/string-id', {
    title: 'a listen under a string is told under that string',
    proves: listening,
    revisions: stateless,
    needs: [capability('tools.listChanged')],
    async run(bench) {
      const peer = await bench.open({ fresh: true })
      const begun = peer.begin(
        'subscriptions/listen',
        { notifications: { toolsListChanged: true } },
        { id: 'my-listen', ms: 20_000 },
      )
      expectTag(bench, begun, await peer.next('notifications/subscriptions/acknowledged'))
      begun.abort()
    },
  }),
  scenario('base/listen/ended', {
    title: 'after a listen was cancelled nothing more is told',
    proves: listening,
    revisions: stateless,
    needs: [capability('tools.listChanged'), tool('test_trigger_tool_change')],
    async run(bench) {
      const { peer, stop } = await listen(bench, { toolsListChanged: true })
      await stop()
      await peer.settled()
      const changed = 'notifications/tools/list_changed'
      // Somebody else may have changed the list while it was still listened to.
      const before = peer.heard(changed).length
      await trigger(bench, peer, 'test_trigger_tool_change')
      await peer.settled()
      await peer.hears('nothing', 300)
      const late = peer.heard(changed).slice(before)
      await trigger(bench, peer, 'test_trigger_tool_change')
      bench.expect(late.length === 0, 'a cancelled listen must tell nothing', late)
    },
  }),
]
