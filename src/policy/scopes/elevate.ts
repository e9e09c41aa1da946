/**
 * What a tool call will act on, read from its arguments by the host. A label that a server supplies is only its word for it; where
 * the host can read the arguments, they count.
 */
import { matches } from '../../core/scope.ts'
import { type Why, whyText } from '../../core/suggestion.ts'
import type { Scope } from '../../features/live/scopes/messages.ts'
import type { Policy } from '../policy.ts'

/** The arguments of a tool call. */
type Arguments = Readonly<Record<string, unknown>>

/** The names of the arguments that name the scope, or a function that reads it from the arguments. */
type Extractor = string | readonly string[] | ((args: Arguments) => Scope | readonly Scope[] | undefined)

/** Extractors by `server/tool`; `*` stands for any characters. */
export type Extractors = Readonly<Record<string, Extractor>>

/** Undefined where no extractor is for this tool. An empty list: there is one, and it found nothing. */
export function extracted(extractors: Extractors, server: string, tool: string, args: unknown): readonly Scope[] | undefined {
  const found = Object.entries(extractors).filter(([pattern]) => matches(pattern, `${server}/${tool}`))
  if (found.length === 0) return undefined
  const values = typeof args === 'object' && args !== null && !Array.isArray(args) ? (args as Arguments) : {}
  const scopes = found.map(([, extractor]) => read(extractor, values))
  // One that finds nothing leaves open what the call acts on, whatever the others found.
  return scopes.some(each => each.length === 0) ? [] : scopes.flat()
}

/** The scopes that one extractor reads. */
function read(extractor: Extractor, args: Arguments): readonly Scope[] {
  if (typeof extractor === 'function') {
    const scopes = extractor(args)
    return scopes === undefined ? [] : 'label' in scopes ? [scopes] : scopes
  }
  const names = typeof extractor === 'string' ? [extractor] : extractor
  const named = names.map(name => (Object.hasOwn(args, name) ? scopesOf(name, args[name]) : []))
  return named.some(each => each.length === 0) ? [] : named.flat()
}

/** The scopes in one argument: a text or a list of texts. */
function scopesOf(name: string, value: unknown): readonly Scope[] {
  if (typeof value === 'string') return [{ label: value, payload: { [name]: value } }]
  if (!Array.isArray(value) || !value.every(item => typeof item === 'string')) return []
  return value.map(item => ({ label: item, payload: { [name]: item } }))
}

// The host's answer to `scope/elevate` (MCP Live 0.2 §7.5): decided, asked about where it has to be, and given back with its payload.

type ElevationAnswer =
  | { readonly approved: true; readonly payload?: Record<string, unknown> }
  | { readonly approved: false; readonly reason: string; readonly data?: Why }

interface ElevationRequest {
  readonly featureSet: string
  readonly scope: Scope
}

/** Answers `scope/elevate` by the policy, and by the user where the policy says so. */
export async function elevate(
  policy: Pick<Policy, 'decide' | 'approve'>,
  server: string,
  { featureSet, scope }: ElevationRequest,
  /** Told of the rule or the approval that allows it. */
  ruled: (rule: string) => void = () => {},
): Promise<ElevationAnswer> {
  const asked = { kind: 'scope', server, featureSet, scope } as const
  const verdict = await policy.decide(asked)
  if (verdict.do === 'deny' || verdict.do === 'hold') return refused(verdict.why)
  const payload = scope.payload === undefined ? {} : { payload: scope.payload }
  const answer = verdict.do === 'ask' ? await policy.approve(asked, verdict) : { yes: true }
  if (!answer.yes) return answer.why === undefined ? { approved: false, reason: 'The request was declined' } : refused(answer.why)
  ruled(answer.rule ?? verdict.rule)
  return { approved: true, ...payload }
}

function refused(data: Why): ElevationAnswer {
  return { approved: false, reason: whyText(data), data }
}
