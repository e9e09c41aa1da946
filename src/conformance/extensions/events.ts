/** E15: events that clients subscribe to. */
import { setTimeout as wait } from 'node:timers/promises'
import { isRecord } from '../../jsonrpc/message.ts'
import { extensionTable } from '../define.ts'
import { fitsPattern, is, listIn, objectIn, objectsIn } from '../expectations.ts'
import { broughtBy, extensionId, isPlain, saidOf } from '../said.ts'
import type { Advertised, Frame, Json, Scenario } from '../scenario.ts'
import { newKey, type ScenarioContext } from '../steps.ts'
import { type Finder, toolThat } from '../tools.ts'
import { holding, tokenIn } from './permissions.ts'

const row = extensionTable('events')

/** The event that a call of this tool makes happen, with the call's arguments as its payload. */
const eventOf = (tool: Json): string | undefined => broughtBy(tool, 'event')
const isGuarded = (tool: Json): boolean => eventOf(tool) !== undefined && listIn(saidOf(tool, 'conformance'), 'scopes').length > 0
const emitting = toolThat(
  'causes an event ("event:NAME", with its arguments as the payload)',
  tool => isPlain(tool) && eventOf(tool) !== undefined && !isGuarded(tool),
)
const guarded = toolThat('causes an event that requires a scope', isGuarded)

interface Subscription {
  readonly response: Json
  readonly id: string
  /** What came of it, in order. */
  events(): readonly Json[]
  frames(): readonly Frame[]
  ended(): readonly Json[]
  /** As soon as there are so many. */
  heard(count: number): Promise<readonly Json[]>
  /** As soon as it has ended, or after this time. */
  over(ms: number): Promise<void>
}

/** Subscribes by the wire's own way: a request, or a member of a listen. */
async function subscribe(x: ScenarioContext, wish: Json, say: Json = {}): Promise<Subscription> {
  const response = x.modern ? await listen(x, wish, say) : (await x.ask('event/subscribe', wish, { say })).result
  const id = String(response.subscription_id)
  const mine = (method: string): readonly Frame[] =>
    x.peer.heard(message => message.method === method && objectIn(message, 'params').subscription_id === id)
  const events = (): readonly Json[] => mine('notifications/event').map(({ value }) => objectIn(value, 'params'))
  const ended = (): readonly Json[] => mine('notifications/event/terminated').map(({ value }) => objectIn(value, 'params'))
  const until = async (done: () => boolean, ms: number): Promise<void> => {
    for (const end = Date.now() + ms; !done() && Date.now() < end; ) await wait(20)
  }
  return {
    response,
    id,
    events,
    frames: () => mine('notifications/event'),
    ended,
    heard: async count => {
      await until(() => events().length >= count, 5_000)
      return events()
    },
    over: ms => until(() => ended().length > 0, ms),
  }
}

async function listen({ peer }: ScenarioContext, wish: Json, say: Json): Promise<Json> {
  const key = extensionId('events')
  const meta = Object.fromEntries(Object.entries(say).map(([name, value]) => [extensionId(name), value]))
  const { id } = peer.begin('subscriptions/listen', { notifications: { [key]: [wish] } }, { meta, ms: 30_000 })
  const { value } = await peer.next(
    message =>
      message.method === 'notifications/subscriptions/acknowledged' || (message.id === id && message.error !== undefined),
  )
  return objectsIn(value, 'params', 'notifications', key)[0] ?? {}
}

const wishFor = (x: ScenarioContext, more: Json = {}, tool: Finder = emitting): Json => ({
  subscription_id: newKey(),
  events: [eventOf(x.tool(tool).listed)],
  ...more,
})

const schemaOf = (x: ScenarioContext, name: string): Json => objectIn(x.tool(emitting).listed, 'inputSchema', 'properties', name)

/** A member of the payload that can be told apart. */
function fieldOf(x: ScenarioContext): { readonly name: string; readonly value: unknown; readonly other: unknown } {
  for (const [name, value] of Object.entries(x.tool(emitting).args)) {
    const choices = schemaOf(x, name).enum
    if (Array.isArray(choices) && choices.length > 1) return { name, value, other: choices.find(one => one !== value) }
    if (typeof value === 'string' && choices === undefined) return { name, value, other: `${value}-other` }
  }
  return x.leave('The payload has no member to filter by')
}

/** Other scenarios may emit the same event: ours is marked by its payload. */
function marked(x: ScenarioContext): { readonly args: Json; mine(event: Json): boolean } {
  const { args, listed } = x.tool(emitting)
  const mark = newKey()
  const properties = objectIn(listed, 'inputSchema', 'properties')
  const name = Object.keys(args).find(
    one => typeof args[one] === 'string' && isRecord(properties[one]) && properties[one].enum === undefined,
  )
  if (name === undefined) return { args, mine: () => true }
  return { args: { ...args, [name]: mark }, mine: event => objectIn(event, 'payload')[name] === mark }
}

/** There each request is a caller of its own: nothing belongs to the next one. */
const alone = (why: string) => (peer: Advertised) => (peer.revision === '2026-07-28' && peer.carrier === 'http' ? why : undefined)
const callers = alone('without a principal two requests over HTTP are two callers')

const given = { open: { fresh: true }, needs: [emitting] }
const byOne = { ...given, needs: [emitting, callers] }
const isDenied = ({ response }: Subscription): boolean => response.status === 'denied' && is.string(response.reason)
const isActive = ({ response }: Subscription): boolean => response.status === 'active'
const lastOf = (x: ScenarioContext, count: number): readonly Frame[] => x.peer.frames.slice(-count)

/** E15: subscriptions, their events and their end. */
export const events: readonly Scenario[] = [
  row('E15-1', 'Only events that were subscribed to, and fit the filter, arrive').by(given, async x => {
    const { name, value, other } = fieldOf(x)
    const { args } = marked(x)
    const all = await subscribe(x, wishFor(x))
    const some = await subscribe(x, wishFor(x, { filter: { [name]: value } }))
    x.expect(isActive(all) && isActive(some), 'A subscription is not active', x.peer.frames)
    await x.call(emitting, { args: { ...args, [name]: other } })
    await x.call(emitting, { args: { ...args, [name]: value } })
    await all.heard(2)
    await some.heard(1)
    const fitting = some.events().every(event => objectIn(event, 'payload')[name] === value)
    const says = 'A subscription gets events that its filter excludes, or misses events that it includes'
    x.expect(some.events().length >= 1 && fitting, says, some.frames())
    x.expect(all.events().length >= 2, 'A subscription without a filter does not get all events', all.frames())
  }),
  row('E15-2', 'An unknown event is denied with a reason; in a list of known and unknown events the known ones are active').by(
    given,
    async x => {
      const name = String(eventOf(x.tool(emitting).listed))
      const unknown = await subscribe(x, { subscription_id: newKey(), events: ['no_such_event'] })
      x.expect(isDenied(unknown), 'An unknown event is not denied with a reason', lastOf(x, 3))
      const named = listIn(unknown.response, 'supported_events').includes(name)
      x.expect(named, 'A denial does not name the supported_events', lastOf(x, 3))
      const bad = await subscribe(x, wishFor(x, { filter: { no_such_member: 1 } }))
      x.expect(isDenied(bad), 'A filter by a member that the payload does not have is not denied', lastOf(x, 3))
      const both = await subscribe(x, { subscription_id: newKey(), events: [name, 'no_such_event'] })
      const half = fitsPattern({ status: 'active', unsupported_events: ['no_such_event'] }, both.response)
      x.expect(half, 'A list with known and unknown events is not active with the unknown ones named', lastOf(x, 3))
    },
  ),
  row('E15-3', 'Events come in order, each once, each with the cursor of the previous one').by(given, async x => {
    const one = await subscribe(x, wishFor(x))
    for (let round = 0; round < 5; round++) await x.call(emitting)
    const heard = await one.heard(5)
    await wait(100)
    x.expect(heard.length >= 5, `${heard.length} of 5 events came`, one.frames())
    const before = [one.response.cursor, ...one.events().map(event => event.cursor)]
    const ids = one.events().map(event => event.event_id)
    const facts = { type: 'event', timestamp: is.time, event: eventOf(x.tool(emitting).listed) }
    x.hold(
      { all: one.events(), frames: one.frames() },
      {
        'previous_cursor is not the cursor of what came before': ({ all }) =>
          all.every((event, at) => event.previous_cursor === before[at]),
        'An event came twice, or has no event_id': () => new Set(ids).size === ids.length && ids.every(is.string),
        'An event lacks type, timestamp or name': ({ all }) => all.every(event => fitsPattern(facts, event)),
        'An event does not name the listen that it belongs to': ({ frames }, { modern }) =>
          !modern || frames.every(({ text }) => text.includes('io.modelcontextprotocol/subscriptionId')),
      },
    )
  }),
  row('E15-5', 'An expired subscription is reported once as ended, and gets no more events').by(given, async x => {
    const short = await subscribe(x, wishFor(x, { ttl_seconds: 1 }))
    const long = await subscribe(x, wishFor(x))
    x.expect(is.time(short.response.expires_at), 'A subscription has no expires_at', x.peer.frames)
    await short.over(4_000)
    const heard = short.events().length
    await x.call(emitting)
    await long.heard(1)
    await wait(100)
    const ends = short.ended()
    const once = ends.length === 1 && is.string(ends[0]?.reason)
    const says = `The end was reported ${ends.length} times, or without a reason`
    x.expect(once, says, x.peer.heard('notifications/event/terminated'))
    x.expect(short.events().length === heard, 'An event came after the end', short.frames())
  }),
  row(
    'E15-6',
    'A client that resumes with a cursor gets the missed events; with an invalid cursor it learns that events are missing',
  ).by(given, async x => {
    const { args, mine } = marked(x)
    const one = await subscribe(x, wishFor(x))
    await x.call(emitting, { args })
    const [first] = (await one.heard(1)).filter(mine)
    await x.call(emitting, { args })
    await x.call(emitting, { args })
    const again = await subscribe(x, wishFor(x, { cursor: first?.cursor }))
    const heard = (await again.heard(2)).filter(mine)
    const frames = again.frames()
    x.expect(heard.length === 2, `${heard.length} of the 2 events after the cursor came`, frames)
    const follows = again.events()[0]?.previous_cursor === first?.cursor
    x.expect(follows, 'What is replayed does not follow the cursor', frames)
    const repeats = heard.some(event => event.event_id === first?.event_id)
    x.expect(!repeats, 'The event of the cursor came again', frames)
    const { response } = await subscribe(x, wishFor(x, { cursor: 'elsewhere.5' }))
    const told = response.truncated === true || response.status === 'denied'
    x.expect(told, 'An invalid cursor is accepted without a notice', lastOf(x, 4))
  }),
  row('E15-7', 'After unsubscribing no event comes; unsubscribing again succeeds').by(byOne, async x => {
    const one = await subscribe(x, wishFor(x))
    const other = await subscribe(x, wishFor(x))
    x.made(await x.ask('event/unsubscribe', { subscription_id: one.id }), 'event/unsubscribe')
    const before = one.events().length
    x.made(await x.ask('event/unsubscribe', { subscription_id: one.id }), 'A second event/unsubscribe')
    await x.call(emitting)
    await other.heard(1)
    await wait(100)
    x.expect(one.events().length === before, 'An event came after unsubscribing', one.frames())
    x.expect(other.events().length > 0, 'Unsubscribing ended another subscription', other.frames())
  }),
  row('E15-8', 'The id of something else is denied').by(byOne, async x => {
    const { name, value, other } = fieldOf(x)
    const wish = wishFor(x, { filter: { [name]: value } })
    x.expect(isActive(await subscribe(x, wish)), 'A subscription is not active', x.peer.frames)
    const clash = await subscribe(x, { ...wish, filter: { [name]: other } })
    x.expect(isDenied(clash), 'The id of one subscription was accepted for another', lastOf(x, 3))
  }),
  row('E15-9', 'The same events can be polled, starting at a cursor').by(given, async x => {
    const { args, mine } = marked(x)
    const wish = { events: [eventOf(x.tool(emitting).listed)] }
    const start = await x.ask('event/poll', wish)
    x.made(start, 'event/poll')
    const cursor = x.text(start.result.cursor, 'event/poll returns no cursor')
    const often = Number(start.result.poll_interval_seconds) > 0 && start.result.truncated === false
    x.expect(often, 'event/poll does not say how often to look, or that nothing is missing')
    await x.call(emitting, { args })
    await x.call(emitting, { args })
    const polled = await x.ask('event/poll', { ...wish, cursor })
    const events = objectsIn(polled.result, 'events').filter(mine)
    const both = events.length === 2 && new Set(events.map(event => event.event_id)).size === 2
    x.expect(both, `Polling returned ${events.length} of 2 events`)
    const later = await x.ask('event/poll', { ...wish, cursor: polled.result.cursor })
    const rest = objectsIn(later.result, 'events').filter(mine)
    x.expect(rest.length === 0, 'What was polled comes again after its cursor')
  }),
  row('E15-12', 'Too many subscriptions are denied with a reason').by(
    { ...given, needs: [emitting, alone('it would need a stream for each')] },
    async x => {
      for (let count = 0; count < 130; count++) {
        const one = await subscribe(x, wishFor(x, { ttl_seconds: 20 }))
        if (isActive(one)) continue
        return x.expect(isDenied(one), 'One subscription too many is not denied with a reason', lastOf(x, 2))
      }
      x.leave('The server allows more subscriptions than the kit makes')
    },
  ),
  row('X5', 'When the grant behind it ends, a subscription ends with it').by(
    { open: { fresh: true }, needs: ['permissions', guarded] },
    async x => {
      const scopes = saidOf(x.tool(guarded).listed, 'conformance').scopes
      const denied = await subscribe(x, wishFor(x, {}, guarded))
      const refused = denied.response.status === 'denied'
      x.expect(refused, 'An event that requires a scope is sent to clients without it', lastOf(x, 3))
      const granted = await x.ask('permissions/negotiate', { requested_scopes: scopes, ttl_seconds: 2 })
      if (tokenIn(granted) === undefined) return x.leave('The server grants no scope that an event requires')
      const one = await subscribe(x, wishFor(x, {}, guarded), holding(granted))
      x.expect(isActive(one), 'An event is denied to clients that have its scope', lastOf(x, 3))
      await one.over(8_000)
      const before = one.events().length
      await x.call(guarded)
      await wait(100)
      const over = one.ended().length === 1 && one.events().length === before
      x.expect(over, 'A subscription outlived the grant behind it', lastOf(x, 4))
    },
  ),
]
