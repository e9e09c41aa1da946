/** E4: what a call would need, asking for it, and its end. */
import { setTimeout as wait } from 'node:timers/promises'
import { isRecord } from '../../jsonrpc/message.ts'
import type { Json, Scenario } from '../scenario.ts'
import { callable, either, type FoundTool, needsConfirmation, scopesOf, toolThat } from '../tools.ts'
import { isTime, listOf, newKey, type Stage, scenariosOf } from './scenario-of.ts'
import type { Called, Talk } from './talk.ts'

const scenario = scenariosOf('permissions')

const scoped = toolThat('needs one scope', tool => scopesOf(tool).length === 1 && !needsConfirmation(tool))
/** One that can be called without harm, where there is such a one. */
const seen = either(
  toolThat('needs one scope and reads only', (tool, peer) => scopesOf(tool).length === 1 && peer.mayCall(String(tool['name']))),
  scoped,
)
const guarded = toolThat('needs several scopes', tool => scopesOf(tool).length > 1 && !needsConfirmation(tool))

/** Asks for what a tool needs; undefined where the server does not give it. */
async function granted(talk: Talk, tool: FoundTool, ttl?: number): Promise<{ token: string; answer: Called } | undefined> {
  const answer = await talk.ask('permissions/negotiate', {
    requested_scopes: [...scopesOf(tool.listed)],
    justification: 'To see whether it works',
    ...(ttl === undefined ? {} : { ttl_seconds: ttl }),
  })
  const session = answer.result['session']
  return isRecord(session) && typeof session['token'] === 'string' ? { token: session['token'], answer } : undefined
}

/**
 * Goes on only where the kit lacks what the tool needs: whoever starts a server is often trusted with everything, and a token may
 * hold it. Fails where the check allows a call that is refused.
 */
async function lacking({ talk, expect, leave }: Stage<string>, tool: FoundTool, mayCall = true): Promise<void> {
  const check = await talk.ask('permissions/check', { tool: tool.name, parameters: tool.args })
  if (check.result['allowed'] !== true) return
  if (mayCall) {
    const called = await talk.call(tool.name, tool.args)
    const frames = [...check.frames, ...called.frames]
    expect(called.problem['code'] !== 'SCOPE_INSUFFICIENT', 'The check allows a call that is refused for its scopes', frames)
  }
  leave(
    `The kit may call ${tool.name} as it is; judge the server over HTTP, with a token that lacks ${scopesOf(tool.listed).join(' ')}`,
  )
}

const missingIn = (called: Called): readonly unknown[] => {
  const details = called.problem['details']
  const missing = isRecord(details) ? details['missing_scopes'] : undefined
  return Array.isArray(missing) ? missing : []
}

const sameSet = (one: readonly unknown[], other: readonly unknown[]): boolean =>
  JSON.stringify([...one].sort()) === JSON.stringify([...other].sort())

export const permissions: readonly Scenario[] = [
  scenario({
    id: 'E4-1',
    title: 'A check agrees with the decision of the call, without a grant and with one',
    tools: { scoped },
    run: async stage => {
      const { talk, tools, expect, refused, made, bench } = stage
      const { scoped } = tools
      await lacking(stage, scoped)
      const claimed = await talk.ask('permissions/check', {
        tool: scoped.name,
        scopes_held: [...scopesOf(scoped.listed)],
        parameters: scoped.args,
      })
      expect(claimed.result['allowed'] === false, 'A check counts what the client claims to hold', claimed.frames)
      expect(
        Array.isArray(claimed.result['missing_scopes']) && sameSet(claimed.result['missing_scopes'], scopesOf(scoped.listed)),
        'A check does not name the missing scopes',
        claimed.frames,
      )
      refused(await talk.call(scoped.name, scoped.args), 'SCOPE_INSUFFICIENT', 'The call that the check denied')
      const grant = await granted(talk, scoped)
      if (grant === undefined) return bench.warn('The server grants no scope that a tool needs')
      const saying = { permissions: { session_token: grant.token } }
      const allowed = await talk.ask('permissions/check', { tool: scoped.name, parameters: scoped.args }, saying)
      expect(allowed.result['allowed'] === true, 'A check with a grant does not allow what the grant gives', allowed.frames)
      made(await talk.call(scoped.name, scoped.args, saying), 'The call that the check allowed')
    },
  }),
  scenario({
    id: 'E4-2',
    title: 'A check of a tool that is not there says no, with a reason and no scopes; the call is a wrong parameter',
    writes: false,
    run: async ({ talk, expect }) => {
      const name = `no_such_tool_${Date.now()}`
      const check = await talk.ask('permissions/check', { tool: name })
      expect(
        check.result['allowed'] === false && typeof check.result['reason'] === 'string',
        'A check of an unknown tool gives no reason',
        check.frames,
      )
      expect(check.result['missing_scopes'] === undefined, 'A check of an unknown tool names missing_scopes', check.frames)
      const call = await talk.call(name, {})
      expect(call.code === -32602, 'A call of an unknown tool is not answered with -32602', call.frames)
    },
  }),
  scenario({
    id: 'E4-2b',
    also: ['E4-1'],
    title: 'Several checks in one request are answered one by one',
    tools: { scoped, callable },
    run: async stage => {
      const { talk, tools, expect } = stage
      await lacking(stage, tools.scoped)
      const answer = await talk.ask('permissions/check', { checks: [{ tool: tools.callable.name }, { tool: tools.scoped.name }] })
      const allowed = listOf(answer.result['checks']).map(check => check['allowed'])
      expect(JSON.stringify(allowed) === '[true,false]', 'Several checks are not answered in their order', answer.frames)
    },
  }),
  scenario({
    id: 'E4-3',
    title: 'A call without scopes is refused before it runs, naming all that are missing at once',
    tools: { guarded },
    run: async stage => {
      const { talk, tools, expect, refused } = stage
      const { guarded } = tools
      await lacking(stage, guarded)
      const called = await talk.call(guarded.name, guarded.args)
      refused(called, 'SCOPE_INSUFFICIENT', 'A call without its scopes')
      expect(called.problem['category'] === 'auth_required', 'The refusal is not of the category auth_required', called.frames)
      expect(
        sameSet(missingIn(called), scopesOf(guarded.listed)),
        'details.missing_scopes are not all that the list names',
        called.frames,
      )
    },
  }),
  scenario({
    id: 'E4-4',
    title: 'What is asked for is granted or denied with a reason, scope by scope',
    tools: { guarded },
    writes: false,
    run: async ({ talk, tools: { guarded }, expect }) => {
      const asked = [...scopesOf(guarded.listed), `kit:${newKey()}`]
      const answer = await talk.ask('permissions/negotiate', { requested_scopes: asked })
      const given = Array.isArray(answer.result['granted_scopes']) ? answer.result['granted_scopes'] : []
      const denied = listOf(answer.result['denied_scopes'])
      expect(
        given.every(scope => asked.includes(scope)),
        'Something was granted that was not asked for',
        answer.frames,
      )
      expect(
        sameSet([...given, ...denied.map(one => one['scope'])], asked),
        'Not every scope is either granted or denied',
        answer.frames,
      )
      expect(
        denied.every(one => typeof one['reason'] === 'string' && one['reason'] !== ''),
        'A denied scope has no reason',
        answer.frames,
      )
      expect(
        given.length > 0 === isRecord(answer.result['session']),
        'There is a session without a granted scope, or none with one',
        answer.frames,
      )
    },
  }),
  ...ends(),
]

function ends(): readonly Scenario[] {
  return [
    scenario({
      id: 'E4-5',
      title: 'A grant lasts no longer than was asked for, and then gives nothing',
      tools: { scoped },
      run: async stage => {
        const { talk, tools, expect, made, refused, leave } = stage
        const { scoped } = tools
        await lacking(stage, scoped)
        const before = Date.now()
        const grant = await granted(talk, scoped, 2)
        if (grant === undefined) return leave('The server grants no scope that a tool needs')
        const session = grant.answer.result['session'] as Json
        const expires = session['expires_at']
        expect(isTime(expires), 'A grant has no expires_at', grant.answer.frames)
        expect(Date.parse(String(expires)) - before <= 4_000, 'A grant lasts longer than was asked for', grant.answer.frames)
        const saying = { permissions: { session_token: grant.token } }
        made(await talk.call(scoped.name, scoped.args, saying), 'A call within the time of its grant')
        await wait(2_300)
        refused(await talk.call(scoped.name, scoped.args, saying), 'SCOPE_INSUFFICIENT', 'A call after the time of its grant')
      },
    }),
    scenario({
      id: 'E4-7',
      title: 'A token that is none of this caller gives nothing, and the answer is that for no grant',
      tools: { scoped },
      run: async stage => {
        const { talk, tools, refused, expect } = stage
        const { scoped } = tools
        const forged = await talk.call(scoped.name, scoped.args, { permissions: { session_token: 'forged' } })
        if (forged.problem['code'] !== 'SCOPE_INSUFFICIENT') await lacking(stage, scoped)
        refused(forged, 'SCOPE_INSUFFICIENT', 'A call with a forged grant')
        expect(
          sameSet(missingIn(forged), scopesOf(scoped.listed)),
          'A forged grant changes what is said to be missing',
          forged.frames,
        )
      },
    }),
    scenario({
      id: 'E4-9',
      title: 'Tools are listed for those who may not call them, with the scopes that they need',
      tools: { seen },
      writes: false,
      run: async stage => {
        const { seen } = stage.tools
        // Nothing is called that may write.
        await lacking(stage, seen, stage.bench.peer.mayCall(seen.name))
      },
    }),
    scenario({
      id: 'E4-10',
      title: 'A page that grants more is on https',
      tools: { guarded },
      run: async stage => {
        const { talk, tools, leave } = stage
        const check = await talk.ask('permissions/check', { tool: tools.guarded.name })
        const called = await talk.call(tools.guarded.name, tools.guarded.args)
        const details = called.problem['details']
        const urls = [check.result['elevation_url'], isRecord(details) ? details['elevation_url'] : undefined].filter(
          url => url !== undefined,
        )
        if (urls.length === 0) return leave('The server names no page')
        for (const url of urls)
          stage.expect(typeof url === 'string' && url.startsWith('https://'), 'elevation_url is not https', [
            ...check.frames,
            ...called.frames,
          ])
      },
    }),
  ]
}
