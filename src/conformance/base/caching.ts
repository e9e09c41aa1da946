/** How long a result may be kept, and by whom. */
import { capability, type Need, resultIn, scenario } from '../define.ts'
import type { Json, Scenario } from '../scenario.ts'

const caching = ['MCP 2026-07-28 basic/utilities/caching', 'SEP-2549']

interface Cached {
  readonly method: string
  readonly needs: readonly Need[]
  readonly uri?: true
}

const cached: readonly Cached[] = [
  { method: 'server/discover', needs: [] },
  { method: 'tools/list', needs: [capability('tools')] },
  { method: 'prompts/list', needs: [capability('prompts')] },
  { method: 'resources/list', needs: [capability('resources')] },
  { method: 'resources/templates/list', needs: [capability('resources')] },
  {
    method: 'resources/read',
    needs: [capability('resources'), peer => (peer.resources.length === 0 ? 'it lists no resources' : undefined)],
    uri: true,
  },
]

export const cachingScenarios: readonly Scenario[] = [
  ...cached.map(({ method, needs, uri }) =>
    scenario(`base/caching/${method.replaceAll('/', '-')}`, {
      title: `the result of ${method} says how long it may be kept`,
      proves: caching,
      revisions: ['2026-07-28'],
      needs,
      async run(bench) {
        const peer = await bench.open()
        const params: Json = uri === true ? { uri: bench.peer.resources[0]?.['uri'] } : {}
        const answer = await peer.request(method, params)
        const { ttlMs, cacheScope } = resultIn(answer)
        bench.expect(Number.isInteger(ttlMs) && Number(ttlMs) >= 0, 'ttlMs must be an integer of at least 0', [answer.frame])
        bench.expect(cacheScope === 'public' || cacheScope === 'private', 'cacheScope must be public or private', [answer.frame])
      },
    }),
  ),
  scenario('base/caching/not-calls', {
    title: 'the result of a call says nothing of being kept',
    proves: caching,
    revisions: ['2026-07-28'],
    needs: [peer => (peer.tool('test_simple_text') === undefined ? 'it has no tool test_simple_text' : undefined)],
    async run(bench) {
      const peer = await bench.open()
      const answer = await peer.request('tools/call', { name: 'test_simple_text' })
      bench.expect(resultIn(answer)['ttlMs'] === undefined, 'the result of tools/call must not have ttlMs', [answer.frame])
    },
  }),
]
