/** E7: where a result comes from. */
import { isRecord } from '../../jsonrpc/message.ts'
import { isMade, isReplay, type PeerAnswer } from '../calls.ts'
import { extensionTable } from '../define.ts'
import {
  firstFault,
  fitsPattern,
  ifThere,
  isOneOf,
  isString,
  isTime,
  isWord,
  listIn,
  objectIn,
  objectsIn,
} from '../expectations.ts'
import type { Json, Scenario } from '../scenario.ts'
import { callTool, keyed } from '../steps.ts'
import { bringing, extensionId } from '../tools.ts'

const row = extensionTable('provenance')

const many = bringing('provenance:many')
const large = bringing('provenance:large')
const confidences = ['exact', 'derived', 'estimated', 'uncertain']

/** The records of a result, in their order. */
function records(called: PeerAnswer): readonly Json[] {
  const said = called.said('provenance')
  return objectsIn(isRecord(said) ? [said] : said)
}

function faultOf({ source, location, retrieved_at: retrieved, confidence }: Json): string | undefined {
  if (!isWord(source)) return 'source is missing'
  if (!ifThere(isRecord)(location)) return 'location is no object'
  if (!ifThere(isTime)(retrieved)) return 'retrieved_at is no time'
  return ifThere(isOneOf(...confidences))(confidence) ? undefined : `confidence is none of ${confidences.join(', ')}`
}

const stampOf = (called: PeerAnswer): Json =>
  objectIn(
    records(called).findLast(record => isRecord(record.stamp)),
    'stamp',
  )
const timesOf = (called: PeerAnswer) => JSON.stringify(records(called).map(record => record.retrieved_at ?? null))

export const provenance: readonly Scenario[] = [
  row('E7-1 E7-2', 'Sources fit their schema, on the result and on single blocks, in order', [
    callTool(many).expect({
      'A call that names its sources': isMade,
      'The result is wrapped: it has no content': ({ result }) => listIn(result, 'content').length > 0,
      'Several sources are no list': it => records(it).length >= 2,
      'A source does not fit its schema': it => {
        const blocks = objectsIn(it.result, 'content').map(block => objectIn(block, '_meta')[extensionId('provenance')])
        const all = [...records(it), ...blocks.filter(isRecord)]
        return firstFault(all, record => faultOf(record) !== undefined && `A source does not fit its schema: ${faultOf(record)}`)
      },
    }),
  ]),
  row('E7-3', 'A repeated call keeps the time at which its sources were read', { wants: ['idempotency'] }, [
    callTool(many, keyed),
    callTool(many, keyed).expect({
      'The repetition is no replay': isReplay,
      'A replay has another retrieved_at': (it, { was }) =>
        timesOf(was(0)) === timesOf(it) && records(was(0)).some(record => isTime(record.retrieved_at)),
    }),
  ]),
  row('E7-4', 'The runtime says itself which tool of which server made a result, in which operation', [
    callTool(many),
    callTool(many).expect({
      'The stamp does not name server, tool and operation': (it, { was, bench, tool }) =>
        [was(0), it].every(called =>
          fitsPattern({ server: bench.peer.name, tool: tool(many).name, operation_id: isString }, stampOf(called)),
        ),
      'Two calls have one operation_id': (it, { was }) => stampOf(was(0)).operation_id !== stampOf(it).operation_id,
    }),
  ]),
  row('E7-7', 'Sources take at most 16 KiB of a result; what is left out is counted', [
    callTool(large).expect({
      'The sources of a result take more than 16 KiB': it =>
        it.said('provenance') !== undefined && Buffer.byteLength(JSON.stringify(it.said('provenance'))) <= 16 * 1024,
      'Nothing says that sources were left out': ({ result }) =>
        /dropped|omitted|left_out|truncated/.test(JSON.stringify(result._meta)),
    }),
  ]),
]
