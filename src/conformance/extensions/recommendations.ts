/** E13: other servers that can do what this one cannot. */
import { isRecord } from '../../jsonrpc/message.ts'
import type { Json, Scenario } from '../scenario.ts'
import { listOf, newKey, scenariosOf } from './scenario-of.ts'

const scenario = scenariosOf('recommendations')

const levels = ['high', 'medium', 'low']

/** A capability for which the server has an answer: from its manifest. */
function known(manifest: Json): string | undefined {
  for (const one of listOf(manifest['recommendations'])) if (typeof one['capability'] === 'string') return one['capability']
  return undefined
}

export const recommendations: readonly Scenario[] = [
  scenario({
    id: 'E13-1',
    title: 'Recommendations come best first, each server once',
    wants: ['manifest'],
    writes: false,
    run: async ({ talk, expect, leave }) => {
      const { result } = await talk.ask('manifest/get')
      const capability = known(isRecord(result['manifest']) ? result['manifest'] : {})
      if (capability === undefined) return leave('The manifest names no capability that others have')
      const answer = await talk.ask('servers/recommend', { capability_needed: capability })
      expect(answer.result['capability_needed'] === capability, 'The answer does not name what was asked for', answer.frames)
      const list = listOf(answer.result['recommendations'])
      expect(list.length > 0, 'What the manifest recommends is not recommended', answer.frames)
      const names = list.map(one => one['server_name'])
      expect(
        new Set(names).size === names.length && names.every(name => typeof name === 'string'),
        'A server is recommended twice',
        answer.frames,
      )
      const ranks = list.map(one => levels.indexOf(String(one['match_confidence'])))
      expect(
        ranks.every((rank, at) => rank >= 0 && rank >= (ranks[at - 1] ?? 0)),
        'The recommendations are not sorted by match_confidence',
        answer.frames,
      )
      const one = await talk.ask('servers/recommend', { capability_needed: capability, limit: 1 })
      expect(listOf(one.result['recommendations']).length === 1, 'limit: 1 does not give one', one.frames)
    },
  }),
  scenario({
    id: 'E13-5',
    title: 'Nothing to recommend is an empty list, not a failure',
    writes: false,
    run: async ({ talk, expect, made }) => {
      const answer = await talk.ask('servers/recommend', { capability_needed: newKey() })
      made(answer, 'servers/recommend for what nobody has')
      expect(
        Array.isArray(answer.result['recommendations']) && answer.result['recommendations'].length === 0,
        'There is no empty list',
        answer.frames,
      )
    },
  }),
]
