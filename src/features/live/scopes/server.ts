/**
 * Leave to act in a scope (MCP Live 0.2 §7): what the host sent along or has whitelisted needs no question; for all else it is asked.
 * Hosts without MCP Live are asked through their user, where they have one to ask.
 */
import { digest } from '../../../core/digest.ts'
import { type Problem, problem } from '../../../core/problem.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { liveExtension } from '../feature-sets/messages.ts'
import type { LiveCaller, LiveHost } from '../hosts/messages.ts'
import { type Elevation, elevateScope, elevationShape, type Scope, type ScopeLists, scopeShape } from './messages.ts'

interface ScopesParts {
  /** Asks the user of a plain host; undefined where nobody can be asked. */
  readonly ask: (exchange: Exchange, message: string, key: string) => Promise<boolean> | undefined
  /** How long a host, and the user behind it, may take. */
  readonly askMs: number
}

type Payload = Record<string, unknown> | undefined

/** What the runtime uses of scopes. */
export interface LiveScopes {
  /** Resolves to the payload when it is approved; throws a Problem with the reason otherwise. */
  within(exchange: Exchange, caller: LiveCaller | undefined, featureSet: string, scope: Scope): Promise<Payload>
  /** The same outside of calls, of one host. */
  elevate(host: LiveHost, featureSet: string, scope: Scope, exchange?: Exchange): Promise<Payload>
}

/** The server side of scopes. */
export function scopesServer({ ask, askMs }: ScopesParts): LiveScopes {
  const elevate: LiveScopes['elevate'] = async (host, featureSet, scope, exchange) => {
    if (passes(scope.label, host.selected.scopes(featureSet) ?? {})) return scope.payload
    const signal = exchange?.signal
    const answer = await host.request(elevateScope, { featureSet, scope }, { exchange, signal, timeoutMs: askMs })
    return settled(scope, answer)
  }
  return {
    elevate,
    within: async (exchange, caller, featureSet, scope) => {
      if (caller !== undefined && (await sentAlong(exchange, scope))) return scope.payload
      if (caller?.host !== undefined) return elevate(caller.host, featureSet, scope, exchange)
      if (caller !== undefined && passes(scope.label, caller.selected.scopes(featureSet) ?? {})) return scope.payload
      const key = `scope ${featureSet} ${await digest(scope)}`
      const asked = ask(exchange, question(featureSet, scope), key)
      if (asked === undefined) throw denied(scope, undefined, unasked)
      if (await asked) return scope.payload
      throw denied(scope, 'The user said no', 'Ask the user, or choose something else to act on')
    },
  }
}

/** Hosts that put a scope on the call have judged it before they sent it (§7.7). */
async function sentAlong({ params, meta }: Exchange, scope: Scope): Promise<boolean> {
  const live = meta?.[liveExtension]
  const [beside, within] = [params['scope'], isRecord(live) ? live['scope'] : undefined]
  // Judged by the one, it would be let through by the other.
  if (beside !== undefined && within !== undefined && (await digest(beside)) !== (await digest(within))) return false
  const said = beside ?? within
  if (scopeShape.check(said) !== undefined) return false
  const given = said as Scope
  return given.label === scope.label && (await digest(given.payload ?? {})) === (await digest(scope.payload ?? {}))
}

function settled(scope: Scope, answer: Elevation): Payload {
  if (elevationShape.check(answer) !== undefined) throw denied(scope, 'The host answered something else than yes or no', again)
  if (answer.approved) return (answer.payload as Payload) ?? scope.payload
  throw denied(scope, answer.reason, 'Let the host whitelist it, or approve it there')
}

const again = 'Look at what the host makes of scope/elevate'
const unasked = 'Use a host that speaks MCP Live, or one that can ask its user (elicitation)'

function question(featureSet: string, { label, payload }: Scope): string {
  const what = payload === undefined ? '' : ` (${clip(JSON.stringify(payload), 500)})`
  return `May "${clip(featureSet)}" act on ${clip(label, 200)}${what}?`
}

function denied({ label }: Scope, reason: string | undefined, suggestion: string): Problem {
  const why = reason === undefined ? '' : `: ${clip(reason, 500)}`
  return problem('SCOPE_DENIED', `Not approved for ${clip(label, 200)}${why}`, {
    suggestion,
    actor: 'user',
    details: { label: clip(label, 200), ...(reason === undefined ? {} : { reason: clip(reason, 500) }) },
  })
}

// Whether a host's whitelist lets a label pass without a question. Which language its patterns are of is the host's to say; globs are
// the default. Here only plain labels pass: whatever could be read in two ways is asked about.

/** `..`, `.`, empty segments, escapes, backslashes and what cannot be seen: spellings of something else. */
const devious = /(^|\/)\.{1,2}(\/|$)|\/\/|[\\%~]|\p{C}|[^\S ]/u

const most = 1_024

/** True only where no question is needed. */
export function passes(label: string, { whitelist = [], blacklist = [] }: ScopeLists): boolean {
  if (label.length > most || devious.test(label) || label !== label.normalize('NFKC') || label.trim() !== label) return false
  return !blacklist.some(pattern => barred(pattern, label)) && whitelist.some(pattern => globbed(pattern, label))
}

/** What is barred is barred in whatever case, and in the folders where `**` stands for none. */
function barred(pattern: string, label: string): boolean {
  const [glob, text] = [pattern.toLowerCase(), label.toLowerCase()]
  return [glob, glob.replace(/^\*\*\//, ''), glob.replaceAll('/**/', '/'), glob.replace(/\/\*\*$/, '')].some(one =>
    globbed(one, text),
  )
}

/** `*` and `?` stay within a segment, `**` does not; all else stands for itself. Takes at most length × length steps. */
export function globbed(pattern: string, text: string): boolean {
  let at = 0
  let here = 0
  let near: Retry | undefined
  let far: Retry | undefined
  for (;;) {
    if (pattern[at] === '*') {
      const deep = pattern[at + 1] === '*'
      at += deep ? 2 : 1
      if (deep) [far, near] = [{ at, here }, undefined]
      else near = { at, here }
    } else if (here === text.length && at === pattern.length) return true
    else if (here < text.length && (pattern[at] === text[here] || (pattern[at] === '?' && text[here] !== '/'))) {
      at++
      here++
    } else {
      if (near !== undefined && (near.here >= text.length || text[near.here] === '/')) near = undefined
      const again: Retry | undefined = near ?? far
      if (again === undefined || again.here >= text.length) return false
      // One more character belongs to the star; what stood behind it is tried from there.
      again.here++
      if (again === far) near = undefined
      at = again.at
      here = again.here
    }
  }
}

interface Retry {
  readonly at: number
  here: number
}
