/** Lists that change: on wires with sessions it is said unasked, on stateless ones only to who listens. */
import { sessions, stateless, table } from '../define.ts'
import { listIn, objectIn } from '../expectations.ts'
import { capability, resource, tool } from '../needs.ts'
import type { Frame, Json, Scenario } from '../scenario.ts'
import type { ScenarioContext } from '../steps.ts'
import { keys } from '../wire/envelope.ts'
import type { Begun } from '../wire/raw-peer.ts'
import { paramsOf } from './work.ts'

const kinds = [
  { name: 'tools', fixture: 'test_trigger_tool_change', filter: 'toolsListChanged' },
  { name: 'prompts', fixture: 'test_trigger_prompt_change', filter: 'promptsListChanged' },
] as const
const [{ fixture: toolChange }] = kinds
const toolsChanged = 'notifications/tools/list_changed'
const tellsOfTools = [capability('tools.listChanged'), tool(toolChange)]

const change = table('base/changes/', { revisions: sessions, open: { fresh: true } })
const listenRow = table('base/listen/', {
  proves: ['MCP 2026-07-28 basic/patterns/subscriptions'],
  revisions: stateless,
  open: { fresh: true },
})

interface Listening {
  readonly begun: Begun
  /** What the server says that it will tell. */
  readonly acknowledged: Json
  /** Ends it as the wire says. */
  stop(): Promise<void>
}

/** Listens, and sees that it is acknowledged before anything else. */
async function listen({ peer, carrier, revision, expect }: ScenarioContext, notifications: Json): Promise<Listening> {
  const begun = peer.begin('subscriptions/listen', { notifications }, { ms: 25_000 })
  const frame = await peer.next(message => message.method !== undefined || message.id === begun.id)
  const isFirst = objectIn(frame.value).method === 'notifications/subscriptions/acknowledged'
  expect(isFirst, 'the first message must be notifications/subscriptions/acknowledged', [frame])
  expectTag({ revision, expect }, begun, frame)
  const stop = async (): Promise<void> => {
    if (carrier !== 'http') await peer.notify('notifications/cancelled', { requestId: begun.id })
    begun.abort()
  }
  return { begun, acknowledged: objectIn(paramsOf(frame), 'notifications'), stop }
}

/** Every message on a listen says which one it belongs to; the draft shows the id as a string. */
function expectTag({ revision, expect }: Pick<ScenarioContext, 'revision' | 'expect'>, { id }: Begun, frame: Frame): void {
  const tag = objectIn(paramsOf(frame), '_meta')[keys.subscription]
  const fits = revision === 'draft-2026-v1' ? String(tag) === String(id) : tag === id
  expect(fits, `_meta must hold ${keys.subscription} with the id of the listen, type included`, [frame])
}

/**
 * A change made by somebody else; made again it is undone, which comes only when all was heard: of both together a server may rightly
 * say nothing. A process has one client only: over stdio and alike the change is made by the one who listens.
 */
async function trigger({ bench, peer }: ScenarioContext, name: string): Promise<void> {
  const by = bench.carrier === 'stdio' ? peer : await bench.open()
  await by.request('tools/call', { name })
}

/** Whether a change of the tools is told within a moment. */
async function hearsOfTools({ peer }: ScenarioContext): Promise<boolean> {
  await peer.settled()
  return peer.hears(toolsChanged, 300)
}

/** Changes that are told unasked, and changes that are told on a listen. */
export const changeScenarios: readonly Scenario[] = [
  ...kinds.map(({ name, fixture }) =>
    change(
      `${name} MCP server/${name}#list-changed-notification`,
      `a change of the ${name} is announced to connected clients`,
    ).by([capability(`${name}.listChanged`), tool(fixture)], async x => {
      await x.call(fixture)
      const frame = await x.peer.next(`notifications/${name}/list_changed`)
      await x.call(fixture)
      x.expect(objectIn(frame.value).id === undefined, 'it must be a notification', [frame])
    }),
  ),
  ...kinds.map(({ name, fixture, filter }) =>
    listenRow(name, `a client that listens for the ${name} is notified of a change`).by(
      [capability(`${name}.listChanged`), tool(fixture)],
      async x => {
        const { begun, acknowledged, stop } = await listen(x, { [filter]: true })
        x.expect(acknowledged[filter] === true, `the acknowledgement must repeat ${filter}`)
        await trigger(x, fixture)
        const frame = await x.peer.next(`notifications/${name}/list_changed`)
        await trigger(x, fixture)
        expectTag(x, begun, frame)
        await stop()
      },
    ),
  ),
  listenRow('only-asked', 'a client that listens for prompts is not notified about tools').by(
    [capability('tools.listChanged'), capability('prompts.listChanged'), tool(toolChange)],
    async x => {
      const { stop } = await listen(x, { promptsListChanged: true })
      await trigger(x, toolChange)
      const came = await hearsOfTools(x)
      await trigger(x, toolChange)
      x.expect(!came, 'only requested notifications must be sent')
      await stop()
    },
  ),
  listenRow('unasked', 'a client that does not listen is not notified').by(tellsOfTools, async x => {
    await x.call(toolChange)
    const came = await hearsOfTools(x)
    await x.call(toolChange)
    x.expect(!came, 'changes must be announced only on a listen')
  }),
  listenRow('resource-updated', 'a client that listens for a resource is notified of an update').by(
    [capability('resources.subscribe'), tool('test_trigger_resource_update'), resource('test://watched-resource')],
    async x => {
      const uri = 'test://watched-resource'
      const { begun, acknowledged, stop } = await listen(x, { resourceSubscriptions: [uri] })
      x.expect(listIn(acknowledged, 'resourceSubscriptions').includes(uri), 'the acknowledgement must repeat the URI')
      await trigger(x, 'test_trigger_resource_update')
      const frame = await x.peer.next('notifications/resources/updated')
      expectTag(x, begun, frame)
      x.expect(paramsOf(frame).uri === uri, 'the notification must name the resource', [frame])
      await stop()
    },
  ),
  listenRow('string-id', 'a listen with a string id is answered with that id').by(capability('tools.listChanged'), async x => {
    const notifications = { toolsListChanged: true }
    const begun = x.peer.begin('subscriptions/listen', { notifications }, { id: 'my-listen', ms: 20_000 })
    expectTag(x, begun, await x.peer.next('notifications/subscriptions/acknowledged'))
    begun.abort()
  }),
  listenRow('ended', 'after a listen was cancelled, no more notifications come').by(tellsOfTools, async x => {
    const { stop } = await listen(x, { toolsListChanged: true })
    await stop()
    await x.peer.settled()
    // Somebody else may have changed the list while it was still listened to.
    const before = x.peer.heard(toolsChanged).length
    await trigger(x, toolChange)
    await x.peer.settled()
    await x.peer.hears('nothing', 300)
    const late = x.peer.heard(toolsChanged).slice(before)
    await trigger(x, toolChange)
    x.expect(late.length === 0, 'a cancelled listen must send nothing', late)
  }),
]
