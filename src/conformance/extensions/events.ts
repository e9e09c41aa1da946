/** E15: events that clients subscribe to. */
import { setTimeout as wait } from 'node:timers/promises'
import { isRecord } from '../../jsonrpc/message.ts'
import type { Advertised, Json, Scenario } from '../scenario.ts'
import { type FoundTool, isPlain, saidOf, toolThat } from '../tools.ts'
import { isTime, listOf, newKey, scenariosOf } from './scenario-of.ts'
import { subscribe } from './subscription.ts'

const scenario = scenariosOf('events')

/** The event that a call of this tool makes happen, with the call's arguments as its payload. */
function eventOf(tool: Json): string | undefined {
  const list = saidOf(tool, 'conformance')['brings']
  if (!Array.isArray(list)) return undefined
  const found = list.find(what => typeof what === 'string' && what.startsWith('event:'))
  return typeof found === 'string' ? found.slice('event:'.length) : undefined
}

const emitting = toolThat(
  'makes an event happen ("event:NAME", with its arguments as the payload)',
  tool => isPlain(tool) && eventOf(tool) !== undefined && !isGuarded(tool),
)
const guarded = toolThat('makes an event happen that needs a scope', isGuarded)

function isGuarded(tool: Json): boolean {
  const needs = saidOf(tool, 'conformance')['scopes']
  return eventOf(tool) !== undefined && Array.isArray(needs) && needs.length > 0
}

const wishFor = (tool: FoundTool, more: Json = {}): Json => ({
  subscription_id: newKey(),
  events: [eventOf(tool.listed)],
  ...more,
})

/** A member of the payload that can be told apart. */
function fieldOf(tool: FoundTool): { readonly name: string; readonly value: unknown; readonly other: unknown } | undefined {
  for (const [name, value] of Object.entries(tool.args)) {
    const schema = tool.listed['inputSchema']
    const properties = isRecord(schema) && isRecord(schema['properties']) ? schema['properties'] : {}
    const property = isRecord(properties[name]) ? properties[name] : {}
    if (Array.isArray(property['enum']) && property['enum'].length > 1)
      return { name, value, other: property['enum'].find(one => one !== value) }
    if (typeof value === 'string' && property['enum'] === undefined) return { name, value, other: `${value}-other` }
  }
  return undefined
}

/** Other scenarios may emit the same event: ours is marked by its payload. */
function marked(tool: FoundTool): { readonly args: Json; mine(event: Json): boolean } {
  const mark = newKey()
  const schema = tool.listed['inputSchema']
  const properties = isRecord(schema) && isRecord(schema['properties']) ? schema['properties'] : {}
  const name = Object.keys(tool.args).find(
    one => typeof tool.args[one] === 'string' && isRecord(properties[one]) && properties[one]['enum'] === undefined,
  )
  if (name === undefined) return { args: tool.args, mine: () => true }
  return { args: { ...tool.args, [name]: mark }, mine: event => isRecord(event['payload']) && event['payload'][name] === mark }
}

/** There each request is a caller of its own: nothing belongs to the next one. */
function alone(peer: Advertised): string | undefined {
  return peer.revision === '2026-07-28' && peer.carrier === 'http'
    ? 'without a principal two requests over HTTP are two callers'
    : undefined
}

const fresh = { fresh: true } as const

export const events: readonly Scenario[] = [
  scenario({
    id: 'E15-1',
    title: 'Only events that were subscribed to, and fit the filter, arrive',
    open: fresh,
    tools: { emitting },
    run: async ({ talk, tools: { emitting }, expect, leave }) => {
      const field = fieldOf(emitting)
      if (field === undefined) return leave('The payload has no member to filter by')
      const { args } = marked(emitting)
      const wanted = { ...args, [field.name]: field.value }
      const all = await subscribe(talk, wishFor(emitting))
      const some = await subscribe(talk, wishFor(emitting, { filter: { [field.name]: field.value } }))
      expect(
        all.response['status'] === 'active' && some.response['status'] === 'active',
        'A subscription is not active',
        talk.peer.frames,
      )
      await talk.call(emitting.name, { ...args, [field.name]: field.other })
      await talk.call(emitting.name, wanted)
      await all.heard(2)
      await some.heard(1)
      const strange = some.events().some(event => !isRecord(event['payload']) || event['payload'][field.name] !== field.value)
      expect(
        some.events().length >= 1 && !strange,
        'A subscription hears what its filter excludes, or not what it includes',
        some.frames(),
      )
      expect(all.events().length >= 2, 'A subscription without a filter does not hear all', all.frames())
    },
  }),
  scenario({
    id: 'E15-2',
    title: 'What is not offered is denied with a reason; of a list with both the known ones are active',
    open: fresh,
    tools: { emitting },
    run: async ({ talk, tools: { emitting }, expect }) => {
      const name = String(eventOf(emitting.listed))
      const unknown = await subscribe(talk, { subscription_id: newKey(), events: ['no_such_event'] })
      expect(
        unknown.response['status'] === 'denied' && typeof unknown.response['reason'] === 'string',
        'An unknown event is not denied with a reason',
        talk.peer.frames.slice(-3),
      )
      expect(
        Array.isArray(unknown.response['supported_events']) && unknown.response['supported_events'].includes(name),
        'A denial does not name the supported_events',
        talk.peer.frames.slice(-3),
      )
      const bad = await subscribe(talk, wishFor(emitting, { filter: { no_such_member: 1 } }))
      expect(
        bad.response['status'] === 'denied' && typeof bad.response['reason'] === 'string',
        'A filter by a member that no payload has is not denied',
        talk.peer.frames.slice(-3),
      )
      const both = await subscribe(talk, { subscription_id: newKey(), events: [name, 'no_such_event'] })
      expect(
        both.response['status'] === 'active' && JSON.stringify(both.response['unsupported_events']) === '["no_such_event"]',
        'A list with known and unknown events is not active with the unknown ones named',
        talk.peer.frames.slice(-3),
      )
    },
  }),
  scenario({
    id: 'E15-3',
    title: 'Events come in order, each once, each naming the one that it follows',
    open: fresh,
    tools: { emitting },
    run: async ({ talk, tools: { emitting }, expect, modern }) => {
      const one = await subscribe(talk, wishFor(emitting))
      for (let round = 0; round < 5; round++) await talk.call(emitting.name, emitting.args)
      const heard = await one.heard(5)
      await wait(100)
      expect(heard.length >= 5, `Of 5 events ${heard.length} came`, one.frames())
      const before = [one.response['cursor'], ...one.events().map(event => event['cursor'])]
      expect(
        one.events().every((event, at) => event['previous_cursor'] === before[at]),
        'previous_cursor is not the cursor of what came before',
        one.frames(),
      )
      const ids = one.events().map(event => event['event_id'])
      expect(
        new Set(ids).size === ids.length && ids.every(id => typeof id === 'string'),
        'An event came twice, or has no event_id',
        one.frames(),
      )
      for (const event of one.events())
        expect(
          event['type'] === 'event' && isTime(event['timestamp']) && event['event'] === eventOf(emitting.listed),
          'An event lacks type, timestamp or name',
          one.frames(),
        )
      if (modern)
        expect(
          one.frames().every(({ text }) => text.includes('io.modelcontextprotocol/subscriptionId')),
          'An event does not name the listen that it belongs to',
          one.frames(),
        )
    },
  }),
  scenario({
    id: 'E15-5',
    title: 'After its time a subscription is told once that it ended, and hears no more',
    open: fresh,
    tools: { emitting },
    run: async ({ talk, tools: { emitting }, expect }) => {
      const short = await subscribe(talk, wishFor(emitting, { ttl_seconds: 1 }))
      const long = await subscribe(talk, wishFor(emitting))
      expect(isTime(short.response['expires_at']), 'A subscription has no expires_at', talk.peer.frames)
      const until = Date.now() + 4_000
      while (short.ended().length === 0 && Date.now() < until) await wait(50)
      const heard = short.events().length
      await talk.call(emitting.name, emitting.args)
      await long.heard(1)
      await wait(100)
      const ends = short.ended()
      expect(
        ends.length === 1 && typeof ends[0]?.['reason'] === 'string',
        `It was told ${ends.length} times that it ended, or without a reason`,
        talk.peer.heard('notifications/event/terminated'),
      )
      expect(short.events().length === heard, 'An event came after the end', short.frames())
    },
  }),
  ...returning(),
  ...limits(),
]

function returning(): readonly Scenario[] {
  return [
    scenario({
      id: 'E15-6',
      title: 'Who comes back with a cursor gets what it missed; with one that is none it is told that something is missing',
      open: fresh,
      tools: { emitting },
      run: async ({ talk, tools: { emitting }, expect }) => {
        const { args, mine } = marked(emitting)
        const one = await subscribe(talk, wishFor(emitting))
        await talk.call(emitting.name, args)
        const [first] = (await one.heard(1)).filter(mine)
        await talk.call(emitting.name, args)
        await talk.call(emitting.name, args)
        const again = await subscribe(talk, wishFor(emitting, { cursor: first?.['cursor'] }))
        const heard = (await again.heard(2)).filter(mine)
        expect(heard.length === 2, `Of the 2 events that followed the cursor ${heard.length} came`, again.frames())
        expect(
          again.events()[0]?.['previous_cursor'] === first?.['cursor'],
          'What is replayed does not follow the cursor',
          again.frames(),
        )
        expect(
          !heard.some(event => event['event_id'] === first?.['event_id']),
          'The event of the cursor came again',
          again.frames(),
        )
        const lost = await subscribe(talk, wishFor(emitting, { cursor: 'elsewhere.5' }))
        expect(
          lost.response['truncated'] === true || lost.response['status'] === 'denied',
          'A cursor that is none is taken without a word',
          talk.peer.frames.slice(-4),
        )
      },
    }),
    scenario({
      id: 'E15-7',
      needs: alone,
      title: 'After the answer to an unsubscribe nothing comes; asking again is success',
      open: fresh,
      tools: { emitting },
      run: async ({ talk, tools: { emitting }, expect, made }) => {
        const one = await subscribe(talk, wishFor(emitting))
        const other = await subscribe(talk, wishFor(emitting))
        made(await talk.ask('event/unsubscribe', { subscription_id: one.id }), 'event/unsubscribe')
        const before = one.events().length
        made(await talk.ask('event/unsubscribe', { subscription_id: one.id }), 'A second event/unsubscribe')
        await talk.call(emitting.name, emitting.args)
        await other.heard(1)
        await wait(100)
        expect(one.events().length === before, 'An event came after unsubscribing', one.frames())
        expect(other.events().length > 0, 'Unsubscribing ended another subscription', other.frames())
      },
    }),
    scenario({
      id: 'E15-8',
      needs: alone,
      title: 'An id that stands for something else is denied',
      open: fresh,
      tools: { emitting },
      run: async ({ talk, tools: { emitting }, expect, leave }) => {
        const field = fieldOf(emitting)
        if (field === undefined) return leave('The payload has no member to filter by')
        const wish = wishFor(emitting, { filter: { [field.name]: field.value } })
        const one = await subscribe(talk, wish)
        expect(one.response['status'] === 'active', 'A subscription is not active', talk.peer.frames)
        const clash = await subscribe(talk, { ...wish, filter: { [field.name]: field.other } })
        expect(
          clash.response['status'] === 'denied' && typeof clash.response['reason'] === 'string',
          'The id of one subscription was taken for another',
          talk.peer.frames.slice(-3),
        )
      },
    }),
    scenario({
      id: 'E15-9',
      title: 'The same events can be polled for, from a cursor on',
      open: fresh,
      tools: { emitting },
      run: async ({ talk, tools: { emitting }, expect, made, text }) => {
        const { args, mine } = marked(emitting)
        const wish = { events: [eventOf(emitting.listed)] }
        const start = await talk.ask('event/poll', wish)
        made(start, 'event/poll')
        const cursor = text(start.result['cursor'], 'event/poll gives no cursor', start.frames)
        expect(
          Number(start.result['poll_interval_seconds']) > 0 && start.result['truncated'] === false,
          'event/poll does not say how often to look, or that nothing is missing',
          start.frames,
        )
        await talk.call(emitting.name, args)
        await talk.call(emitting.name, args)
        const polled = await talk.ask('event/poll', { ...wish, cursor })
        const events = listOf(polled.result['events']).filter(mine)
        expect(
          events.length === 2 && new Set(events.map(event => event['event_id'])).size === 2,
          `Of 2 events ${events.length} were polled`,
          polled.frames,
        )
        const later = await talk.ask('event/poll', { ...wish, cursor: polled.result['cursor'] })
        expect(
          listOf(later.result['events']).filter(mine).length === 0,
          'What was polled comes again after its cursor',
          later.frames,
        )
      },
    }),
  ]
}

function limits(): readonly Scenario[] {
  return [
    scenario({
      id: 'E15-12',
      title: 'Who subscribes too often is denied, with a reason',
      open: fresh,
      tools: { emitting },
      needs: (peer: Advertised) =>
        peer.revision === '2026-07-28' && peer.carrier === 'http' ? 'it would hold a stream for each' : undefined,
      run: async ({ talk, tools: { emitting }, expect, leave }) => {
        for (let count = 0; count < 130; count++) {
          const one = await subscribe(talk, wishFor(emitting, { ttl_seconds: 20 }))
          if (one.response['status'] === 'active') continue
          expect(
            one.response['status'] === 'denied' && typeof one.response['reason'] === 'string',
            'One subscription too many is not denied with a reason',
            talk.peer.frames.slice(-2),
          )
          return
        }
        leave('The server allows more subscriptions than the kit makes')
      },
    }),
    scenario({
      id: 'X5',
      title: 'When the grant behind it ends, a subscription ends with it',
      wants: ['permissions'],
      open: fresh,
      tools: { guarded },
      run: async ({ talk, tools: { guarded }, expect, leave }) => {
        const scopes = saidOf(guarded.listed, 'conformance')['scopes']
        const denied = await subscribe(talk, wishFor(guarded))
        expect(
          denied.response['status'] === 'denied',
          'An event that needs a scope is given to those without',
          talk.peer.frames.slice(-3),
        )
        const { result } = await talk.ask('permissions/negotiate', { requested_scopes: scopes, ttl_seconds: 2 })
        const session = isRecord(result['session']) ? result['session']['token'] : undefined
        if (typeof session !== 'string') return leave('The server grants no scope that an event needs')
        const one = await subscribe(talk, wishFor(guarded), { permissions: { session_token: session } })
        expect(one.response['status'] === 'active', 'An event is denied to those who have its scope', talk.peer.frames.slice(-3))
        const until = Date.now() + 8_000
        while (one.ended().length === 0 && Date.now() < until) await wait(50)
        const before = one.events().length
        await talk.call(guarded.name, guarded.args)
        await wait(100)
        expect(
          one.ended().length === 1 && one.events().length === before,
          'A subscription outlived the grant behind it',
          talk.peer.frames.slice(-4),
        )
      },
    }),
  ]
}
