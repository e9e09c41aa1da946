/** What a live server declares, obeys and announces (MCP Live §3–§6). */
import { setTimeout as wait } from 'node:timers/promises'
import { isRecord } from '../../jsonrpc/message.ts'
import { hasCode, hasResult, type PeerAnswer } from '../calls.ts'
import { type Expectation, fitsPattern, is, listIn, objectIn, sameJson } from '../expectations.ts'
import { broughtBy } from '../said.ts'
import type { Json, Scenario } from '../scenario.ts'
import { newKey } from '../steps.ts'
import { bringing } from '../tools.ts'
import { bringingSet, type LiveScenarioContext, live, turn, usesOf, using } from './host.ts'

const uses = ['pushEvents', 'contextHooks.beforeInference', 'contextHooks.afterInference', 'inferenceRequest', 'tools']
const toHost = ['push/event', 'inference/request', 'model/info', 'scope/elevate']
const pushing = bringingSet('push')
/** Other hosts may take what is pushed. */
const pushes = { tries: 3, needs: [pushing] }
const reads = { writes: false }
const acting = bringingSet('scope')
const changing = bringing('change:sets')
const hooked = [using('contextHooks.beforeInference')]

/** A push with a text of its own: makes it happen, and waits for it. */
async function pushed({ call, tool, host }: LiveScenarioContext, ms?: number) {
  const text = newKey()
  await call(pushing, { args: { ...tool(pushing).args, content: text } })
  const next = (within?: number) => host.next('push/event', params => JSON.stringify(params).includes(text), within)
  return { came: (await next(ms)) !== undefined, next }
}

const hook = ({ ask }: LiveScenarioContext, message = 'x') => ask('context/beforeInference', turn(message))
const without = ({ sets }: LiveScenarioContext, set: string) => ({
  enabled: [...sets.keys()].filter(name => name !== set),
  disabled: [set],
})
const lastOf = ({ host }: LiveScenarioContext) => host.peer.frames.slice(-3)
const addsNothing: Expectation<PeerAnswer> = it => it.code !== undefined || listIn(it.result, 'contextInjections').length === 0

/** The declaration, and which sets are on. */
export const setScenarios: readonly Scenario[] = [
  live('L3.1-1', 'MCP Live is declared under experimental.mcpl with its version, in addition to the revision of MCP').by(
    reads,
    async x => {
      const mcpl = objectIn(x.bench.peer.capabilities, 'experimental', 'mcpl')
      x.expect(is.string(mcpl.version) && mcpl.version.startsWith('0.'), 'experimental.mcpl has no version')
      const other = x.bench.peer.extension('dev.vivarium/live')
      const says = 'extensions["dev.vivarium/live"] is not the same as experimental.mcpl'
      if (x.modern) x.expect(sameJson(other, mcpl), says)
    },
  ),
  live('L3.2-1', 'A host that did not announce MCP Live gets none of its messages, and its calls work').by(
    { host: { declares: false }, needs: [pushing] },
    async x => {
      const called = await x.call(pushing)
      const succeeds = called.answer.result !== undefined && !called.isError
      x.expect(succeeds, 'A tool that pushes does not work for a plain host')
      await wait(150)
      const strange = x.peer.heard(
        ({ method }) => is.string(method) && (toHost.includes(method) || /^(featureSets|live|mcpl)\//.test(method)),
      )
      x.expect(strange.length === 0, 'A plain host was sent a message of MCP Live', strange)
      x.hold(await hook(x), { 'A hook of a plain host is not answered with -32601': hasCode(-32601) })
    },
  ),
  live('L4-1', 'Each request of the host gets exactly one answer under its id').by(hooked, async x => {
    const { answer } = await hook(x)
    await x.peer.settled()
    const answers = x.peer.heard(message => message.id === answer.id && message.method === undefined)
    x.expect(answers.length === 1, `A request got ${answers.length} answers`, answers)
  }),
  live('L4.1-3 L4.1-1', 'A method of the other direction is not found as a request, and ignored as a notification').by(
    async x => {
      for (const method of toHost)
        x.hold(await x.ask(method), { [`${method} to a server is not answered with -32601`]: hasCode(-32601) })
      if (x.modern) return
      const answers = (): number => x.peer.heard(message => message.method === undefined).length
      const before = answers()
      await x.peer.notify('featureSets/changed', { added: {}, removed: [] })
      await x.peer.settled()
      x.expect(answers() === before + 1, 'A notification of the other direction was answered', lastOf(x))
    },
  ),
  live('L5.1-1 LB-1', 'Capabilities are under the defined keys, and cover what the sets use').by(reads, async x => {
    const { pushEvents = false, inferenceRequest = false, contextHooks = {} } = x.declared
    x.expect(typeof pushEvents === 'boolean', 'pushEvents is not a boolean')
    x.expect(typeof inferenceRequest === 'boolean' || isRecord(inferenceRequest), 'inferenceRequest is not an object')
    x.expect(isRecord(contextHooks), 'contextHooks is not an object')
    const { beforeInference = false, afterInference = false } = objectIn(contextHooks)
    const has: Record<string, boolean> = {
      pushEvents: pushEvents === true,
      inferenceRequest: inferenceRequest !== false,
      'contextHooks.beforeInference': (beforeInference ?? false) !== false,
      'contextHooks.afterInference': (afterInference ?? false) !== false,
    }
    for (const [name, set] of x.sets)
      for (const use of usesOf(set))
        x.expect(has[String(use)] ?? true, `The set ${name} uses ${String(use)}, which is not announced`)
  }),
  live('L6.2-1 L6.2-2 L7.1-1 L8.1-1 LB-1', 'Each feature set has a description and names what it uses').by(reads, async x => {
    x.expect(x.sets.size > 0, 'MCP Live is declared without feature sets')
    for (const [name, set] of x.sets) {
      x.expect(is.word(set.description), `The set ${name} has no description`)
      const known = Array.isArray(set.uses) && set.uses.every(use => uses.includes(String(use)))
      x.expect(known, `The set ${name} uses an unknown feature`)
      for (const flag of ['scoped', 'rollback', 'hostState'])
        x.expect(set[flag] === undefined || is.boolean(set[flag]), `${flag} of the set ${name} is not a boolean`)
    }
  }),
  live('L6.4-1', 'Before the host has selected, nothing is sent; waiting messages come when their set is enabled').by(
    { ...pushes, host: { select: false } },
    async x => {
      const { came, next } = await pushed(x, 250)
      x.expect(!came, 'A push came before the selection of the host', lastOf(x))
      const { enabled: disabled, disabled: enabled } = without(x, String(broughtBy(x.tool(pushing).listed, 'push')))
      await x.host.select({ enabled, disabled })
      const late = (await next()) !== undefined
      x.expect(late, 'A waiting push did not come when its set was enabled', lastOf(x))
    },
  ),
  live('L6.7-2 L6.7-3 L6.7-1', 'When a set is disabled, its pushes stop at once; queued ones are not sent').by(
    pushes,
    async x => {
      const set = String(broughtBy(x.tool(pushing).listed, 'push'))
      x.expect((await pushed(x)).came, 'A push of an enabled set did not come', lastOf(x))
      await x.host.select(without(x, set))
      const { came, next } = await pushed(x, 300)
      x.expect(!came, 'A push came after its set was disabled', lastOf(x))
      // What is left behind would come to the next host.
      await x.host.select({ enabled: [...x.sets.keys()], disabled: [] })
      await next()
    },
  ),
  live('L6.7-2h L6.7-2 L6.7-1', 'A hook of a disabled set adds nothing; a set in both lists is disabled').by(hooked, async x => {
    const isHooked = ([, set]: [string, object]): boolean => usesOf({ ...set }).includes('contextHooks.beforeInference')
    const gives = hasResult({ contextInjections: Array.isArray })
    x.hold(await hook(x, 'How is it?'), { 'A hook gives no contextInjections': gives })
    await x.host.select({ enabled: [...x.sets.keys()], disabled: [...x.sets].filter(isHooked).map(([name]) => name) })
    x.hold(await hook(x, 'How is it?'), { 'A hook of a disabled set injected something': addsNothing })
  }),
  live('L6.7-2t L6.7-2 LA-1', 'A tool of a disabled set is refused with its error code, naming the set').by(acting, async x => {
    const set = String(broughtBy(x.tool(acting).listed, 'scope'))
    await x.host.select(without(x, set))
    x.hold(await x.call(acting), {
      'A tool of a disabled set is not refused with its error code': hasCode(x.modern ? -31001 : -32001),
      'The refusal does not name the set': it => objectIn(it.answer.error, 'data').featureSet === set,
    })
  }),
  live('L6.7-4', 'Added and removed sets are announced with their declarations').by(changing, async x => {
    await x.call(changing)
    const said = await x.host.next('featureSets/changed')
    const told = said !== undefined && said.id === undefined
    x.expect(told, 'A change of the sets is not announced by a notification', lastOf(x))
    const { added, removed = [] } = said?.params ?? {}
    const sets = Object.values(objectIn(added)).map(set => objectIn(set))
    const declared = sets.every(set => is.string(set.description) && Array.isArray(set.uses))
    x.expect(declared, 'added has no declarations', [said?.frame])
    const named = Array.isArray(removed) && sets.length + removed.length > 0
    x.expect(named, 'Neither added nor removed names anything', [said?.frame])
  }),
  live('A21', 'A selection sent as a request gets a receipt and replaces the previous one').by(async x => {
    const effectiveCapabilities = ['tools', ...(x.declared.pushEvents === true ? ['pushEvents'] : [])]
    const called = await x.host.grant({ enabled: [], disabled: [...x.sets.keys()] }, effectiveCapabilities)
    const accepted = called.result.accepted === true
    x.expect(accepted, 'featureSets/update as a request gets no receipt', called.frames)
    x.hold(await hook(x), { 'After a selection of nothing a hook injected something': addsNothing })
  }),
]

// ── Tools of feature sets: scopes and state (MCP Live §7, §8).

const hosted = bringingSet('hoststate')
const stored = bringingSet('checkpoint')

const stateOf = ({ result }: PeerAnswer): Json => objectIn(result, 'state')
const isRoot = (it: PeerAnswer): boolean => fitsPattern({ checkpoint: is.string, parent: null }, stateOf(it))
const denying = (answer: Json) => (x: LiveScenarioContext) => x.host.answer('scope/elevate', () => answer)

/** Calls the tool that needs leave; what was asked of the host meanwhile. */
async function act(x: LiveScenarioContext, scope?: unknown) {
  const before = x.host.said.length
  const called = await x.call(acting, scope === undefined ? {} : { params: { scope } })
  const asked = (): boolean => x.host.said.slice(before).some(({ method }) => method === 'scope/elevate')
  return { called, asked }
}

/** Scopes and state of tools. */
export const stateScenarios: readonly Scenario[] = [
  live(
    'L7.4-1 L7.3-1 L6.5-1 L7.1-1',
    'Outside the whitelist the server asks before it acts, with a label; on the whitelist it does not ask',
  ).by(acting, async x => {
    const set = String(broughtBy(x.tool(acting).listed, 'scope'))
    x.expect(x.sets.get(set)?.scoped === true, 'A set whose tools ask for scopes is not declared scoped')
    const { called } = await act(x)
    const said = await x.host.next('scope/elevate')
    const scope = objectIn(said?.params, 'scope')
    const asks = said?.params.featureSet === set && is.string(scope.label) && said.id !== undefined
    x.expect(asks, 'The server does not ask for approval with its set and a label', [...called.frames, said?.frame])
    x.expect(is.optional(isRecord)(scope.payload), 'payload is not an object', [said?.frame])
    x.expect(!called.isError, 'What was approved was not done')
    const lists = { whitelist: [String(scope.label)] }
    const select = (more: Json = {}) =>
      x.host.select({ enabled: [...x.sets.keys()], disabled: [], scopes: { [set]: { ...lists, ...more } } })
    await select()
    const free = await act(x)
    x.expect(!free.called.isError && !free.asked(), 'The server asks for what is on the whitelist')
    await select({ blacklist: lists.whitelist })
    denying({ approved: false, reason: 'on the blacklist' })(x)
    x.expect((await act(x)).called.isError, 'What is on the blacklist was done without asking')
  }),
  live('L7.7-2', 'What was not approved is not done, and the tool fails with the reason').by(acting, async x => {
    denying({ approved: false, reason: 'Not on my watch' })(x)
    x.hold((await act(x)).called, {
      'A tool that was denied does not fail with the reason': it => it.isError && it.text.includes('Not on my watch'),
      'A tool that was denied has a result': hasResult({ structuredContent: is.absent }),
    })
    denying({ approved: 'yes' })(x)
    x.expect((await act(x)).called.isError, 'An answer that is not a clear approval was treated as one')
  }),
  live('L7.7-1', 'A scope that the host sent with the call is already approved').by(acting, async x => {
    await act(x)
    const said = await x.host.next('scope/elevate')
    x.expect(said !== undefined, 'The server does not ask for approval')
    const { called, asked } = await act(x, said?.params.scope)
    x.expect(!called.isError && !asked(), 'The server asks for a scope that came with the call')
  }),
  live(
    'L8.2-1 L8.3-1 L8.4-3',
    'State that the host keeps: a checkpoint, what it follows, and the data or a patch; computed from what came with the call',
  ).by(hosted, async x => {
    const set = x.sets.get(String(broughtBy(x.tool(hosted).listed, 'hoststate')))
    x.expect(set?.hostState === true, 'A set whose state the host keeps is not declared hostState')
    const first = await x.call(hosted)
    const one = stateOf(first)
    x.expect(isRoot(first), 'The first result has no checkpoint with parent null')
    x.expect(one.data !== undefined, 'The first result has no data')
    const meta = { 'dev.vivarium/live': { state: one.data, parent: one.checkpoint } }
    x.hold(stateOf(await x.call(hosted, { params: { state: one.data }, meta })), {
      'Two states have the same checkpoint': two => is.string(two.checkpoint) && two.checkpoint !== one.checkpoint,
      'A result has neither data nor patch': two => two.data !== undefined || Array.isArray(two.patch),
    })
    const again = stateOf(await x.call(hosted))
    x.expect(sameJson(again.data, one.data), 'A call without state was computed from an earlier one')
  }),
  live('L8.6-1 L8.2-1', 'A rollback to a checkpoint reports whether it succeeded').by(stored, async x => {
    const set = String(broughtBy(x.tool(stored).listed, 'checkpoint'))
    x.expect(x.sets.get(set)?.rollback === true, 'A set with rollbacks is not declared rollback')
    const first = await x.call(stored)
    const { checkpoint, data } = stateOf(first)
    x.expect(isRoot(first), 'The first result has no checkpoint with parent null')
    x.expect(data === undefined, 'State that the server stores was sent to the host')
    const second = await x.call(stored, { params: { checkpoint }, meta: { 'dev.vivarium/live': { checkpoint } } })
    x.expect(stateOf(second).parent === checkpoint, 'A result does not follow the checkpoint of its call')
    x.hold(await x.ask('state/rollback', { featureSet: set, checkpoint }), {
      'A rollback does not name checkpoint and success': hasResult({ checkpoint, success: is.boolean }),
      'A rollback failed without a reason': ({ result }) => result.success === true || is.string(result.reason),
    })
  }),
  live('L8.8-1 LA-1', 'An unknown checkpoint is refused with its error code, naming the checkpoint').by(stored, async x => {
    const checkpoint = 'no-such-checkpoint'
    const featureSet = broughtBy(x.tool(stored).listed, 'checkpoint')
    x.hold(await x.ask('state/rollback', { featureSet, checkpoint }), {
      'An unknown checkpoint is not refused with its error code': hasCode(x.modern ? -31005 : -32005),
      'The refusal does not name the checkpoint': it => objectIn(it.answer.error, 'data').checkpoint === checkpoint,
    })
  }),
]
