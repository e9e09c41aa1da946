/** Our host as the kit judges it: configured as a play wants, with a model that says what the play wants, and no user to ask. */
import type { ConnectOptions } from '../../src/client/api.ts'
import type { ClientStep, ClientTarget, LiveWishes, StepReport, Told } from '../../src/conformance/index.ts'
import { createHost, type Host, type PolicyRules, type ScriptStep, scripted } from '../../src/host/index.ts'
import type { RevisionId } from '../../src/revisions/index.ts'

const SERVER = 'lab'

/** What is neither a set nor a scope is allowed: those are what a play is about. */
function rulesFor({ enabled, disabled, scopes = {} }: Pick<LiveWishes, 'enabled' | 'disabled' | 'scopes'>): PolicyRules {
  return {
    servers: { [SERVER]: { enable: enabled, disable: disabled, scopes } },
    rules: [
      {
        name: 'play',
        do: 'allow',
        when: { kind: ['push', 'infer', 'tool', 'inject', 'sample', 'elicit', 'roots', 'definition'] },
      },
    ],
  }
}

function modelFor(said: LiveWishes['model'] = ['Hello.']) {
  const steps = said.map(
    (one): ScriptStep => (typeof one === 'string' ? one : { calls: [{ name: one.call, arguments: one.arguments ?? {} }] }),
  )
  // A pushed event may begin a turn of its own; it gets the last words too.
  return scripted((_, turn) => {
    const step = steps[Math.min(turn, steps.length - 1)] ?? 'Done.'
    return typeof step === 'function' ? 'Done.' : step
  })
}

export async function playHost(
  target: ClientTarget,
  { version, context, signal }: Told,
  more: ConnectOptions = {},
): Promise<void> {
  const live: LiveWishes = context.answers?.live ?? { enabled: [], disabled: [] }
  const revisions = version === undefined ? {} : { revisions: [version.toLowerCase() as RevisionId] }
  await using host = await createHost({
    servers: { [SERVER]: { target: target as never, connect: { ...revisions, signal, ...more } } },
    model: modelFor(live.model),
    policy: rulesFor(live),
    ...(live.approve === undefined ? {} : { onApproval: () => live.approve === true }),
  })
  const reports: StepReport[] = []
  for (const step of context.steps) reports.push(await play(step, host, live))
  if (context.report === true) await host.server(SERVER)?.client?.callTool('test-report', { steps: reports })
}

async function play(step: ClientStep, host: Host, live: LiveWishes): Promise<StepReport> {
  const as = 'as' in step ? (step.as ?? step.do) : step.do
  try {
    return { as, ok: true, ...(await act(step, host, live)) }
  } catch (error) {
    return { as, ok: false, message: error instanceof Error ? error.message : String(error) }
  }
}

async function act(step: ClientStep, host: Host, live: LiveWishes): Promise<Partial<StepReport>> {
  if (step.do === 'say') {
    const turn = await host.conversation(step.conversation ?? 'play').send(step.text)
    return { text: (await turn.done).text }
  }
  if (step.do === 'rollback') {
    const { success } = await host.state.rollback(SERVER, step.set, step.checkpoint)
    return { text: String(success) }
  }
  if (step.do === 'select') {
    await host.policy.update(
      rulesFor({ enabled: step.enabled, disabled: step.disabled, scopes: step.scopes ?? live.scopes ?? {} }),
    )
    return {}
  }
  throw new Error(`This host does not know how to ${step.do}`)
}
