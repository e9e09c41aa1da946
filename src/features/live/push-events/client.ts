/**
 * Host side of pushed events (MCP Live 0.2 §9): refuses everything that is not an event of an enabled set before the host's handler
 * sees it.
 */

import { quoted, type Why, why } from '../../../core/suggestion.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import { given } from '../../../jsonrpc/message.ts'
import { type Answerer, type LiveGate, unannounced } from '../answers/messages.ts'
import { readPush } from '../dialects/messages.ts'
import { type PushAnswer, type PushEvent, pushEvent, pushNotice, type WirePush } from './messages.ts'

/** Decides about an event that a server pushes. */
export type OnPush = (event: PushEvent) => Promise<PushAnswer>

const mostTold = 1_000

/** Answers `push/event`, as a request and as a notification. */
export function pushAnswerers(gate: LiveGate, onPush: OnPush): readonly Answerer[] {
  const told = new Set<string>()
  /** Reports something unusual once per set. */
  const once = (what: Why, { featureSet }: WirePush): void => {
    const key = `${what.code} ${featureSet}`
    if (told.has(key) || !gate.announced.sets.has(featureSet)) return
    // Bounded, because a server can declare new sets without end.
    if (told.size >= mostTold) told.clear()
    told.add(key)
    gate.diagnose(what)
  }
  const take = async (params: Params): Promise<object> => {
    if (!gate.announced.pushEvents) throw unannounced(pushEvent.name, 'pushEvents')
    const wire = params as unknown as WirePush
    gate.admit(wire.featureSet, 'pushEvents')
    const read = readPush(wire)
    if (read === undefined) {
      throw new McpError('invalid-params', 'params.payload.content must not be empty unless origin.silent is true')
    }
    for (const what of read.dropped) gate.diagnose(unread(wire, what))
    return writePushAnswer(await onPush(read.event))
  }
  return [
    { method: pushEvent, waits: true, answer: take },
    {
      method: pushNotice,
      waits: true,
      answer: async params => {
        const wire = params as unknown as WirePush
        const message = `The feature set ${quoted(wire.featureSet)} pushes events by notifications, so the server does not learn whether they were accepted`
        once(why('PUSH_WITHOUT_ID', 'push-events', message, 'Ask the author of the server to push events by requests'), wire)
        await take(params)
      },
    },
  ]
}

/** Writes only members of the protocol. */
function writePushAnswer(answer: PushAnswer): object {
  if (answer.accepted) return { accepted: true, ...given({ inferenceId: answer.inferenceId }) }
  const { reason, retryAfterMs, data } = answer
  return { accepted: false, reason, ...given({ retryAfterMs, data }) }
}

function unread({ eventId }: WirePush, what: string): Why {
  const message = `Dropped from the event ${quoted(eventId)}: ${what}`
  return why('CONTENT_DROPPED', 'content', message, 'Ask the author of the server to send only content types of MCP Live')
}
