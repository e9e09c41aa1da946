/**
 * C8: what one principal was given is nothing to another. Two of them can be had where the kit makes the tokens of a guarded server;
 * a server that lets everybody in knows no principals.
 */
import { openRequester, type Requester } from '../calls.ts'
import { extensionTable } from '../define.ts'
import { isString, objectIn } from '../expectations.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { keyed, newKey, type Scene } from '../steps.ts'
import {
  bringing,
  callable,
  extensionId,
  type Finder,
  type FoundTool,
  isPlain,
  needsConfirmation,
  saidOf,
  scopesOf,
  toolThat,
  undoable,
} from '../tools.ts'
import { agreed } from './confirmation.ts'
import { asksFor, holding, scopedTool, tokenIn } from './permissions.ts'
import { onState, stateTokenIn } from './state.ts'

async function asSubject(bench: Bench, subject: string): Promise<Requester> {
  const noTokens = 'the kit was given no way to make tokens for two principals (option auth)'
  const token = await (bench.auth ?? bench.leave(noTokens)).token({ subject })
  return openRequester(bench, { fresh: true, headers: { authorization: `Bearer ${token}` } })
}

interface Two {
  readonly tool: FoundTool
  readonly mine: Requester
  readonly other: Requester
}

/** One scenario of an extension, played by two principals with one tool. */
function between(extension: string, ids: string, title: string, finder: Finder, run: (x: Scene, two: Two) => Promise<void>) {
  return extensionTable(extension)(ids, title, { carriers: ['http'], tools: [finder] }, async x => {
    const mine = await asSubject(x.bench, 'kit-one')
    await run(x, { tool: x.tool(finder), mine, other: await asSubject(x.bench, 'kit-two') })
  })
}

const confirmed = toolThat(
  'needs a yes and no scopes, and can be called without a page',
  tool => needsConfirmation(tool) && scopesOf(tool).length === 0 && saidOf(tool, 'confirmation').channel !== 'url',
)
const branching = bringing('state:branch')
const streaming = toolThat('streams', tool => isPlain(tool) && saidOf(tool, 'streaming').supports_streaming === true)

export const principals: readonly Scenario[] = [
  between(
    'permissions',
    'E4-7p E4-7',
    'The grant of one principal is to another one what a token is that nobody knows',
    scopedTool,
    async (x, { tool, mine, other }) => {
      const granted = await mine.ask('permissions/negotiate', asksFor(scopedTool)(x))
      if (tokenIn(granted) === undefined) return x.leave('The server grants no scope that a tool needs')
      const say = holding(granted)
      x.made(await mine.call(tool, { say }), 'A call with a grant of one’s own')
      const foreign = await other.call(tool, { say })
      x.refused(foreign, 'SCOPE_INSUFFICIENT', 'A call with the grant of somebody else')
      const unknown = await other.call(tool, { say: { permissions: { session_token: 'nobody-knows-it' } } })
      const [one, two] = [foreign, unknown].map(({ problem }) => JSON.stringify([problem.code, problem.details]))
      x.expect(one === two, 'The answer tells a foreign grant from an unknown one', [...granted.frames, ...foreign.frames])
    },
  ),
  between('idempotency', 'E5-1p E5-1', 'A key of one principal is fresh to another one', callable, async (x, two) => {
    x.made(await two.mine.call(two.tool, keyed(x)), 'A call under a fresh key')
    const called = await two.other.call(two.tool, keyed(x))
    x.made(called, 'The call of somebody else under the same key')
    const fresh = called.member('idempotency').was_replay === false
    x.expect(fresh, 'Somebody else’s result was given as a replay', called.frames)
  }),
  between(
    'transactions',
    'E5-12p E5-12',
    'A transaction of one principal is not there for another one',
    undoable,
    async (x, { tool, mine, other }) => {
      const within = { transaction_id: newKey() }
      x.made(await mine.ask('transaction/begin', { ...within, timeout_seconds: 60 }), 'transaction/begin')
      const step = await other.call(tool, { say: { transactions: within } })
      x.refused(step, 'RESOURCE_NOT_FOUND', 'A step of somebody else’s transaction')
      const commit = await other.ask('transaction/commit', within)
      x.refused(commit, 'RESOURCE_NOT_FOUND', 'The commit of somebody else’s transaction')
      await mine.ask('transaction/rollback', within)
    },
  ),
  between('confirmation', 'E6-3p E6-3', 'A yes of one principal is none of another one', confirmed, async (x, two) => {
    const asked = await two.mine.call(two.tool)
    x.text(asked.member('confirmation').confirmation_token, 'There is no confirmation_token')
    const say = agreed(asked)
    x.refused(await two.other.call(two.tool, { say }), 'CONFIRMATION_REQUIRED', 'A call with somebody else’s yes')
    x.made(await two.mine.call(two.tool, { say }), 'The call with a yes of one’s own')
  }),
  between(
    'streaming',
    'E8-7p E8-7',
    'A checkpoint of one principal is none of another one',
    streaming,
    async (x, { tool, mine, other }) => {
      const first = await mine.call(tool, { say: { progressToken: 'kit-checkpoint' } })
      const saidIn = (message: unknown) => objectIn(message, 'params', '_meta', extensionId('streaming'))
      const [chunk] = mine.peer.heard(message => Object.keys(saidIn(message)).length > 0)
      const { operation_id, checkpoint_token } = saidIn(chunk?.value)
      if (!isString(checkpoint_token)) return x.leave('The tool gives no checkpoints')
      x.expect(!first.isError, 'The call that streams failed', first.frames)
      const resume = { operation_id, checkpoint_token }
      const foreign = await other.call(tool, { say: { progressToken: 'kit-other', streaming: { resume } } })
      x.refused(foreign, 'CHECKPOINT_NOT_FOUND', 'A call that goes on from somebody else’s checkpoint')
    },
  ),
  between('state', 'E14-3p E14-3', 'A state of one principal is invalid for another one', branching, async (x, two) => {
    const first = await two.mine.call(two.tool)
    const token = x.text(stateTokenIn(first), 'A call with state gives no session_state')
    x.refused(await two.other.call(two.tool, onState(token)), 'STATE_INVALID', 'A call with somebody else’s state')
    x.made(await two.mine.call(two.tool, onState(token)), 'The call with a state of one’s own')
  }),
]
