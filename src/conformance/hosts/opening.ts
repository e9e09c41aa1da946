/** How a host opens a live server, and how it leaves plain ones alone (§3–§6). */
import { isRecord } from '../../jsonrpc/message.ts'
import type { ClientScenario } from '../clients/scenario.ts'
import type { Seen } from '../clients/seen.ts'
import { type Frame, paramsOf, type Said } from '../clients/stage/book.ts'
import { announced, answerTo, called, errorTo, hosting, LIVE, livePlay, sets, wishes } from './live-play.ts'

export const hello = livePlay('hello', { steps: [{ do: 'say', text: 'Hello', as: 'say' }], wishes: { model: ['Hello.'] } })

const plain = livePlay('plain', {
  mcpl: undefined,
  during: async ({ call }) => {
    if (call.revision === '2026-07-28') return undefined
    call.book.notes.set(
      'answer push',
      await call.ask(
        'push/event',
        { featureSet: 'lab.push', eventId: 'e', timestamp: '2026-01-01T00:00:00Z', payload: { content: [] } },
        'push',
      ),
    )
    return undefined
  },
})

const bad = livePlay('bad-declaration', {
  steps: [{ do: 'say', text: 'Hello', as: 'say' }],
  wishes: { enabled: [...wishes.enabled, 'lab.bad', 'lab.worse'], model: ['Hello.'] },
  mcpl: { ...announced, featureSets: { ...sets, 'lab.bad': { uses: ['pushEvents'] }, 'lab.worse': { description: 'No uses' } } },
})

const changed = livePlay('sets-changed', {
  wishes: { enabled: [...wishes.enabled, 'lab.new'] },
  during: async ({ ask, tell, call }) => {
    tell('featureSets/changed', { added: { 'lab.new': { description: 'New', uses: ['pushEvents'] } }, removed: ['lab.push'] })
    await call.book.until(() => lists(call.book.said).find(({ enabled }) => enabled.includes('lab.new')), 2_000)
    await ask('removed', 'push/event', event('lab.push', 'e-removed'))
    return undefined
  },
})

const selected = livePlay('selected', {
  steps: [
    { do: 'say', text: 'Hello', as: 'hello' },
    {
      do: 'select',
      enabled: wishes.enabled.filter(name => name !== 'lab.push'),
      disabled: ['lab.push', 'lab.off'],
      as: 'select',
    },
    { do: 'say', text: 'Call the tool test-tool.', as: 'say' },
  ],
  wishes: { model: ['Hello.', { call: 'test-tool' }, 'Done.'] },
  during: async ({ ask }) => {
    await ask('disabled', 'push/event', event('lab.push', 'e-disabled'))
    return undefined
  },
})

const patterns = livePlay('patterns', {
  steps: [{ do: 'say', text: 'Hello', as: 'say' }],
  wishes: { enabled: ['lab.*'], disabled: ['lab.o*'], model: ['Hello.'] },
})

export function event(featureSet: string, eventId: string, more: Frame = {}): Frame {
  return {
    featureSet,
    eventId,
    timestamp: '2026-01-23T10:30:00Z',
    payload: { content: [{ type: 'text', text: 'ping' }] },
    ...more,
  }
}

interface Lists {
  readonly said: Said
  readonly enabled: readonly unknown[]
  readonly disabled: readonly unknown[]
}

/** Every selection that was told, in order: by the method, or with the stream. */
function lists(said: readonly Said[]): readonly Lists[] {
  const told = said.filter(
    ({ from, frame }) => from === 'client' && ['featureSets/update', 'live/listen'].includes(String(frame?.['method'])),
  )
  return told.flatMap(one => {
    const { policy } = paramsOf(one)
    const selection = isRecord(policy) ? policy : paramsOf(one)
    if (!Array.isArray(selection['enabled']) && !Array.isArray(selection['disabled'])) return []
    return [{ said: one, enabled: arrayOf(selection['enabled']), disabled: arrayOf(selection['disabled']) }]
  })
}

function arrayOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function hostIn(seen: Seen): Frame {
  const { experimental, extensions } = seen.capabilities
  const said =
    (isRecord(experimental) ? experimental['mcpl'] : undefined) ?? (isRecord(extensions) ? extensions[LIVE] : undefined)
  return isRecord(said) ? said : {}
}

export const opening: readonly ClientScenario[] = [
  hosting('L3.1-1', 'The host announces MCP Live by an object with its version', hello, {
    proves: ['L3.1-1', 'L5.2-1'],
    check: (seen, { expect }) => {
      expect(typeof hostIn(seen)['version'] === 'string', 'experimental.mcpl must have a version', seen.requests().slice(0, 1))
    },
  }),
  hosting('L6.4-1', 'The selection names every declared set in exactly one list, without patterns', hello, {
    proves: ['L6.4-1', 'L6.7-1', 'L5.2-1'],
    check: (seen, { expect, fail }) => {
      const [first] = lists(seen.book.said)
      if (first === undefined) return fail('The server was not told which sets are enabled', seen.requests().slice(0, 4))
      const { said, enabled, disabled } = first
      for (const name of Object.keys(sets)) {
        const times = [...enabled, ...disabled].filter(one => one === name).length
        expect(times === 1, `${name} stands ${times} times in the two lists`, [said])
      }
      expect(
        [...enabled, ...disabled].every(name => !String(name).includes('*')),
        'Patterns are for the host alone',
        [said],
      )
      expect(
        disabled.includes('lab.off') && enabled.includes('lab.push'),
        'The selection is not what the host was configured with',
        [said],
      )
    },
  }),
  hosting(
    'L6.3-1',
    'Patterns in the configuration cover the names that they fit, and what disables beats what enables',
    patterns,
    {
      proves: ['L6.3-1'],
      check: (seen, { expect, skip }) => {
        const [first] = lists(seen.book.said)
        if (first === undefined) return skip('the host told no selection')
        if (first.enabled.length === 0) return skip('the host knows no patterns')
        expect(first.enabled.includes('lab.push') && first.enabled.includes('lab.notes'), 'lab.* covers all sets of lab', [
          first.said,
        ])
        expect(first.disabled.includes('lab.off') && !first.enabled.includes('lab.off'), 'lab.o* disables lab.off', [first.said])
      },
    },
  ),
  hosting('L7.2-2', 'The configured scopes are told to the server', hello, {
    proves: ['L7.2-2'],
    check: (seen, { expect }) => {
      const told = lists(seen.book.said).some(({ said }) => JSON.stringify(paramsOf(said)).includes('/project/secret'))
      expect(told || JSON.stringify(hostIn(seen)).includes('/project/secret'), 'The lists of lab.files were not told')
    },
  }),
  hosting('L3.3-1', 'A server that is not live hears nothing of MCP Live', plain, {
    proves: ['L3.3-1'],
    plain: true,
    check: (seen, { expect }) => {
      const live = seen.fromClient.filter(({ frame }) =>
        /^(context|featureSets|inference|live)\/|^state\/rollback/.test(String(frame?.['method'])),
      )
      expect(live.length === 0, 'The server announced nothing of the kind', live.slice(0, 2))
      const odd = seen.calls().filter(call => ['state', 'checkpoint', 'scope'].some(member => member in paramsOf(call)))
      expect(odd.length === 0, 'A call carries what only live servers know', odd.slice(0, 1))
    },
  }),
  hosting('L3.3-2', 'What a server asks that did not announce it is refused', plain, {
    proves: ['L3.3-2'],
    plain: true,
    needs: seen => (seen.stateless ? 'a server of this wire cannot ask unasked' : called(seen)),
    check: (seen, { expect }) => {
      expect(Object.keys(errorTo(seen, 'push')).length > 0, 'A push of a server that is not live was not refused', seen.answers)
    },
  }),
  hosting('L6.2-3', 'A declaration without description or uses is never enabled', bad, {
    proves: ['L6.2-3'],
    check: (seen, { expect }) => {
      const odd = lists(seen.book.said).filter(({ enabled }) => enabled.includes('lab.bad') || enabled.includes('lab.worse'))
      expect(odd.length === 0, 'A set was enabled that is not declared as it must be', odd.map(({ said }) => said).slice(0, 1))
    },
  }),
  hosting('L6.7-4', 'Added sets are selected by policy and told, removed ones are unknown', changed, {
    proves: ['L6.7-4', 'L6.6-2'],
    needs: called,
    check: (seen, { expect }) => {
      expect(
        lists(seen.book.said).some(({ enabled }) => enabled.includes('lab.new')),
        'The verdict on the new set was not told',
        seen.fromClient.slice(-3),
      )
      expect(errorTo(seen, 'removed')['code'] === -32003, 'A removed set must be unknown (-32003)', seen.answers)
      expect(answerTo(seen, 'removed') !== undefined, 'The push was not answered')
    },
  }),
  hosting('L6.7-1', 'Another selection is told at once, and holds', selected, {
    proves: ['L6.7-1', 'L6.6-1'],
    check: (seen, { expect, skip }) => {
      const told = lists(seen.book.said)
      if (told.length < 2) return skip('the host did not select anew')
      const last = told.at(-1)
      expect(last?.disabled.includes('lab.push') === true, 'lab.push was disabled, and that was not told', [last?.said])
      if (answerTo(seen, 'disabled') !== undefined) {
        expect(
          errorTo(seen, 'disabled')['code'] === -32001,
          'A push of a set that is disabled by now must be -32001',
          seen.answers.slice(-1),
        )
      }
    },
  }),
]
