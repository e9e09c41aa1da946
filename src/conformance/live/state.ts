/** Tools of feature sets: scopes and state (MCP Live §7, §8). */
import { isRecord } from '../../jsonrpc/message.ts'
import { hasCode, hasResult, type PeerAnswer } from '../calls.ts'
import { fitsPattern, ifThere, isAbsent, isFlag, isString, objectIn, sameJson } from '../expectations.ts'
import type { Json, Scenario } from '../scenario.ts'
import { broughtBy } from '../tools.ts'
import { bringingSet, type LiveScene, live } from './host.ts'

const acting = bringingSet('scope')
const hosted = bringingSet('hoststate')
const kept = bringingSet('checkpoint')

const stateOf = ({ result }: PeerAnswer): Json => objectIn(result, 'state')
const isRoot = (it: PeerAnswer): boolean => fitsPattern({ checkpoint: isString, parent: null }, stateOf(it))
const denying = (answer: Json) => (x: LiveScene) => x.host.answer('scope/elevate', () => answer)

/** Calls the tool that needs leave; what was asked of the host meanwhile. */
async function act(x: LiveScene, scope?: unknown) {
  const before = x.host.said.length
  const called = await x.call(acting, scope === undefined ? {} : { params: { scope } })
  const asked = (): boolean => x.host.said.slice(before).some(({ method }) => method === 'scope/elevate')
  return { called, asked }
}

export const stateScenarios: readonly Scenario[] = [
  live(
    'L7.4-1 L7.3-1 L6.5-1 L7.1-1',
    'Outside of the whitelist it asks before it acts, with a label; on the whitelist it does not ask',
    { tools: [acting] },
    async x => {
      const set = String(broughtBy(x.tool(acting).listed, 'scope'))
      x.expect(x.sets.get(set)?.scoped === true, 'A set whose tools ask for scopes is not declared scoped')
      const { called } = await act(x)
      const said = await x.host.next('scope/elevate')
      const scope = objectIn(said?.params, 'scope')
      const asks = said?.params.featureSet === set && isString(scope.label) && said.id !== undefined
      x.expect(asks, 'It does not ask for leave with its set and a label', [...called.frames, said?.frame])
      x.expect(ifThere(isRecord)(scope.payload), 'payload is no object', [said?.frame])
      x.expect(!called.isError, 'What was approved was not done')
      const lists = { whitelist: [String(scope.label)] }
      const select = (more: Json = {}) =>
        x.host.select({ enabled: [...x.sets.keys()], disabled: [], scopes: { [set]: { ...lists, ...more } } })
      await select()
      const free = await act(x)
      x.expect(!free.called.isError && !free.asked(), 'It asks for what is on the whitelist')
      await select({ blacklist: lists.whitelist })
      denying({ approved: false, reason: 'on the blacklist' })(x)
      x.expect((await act(x)).called.isError, 'What is on the blacklist was done without asking')
    },
  ),
  live('L7.7-2', 'What was not approved is not done, and the tool fails with the reason', { tools: [acting] }, async x => {
    denying({ approved: false, reason: 'Not on my watch' })(x)
    x.hold((await act(x)).called, {
      'A tool that was denied does not fail with the reason': it => it.isError && it.text.includes('Not on my watch'),
      'A tool that was denied has a result': hasResult({ structuredContent: isAbsent }),
    })
    denying({ approved: 'yes' })(x)
    x.expect((await act(x)).called.isError, 'An answer that is no clear yes was taken for one')
  }),
  live('L7.7-1', 'What the host has put on the call it has judged itself', { tools: [acting] }, async x => {
    await act(x)
    const said = await x.host.next('scope/elevate')
    x.expect(said !== undefined, 'It does not ask for leave')
    const { called, asked } = await act(x, said?.params.scope)
    x.expect(!called.isError && !asked(), 'It asks for a scope that came with the call')
  }),
  live(
    'L8.2-1 L8.3-1 L8.4-3',
    'State that the host keeps: a checkpoint, what it follows, and the data or a patch; computed from what came with the call',
    { tools: [hosted] },
    async x => {
      const set = x.sets.get(String(broughtBy(x.tool(hosted).listed, 'hoststate')))
      x.expect(set?.hostState === true, 'A set whose state the host keeps is not declared hostState')
      const first = await x.call(hosted)
      const one = stateOf(first)
      x.expect(isRoot(first), 'The first result has no checkpoint with parent null')
      x.expect(one.data !== undefined, 'The first result has no data')
      const meta = { 'dev.vivarium/live': { state: one.data, parent: one.checkpoint } }
      x.hold(stateOf(await x.call(hosted, { params: { state: one.data }, meta })), {
        'Two states share a checkpoint': two => isString(two.checkpoint) && two.checkpoint !== one.checkpoint,
        'A result has neither data nor patch': two => two.data !== undefined || Array.isArray(two.patch),
      })
      const again = stateOf(await x.call(hosted))
      x.expect(sameJson(again.data, one.data), 'A call without state was computed from an earlier one')
    },
  ),
  live('L8.6-1 L8.2-1', 'Going back to a checkpoint says whether it succeeded', { tools: [kept] }, async x => {
    const set = String(broughtBy(x.tool(kept).listed, 'checkpoint'))
    x.expect(x.sets.get(set)?.rollback === true, 'A set that goes back is not declared rollback')
    const first = await x.call(kept)
    const { checkpoint, data } = stateOf(first)
    x.expect(isRoot(first), 'The first result has no checkpoint with parent null')
    x.expect(data === undefined, 'State that the server keeps was given away')
    const second = await x.call(kept, { params: { checkpoint }, meta: { 'dev.vivarium/live': { checkpoint } } })
    x.expect(stateOf(second).parent === checkpoint, 'A result does not follow the checkpoint of its call')
    x.hold(await x.ask('state/rollback', { featureSet: set, checkpoint }), {
      'A rollback does not name checkpoint and success': hasResult({ checkpoint, success: isFlag }),
      'A rollback failed without a reason': ({ result }) => result.success === true || isString(result.reason),
    })
  }),
  live(
    'L8.8-1 LA-1',
    'A checkpoint that is not there is refused with the number for it, naming the checkpoint',
    { tools: [kept] },
    async x => {
      const checkpoint = 'no-such-checkpoint'
      const featureSet = broughtBy(x.tool(kept).listed, 'checkpoint')
      x.hold(await x.ask('state/rollback', { featureSet, checkpoint }), {
        'An unknown checkpoint is not refused with its number': hasCode(x.modern ? -31005 : -32005),
        'The refusal does not name the checkpoint': it => objectIn(it.answer.error, 'data').checkpoint === checkpoint,
      })
    },
  ),
]
