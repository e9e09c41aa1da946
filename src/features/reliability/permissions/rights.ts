/**
 * Decides about permissions, both for calls and for checks in advance, and grants scopes. Loaded with the first request that needs it.
 */
import { lifetimeOfSeconds, toMilliseconds } from '../../../core/clock.ts'
import { type Decision, decide, denialProblem, type Grant, type GrantDenial, type GrantUse } from '../../../core/grant/grant.ts'
import { problem } from '../../../core/problem.ts'
import { isScope, mostScopes } from '../../../core/scope.ts'
import { type Asker, compensation, type Exchange } from '../../../engine/exchange.ts'
import { ownerOf } from '../../../engine/owner.ts'
import type { Next } from '../../../engine/stages.ts'
import type { Caller } from '../../../jsonrpc/connection.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { admission, insufficient, isTrusted, type PresentedGrant } from '../../mcp/authorization/messages.ts'
import { elicit, takesElicitation } from '../../mcp/elicitation/messages.ts'
import { toolsPort } from '../../mcp/tools/messages.ts'
import { presentedIn, type WireCheck, type WireChecked, type WireNegotiated } from './messages.ts'
import type { PermissionAnswer, PermissionsParts, RequiredScopes } from './server.ts'
import { PermissionSessions, sessionName } from './sessions.ts'

/** Who asks; for compensations also the exchange. */
type RightsQuestion = Asker & Partial<Pick<Exchange, 'get'>>

// A decision with everything that follows from it.
interface Judgement {
  readonly decision: Decision
  /** The grants whose use must be counted. */
  readonly uses: readonly GrantUse[]
  readonly needs: readonly string[]
  /** Scopes that the caller's own token lacks. */
  readonly short: readonly string[]
  /** The presented grant, if it is valid. */
  readonly admission: PresentedGrant | undefined
}

// Limit of checks in one request.
const checksLimit = 100

/** The decisions of one server. */
export class Rights {
  readonly sessions: PermissionSessions
  readonly #parts: PermissionsParts

  constructor(parts: PermissionsParts) {
    this.#parts = parts
    this.sessions = new PermissionSessions(parts)
  }

  /** Runs a request if it is allowed, and returns its result only if it still is; `then` gives what is needed at that time. */
  async run(exchange: Exchange, aim: RequiredScopes, next: Next, then: () => RequiredScopes | undefined): Promise<unknown> {
    await this.#allow(exchange, aim)
    const result = await next()
    // Tasks are checked when they end.
    if (!exchange.detached) await this.confirmStill(exchange, then() ?? aim)
    return result
  }

  /** Throws if the caller has lost its right. */
  async confirmStill(exchange: Exchange, aim: RequiredScopes): Promise<void> {
    if (presentedIn(exchange.meta) === undefined) return
    const { decision } = await this.#judged(exchange, aim, argumentsOf(exchange))
    if (decision.kind === 'deny') throw endedMeanwhile(aim, decision)
  }

  /** Whether the caller may see something. */
  async allows(asker: Asker, aim: RequiredScopes): Promise<boolean> {
    return (await this.judge(asker, aim)).kind === 'allow'
  }

  /** Decides without counting a use. */
  async judge(asker: Asker, aim: RequiredScopes): Promise<Decision> {
    return (await this.#judged(asker, aim, {})).decision
  }

  /** Determines the grant that a request presents, and counts a use of it. */
  async admit(exchange: Exchange): Promise<void> {
    const owner = await ownerOf(exchange)
    const found = await this.sessions.find(owner, presentedIn(exchange.meta))
    if (found === undefined || !(await (await this.#parts.grants()).use([{ ...found, binding: undefined }]))) return
    exchange.set(admission, this.#admissionOf(exchange, found.grant))
  }

  /** Answers `permissions/check`. */
  async check(exchange: Exchange): Promise<WireChecked | { readonly checks: readonly WireChecked[] }> {
    const { checks, ...one } = exchange.params as unknown as Partial<WireCheck> & { readonly checks?: readonly WireCheck[] }
    if (checks !== undefined && checks.length > checksLimit)
      throw new McpError('invalid-params', `params.checks has ${checks.length} entries. The limit is ${checksLimit}`)
    if (checks !== undefined && one.tool !== undefined)
      throw new McpError('invalid-params', 'Both params.tool and params.checks are set. Send only one of them')
    if (checks !== undefined) return { checks: await Promise.all(checks.map(check => this.#checked(exchange, check))) }
    if (one.tool === undefined)
      throw new McpError('invalid-params', 'Either params.tool (a string) or params.checks (a list) is required')
    return this.#checked(exchange, { ...one, tool: one.tool })
  }

  /** Answers `permissions/negotiate`. */
  negotiate(exchange: Exchange): Promise<WireNegotiated> {
    return negotiated(this.#parts, this.sessions, exchange)
  }

  // The decision itself. An error while determining the scopes is a denial.
  async #judged(exchange: RightsQuestion, aim: RequiredScopes, args: Params): Promise<Judgement> {
    const { caller, meta } = exchange
    const { principal } = caller
    const granting = this.#parts.grant !== undefined
    const token = presentedIn(meta)
    let needs: readonly string[]
    try {
      needs = [...new Set([...(aim.scopes ?? []), ...((await aim.scopesFor?.(args)) ?? [])])]
      if (needs.length > mostScopes) throw new RangeError(`The call needs ${needs.length} scopes. The limit is ${mostScopes}`)
    } catch (cause) {
      const why = `The scopes that ${clip(aim.name)} needs could not be determined`
      return only({ kind: 'deny', reason: 'evaluation_error', missing: [], why, cause }, [])
    }
    // A compensation is judged by the scopes of its step.
    const undo = exchange.get?.(compensation)
    if (undo !== undefined) return only(decidedThen(caller, undo.scopes, aim, needs, granting), needs)
    // The local user needs no scopes, unless the server grants them explicitly.
    const trusted = isTrusted(caller) && !granting
    if (trusted && token === undefined) return only({ kind: 'allow', uses: [] }, needs)
    const owner = await ownerOf(exchange)
    const found = token === undefined ? undefined : await this.sessions.find(owner, token)
    const presented = found === undefined ? [noGrant] : await this.sessions.permits(found.grant.id, needs)
    const decision = await (await this.#parts.grants()).decide({
      owner,
      action: 'call',
      resource: aim.name,
      needs,
      scopes: principal?.scopes,
      presented: token === undefined ? [] : presented,
    })
    const held = principal?.scopes ?? (token !== undefined || granting || trusted ? needs : [])
    const session = found === undefined ? [] : [{ ...found, binding: undefined }]
    return {
      decision,
      uses: decision.kind === 'allow' ? [...decision.uses, ...session] : [],
      needs,
      short: needs.filter(need => !held.includes(need)),
      admission: found && this.#admissionOf(exchange, found.grant),
    }
  }

  /** The grant, limited to the scopes of the caller's own token. */
  #admissionOf({ caller }: Asker, { owner, id, expires }: Grant): PresentedGrant {
    const held = caller.principal?.scopes
    const scopes = async (): Promise<readonly string[]> =>
      (await this.sessions.scopesOf(owner, id)).filter(scope => held?.includes(scope) ?? true)
    return { owner, id, expires, scopes }
  }

  /** Throws unless the caller is allowed. A page for granting scopes is offered once. */
  async #allow(exchange: Exchange, aim: RequiredScopes): Promise<void> {
    let offered = false
    for (;;) {
      const judgement = await this.#judged(exchange, aim, argumentsOf(exchange))
      const { decision, uses } = judgement
      if (decision.kind === 'allow') {
        // The grant ended between decision and use: decide again.
        if (uses.length > 0 && !(await (await this.#parts.grants()).use(uses))) continue
        exchange.set(admission, judgement.admission)
        return
      }
      if (decision.kind === 'ask') throw new McpError('internal', 'A grant has an obligation that this server cannot meet')
      if (judgement.short.length > 0) throw insufficient(judgement.needs, exchange.caller, denialProblem(decision))
      const url = decision.reason === 'missing' ? elevationOf(this.#parts, exchange, aim, judgement, decision) : undefined
      if (url === undefined) throw told(exchange, decision, undefined)
      if (offered || !(await offerElevation(exchange, aim, decision, url))) throw told(exchange, decision, url)
      offered = true
    }
  }

  // One check of `permissions/check`.
  async #checked(exchange: Exchange, { tool, parameters = {} }: WireCheck): Promise<WireChecked> {
    const facts = this.#parts.port(toolsPort).facts<RequiredScopes>(tool)
    if (facts === undefined) return { allowed: false, reason: `There is no tool "${clip(tool)}"` }
    const aim = { name: tool, scopes: facts.scopes, scopesFor: facts.scopesFor }
    const judgement = await this.#judged(exchange, aim, parameters)
    const { decision } = judgement
    if (decision.kind === 'allow') return { allowed: true }
    if (decision.kind === 'ask') return { allowed: false, reason: 'A grant has an obligation that this server cannot meet' }
    if (decision.reason !== 'missing') return { allowed: false, reason: `${decision.reason}: ${decision.why}` }
    const url = judgement.short.length > 0 ? undefined : elevationOf(this.#parts, exchange, aim, judgement, decision)
    return {
      allowed: false,
      missing_scopes: decision.missing,
      reason: decision.why,
      ...(url === undefined ? {} : { elevation_url: url }),
    }
  }
}

/** A grant id that never exists: an invalid token grants nothing. */
const noGrant = '~none'

/** A decision from which nothing else follows. */
function only(decision: Decision, needs: readonly string[]): Judgement {
  return { decision, uses: [], needs, short: [], admission: undefined }
}

/** Compensations run with the scopes that the original call had; later revocations do not apply. */
function decidedThen(
  caller: Caller,
  capturedScopes: readonly string[] | undefined,
  { name }: RequiredScopes,
  needs: readonly string[],
  granting: boolean,
): Decision {
  const trusted = isTrusted(caller) && !granting && capturedScopes === undefined
  const scopes = trusted ? needs : (capturedScopes ?? caller.principal?.scopes ?? [])
  const asked = { action: 'call', resource: name, needs, scopes, narrowed: false, obligations: [], met: [], binding: undefined }
  return decide(asked, [])
}

/** Tool calls fail with a problem in the result; other methods with an error like that of a token. */
function told(exchange: Exchange, denial: GrantDenial, url: string | undefined): Error {
  const { code, message, suggestion, actor, details, category } = denialProblem(denial)
  const more = url === undefined ? details : { ...details, elevation_url: url }
  const refused = problem(code, message, { suggestion, actor, category, details: more, cause: denial.cause })
  if (exchange.route.method.name === 'tools/call') return refused
  return new McpError('insufficient-scope', message, { cause: refused, data: { missing_scopes: denial.missing } })
}

// The tool has run, but the result is withheld.
function endedMeanwhile({ name }: RequiredScopes, denial: GrantDenial) {
  const { code, category, details } = denialProblem(denial)
  return problem(
    code,
    `The right to call ${clip(name)} ended during the call. The call was executed, but its result is withheld`,
    {
      category,
      details: { ...details, executed: true },
      actor: 'user',
      suggestion: 'Obtain the right again before you repeat anything',
    },
  )
}

function argumentsOf({ params }: Exchange): Params {
  return (params['arguments'] ?? {}) as Params
}

// Elevation: an https page where the user can grant what is missing. Clients are asked to open it.

/** The page; undefined if there is none, or it is not https. */
function elevationOf(
  { elevationUrl }: PermissionsParts,
  { caller, engine }: Exchange,
  { name }: RequiredScopes,
  { admission: admitted }: Judgement,
  { missing }: GrantDenial,
): string | undefined {
  const session = admitted === undefined ? undefined : sessionName(admitted.owner, admitted.id)
  const url = elevationUrl?.(missing, { tool: name, principal: caller.principal, session })
  if (url === undefined || URL.parse(url)?.protocol === 'https:') return url
  engine.trace('elevation-url-refused', new TypeError('permissions.elevationUrl must return an https URL'))
  return undefined
}

/** Asks the user to open the page; true if opened, so that another decision makes sense. */
async function offerElevation(
  exchange: Exchange,
  { name }: RequiredScopes,
  { missing }: GrantDenial,
  url: string,
): Promise<boolean> {
  if (exchange.route.method.asks !== true || !takesElicitation(exchange.peer, 'url')) return false
  const elicitationId = await exchange.once('elevation', () => crypto.randomUUID())
  const message = `${exchange.engine.info.name}: ${name} needs the scopes ${missing.join(', ')}. Open the page to grant them?`
  try {
    const { action } = await exchange.ask(
      elicit,
      { mode: 'url', message, url, elicitationId },
      {
        kind: 'elevate',
        key: `elevate-${elicitationId}`,
        requires: { elicitation: { url: {} } },
        allowed: true,
        accepts: answer => isRecord(answer) && typeof answer['action'] === 'string',
      },
    )
    return action === 'accept'
  } catch (error) {
    // A client that cannot be asked is refused as usual.
    if (error instanceof McpError && unanswered.has(error.kind)) return false
    throw error
  }
}

const unanswered = new Set(['capability-missing', 'remote', 'timeout', 'invalid-answer', 'invalid-result'])

// Granting scopes: what the author's function decides, but never more than requested or than the caller's token has.

// The params of `permissions/negotiate`.
interface Wish {
  readonly requested_scopes: readonly string[]
  readonly justification?: string
  readonly ttl_seconds?: number
}

// Negotiates, and opens a session for what was granted.
async function negotiated(parts: PermissionsParts, sessions: PermissionSessions, exchange: Exchange): Promise<WireNegotiated> {
  const wish = exchange.params as unknown as Wish
  const asked = [...new Set(wish.requested_scopes)]
  if (asked.length > mostScopes) throw invalid(`requested_scopes has ${asked.length} entries. The limit is ${mostScopes}`)
  if (wish.ttl_seconds !== undefined && wish.ttl_seconds <= 0) throw invalid('ttl_seconds must be above 0')
  const owner = await ownerOf(exchange)
  const id = crypto.randomUUID()
  const possible = new Map(asked.map(scope => [scope, refusalOf(parts, exchange, scope)]))
  const candidates = asked.filter(scope => possible.get(scope) === undefined)
  const answer = await answerOf(parts, exchange, wish, candidates, sessionName(owner, id))
  const granted = candidates.filter(scope => answer.scopes.includes(scope))
  const denied = asked
    .filter(scope => !granted.includes(scope))
    .map(scope => ({
      scope: clip(scope, 255),
      reason: possible.get(scope) ?? reasonIn(answer, scope) ?? 'This server does not grant this scope',
    }))
  if (granted.length === 0) return { granted_scopes: [], denied_scopes: denied }
  const idleMs = toMilliseconds(parts.idle ?? '15m', 'permissions.idle')
  const { token, expires } = await sessions.open(owner, id, granted, ttlOf(parts, wish, answer), idleMs, exchange.correlation)
  return {
    granted_scopes: granted,
    denied_scopes: denied,
    session: {
      token,
      scopes: granted,
      // Never later than the grant ends.
      expires_at: new Date(expires).toISOString(),
      inactivity_timeout_seconds: Math.floor(idleMs / 1000),
    },
  }
}

/** Why a scope cannot be granted, whatever the author decides. */
function refusalOf(parts: PermissionsParts, { caller }: Exchange, scope: string): string | undefined {
  if (!isScope(scope) || scope.includes('*')) return 'This is not a valid scope name'
  const held = caller.principal?.scopes
  if (held !== undefined) return held.includes(scope) ? undefined : 'The access token does not have this scope'
  if (parts.grant !== undefined || isTrusted(caller)) return undefined
  return 'Without authorization, this server grants no scopes'
}

// Without a `grant` function, the candidates are granted as they are.
async function answerOf(
  { grant }: PermissionsParts,
  { caller }: Exchange,
  { justification }: Wish,
  scopes: readonly string[],
  session: string,
): Promise<PermissionAnswer> {
  if (grant === undefined || scopes.length === 0) return { scopes }
  const answer = await grant({ scopes, session, principal: caller.principal, justification })
  return 'scopes' in answer ? answer : { scopes: answer }
}

function reasonIn({ reasons = {} }: PermissionAnswer, scope: string): string | undefined {
  return Object.hasOwn(reasons, scope) ? reasons[scope] : undefined
}

// The shortest of the server's, the author's and the client's lifetime.
function ttlOf(parts: PermissionsParts, { ttl_seconds: wanted }: Wish, { ttl }: PermissionAnswer): number {
  const most = toMilliseconds(parts.ttl ?? '1h', 'permissions.ttl')
  const own = ttl === undefined ? most : toMilliseconds(ttl, 'ttl')
  return lifetimeOfSeconds(wanted, { mostMs: Math.min(most, own) })
}

function invalid(message: string): McpError {
  return new McpError('invalid-params', `params.${message}`)
}
