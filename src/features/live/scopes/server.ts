/**
 * Server side of scopes (MCP Live 0.2 §7): a scope that the host sent with the call or has whitelisted is allowed; otherwise the host
 * is asked. Plain clients are asked by elicitation if they support it.
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
  /** Asks the user of a plain client; undefined if that is impossible. */
  readonly ask: (exchange: Exchange, message: string, key: string) => Promise<boolean> | undefined
  /** How long host and user may take. */
  readonly askMs: number
}

type Payload = Record<string, unknown> | undefined

/** Creates the server side of scopes. */
export function scopesServer({ ask, askMs }: ScopesParts) {
  /** Asks one host, outside of a call too. */
  const elevate = async (host: LiveHost, featureSet: string, scope: Scope, exchange?: Exchange): Promise<Payload> => {
    if (passes(scope.label, host.selected.scopes(featureSet) ?? {})) return scope.payload
    const signal = exchange?.signal
    const answer = await host.request(elevateScope, { featureSet, scope }, { exchange, signal, timeoutMs: askMs })
    return settled(scope, answer)
  }
  return {
    elevate,
    /** Asks during a call. Resolves to the payload; throws a Problem if denied. */
    within: async (exchange: Exchange, caller: LiveCaller | undefined, featureSet: string, scope: Scope): Promise<Payload> => {
      if (caller !== undefined && (await sentAlong(exchange, scope))) return scope.payload
      if (caller?.host !== undefined) return elevate(caller.host, featureSet, scope, exchange)
      if (caller !== undefined && passes(scope.label, caller.selected.scopes(featureSet) ?? {})) return scope.payload
      const key = `scope ${featureSet} ${await digest(scope)}`
      const asked = ask(exchange, question(featureSet, scope), key)
      if (asked === undefined) throw denied(scope, undefined, unasked)
      if (await asked) return scope.payload
      throw denied(scope, 'The user declined', 'Ask the user first, or choose another target')
    },
  }
}

/** A scope that the host put on the call is already approved (§7.7). */
async function sentAlong({ params, meta }: Exchange, scope: Scope): Promise<boolean> {
  const live = meta?.[liveExtension]
  const [beside, within] = [params['scope'], isRecord(live) ? live['scope'] : undefined]
  // If params and `_meta` differ, neither is trusted: a filter may have checked only one of them.
  if (beside !== undefined && within !== undefined && (await digest(beside)) !== (await digest(within))) return false
  const said = beside ?? within
  if (scopeShape.check(said) !== undefined) return false
  const given = said as Scope
  return given.label === scope.label && (await digest(given.payload ?? {})) === (await digest(scope.payload ?? {}))
}

// Reads the host's answer to `scope/elevate`.
function settled(scope: Scope, answer: Elevation): Payload {
  if (elevationShape.check(answer) !== undefined)
    throw denied(scope, 'The response of the host to scope/elevate is not valid', again)
  if (answer.approved) return (answer.payload as Payload) ?? scope.payload
  throw denied(scope, answer.reason, 'Approve it in the host, or add the label to its whitelist')
}

const again = 'Check how the host implements scope/elevate'
const unasked = 'Use a host that supports MCP Live, or a client that can ask its user (elicitation)'

// The question for users of plain clients.
function question(featureSet: string, { label, payload }: Scope): string {
  const what = payload === undefined ? '' : ` (${clip(JSON.stringify(payload), 500)})`
  return `Allow "${clip(featureSet)}" to act on ${clip(label, 200)}${what}?`
}

function denied({ label }: Scope, reason: string | undefined, suggestion: string): Problem {
  const why = reason === undefined ? '' : `: ${clip(reason, 500)}`
  return problem('SCOPE_DENIED', `Acting on ${clip(label, 200)} was not approved${why}`, {
    suggestion,
    actor: 'user',
    details: { label: clip(label, 200), ...(reason === undefined ? {} : { reason: clip(reason, 500) }) },
  })
}

// Decides whether a whitelist allows a label without asking. Patterns are read as globs here; anything ambiguous is left to the host.

/** Path tricks: `..`, `.`, empty segments, escapes, backslashes and invisible characters. */
const devious = /(^|\/)\.{1,2}(\/|$)|\/\/|[\\%~]|\p{C}|[^\S ]/u

const most = 1_024

/** True only if no question is needed. */
export function passes(label: string, { whitelist = [], blacklist = [] }: ScopeLists): boolean {
  if (label.length > most || devious.test(label) || label !== label.normalize('NFKC') || label.trim() !== label) return false
  return !blacklist.some(pattern => barred(pattern, label)) && whitelist.some(pattern => globbed(pattern, label))
}

/** The deny list ignores case, and `**` also matches no folder at all. */
function barred(pattern: string, label: string): boolean {
  const [glob, text] = [pattern.toLowerCase(), label.toLowerCase()]
  return [glob, glob.replace(/^\*\*\//, ''), glob.replaceAll('/**/', '/'), glob.replace(/\/\*\*$/, '')].some(one =>
    globbed(one, text),
  )
}

/**
 * `*` and `?` match within a segment, `**` across segments; everything else is literal. Runs in at most length × length steps, so
 * patterns cannot cause excessive backtracking.
 */
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
      // Let the star consume one more character, and retry the rest of the pattern from there.
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
