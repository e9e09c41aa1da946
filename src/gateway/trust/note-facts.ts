/**
 * The line of a note. Fields mean the same in all lines: `owner` is the key of who called, `target` the name that was called; of `more`
 * `client` and `subject` say who that is, `server` and `tool` where it went and what it is called there, `by` who decided.
 */
import type { AuditFacts } from '../../core/audit/line.ts'
import { digestSoon } from '../../core/digest.ts'
import { cleanFields, knownOf } from '../../core/log.ts'
import type { Exchange } from '../../engine/exchange.ts'
import { ownerOf } from '../../engine/owner.ts'
import { type Awaitable, isRecord, isThenable } from '../../jsonrpc/message.ts'
import { subjectOf } from './clients.ts'
import type { GatewayNote } from './notes.ts'

/** `whole`: with the arguments themselves, as far as a line holds them, and without what looks like a secret. */
export function gatewayNoteFacts(note: GatewayNote, whole: boolean): Awaitable<AuditFacts> {
  const { exchange } = note
  if (exchange === undefined) return factsBeside(note)
  const args = exchange.params['arguments']
  const given = isRecord(args) && Object.keys(args).length > 0 ? args : undefined
  const owner = ownerOf(exchange)
  const digest = given === undefined ? undefined : digestSoon(given)
  const shown = whole && given !== undefined ? shownOf(exchange, given) : undefined
  // Nearly all is known at once: one line is written for each call.
  if (!isThenable(owner) && !isThenable(digest)) return factsIn(note, exchange, owner, digest, shown)
  return Promise.all([owner, digest]).then(([key, hash]) => factsIn(note, exchange, key, hash, shown))
}

/** Of what is no call. */
function factsBeside(note: GatewayNote): AuditFacts {
  const { client, subject, upstream, tool, outcome, method, rule, code, by, correlation, from, times } = note
  const more = { client: said(client), subject, server: said(upstream), tool: said(tool), method, rule, code, by, from, times }
  return { event: 'noted', correlation, owner: '', target: tool, outcome, more }
}

function factsIn(
  { client, upstream, tool, outcome, ms, rule, code, by, correlation }: GatewayNote,
  { caller, params, correlated }: Exchange,
  owner: string,
  digest: string | undefined,
  shown: string | undefined,
): AuditFacts {
  const subject = subjectOf(caller)
  const input_digest = digest === undefined ? undefined : `sha256:${digest}`
  return {
    event: outcome === 'begun' ? 'call_begun' : 'call_ended',
    correlation: correlation ?? correlated,
    owner,
    target: String(params['name'] ?? params['uri'] ?? tool),
    outcome,
    more: { client, subject, server: said(upstream), tool, ms, rule, code, by, input_digest, arguments: shown },
  }
}

function said(text: string): string | undefined {
  return text === '' ? undefined : text
}

function shownOf({ caller }: Exchange, args: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(cleanFields(args, knownOf(caller)))
}
