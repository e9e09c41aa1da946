/** E5, first half: a call under a key is made once, and its result given again. */
import { setTimeout as wait } from 'node:timers/promises'
import { isRecord } from '../../jsonrpc/message.ts'
import type { Json, Scenario } from '../scenario.ts'
import { bringing, brings, callable, counting, isPlain, needsConfirmation, scopesOf, toolThat } from '../tools.ts'
import { isTime, newKey, scenariosOf } from './scenario-of.ts'
import { shownIn } from './talk.ts'

const scenario = scenariosOf('idempotency')

const slow = toolThat(
  'takes its time and gives another answer each time ("counts" and "slow")',
  tool => isPlain(tool) && brings(tool, 'counts') && brings(tool, 'slow'),
)
const priced = toolThat('is metered', tool => isPlain(tool) && isRecord(costOf(tool)) && costOf(tool)['category'] === 'metered')
const confirmed = toolThat(
  'needs a yes and gives another answer each time ("counts")',
  tool => needsConfirmation(tool) && brings(tool, 'counts'),
)
const scoped = toolThat('needs a scope', tool => scopesOf(tool).length === 1 && !needsConfirmation(tool))
const checked = toolThat(
  'needs an argument and gives another answer each time ("counts")',
  tool => isPlain(tool) && brings(tool, 'counts') && requiredOf(tool).length > 0,
)

function costOf(tool: Json): Json {
  const meta = isRecord(tool['_meta']) ? tool['_meta']['dev.vivarium/operational'] : undefined
  return isRecord(meta) && isRecord(meta['cost']) ? meta['cost'] : {}
}

function requiredOf(tool: Json): readonly unknown[] {
  const schema = tool['inputSchema']
  return isRecord(schema) && Array.isArray(schema['required']) ? schema['required'] : []
}

const keyed = (key: string, more: Json = {}): Json => ({ idempotency: { idempotency_key: key, ...more } })

export const idempotency: readonly Scenario[] = [
  scenario({
    id: 'E5-1',
    title: 'A key that was used for one tool is refused for another one',
    tools: {
      one: callable,
      other: toolThat(
        'is another one',
        (tool, peer) => isPlain(tool) && tool['name'] !== callable.find(peer)?.name && peer.mayCall(String(tool['name'])),
      ),
    },
    run: async ({ talk, tools, made, refused }) => {
      const key = newKey()
      made(await talk.call(tools.one.name, tools.one.args, keyed(key)), 'A call under a fresh key')
      refused(
        await talk.call(tools.other.name, tools.other.args, keyed(key)),
        'IDEMPOTENCY_CONFLICT',
        'The same key on another tool',
      )
    },
  }),
  scenario({
    id: 'E5-2',
    title: 'A repeated call gets the stored result, is marked as a replay, and is not made again',
    tools: { one: callable },
    run: async ({ talk, tools: { one }, expect, made }) => {
      const key = newKey()
      const first = await talk.call(one.name, one.args, keyed(key))
      made(first, 'A call under a fresh key')
      const said = first.member('idempotency')
      expect(
        said['idempotency_key'] === key && said['was_replay'] === false,
        'The first answer does not name its key with was_replay: false',
        first.frames,
      )
      expect(isTime(said['original_timestamp']), 'The first answer has no original_timestamp', first.frames)
      const again = await talk.call(one.name, one.args, keyed(key))
      made(again, 'The repetition')
      const replayed = again.member('idempotency')
      expect(replayed['was_replay'] === true, 'The repetition is not marked was_replay: true', again.frames)
      expect(
        replayed['original_timestamp'] === said['original_timestamp'],
        'The repetition has another original_timestamp',
        again.frames,
      )
      expect(shownIn(again.result) === shownIn(first.result), 'The repetition has another result: the tool ran again', [
        ...first.frames,
        ...again.frames,
      ])
    },
  }),
  scenario({
    id: 'E5-2b',
    also: ['E5-2'],
    title: 'Without a key every call is made, and nothing is said of keys',
    tools: { one: counting },
    run: async ({ talk, tools: { one }, expect, made }) => {
      const first = await talk.call(one.name, one.args)
      const second = await talk.call(one.name, one.args)
      made(first, 'A call without a key')
      made(second, 'A second call without a key')
      expect(first.said('idempotency') === undefined, 'A call without a key is answered with one', first.frames)
      expect(shownIn(first.result) !== shownIn(second.result), 'Two calls without a key have the same result', [
        ...first.frames,
        ...second.frames,
      ])
    },
  }),
  scenario({
    id: 'E5-3',
    title: 'The same key with other arguments is refused, and nothing runs',
    tools: {
      one: toolThat(
        'gives another answer each time ("counts") and takes a text',
        tool => isPlain(tool) && brings(tool, 'counts') && !brings(tool, 'slow') && requiredOf(tool).length > 0,
      ),
    },
    run: async ({ talk, tools: { one }, expect, made, refused }) => {
      const key = newKey()
      const first = await talk.call(one.name, one.args, keyed(key))
      made(first, 'A call under a fresh key')
      const conflict = await talk.call(one.name, otherArguments(one.args), keyed(key))
      refused(conflict, 'IDEMPOTENCY_CONFLICT', 'The same key with other arguments')
      expect(
        conflict.problem['category'] === 'invalid_input',
        'The conflict is not of the category invalid_input',
        conflict.frames,
      )
      const again = await talk.call(one.name, one.args, keyed(key))
      expect(
        again.member('idempotency')['was_replay'] === true && shownIn(again.result) === shownIn(first.result),
        'After the conflict the first result is no longer replayed',
        again.frames,
      )
    },
  }),
  scenario({
    id: 'E5-4',
    title: 'A duplicate of a call that still runs joins it: it runs once',
    tools: { slow },
    run: async ({ talk, tools: { slow }, expect, made }) => {
      const key = newKey()
      const [first, second] = await Promise.all([
        talk.call(slow.name, slow.args, keyed(key)),
        talk.call(slow.name, slow.args, keyed(key)),
      ])
      made(first, 'The first of two calls at once')
      if (second.problem['code'] === 'IDEMPOTENCY_IN_PROGRESS') {
        expect(
          second.problem['category'] === 'transient' && typeof second.problem['retry_after_seconds'] === 'number',
          'IDEMPOTENCY_IN_PROGRESS is not transient with retry_after_seconds',
          second.frames,
        )
        return
      }
      made(second, 'The second of two calls at once')
      expect(shownIn(first.result) === shownIn(second.result), 'Two calls at once under one key have two results: both ran', [
        ...first.frames,
        ...second.frames,
      ])
      const replays = [first, second].filter(one => one.member('idempotency')['was_replay'] === true).length
      expect(replays === 1, `Of two calls at once ${replays} are marked as replays, not one`, [...first.frames, ...second.frames])
    },
  }),
  ...stored(),
  ...keys(),
]

/** What is kept under a key, and what is not. */
function stored(): readonly Scenario[] {
  return [
    scenario({
      id: 'E5-5',
      title: 'A permanent failure is stored under its key; a refused argument is not',
      tools: { failing: bringing('failure:permanent'), checked },
      run: async ({ talk, tools: { failing, checked }, expect, made }) => {
        const key = newKey()
        const first = await talk.call(failing.name, failing.args, keyed(key))
        const again = await talk.call(failing.name, failing.args, keyed(key))
        expect(first.isError && again.isError, 'A tool that fails for good did not fail', [...first.frames, ...again.frames])
        expect(
          again.member('idempotency')['was_replay'] === true && again.text === first.text,
          'A permanent failure was not replayed',
          [...first.frames, ...again.frames],
        )
        const other = newKey()
        const wrong = await talk.call(checked.name, {}, keyed(other))
        expect(wrong.isError || wrong.code !== undefined, 'A call without its required arguments was made', wrong.frames)
        made(
          await talk.call(checked.name, checked.args, keyed(other)),
          'The mended call under the key of one whose arguments were refused',
        )
      },
    }),
    scenario({
      id: 'E5-5b',
      also: ['E5-5'],
      title: 'A transient failure is not stored: the same key tries again',
      tools: { failing: bringing('failure:transient') },
      run: async ({ talk, tools: { failing }, bench, expect }) => {
        const key = newKey()
        for (let round = 0; round < 4; round++) {
          const called = await talk.call(failing.name, failing.args, keyed(key))
          expect(
            called.member('idempotency')['was_replay'] !== true || !called.isError,
            'A transient failure was replayed',
            called.frames,
          )
          if (!called.isError && called.code === undefined) return
        }
        bench.fail('A tool that fails for now never worked under the same key')
      },
    }),
    scenario({
      id: 'E5-7',
      title: 'After its time to live a key is fresh again',
      tools: { counting },
      run: async ({ talk, tools: { counting }, expect, made }) => {
        const key = newKey()
        const saying = keyed(key, { idempotency_ttl_seconds: 1 })
        const first = await talk.call(counting.name, counting.args, saying)
        made(first, 'A call under a key of one second')
        await wait(1_300)
        const later = await talk.call(counting.name, counting.args, saying)
        made(later, 'The same call after that second')
        expect(
          later.member('idempotency')['was_replay'] === false && shownIn(later.result) !== shownIn(first.result),
          'A key outlived its idempotency_ttl_seconds',
          [...first.frames, ...later.frames],
        )
      },
    }),
    scenario({
      id: 'E5-9',
      also: ['X1'],
      title: 'Who may not make a call gets no replay of it either',
      wants: ['permissions'],
      tools: { scoped },
      run: async ({ talk, tools: { scoped }, leave, expect, refused }) => {
        const key = newKey()
        const granted = await talk.ask('permissions/negotiate', { requested_scopes: [...scopesOf(scoped.listed)] })
        const session = isRecord(granted.result['session']) ? granted.result['session']['token'] : undefined
        if (typeof session !== 'string') return leave('The server grants no scope that a tool needs')
        const first = await talk.call(scoped.name, scoped.args, { ...keyed(key), permissions: { session_token: session } })
        expect(
          first.member('idempotency')['was_replay'] === false,
          'A call with a grant was not made under its key',
          first.frames,
        )
        refused(await talk.call(scoped.name, scoped.args, keyed(key)), 'SCOPE_INSUFFICIENT', 'The repetition without the grant')
      },
    }),
    scenario({
      id: 'E5-10',
      title: 'A replay costs nothing again',
      wants: ['operational'],
      tools: { priced },
      run: async ({ talk, tools: { priced }, expect, made }) => {
        const key = newKey()
        const first = await talk.call(priced.name, priced.args, keyed(key))
        made(first, 'A metered call')
        const again = await talk.call(priced.name, priced.args, keyed(key))
        expect(again.member('idempotency')['was_replay'] === true, 'A metered call was not replayed', again.frames)
        expect(again.member('operational')['units_used'] === 0, 'A replay reports units_used other than 0', again.frames)
      },
    }),
    scenario({
      id: 'E5-10b',
      also: ['E5-10', 'X1', 'X2', 'E6-4'],
      title: 'A replay needs no second yes, and a question that was open is not stored as the result',
      wants: ['confirmation'],
      tools: { confirmed },
      run: async ({ talk, tools: { confirmed }, expect, made, refused }) => {
        const key = newKey()
        const asked = await talk.call(confirmed.name, confirmed.args, keyed(key))
        refused(asked, 'CONFIRMATION_REQUIRED', 'A call without a yes')
        const token = asked.member('confirmation')['confirmation_token']
        const yes = { confirmation_token: token, user_confirmed: true }
        const first = await talk.call(confirmed.name, confirmed.args, { ...keyed(key), confirmation: yes })
        made(first, 'The call with a yes, under the key of the question')
        expect(
          first.member('idempotency')['was_replay'] === false,
          'The question was stored as the result of the key',
          first.frames,
        )
        const again = await talk.call(confirmed.name, confirmed.args, keyed(key))
        made(again, 'The repetition, which needs no yes')
        expect(
          again.member('idempotency')['was_replay'] === true && shownIn(again.result) === shownIn(first.result),
          'The repetition is no replay',
          again.frames,
        )
      },
    }),
  ]
}

/** What a key may be, and where it may stand. */
function keys(): readonly Scenario[] {
  return [
    scenario({
      id: 'E5-8',
      title: 'What can be no key is refused as a wrong parameter',
      tools: { one: callable },
      run: async ({ talk, tools: { one }, expect }) => {
        for (const key of ['no key', '', 'ä', 'k'.repeat(129)]) {
          const called = await talk.call(one.name, one.args, keyed(key))
          expect(called.code === -32602, `The key ${JSON.stringify(key.slice(0, 20))} was not refused with -32602`, called.frames)
        }
      },
    }),
    scenario({
      id: 'E5-2h',
      also: ['E5-2'],
      title: 'Over HTTP the header Idempotency-Key is the same key; another one than in _meta is refused',
      carriers: ['http'],
      tools: { counting },
      run: async ({ talk, tools: { counting }, expect, made }) => {
        const key = newKey()
        const first = await talk.call(counting.name, counting.args, {}, { headers: { 'idempotency-key': key } })
        made(first, 'A call with the header')
        const again = await talk.call(counting.name, counting.args, keyed(key))
        expect(
          again.member('idempotency')['was_replay'] === true && shownIn(first.result) === shownIn(again.result),
          'The key in _meta is not the one of the header',
          [...first.frames, ...again.frames],
        )
        const torn = await talk.call(counting.name, counting.args, keyed(key), { headers: { 'idempotency-key': newKey() } })
        expect(torn.code === -32602, 'Two different keys in one request were not refused with -32602', torn.frames)
      },
    }),
  ]
}

/** The same names, other values. */
export function otherArguments(args: Json): Json {
  return Object.fromEntries(
    Object.entries(args).map(([name, value]) => [
      name,
      typeof value === 'string' ? `${value}-other` : typeof value === 'number' ? value + 1 : value,
    ]),
  )
}
