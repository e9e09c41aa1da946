/** E2: what a call is for, and what would serve that better. */
import { isRecord } from '../../jsonrpc/message.ts'
import type { Scenario } from '../scenario.ts'
import { callable, counting } from '../tools.ts'
import { newKey, scenariosOf } from './scenario-of.ts'
import { shownIn } from './talk.ts'

const scenario = scenariosOf('intent')

const words = ['greet somebody', 'welcome a guest', 'find what else there is', 'see whether all is well', 'clean up']

export const intent: readonly Scenario[] = [
  scenario({
    id: 'E2-1',
    title: 'A call that says what it is for is made as it is',
    tools: { counting },
    run: async ({ talk, tools: { counting }, made, expect }) => {
      const plain = await talk.call(counting.name, counting.args)
      const meant = await talk.call(counting.name, counting.args, { intent: { intent: 'greet somebody' } })
      made(meant, 'A call with an intent')
      expect(
        meant.result['content'] !== undefined && shownIn(meant.result) !== shownIn(plain.result),
        'A call with an intent was not made',
        meant.frames,
      )
      const keys = (result: object): string =>
        JSON.stringify(
          Object.keys(result)
            .filter(key => key !== '_meta')
            .sort(),
        )
      expect(keys(meant.result) === keys(plain.result), 'A call with an intent has a result of another form', [
        ...plain.frames,
        ...meant.frames,
      ])
    },
  }),
  scenario({
    id: 'E2-2',
    title: 'A suggestion names a tool that is listed, and why',
    tools: { callable },
    run: async ({ talk, tools: { callable }, expect, bench, leave }) => {
      let seen = 0
      for (const intent of words) {
        const called = await talk.call(callable.name, callable.args, { intent: { intent } })
        const { suggestion } = called.member('intent')
        if (suggestion === undefined) continue
        seen++
        expect(isRecord(suggestion) && typeof suggestion['reason'] === 'string', 'A suggestion has no reason', called.frames)
        const name = isRecord(suggestion) ? suggestion['recommended_tool'] : undefined
        expect(
          typeof name === 'string' && bench.peer.tool(name) !== undefined,
          `A suggestion names ${JSON.stringify(name)}, which is not listed`,
          called.frames,
        )
      }
      if (seen === 0) leave('The server suggested nothing to the intents that the kit knows')
    },
  }),
  scenario({
    id: 'E2-3',
    title: 'Where only a suggestion is asked for, nothing runs, and the answer says so',
    tools: { counting },
    wants: ['idempotency'],
    run: async ({ talk, tools: { counting }, made, expect }) => {
      const key = newKey()
      const saying = { idempotency: { idempotency_key: key } }
      const only = await talk.call(counting.name, counting.args, {
        ...saying,
        intent: { intent: 'greet somebody', mode: 'suggest_only' },
      })
      expect(
        only.code === undefined && !only.isError && only.text.length > 0,
        'A call for a suggestion only has no words',
        only.frames,
      )
      expect(only.result['structuredContent'] === undefined, 'A call for a suggestion only has a result: it ran', only.frames)
      const real = await talk.call(counting.name, counting.args, saying)
      made(real, 'The real call under the same key')
      expect(
        real.member('idempotency')['was_replay'] === false,
        'A call for a suggestion only left an entry under its key',
        real.frames,
      )
    },
  }),
  scenario({
    id: 'E2-5',
    title: 'An intent of more than 2048 bytes is refused',
    tools: { callable },
    run: async ({ talk, tools: { callable }, refused, made }) => {
      refused(
        await talk.call(callable.name, callable.args, { intent: { intent: 'ä'.repeat(1_100) } }),
        'INVALID_INPUT',
        'An intent of 2200 bytes',
      )
      made(await talk.call(callable.name, callable.args, { intent: { intent: 'a'.repeat(2_048) } }), 'An intent of 2048 bytes')
    },
  }),
  scenario({
    id: 'E2-6',
    title: 'A repeated call with another intent is the same call',
    tools: { counting },
    wants: ['idempotency'],
    run: async ({ talk, tools: { counting }, made, expect }) => {
      const saying = { idempotency: { idempotency_key: newKey() } }
      const first = await talk.call(counting.name, counting.args, { ...saying, intent: { intent: 'one reason' } })
      made(first, 'A call with an intent')
      const again = await talk.call(counting.name, counting.args, { ...saying, intent: { intent: 'another reason' } })
      made(again, 'The same with another intent')
      expect(again.member('idempotency')['was_replay'] === true, 'Another intent made another call', again.frames)
    },
  }),
]
