/** E4: what a call would need, asking for it, and its end. */
import {
  hasCode,
  hasProblem,
  hasResult,
  isMade,
  isRefusedBy,
  openRequester,
  type PeerAnswer,
  type Requester,
  type Saying,
} from '../calls.ts'
import { extensionTable } from '../define.ts'
import { type Expectation, is, listIn, objectIn, objectsIn, orSkip } from '../expectations.ts'
import { extensionId, isPlain, needsConfirmation, saidOf, scopesOf } from '../said.ts'
import type { Bench, Json, Scenario } from '../scenario.ts'
import { callTool, keyed, newKey, rest, type ScenarioContext, send, step, type TableStep } from '../steps.ts'
import { bringing, callable, either, type Finder, type FoundTool, toolThat, undoable } from '../tools.ts'
import { agreed } from './confirmation.ts'
import { onState, stateTokenIn } from './ongoing.ts'

const row = extensionTable('permissions')
const reads = { writes: false }

/** One that a single scope lets in. */
const scopedTool = toolThat('requires one scope', tool => scopesOf(tool).length === 1 && !needsConfirmation(tool))
/** One that can be called without harm, where there is such a one. */
const seen = either(
  toolThat('requires one scope and is read-only', (tool, peer) => scopesOf(tool).length === 1 && peer.mayCall(String(tool.name))),
  scopedTool,
)
const guarded = toolThat('requires several scopes', tool => scopesOf(tool).length > 1 && !needsConfirmation(tool))

/** Parameters of `permissions/negotiate`: all that a tool needs. */
export function asksFor(tool: Finder, more: Json = {}): (x: ScenarioContext) => Json {
  return x => ({ requested_scopes: [...scopesOf(x.tool(tool).listed)], ...more })
}

/** The token of a grant that was given; undefined where none was. */
export function tokenIn({ result }: PeerAnswer): string | undefined {
  const { token } = objectIn(result, 'session')
  return is.string(token) ? token : undefined
}

/** What a call says that holds the grant of an earlier answer. */
export function holding(granted: PeerAnswer): Saying {
  return { permissions: { session_token: tokenIn(granted) } }
}

/** Asks for what a tool needs; there is nothing to judge where the server does not give it. */
const grant = (tool: Finder, more: Json = {}) =>
  send('permissions/negotiate', asksFor(tool, { justification: 'To see whether it works', ...more }))
const isGranted = { 'The server grants no scope that a tool requires': orSkip((it: PeerAnswer) => tokenIn(it) !== undefined) }
const held = (x: ScenarioContext) => ({ say: holding(x.was(-1)) })

/**
 * Goes on only where the kit lacks what the tool needs: whoever starts a server is often trusted with everything, and a token may
 * hold it. Fails where the check allows a call that is refused.
 */
async function expectLack(x: ScenarioContext, finder: Finder, mayCall = true): Promise<void> {
  const tool = x.tool(finder)
  const check = await x.ask('permissions/check', { tool: tool.name, parameters: tool.args })
  if (check.result.allowed !== true) return
  if (mayCall) {
    const called = await x.call(tool)
    const frames = [...check.frames, ...called.frames]
    x.expect(called.problem.code !== 'SCOPE_INSUFFICIENT', 'The check allows a call that is refused for its scopes', frames)
  }
  const scopes = scopesOf(tool.listed).join(' ')
  x.leave(`The kit may already call ${tool.name}; test the server over HTTP, with a token without ${scopes}`)
}

const lacks = (tool: Finder): TableStep => step(x => expectLack(x, tool), tool)
const unscoped = isRefusedBy('SCOPE_INSUFFICIENT')
const sameSet = (one: readonly unknown[], other: readonly unknown[]): boolean =>
  JSON.stringify([...one].sort()) === JSON.stringify([...other].sort())
const namesMissing =
  (tool: Finder): Expectation<PeerAnswer, ScenarioContext> =>
  (it, x) =>
    sameSet(listIn(it.problem, 'details', 'missing_scopes'), scopesOf(x.tool(tool).listed))

/** E4: scopes of tools, and grants of scopes. */
export const permissions: readonly Scenario[] = [
  row('E4-1', 'A check agrees with the decision of the call, without a grant and with one').by(scopedTool, async x => {
    await expectLack(x, scopedTool)
    const { name, args, listed } = x.tool(scopedTool)
    const scopes = [...scopesOf(listed)]
    x.hold(await x.ask('permissions/check', { tool: name, scopes_held: scopes, parameters: args }), {
      'A check accepts scopes that the client only claims to have': hasResult({ allowed: false }),
      'A check does not name the missing scopes': it => sameSet(listIn(it.result, 'missing_scopes'), scopes),
    })
    x.refused(await x.call(scopedTool), 'SCOPE_INSUFFICIENT', 'The call that the check denied')
    const granted = await x.ask('permissions/negotiate', {
      ...asksFor(scopedTool)(x),
      justification: 'To see whether it works',
    })
    if (tokenIn(granted) === undefined) return x.warn('The server grants no scope that a tool requires')
    const say = holding(granted)
    x.hold(await x.ask('permissions/check', { tool: name, parameters: args }, { say }), {
      'A check with a grant does not allow what the grant covers': hasResult({ allowed: true }),
    })
    x.made(await x.call(scopedTool, { say }), 'The call that the check allowed')
  }),
  row('E4-2', 'A check of an unknown tool is denied with a reason and no scopes; the call is an invalid parameter').by(reads, [
    send('permissions/check', x => ({ tool: `no_such_tool_${x.key()}` })).expect({
      'A check of an unknown tool has no reason': hasResult({ allowed: false, reason: is.string }),
      'A check of an unknown tool names missing_scopes': hasResult({ missing_scopes: is.absent }),
    }),
    step(x => x.call(`no_such_tool_${x.key()}`, { args: {} })).expect({
      'A call of an unknown tool is not answered with -32602': hasCode(-32602),
    }),
  ]),
  row('E4-2b E4-1', 'Several checks in one request are answered separately').by({ needs: [scopedTool, callable] }, [
    lacks(scopedTool),
    send('permissions/check', x => ({
      checks: [{ tool: x.tool(callable).name }, { tool: x.tool(scopedTool).name }],
    })).expect({
      'Several checks are not answered in their order': ({ result }) =>
        JSON.stringify(objectsIn(result, 'checks').map(check => check.allowed)) === '[true,false]',
    }),
  ]),
  row('E4-3', 'A call without scopes is refused before it runs, and the refusal names all missing scopes').by([
    lacks(guarded),
    callTool(guarded).expect({
      'A call without its scopes': unscoped,
      'The refusal is not of the category auth_required': hasProblem({ category: 'auth_required' }),
      'details.missing_scopes does not contain all scopes that the list names': namesMissing(guarded),
    }),
  ]),
  row('E4-4', 'Each requested scope is granted, or denied with a reason').by({ ...reads, needs: [guarded] }, async x => {
    const wanted = [...scopesOf(x.tool(guarded).listed), `kit:${newKey()}`]
    const { result } = await x.ask('permissions/negotiate', { requested_scopes: wanted })
    const given = listIn(result, 'granted_scopes')
    const denied = objectsIn(result, 'denied_scopes')
    const every = [...given, ...denied.map(one => one.scope)]
    x.expect(
      given.every(scope => wanted.includes(String(scope))),
      'A scope was granted that was not requested',
    )
    x.expect(sameSet(every, wanted), 'Not every scope is either granted or denied')
    x.expect(
      denied.every(one => is.word(one.reason)),
      'A denied scope has no reason',
    )
    const isSession = typeof result.session === 'object' && result.session !== null
    x.expect(given.length > 0 === isSession, 'There is a session without a granted scope, or none with one')
  }),
  row('E4-5', 'A grant lasts no longer than requested, and has no effect after that').by([
    lacks(scopedTool),
    grant(scopedTool, { ttl_seconds: 2 }).expect({
      ...isGranted,
      'A grant has no expires_at': ({ result }) => is.time(objectIn(result, 'session').expires_at),
      'A grant lasts longer than requested': ({ result }) =>
        Date.parse(String(objectIn(result, 'session').expires_at)) - Date.now() <= 4_000,
    }),
    callTool(scopedTool, held).expect({ 'A call before its grant expires': isMade }),
    rest(2_300),
    callTool(scopedTool, x => ({ say: holding(x.was(-2)) })).expect({ 'A call after its grant expired': unscoped }),
  ]),
  row('E4-7', 'A grant token of another caller has no effect, and the answer is the same as without a grant').by(
    scopedTool,
    async x => {
      const forged = await x.call(scopedTool, { say: { permissions: { session_token: 'forged' } } })
      if (forged.problem.code !== 'SCOPE_INSUFFICIENT') await expectLack(x, scopedTool)
      x.hold(forged, {
        'A call with a forged grant': unscoped,
        'A forged grant changes the list of missing scopes': namesMissing(scopedTool),
      })
    },
  ),
  row('E4-9', 'Tools are listed with their scopes, also for clients that may not call them').by(
    { ...reads, needs: [seen] },
    // Nothing is called that may write.
    x => expectLack(x, seen, x.bench.peer.mayCall(x.tool(seen).name)),
  ),
  row('E4-10', 'The page for more scopes is on https').by([
    send('permissions/check', x => ({ tool: x.tool(guarded).name })),
    callTool(guarded).expect({
      'The server names no elevation_url': orSkip((it, { was }) => pagesIn(was(0), it).length > 0),
      'elevation_url is not https': (it, { was }) =>
        pagesIn(was(0), it).every(url => is.string(url) && url.startsWith('https://')),
    }),
  ]),
]

function pagesIn(check: PeerAnswer, called: PeerAnswer): readonly unknown[] {
  return [check.result.elevation_url, objectIn(called.problem, 'details').elevation_url].filter(url => url !== undefined)
}

/*
 * C8: what one principal was given is nothing to another. Two of them can be had where the kit makes the tokens of a guarded server;
 * a server that lets everybody in knows no principals.
 */

async function asSubject(bench: Bench, subject: string): Promise<Requester> {
  const noTokens = 'the kit cannot create tokens for two principals (option auth, or --issuer)'
  const token = await (bench.auth ?? bench.leave(noTokens)).token({ subject })
  return openRequester(bench, { fresh: true, headers: { authorization: `Bearer ${token}` } })
}

interface Two {
  readonly tool: FoundTool
  readonly mine: Requester
  readonly other: Requester
}

/** One scenario of an extension, played by two principals with one tool. */
function between(
  extension: string,
  ids: string,
  title: string,
  finder: Finder,
  run: (x: ScenarioContext, two: Two) => Promise<void>,
) {
  return extensionTable(extension)(ids, title).by({ carriers: ['http'], needs: [finder] }, async x => {
    const mine = await asSubject(x.bench, 'kit-one')
    await run(x, { tool: x.tool(finder), mine, other: await asSubject(x.bench, 'kit-two') })
  })
}

const confirmed = toolThat(
  'requires confirmation and no scopes, and can be called without a page',
  tool => needsConfirmation(tool) && scopesOf(tool).length === 0 && saidOf(tool, 'confirmation').channel !== 'url',
)
const branching = bringing('state:branch')
const streaming = toolThat('streams', tool => isPlain(tool) && saidOf(tool, 'streaming').supports_streaming === true)

/** C8: what one principal has is nothing to another. */
export const principals: readonly Scenario[] = [
  between(
    'permissions',
    'E4-7p E4-7',
    'The grant of one principal is an unknown token for another',
    scopedTool,
    async (x, { tool, mine, other }) => {
      const granted = await mine.ask('permissions/negotiate', asksFor(scopedTool)(x))
      if (tokenIn(granted) === undefined) return x.leave('The server grants no scope that a tool requires')
      const say = holding(granted)
      x.made(await mine.call(tool, { say }), 'A call with a grant of the same principal')
      const foreign = await other.call(tool, { say })
      x.refused(foreign, 'SCOPE_INSUFFICIENT', 'A call with the grant of another principal')
      const unknown = await other.call(tool, { say: { permissions: { session_token: 'nobody-knows-it' } } })
      const [one, two] = [foreign, unknown].map(({ problem }) => JSON.stringify([problem.code, problem.details]))
      x.expect(one === two, 'The answer distinguishes a foreign grant from an unknown one', [
        ...granted.frames,
        ...foreign.frames,
      ])
    },
  ),
  between('idempotency', 'E5-1p E5-1', 'A key of one principal is unused for another', callable, async (x, two) => {
    x.made(await two.mine.call(two.tool, keyed(x)), 'A call under a fresh key')
    const called = await two.other.call(two.tool, keyed(x))
    x.made(called, 'The call of another principal under the same key')
    const fresh = called.member('idempotency').was_replay === false
    x.expect(fresh, 'The result of another principal was returned as a replay', called.frames)
  }),
  between(
    'transactions',
    'E5-12p E5-12',
    'A transaction of one principal does not exist for another',
    undoable,
    async (x, { tool, mine, other }) => {
      const within = { transaction_id: newKey() }
      x.made(await mine.ask('transaction/begin', { ...within, timeout_seconds: 60 }), 'transaction/begin')
      const step = await other.call(tool, { say: { transactions: within } })
      x.refused(step, 'RESOURCE_NOT_FOUND', 'A step in a transaction of another principal')
      const commit = await other.ask('transaction/commit', within)
      x.refused(commit, 'RESOURCE_NOT_FOUND', 'The commit of a transaction of another principal')
      await mine.ask('transaction/rollback', within)
    },
  ),
  between(
    'confirmation',
    'E6-3p E6-3',
    'A confirmation of one principal does not count for another',
    confirmed,
    async (x, two) => {
      const asked = await two.mine.call(two.tool)
      x.text(asked.member('confirmation').confirmation_token, 'There is no confirmation_token')
      const say = agreed(asked)
      x.refused(
        await two.other.call(two.tool, { say }),
        'CONFIRMATION_REQUIRED',
        'A call with a confirmation of another principal',
      )
      x.made(await two.mine.call(two.tool, { say }), 'The call with a confirmation of the same principal')
    },
  ),
  between(
    'streaming',
    'E8-7p E8-7',
    'A checkpoint of one principal is invalid for another',
    streaming,
    async (x, { tool, mine, other }) => {
      const first = await mine.call(tool, { say: { progressToken: 'kit-checkpoint' } })
      const saidIn = (message: unknown) => objectIn(message, 'params', '_meta', extensionId('streaming'))
      const [chunk] = mine.peer.heard(message => Object.keys(saidIn(message)).length > 0)
      const { operation_id, checkpoint_token } = saidIn(chunk?.value)
      if (!is.string(checkpoint_token)) return x.leave('The tool returns no checkpoints')
      x.expect(!first.isError, 'The call that streams failed', first.frames)
      const resume = { operation_id, checkpoint_token }
      const foreign = await other.call(tool, { say: { progressToken: 'kit-other', streaming: { resume } } })
      x.refused(foreign, 'CHECKPOINT_NOT_FOUND', 'A call that continues from a checkpoint of another principal')
    },
  ),
  between('state', 'E14-3p E14-3', 'A state of one principal is invalid for another', branching, async (x, two) => {
    const first = await two.mine.call(two.tool)
    const token = x.text(stateTokenIn(first), 'A call with state returns no session_state')
    x.refused(await two.other.call(two.tool, onState(token)), 'STATE_INVALID', 'A call with a state of another principal')
    x.made(await two.mine.call(two.tool, onState(token)), 'The call with a state of the same principal')
  }),
]
