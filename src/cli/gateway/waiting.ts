/** All that waits for whoever runs a gateway, seen and answered from beside it, on its store. */
import type { Audit } from '../../core/audit/audit.ts'
import { realClock } from '../../core/clock.ts'
import { answer, waiting } from '../../features/reliability/confirmation/queue.ts'
import type { GatewayConfig } from '../../gateway/index.ts'
import { type Approval, launchApproval, toolApproval } from '../../gateway/trust/approvals.ts'
import { factsOf } from '../../gateway/trust/note-facts.ts'
import { auditIn } from '../../gateway/trust/notes.ts'
import type { TrustSettings } from '../../gateway/trust/settings.ts'
import { HeldTools, type KeptTool } from '../../policy/pins/held-tools.ts'
import type { HeldLaunch } from '../../policy/pins/launches.ts'
import type { Store } from '../../stores/store.ts'
import { storeWithin } from '../../stores/within.ts'
import { heldLaunches, launchesOn } from './launches.ts'
import { neededStore } from './store.ts'

type Config = GatewayConfig<TrustSettings>

export interface Waiting {
  readonly approvals: readonly Approval[]
  /** By id. */
  readonly tools: ReadonlyMap<string, KeptTool>
  /** False where nothing of that name waits. */
  answer(id: string, yes: boolean, by: string): Promise<boolean>
}

/** `work` gets all there is now. */
export async function withWaiting<T>(config: Config, work: (waiting: Waiting) => Promise<T>): Promise<T> {
  const store = await neededStore(config)
  const audit = config.trust.audit === false ? undefined : auditIn(store, realClock, config.trust.audit, () => {})
  const own = storeWithin(store, 'gateway/')
  const held = new HeldTools(own, realClock)
  const launches = launchesOn(store, config)
  try {
    const starts = await unanswered(await heldLaunches(config, launches), own)
    const tools = new Map([...(await held.waiting())].filter(([, { server }]) => config.servers.has(server)))
    const calls = (await waiting(store)).map((call): Approval => ({ kind: 'call', ...call }))
    const approvals = [
      ...calls,
      ...[...starts.values()].map(launchApproval),
      ...[...tools].map(([id, kept]) => toolApproval(id, kept)),
    ]
    return await work({
      approvals,
      tools,
      answer: async (id, yes, by) => {
        const kept = tools.get(id)
        const start = [...starts].find(([, launch]) => launch.id === id)
        if (kept === undefined && start === undefined) return answer(store, id, yes, { clock: realClock, by, audit })
        if (kept !== undefined) await (yes ? held.approve(kept) : held.refuse(id))
        const target = start === undefined ? undefined : config.servers.get(start[0])?.target
        if (start !== undefined && target !== undefined) await (yes ? launches.take(start[0], target) : launches.refuse(id))
        await noted(audit, kept?.server ?? start?.[0] ?? '', kept?.tool.name ?? '', yes, by)
        return true
      },
    })
  } finally {
    launches.close()
    await audit?.close()
    await store.close()
  }
}

async function unanswered(held: ReadonlyMap<string, HeldLaunch>, own: Store): Promise<ReadonlyMap<string, HeldLaunch>> {
  const found = new Map<string, HeldLaunch>()
  for (const [name, launch] of held) if ((await own.get(`refused/${launch.id}`)) === undefined) found.set(name, launch)
  return found
}

async function noted(audit: Audit | undefined, upstream: string, tool: string, yes: boolean, by: string): Promise<void> {
  const outcome = yes ? 'approved' : 'refused'
  await audit?.write(await factsOf({ client: '', upstream, tool, outcome, rule: 'pins', by }, false))
}
