/** E4: what a call would need, asking for it, and its end. */
import { hasCode, hasProblem, hasResult, isMade, isRefusedBy, type PeerAnswer, type Saying } from '../calls.ts'
import { extensionTable } from '../define.ts'
import { type Expectation, isAbsent, isString, isTime, isWord, listIn, objectIn, objectsIn, orSkip } from '../expectations.ts'
import type { Json, Scenario } from '../scenario.ts'
import { callTool, newKey, rest, type Scene, send, step, type TableStep } from '../steps.ts'
import { callable, either, type Finder, needsConfirmation, scopesOf, toolThat } from '../tools.ts'

const row = extensionTable('permissions')

/** One that a single scope lets in. */
export const scopedTool = toolThat('needs one scope', tool => scopesOf(tool).length === 1 && !needsConfirmation(tool))
/** One that can be called without harm, where there is such a one. */
const seen = either(
  toolThat('needs one scope and reads only', (tool, peer) => scopesOf(tool).length === 1 && peer.mayCall(String(tool.name))),
  scopedTool,
)
const guarded = toolThat('needs several scopes', tool => scopesOf(tool).length > 1 && !needsConfirmation(tool))

/** Parameters of `permissions/negotiate`: all that a tool needs. */
export function asksFor(tool: Finder, more: Json = {}): (x: Scene) => Json {
  return x => ({ requested_scopes: [...scopesOf(x.tool(tool).listed)], ...more })
}

/** The token of a grant that was given; undefined where none was. */
export function tokenIn({ result }: PeerAnswer): string | undefined {
  const { token } = objectIn(result, 'session')
  return isString(token) ? token : undefined
}

/** What a call says that holds the grant of an earlier answer. */
export function holding(granted: PeerAnswer): Saying {
  return { permissions: { session_token: tokenIn(granted) } }
}

/** Asks for what a tool needs; there is nothing to judge where the server does not give it. */
const grant = (tool: Finder, more: Json = {}) =>
  send('permissions/negotiate', asksFor(tool, { justification: 'To see whether it works', ...more }))
const isGranted = { 'The server grants no scope that a tool needs': orSkip((it: PeerAnswer) => tokenIn(it) !== undefined) }
const held = (x: Scene) => ({ say: holding(x.was(-1)) })

/**
 * Goes on only where the kit lacks what the tool needs: whoever starts a server is often trusted with everything, and a token may
 * hold it. Fails where the check allows a call that is refused.
 */
async function expectLack(x: Scene, finder: Finder, mayCall = true): Promise<void> {
  const tool = x.tool(finder)
  const check = await x.ask('permissions/check', { tool: tool.name, parameters: tool.args })
  if (check.result.allowed !== true) return
  if (mayCall) {
    const called = await x.call(tool)
    const frames = [...check.frames, ...called.frames]
    x.expect(called.problem.code !== 'SCOPE_INSUFFICIENT', 'The check allows a call that is refused for its scopes', frames)
  }
  const scopes = scopesOf(tool.listed).join(' ')
  x.leave(`The kit may call ${tool.name} as it is; judge the server over HTTP, with a token that lacks ${scopes}`)
}

const lacks = (tool: Finder): TableStep => step(x => expectLack(x, tool), [tool])
const unscoped = isRefusedBy('SCOPE_INSUFFICIENT')
const sameSet = (one: readonly unknown[], other: readonly unknown[]): boolean =>
  JSON.stringify([...one].sort()) === JSON.stringify([...other].sort())
const namesMissing =
  (tool: Finder): Expectation<PeerAnswer, Scene> =>
  (it, x) =>
    sameSet(listIn(it.problem, 'details', 'missing_scopes'), scopesOf(x.tool(tool).listed))

export const permissions: readonly Scenario[] = [
  row('E4-1', 'A check agrees with the decision of the call, without a grant and with one', { tools: [scopedTool] }, async x => {
    await expectLack(x, scopedTool)
    const { name, args, listed } = x.tool(scopedTool)
    const scopes = [...scopesOf(listed)]
    x.hold(await x.ask('permissions/check', { tool: name, scopes_held: scopes, parameters: args }), {
      'A check counts what the client claims to hold': hasResult({ allowed: false }),
      'A check does not name the missing scopes': it => sameSet(listIn(it.result, 'missing_scopes'), scopes),
    })
    x.refused(await x.call(scopedTool), 'SCOPE_INSUFFICIENT', 'The call that the check denied')
    const granted = await x.ask('permissions/negotiate', {
      ...asksFor(scopedTool)(x),
      justification: 'To see whether it works',
    })
    if (tokenIn(granted) === undefined) return x.warn('The server grants no scope that a tool needs')
    const say = holding(granted)
    x.hold(await x.ask('permissions/check', { tool: name, parameters: args }, { say }), {
      'A check with a grant does not allow what the grant gives': hasResult({ allowed: true }),
    })
    x.made(await x.call(scopedTool, { say }), 'The call that the check allowed')
  }),
  row(
    'E4-2',
    'A check of a tool that is not there says no, with a reason and no scopes; the call is a wrong parameter',
    { writes: false },
    [
      send('permissions/check', x => ({ tool: `no_such_tool_${x.key()}` })).expect({
        'A check of an unknown tool gives no reason': hasResult({ allowed: false, reason: isString }),
        'A check of an unknown tool names missing_scopes': hasResult({ missing_scopes: isAbsent }),
      }),
      step(x => x.call(`no_such_tool_${x.key()}`, { args: {} })).expect({
        'A call of an unknown tool is not answered with -32602': hasCode(-32602),
      }),
    ],
  ),
  row('E4-2b E4-1', 'Several checks in one request are answered one by one', { tools: [scopedTool, callable] }, [
    lacks(scopedTool),
    send('permissions/check', x => ({
      checks: [{ tool: x.tool(callable).name }, { tool: x.tool(scopedTool).name }],
    })).expect({
      'Several checks are not answered in their order': ({ result }) =>
        JSON.stringify(objectsIn(result, 'checks').map(check => check.allowed)) === '[true,false]',
    }),
  ]),
  row('E4-3', 'A call without scopes is refused before it runs, naming all that are missing at once', [
    lacks(guarded),
    callTool(guarded).expect({
      'A call without its scopes': unscoped,
      'The refusal is not of the category auth_required': hasProblem({ category: 'auth_required' }),
      'details.missing_scopes are not all that the list names': namesMissing(guarded),
    }),
  ]),
  row(
    'E4-4',
    'What is asked for is granted or denied with a reason, scope by scope',
    { tools: [guarded], writes: false },
    async x => {
      const wanted = [...scopesOf(x.tool(guarded).listed), `kit:${newKey()}`]
      const { result } = await x.ask('permissions/negotiate', { requested_scopes: wanted })
      const given = listIn(result, 'granted_scopes')
      const denied = objectsIn(result, 'denied_scopes')
      const every = [...given, ...denied.map(one => one.scope)]
      x.expect(
        given.every(scope => wanted.includes(String(scope))),
        'Something was granted that was not asked for',
      )
      x.expect(sameSet(every, wanted), 'Not every scope is either granted or denied')
      x.expect(
        denied.every(one => isWord(one.reason)),
        'A denied scope has no reason',
      )
      const isSession = typeof result.session === 'object' && result.session !== null
      x.expect(given.length > 0 === isSession, 'There is a session without a granted scope, or none with one')
    },
  ),
  row('E4-5', 'A grant lasts no longer than was asked for, and then gives nothing', [
    lacks(scopedTool),
    grant(scopedTool, { ttl_seconds: 2 }).expect({
      ...isGranted,
      'A grant has no expires_at': ({ result }) => isTime(objectIn(result, 'session').expires_at),
      'A grant lasts longer than was asked for': ({ result }) =>
        Date.parse(String(objectIn(result, 'session').expires_at)) - Date.now() <= 4_000,
    }),
    callTool(scopedTool, held).expect({ 'A call within the time of its grant': isMade }),
    rest(2_300),
    callTool(scopedTool, x => ({ say: holding(x.was(-2)) })).expect({ 'A call after the time of its grant': unscoped }),
  ]),
  row(
    'E4-7',
    'A token that is none of this caller gives nothing, and the answer is that for no grant',
    { tools: [scopedTool] },
    async x => {
      const forged = await x.call(scopedTool, { say: { permissions: { session_token: 'forged' } } })
      if (forged.problem.code !== 'SCOPE_INSUFFICIENT') await expectLack(x, scopedTool)
      const expected = {
        'A call with a forged grant': unscoped,
        'A forged grant changes what is said to be missing': namesMissing(scopedTool),
      }
      x.hold(forged, expected, forged.frames)
    },
  ),
  row(
    'E4-9',
    'Tools are listed for those who may not call them, with the scopes that they need',
    { tools: [seen], writes: false },
    // Nothing is called that may write.
    x => expectLack(x, seen, x.bench.peer.mayCall(x.tool(seen).name)),
  ),
  row('E4-10', 'A page that grants more is on https', [
    send('permissions/check', x => ({ tool: x.tool(guarded).name })),
    callTool(guarded).expect({
      'The server names no page': orSkip((it, { was }) => pagesIn(was(0), it).length > 0),
      'elevation_url is not https': (it, { was }) =>
        pagesIn(was(0), it).every(url => isString(url) && url.startsWith('https://')),
    }),
  ]),
]

function pagesIn(check: PeerAnswer, called: PeerAnswer): readonly unknown[] {
  return [check.result.elevation_url, objectIn(called.problem, 'details').elevation_url].filter(url => url !== undefined)
}
