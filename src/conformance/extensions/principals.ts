/**
 * C8: what one principal was given is nothing to another. Two of them can be had where the kit makes the tokens of a guarded server;
 * a server that lets everybody in knows no principals.
 */
import { isRecord } from '../../jsonrpc/message.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { bringing, callable, isPlain, needsConfirmation, saidOf, scopesOf, toolThat, undoable } from '../tools.ts'
import { newKey, type Part, type Stage, scenariosOf } from './scenario-of.ts'
import { openTalk, type Talk } from './talk.ts'

interface Two {
  readonly mine: Talk
  readonly other: Talk
}

async function asSubject(bench: Bench, subject: string): Promise<Talk> {
  const { auth, leave } = bench
  const token = await (auth ?? leave('the kit was given no way to make tokens for two principals (option auth)')).token({
    subject,
  })
  return openTalk(bench, { fresh: true, headers: { authorization: `Bearer ${token}` } })
}

/** One scenario of an extension, played by two principals. */
function between<const T extends string>(
  extension: string,
  { run, ...part }: Omit<Part<T>, 'run'> & { run(stage: Stage<T>, two: Two): Promise<void> },
): Scenario {
  return scenariosOf(extension)<T>({
    ...part,
    carriers: ['http'],
    run: async stage => {
      const mine = await asSubject(stage.bench, 'kit-one')
      await run(stage, { mine, other: await asSubject(stage.bench, 'kit-two') })
    },
  })
}

const scoped = toolThat('needs one scope', tool => scopesOf(tool).length === 1 && !needsConfirmation(tool))
const confirmed = toolThat(
  'needs a yes and no scopes, and can be called without a page',
  tool => needsConfirmation(tool) && scopesOf(tool).length === 0 && saidOf(tool, 'confirmation')['channel'] !== 'url',
)
const branching = bringing('state:branch')
const streaming = toolThat('streams', tool => isPlain(tool) && saidOf(tool, 'streaming')['supports_streaming'] === true)

export const principals: readonly Scenario[] = [
  between('permissions', {
    id: 'E4-7p',
    also: ['E4-7'],
    title: 'The grant of one principal is to another one what a token is that nobody knows',
    tools: { scoped },
    run: async ({ tools: { scoped }, made, refused, expect, leave }, { mine, other }) => {
      const { result, frames } = await mine.ask('permissions/negotiate', { requested_scopes: [...scopesOf(scoped.listed)] })
      const session = isRecord(result['session']) ? result['session'] : undefined
      if (typeof session?.['token'] !== 'string') return leave('The server grants no scope that a tool needs')
      const saying = { permissions: { session_token: session['token'] } }
      made(await mine.call(scoped.name, scoped.args, saying), 'A call with a grant of one’s own')
      const foreign = await other.call(scoped.name, scoped.args, saying)
      refused(foreign, 'SCOPE_INSUFFICIENT', 'A call with the grant of somebody else')
      const unknown = await other.call(scoped.name, scoped.args, { permissions: { session_token: 'nobody-knows-it' } })
      const said = (problem: typeof foreign.problem): string => JSON.stringify([problem['code'], problem['details']])
      expect(said(foreign.problem) === said(unknown.problem), 'The answer tells a foreign grant from an unknown one', [
        ...frames,
        ...foreign.frames,
      ])
    },
  }),
  between('idempotency', {
    id: 'E5-1p',
    also: ['E5-1'],
    title: 'A key of one principal is fresh to another one',
    tools: { callable },
    run: async ({ tools: { callable }, made, expect }, { mine, other }) => {
      const saying = { idempotency: { idempotency_key: newKey() } }
      made(await mine.call(callable.name, callable.args, saying), 'A call under a fresh key')
      const called = await other.call(callable.name, callable.args, saying)
      made(called, 'The call of somebody else under the same key')
      expect(called.member('idempotency')['was_replay'] === false, 'Somebody else’s result was given as a replay', called.frames)
    },
  }),
  between('transactions', {
    id: 'E5-12p',
    also: ['E5-12'],
    title: 'A transaction of one principal is not there for another one',
    tools: { undoable },
    run: async ({ tools: { undoable }, made, refused }, { mine, other }) => {
      const id = newKey()
      made(await mine.ask('transaction/begin', { transaction_id: id, timeout_seconds: 60 }), 'transaction/begin')
      const step = await other.call(undoable.name, undoable.args, { transactions: { transaction_id: id } })
      refused(step, 'RESOURCE_NOT_FOUND', 'A step of somebody else’s transaction')
      const commit = await other.ask('transaction/commit', { transaction_id: id })
      refused(commit, 'RESOURCE_NOT_FOUND', 'The commit of somebody else’s transaction')
      await mine.ask('transaction/rollback', { transaction_id: id })
    },
  }),
  between('confirmation', {
    id: 'E6-3p',
    also: ['E6-3'],
    title: 'A yes of one principal is none of another one',
    tools: { confirmed },
    run: async ({ tools: { confirmed }, made, refused, text }, { mine, other }) => {
      const asked = await mine.call(confirmed.name, confirmed.args)
      const token = text(asked.member('confirmation')['confirmation_token'], 'There is no confirmation_token', asked.frames)
      const saying = { confirmation: { confirmation_token: token, user_confirmed: true } }
      refused(
        await other.call(confirmed.name, confirmed.args, saying),
        'CONFIRMATION_REQUIRED',
        'A call with somebody else’s yes',
      )
      made(await mine.call(confirmed.name, confirmed.args, saying), 'The call with a yes of one’s own')
    },
  }),
  between('streaming', {
    id: 'E8-7p',
    also: ['E8-7'],
    title: 'A checkpoint of one principal is none of another one',
    tools: { streaming },
    run: async ({ tools: { streaming }, refused, leave, bench }, { mine, other }) => {
      const first = await mine.call(streaming.name, streaming.args, { progressToken: 'kit-checkpoint' })
      const key = 'dev.vivarium/streaming'
      const chunks = mine.peer.heard(message => {
        const params = isRecord(message['params']) ? message['params'] : {}
        return isRecord(params['_meta']) && isRecord(params['_meta'][key])
      })
      const said = (chunks[0]?.value as { params: { _meta: Record<string, Record<string, unknown>> } } | undefined)?.params._meta[
        key
      ]
      if (typeof said?.['checkpoint_token'] !== 'string') return leave('The tool gives no checkpoints')
      bench.expect(!first.isError, 'The call that streams failed', first.frames)
      const resume = { operation_id: said['operation_id'], checkpoint_token: said['checkpoint_token'] }
      const foreign = await other.call(streaming.name, streaming.args, { progressToken: 'kit-other', streaming: { resume } })
      refused(foreign, 'CHECKPOINT_NOT_FOUND', 'A call that goes on from somebody else’s checkpoint')
    },
  }),
  between('state', {
    id: 'E14-3p',
    also: ['E14-3'],
    title: 'A state of one principal is invalid for another one',
    tools: { branching },
    run: async ({ tools: { branching }, made, refused, text }, { mine, other }) => {
      const first = await mine.call(branching.name, branching.args)
      const token = text(first.member('state')['session_state'], 'A call with state gives no session_state', first.frames)
      const saying = { state: { session_state: token } }
      refused(await other.call(branching.name, branching.args, saying), 'STATE_INVALID', 'A call with somebody else’s state')
      made(await mine.call(branching.name, branching.args, saying), 'The call with a state of one’s own')
    },
  }),
]
