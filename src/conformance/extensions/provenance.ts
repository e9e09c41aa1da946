/** E7: where a result comes from. */
import { isRecord } from '../../jsonrpc/message.ts'
import type { Json, Scenario } from '../scenario.ts'
import { bringing } from '../tools.ts'
import { isTime, listOf, newKey, scenariosOf } from './scenario-of.ts'
import type { Called } from './talk.ts'

const scenario = scenariosOf('provenance')

const many = bringing('provenance:many')
const large = bringing('provenance:large')
const confidences = ['exact', 'derived', 'estimated', 'uncertain']

/** The records of a result, in their order. */
function records(called: Called): readonly Json[] {
  const said = called.said('provenance')
  return Array.isArray(said) ? listOf(said) : isRecord(said) ? [said] : []
}

function faultOf(record: Json): string | undefined {
  const { source, location, retrieved_at: retrieved, confidence } = record
  if (typeof source !== 'string' || source === '') return 'source is missing'
  if (location !== undefined && !isRecord(location)) return 'location is no object'
  if (retrieved !== undefined && !isTime(retrieved)) return 'retrieved_at is no time'
  if (confidence !== undefined && !confidences.includes(String(confidence)))
    return `confidence is none of ${confidences.join(', ')}`
  return undefined
}

const stampOf = (called: Called): Json => {
  const last = records(called).findLast(record => isRecord(record['stamp']))
  return last !== undefined && isRecord(last['stamp']) ? last['stamp'] : {}
}

export const provenance: readonly Scenario[] = [
  scenario({
    id: 'E7-1',
    also: ['E7-2'],
    title: 'Sources fit their schema, on the result and on single blocks, in order',
    tools: { many },
    run: async ({ talk, tools: { many }, made, expect }) => {
      const called = await talk.call(many.name, many.args)
      made(called, 'A call that names its sources')
      expect(
        Array.isArray(called.result['content']) && called.result['content'].length > 0,
        'The result is wrapped: it has no content',
        called.frames,
      )
      const all = records(called)
      expect(all.length >= 2, 'Several sources are no list', called.frames)
      const blocks = listOf(called.result['content']).flatMap(block =>
        isRecord(block['_meta']) ? [block['_meta']['dev.vivarium/provenance']] : [],
      )
      for (const record of [...all, ...blocks.filter(isRecord)]) {
        const fault = faultOf(record)
        expect(fault === undefined, `A source does not fit its schema: ${fault}`, called.frames)
      }
    },
  }),
  scenario({
    id: 'E7-3',
    title: 'A repeated call keeps the time at which its sources were read',
    wants: ['idempotency'],
    tools: { many },
    run: async ({ talk, tools: { many }, expect }) => {
      const saying = { idempotency: { idempotency_key: newKey() } }
      const first = await talk.call(many.name, many.args, saying)
      const again = await talk.call(many.name, many.args, saying)
      expect(again.member('idempotency')['was_replay'] === true, 'The repetition is no replay', again.frames)
      const times = [first, again].map(called => JSON.stringify(records(called).map(record => record['retrieved_at'] ?? null)))
      expect(
        times[0] === times[1] && records(first).some(record => isTime(record['retrieved_at'])),
        'A replay has another retrieved_at',
        [...first.frames, ...again.frames],
      )
    },
  }),
  scenario({
    id: 'E7-4',
    title: 'The runtime says itself which tool of which server made a result, in which operation',
    tools: { many },
    run: async ({ talk, tools: { many }, expect, bench }) => {
      const first = await talk.call(many.name, many.args)
      const second = await talk.call(many.name, many.args)
      const stamps = [stampOf(first), stampOf(second)]
      for (const stamp of stamps)
        expect(
          stamp['server'] === bench.peer.name && stamp['tool'] === many.name && typeof stamp['operation_id'] === 'string',
          'The stamp does not name server, tool and operation',
          first.frames,
        )
      expect(stamps[0]?.['operation_id'] !== stamps[1]?.['operation_id'], 'Two calls have one operation_id', [
        ...first.frames,
        ...second.frames,
      ])
    },
  }),
  scenario({
    id: 'E7-7',
    title: 'Sources take at most 16 KiB of a result; what is left out is counted',
    tools: { large },
    run: async ({ talk, tools: { large }, expect }) => {
      const called = await talk.call(large.name, large.args)
      const said = called.said('provenance')
      expect(
        said !== undefined && Buffer.byteLength(JSON.stringify(said)) <= 16 * 1024,
        'The sources of a result take more than 16 KiB',
        called.frames,
      )
      const counted = JSON.stringify(called.result['_meta'])
      expect(/dropped|omitted|left_out|truncated/.test(counted), 'Nothing says that sources were left out', called.frames)
    },
  }),
]
