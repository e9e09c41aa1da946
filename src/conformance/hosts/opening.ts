/** How a host opens a live server, and how it leaves plain ones alone (§3–§6). */

import { isRecord } from '../../jsonrpc/message.ts'
import { none, requires, shownBy } from '../clients/checks.ts'
import type { LoggedMessage, Observation } from '../clients/log.ts'
import { listIn, objectIn, orSkip } from '../expectations.ts'
import type { Json } from '../scenario.ts'
import { announced, answerTo, called, errorTo, hostRow, liveId, livePlay, liveRows, say, sets, wishes } from './live-play.ts'

const greeting = { steps: [say('Hello')], wishes: { model: ['Hello.'] } }

/** The play that every host can do. */
export const hello = livePlay('hello', greeting)

const plain = livePlay('plain', {
  mcpl: undefined,
  during: async ({ request: { log, revision, ask } }) => {
    if (revision === '2026-07-28') return
    const push = { featureSet: 'lab.push', eventId: 'e', timestamp: '2026-01-01T00:00:00Z', payload: { content: [] } }
    log.notes.set('answer push', await ask('push/event', push, 'push'))
  },
})

const bad = livePlay('bad-declaration', {
  ...greeting,
  wishes: { enabled: [...wishes.enabled, 'lab.bad', 'lab.worse'], model: ['Hello.'] },
  mcpl: { ...announced, featureSets: { ...sets, 'lab.bad': { uses: ['pushEvents'] }, 'lab.worse': { description: 'No uses' } } },
})

const changed = livePlay('sets-changed', {
  wishes: { enabled: [...wishes.enabled, 'lab.new'] },
  during: async ({ ask, tell, request: { log } }) => {
    tell('featureSets/changed', { added: { 'lab.new': { description: 'New', uses: ['pushEvents'] } }, removed: ['lab.push'] })
    await log.until(() => selections(log.messages).find(({ enabled }) => enabled.includes('lab.new')), 2_000)
    await ask('removed', 'push/event', event('lab.push', 'e-removed'))
  },
})

const selected = livePlay('selected', {
  steps: [
    say('Hello', 'hello'),
    {
      do: 'select',
      enabled: wishes.enabled.filter(name => name !== 'lab.push'),
      disabled: ['lab.push', 'lab.off'],
      as: 'select',
    },
    say('Call the tool test-tool.'),
  ],
  wishes: { model: ['Hello.', { call: 'test-tool' }, 'Done.'] },
  during: async ({ ask }) => void (await ask('disabled', 'push/event', event('lab.push', 'e-disabled'))),
})

const patterns = livePlay('patterns', {
  ...greeting,
  wishes: { enabled: ['lab.*'], disabled: ['lab.o*'], model: ['Hello.'] },
})

/** The parameters of a push. */
export function event(featureSet: string, eventId: string, more: Json = {}): Json {
  const payload = { content: [{ type: 'text', text: 'ping' }] }
  return { featureSet, eventId, timestamp: '2026-01-23T10:30:00Z', payload, ...more }
}

interface Selection {
  readonly message: LoggedMessage
  readonly enabled: readonly unknown[]
  readonly disabled: readonly unknown[]
}

/** Every selection that was told, in order: by the method, or with the stream. */
function selections(messages: readonly LoggedMessage[]): readonly Selection[] {
  const told = messages.filter(
    ({ from, method }) => from === 'client' && (method === 'featureSets/update' || method === 'live/listen'),
  )
  return told.flatMap(message => {
    const { policy } = message.params
    const { enabled, disabled } = isRecord(policy) ? policy : message.params
    if (!Array.isArray(enabled) && !Array.isArray(disabled)) return []
    return [{ message, enabled: listIn(enabled), disabled: listIn(disabled) }]
  })
}

/** The messages that told a selection. */
function tellings(seen: Observation): readonly LoggedMessage[] {
  return selections(seen.log.messages).map(({ message }) => message)
}

/** Of the first selection something holds; that it was told is another check. */
function firstSelection(check: (selection: Selection) => boolean | string): ReturnType<typeof shownBy> {
  return shownBy(
    seen => tellings(seen).slice(0, 1),
    seen => {
      const [told] = selections(seen.log.messages)
      return told === undefined || check(told)
    },
  )
}

/** What the host says of itself. */
function declared({ capabilities: { experimental, extensions } }: Observation): Json {
  const own = objectIn(experimental)['mcpl'] ?? objectIn(extensions)[liveId]
  return objectIn(own)
}

const liveMethod = /^(context|featureSets|inference|live)\/|^state\/rollback/
const row = liveRows()
const calledRow = liveRows(called)

/** How a host opens a live server. */
export const openingScenarios = [
  row('L3.1-1 L5.2-1', 'The host announces MCP Live by an object with its version').by(hello, {
    'experimental.mcpl must have a version': shownBy(
      seen => seen.requests().slice(0, 1),
      seen => typeof declared(seen)['version'] === 'string',
    ),
  }),
  row('L6.4-1 L6.7-1 L5.2-1', 'The selection names every declared set in exactly one list, without patterns').by(hello, {
    'The server did not get the list of enabled sets': shownBy(
      seen => seen.requests().slice(0, 4),
      seen => tellings(seen).length > 0,
    ),
    'The sets': firstSelection(({ enabled, disabled }) => {
      const times = (name: string): number => [...enabled, ...disabled].filter(one => one === name).length
      const odd = Object.keys(sets).find(name => times(name) !== 1)
      return odd === undefined || `${odd} is ${times(odd)} times in the two lists`
    }),
    'The selection must not contain patterns': firstSelection(
      ({ enabled, disabled }) => ![...enabled, ...disabled].some(name => String(name).includes('*')),
    ),
    'The selection differs from the configuration of the host': firstSelection(
      ({ enabled, disabled }) => disabled.includes('lab.off') && enabled.includes('lab.push'),
    ),
  }),
  row('L6.3-1', 'Patterns in the configuration select matching names, and disabling wins over enabling').by(patterns, {
    'the host sent no selection': orSkip(seen => tellings(seen).length > 0),
    'the host does not support patterns': orSkip(firstSelection(({ enabled }) => enabled.length > 0)),
    'lab.* covers all sets of lab': firstSelection(
      ({ enabled }) => enabled.includes('lab.push') && enabled.includes('lab.notes'),
    ),
    'lab.o* disables lab.off': firstSelection(
      ({ enabled, disabled }) => disabled.includes('lab.off') && !enabled.includes('lab.off'),
    ),
  }),
  row('L7.2-2', 'The configured scopes are sent to the server').by(hello, {
    'The lists of lab.files were not sent': seen =>
      [declared(seen), ...tellings(seen).map(({ params }) => params)].some(told =>
        JSON.stringify(told).includes('/project/secret'),
      ),
  }),
  hostRow('L3.3-1', 'A server without MCP Live gets none of its messages').by(plain, {
    'The server did not announce MCP Live': none(
      seen => seen.fromClient,
      ({ method }) => liveMethod.test(String(method)),
    ),
    'A call contains data of MCP Live': none(
      seen => seen.calls(),
      ({ params }) => ['state', 'checkpoint', 'scope'].some(member => member in params),
    ),
  }),
  hostRow('L3.3-2', 'Requests of a server that did not announce MCP Live are refused').by(
    [plain, requires(seen => !seen.stateless, 'a server of this wire cannot ask unasked'), called],
    {
      'A push of a server that is not live was not refused': shownBy(
        seen => seen.answers,
        seen => Object.keys(errorTo(seen, 'push')).length > 0,
      ),
    },
  ),
  row('L6.2-3', 'A declaration without description or uses is never enabled').by(bad, {
    'A set was enabled that is not declared as it must be': shownBy(tellings, ({ log }) =>
      selections(log.messages).every(({ enabled }) => !enabled.includes('lab.bad') && !enabled.includes('lab.worse')),
    ),
  }),
  calledRow('L6.7-4 L6.6-2', 'Added sets are selected by policy and reported, removed ones are unknown').by(changed, {
    'The decision about the new set was not sent': ({ log }) =>
      selections(log.messages).some(({ enabled }) => enabled.includes('lab.new')),
    'The push was not answered': seen => answerTo(seen, 'removed') !== undefined,
    'A removed set must be unknown (-32003)': shownBy(
      seen => seen.answers,
      seen => errorTo(seen, 'removed')['code'] === -32003,
    ),
  }),
  row('L6.7-1 L6.6-1', 'Another selection is sent immediately, and is enforced').by(selected, {
    'the host did not select again': orSkip(seen => tellings(seen).length > 1),
    'lab.push was disabled, and that was not sent': shownBy(
      tellings,
      ({ log }) => selections(log.messages).at(-1)?.disabled.includes('lab.push') === true,
    ),
    'A push of a set that is disabled by now must be -32001': shownBy(
      seen => seen.answers,
      seen => answerTo(seen, 'disabled') === undefined || errorTo(seen, 'disabled')['code'] === -32001,
    ),
  }),
]
