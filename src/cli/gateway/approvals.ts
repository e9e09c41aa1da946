/** `vivarium gateway approvals` and `pins`: what waits for whoever runs the gateway, and his answers. */
import { userInfo } from 'node:os'
import { createInterface } from 'node:readline/promises'
import type { Audit } from '../../core/audit/audit.ts'
import { realClock } from '../../core/clock.ts'
import { Problem } from '../../core/problem.ts'
import { shellWord } from '../../core/suggestion.ts'
import { answer, argumentsOf, isWaitedFor, needsApprovalId, waiting } from '../../features/reliability/confirmation/queue.ts'
import type { GatewayConfig } from '../../gateway/index.ts'
import { type Approval, launchApproval, toolApproval } from '../../gateway/trust/approvals.ts'
import type { TrustSettings } from '../../gateway/trust/settings.ts'
import { auditIn, gatewayNoteFacts } from '../../policy/audit/gateway-audit.ts'
import type { WaitingLaunch } from '../../policy/pins/launches.ts'
import { HeldTools, type StoredTool } from '../../policy/pins/tool-pins.ts'
import { prefixedStore, type Store } from '../../stores/store.ts'
import { CliError, type Io } from '../io.ts'
import { type Printer, printerOf } from '../print.ts'
import { brief, say } from '../terminal/text.ts'
import { changesIn, cutIn, heldLaunches, launchesOn, neededStore, shownJson, shownText } from './config.ts'

/** The options of `vivarium gateway approvals` and `pins`. */
export interface AnswerOptions {
  /** Ids that get a yes. */
  readonly approve?: readonly string[]
  /** Ids that get a no. */
  readonly refuse?: readonly string[]
  /** Ids that are shown whole. */
  readonly show?: readonly string[]
  /** Who answers, for the audit log. */
  readonly as?: string
  readonly format: 'text' | 'json'
}

/** `pins`: only of what is not as it was pinned. */
export async function approvals(
  config: GatewayConfig<TrustSettings>,
  pins: boolean,
  options: AnswerOptions,
  io: Io,
): Promise<number> {
  const { approve = [], refuse = [], show: whole = [], as: by = userName(), format } = options
  const print = printerOf(io)
  return withWaiting(config, async found => {
    const shown = found.approvals.filter(({ kind }) => !pins || kind !== 'call')
    const named = (ids: readonly string[]): readonly string[] => (pins && ids.includes('all') ? shown.map(({ id }) => id) : ids)
    const seen = named(whole)
    for (const id of seen) show(found, waitingAs(found, id), print, true)
    if (approve.length + refuse.length > 0) {
      for (const id of named(approve)) {
        if (!seen.includes(id)) seenWhole(found, id, config.file)
        await settle(found, id, true, by, print)
      }
      for (const id of named(refuse)) await settle(found, id, false, by, print)
      return 0
    }
    if (whole.length > 0) return 0
    if (format === 'json') print.json(shown)
    else if (shown.length === 0) print.line('Nothing is waiting for approval.')
    else if (io.interactive) await ask(found, shown, by, io, print)
    else for (const each of shown) show(found, each, print, false)
    return 0
  })
}

/** Answers one id and prints what was answered. */
async function settle(found: Waiting, id: string, yes: boolean, by: string, { line }: Printer): Promise<void> {
  const waits = await found.isWaitedFor(id)
  const answered = await found.answer(id, yes, by).catch(error => {
    throw error instanceof Problem ? new CliError(error.message, error.suggestion) : error
  })
  if (!answered) throw nothing(id)
  line(`${yes ? 'Approved' : 'Refused'} by ${shownText(by)}: ${shownText(id)}`)
  if (waits !== undefined) line(`  ${callerLine(id, yes, waits)}`)
}

/** What the answer means for the caller: one that waits goes on, one that has gone has to call again. */
function callerLine(id: string, yes: boolean, waits: boolean): string {
  if (waits) return yes ? 'The caller is waiting: the call continues now.' : 'The caller is waiting: the call is refused now.'
  const gone = 'The caller does not wait any more'
  if (!yes) return `${gone}. The same call is refused for 15 minutes, without a question.`
  const how = needsApprovalId(id) ? `, with this id (vivarium call … --approval-id ${shellWord(id)})` : ''
  return `${gone}. If it repeats exactly this call within 5 minutes${how}, the call runs once without a new question.`
}

/** The failure for an id under which nothing waits. */
function nothing(id: string): CliError {
  const fix = 'It has expired or was answered before. Run the command without --approve to list what waits'
  return new CliError(`Nothing with the id ${brief(shownText(id))} is waiting for approval`, fix)
}

/** What waits under an id; throws where nothing does. */
function waitingAs({ approvals: all }: Waiting, id: string): Approval {
  const found = all.find(each => each.id === id)
  if (found === undefined) throw nothing(id)
  return found
}

/** Of longer arguments the list shows only the beginning. */
const previewed = 4_000

/** What was seen in part is not approved: what is harmful may stand in the rest. */
function seenWhole({ approvals: all, tools }: Waiting, id: string, file: string): void {
  const found = all.find(each => each.id === id)
  const stored = tools.get(id)
  const cut = found?.kind === 'call' && found.arguments !== undefined && found.length > previewed ? found.length : undefined
  const length = stored === undefined ? cut : cutIn(stored)
  if (length === undefined) return
  throw new CliError(
    `${stored === undefined ? 'The arguments of this call' : 'The changes of this tool'} have ${length} characters, more than the list shows`,
    `Read them in full and approve: vivarium gateway approvals ${shellWord(file)} --show ${shellWord(id)} --approve ${shellWord(id)}`,
  )
}

/** Shows all that waits, one after the other, and asks about each. */
async function ask(found: Waiting, shown: readonly Approval[], by: string, io: Io, print: Printer): Promise<void> {
  const reader = createInterface({ input: io.input, output: io.output })
  try {
    for (const each of shown) {
      show(found, each, print, true)
      const said = (await reader.question('  Approve? [y]es, [n]o, anything else: later  ', { signal: io.signal })).trim()
      if (/^(y|yes|n|no)$/i.test(said)) await settle(found, each.id, /^y/i.test(said), by, print)
    }
  } finally {
    reader.close()
  }
}

/** `whole`: with all of its arguments. */
function show({ tools }: Waiting, each: Approval, { line, paint }: Printer, whole: boolean): void {
  line(say`${paint.name(shownText(each.id))}`)
  if (each.kind === 'call') {
    const { rule, server, tool = '', client } = each.about ?? {}
    const who = [client, each.principal].filter(name => name !== undefined && name !== '').join(', ')
    const at = server === undefined ? '' : ` (${shownText(tool)} of ${shownText(server)})`
    line(`  A call of ${shownText(each.tool)}${at}, risk ${each.risk}`)
    line(`  by ${shownText(who || 'an unknown caller')}${rule ? `, held by the rule ${shownText(rule)}` : ''}`)
    const waits = each.callerWaits ? 'the caller is waiting' : 'the caller has to repeat the call'
    line(`  since ${new Date(each.askedAt).toISOString()}, until ${new Date(each.expires).toISOString()}; ${waits}`)
    for (const text of argumentLines(each, whole)) line(`  ${text}`)
    return
  }
  line(`  ${shownText(each.message)}${each.kind === 'tool' ? `, since ${new Date(each.since).toISOString()}` : ''}`)
  const stored = tools.get(each.id)
  for (const change of stored === undefined ? each.changes.map(shownText) : changesIn(stored, whole)) line(`  ${change}`)
  if (!whole && stored !== undefined && cutIn(stored) !== undefined)
    line(`  ${cutIn(stored)} characters in total: read them with --show ${shellWord(shownText(each.id))} before you approve`)
}

/** The arguments of a call; of long ones the beginning, unless they are wanted whole. */
function argumentLines(call: Extract<Approval, { readonly kind: 'call' }>, whole: boolean): readonly string[] {
  const { arguments: given, length } = call
  if (given === undefined) return [`Its arguments (${length} characters) are no longer in the store: it can only be refused`]
  const text = shownJson(given)
  if (whole || length <= previewed) return [text]
  return [
    `${text.slice(0, previewed)}…`,
    `${length} characters in total: read them with --show ${shellWord(call.id)} before you approve`,
  ]
}

/** The user of this machine. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return 'somebody'
  }
}

/** The file of a gateway. */
type Config = GatewayConfig<TrustSettings>

/** All that waits for an answer. */
interface Waiting {
  readonly approvals: readonly Approval[]
  /** By id. */
  readonly tools: ReadonlyMap<string, StoredTool>
  /** False where nothing of that name waits. */
  answer(id: string, yes: boolean, by: string): Promise<boolean>
  /** Whether the caller of a call waits for the answer; undefined for what is no call. */
  isWaitedFor(id: string): Promise<boolean | undefined>
}

/** `work` gets all there is now. */
async function withWaiting<T>(config: Config, work: (waiting: Waiting) => Promise<T>): Promise<T> {
  const store = await neededStore(config)
  const audit = config.trust.audit === false ? undefined : auditIn(store, realClock, config.trust.audit, () => {})
  const own = prefixedStore(store, 'gateway/')
  const held = new HeldTools(own, realClock)
  const launches = launchesOn(store, config)
  try {
    const starts = await unanswered(await heldLaunches(config, launches), own)
    const tools = new Map([...(await held.waiting())].filter(([, { server }]) => config.servers.has(server)))
    const calls: Approval[] = []
    for (const call of await waiting(store)) {
      const given = call.arguments ?? (await argumentsOf(store, call.id))
      calls.push({ kind: 'call', ...call, ...(given !== undefined && { arguments: given }) })
    }
    const approvals = [
      ...calls,
      ...[...starts.values()].map(launchApproval),
      ...[...tools].map(([id, stored]) => toolApproval(id, stored)),
    ]
    return await work({
      approvals,
      tools,
      isWaitedFor: async id => (calls.some(each => each.id === id) ? isWaitedFor(store, id) : undefined),
      answer: async (id, yes, by) => {
        const stored = tools.get(id)
        const start = [...starts].find(([, launch]) => launch.id === id)
        if (stored === undefined && start === undefined) return answer(store, id, yes, { clock: realClock, by, audit })
        const first =
          stored === undefined
            ? start !== undefined && (await launches.answer(start[1], yes, by))
            : await held.answer(stored, yes, by)
        if (first)
          await noted(audit, { upstream: stored?.server ?? start?.[0] ?? '', tool: stored?.tool.name ?? '', yes, by, id })
        return first
      },
    })
  } finally {
    launches.close()
    await audit?.close()
    await store.close()
  }
}

/** Launches that nobody has refused yet. */
async function unanswered(held: ReadonlyMap<string, WaitingLaunch>, own: Store): Promise<ReadonlyMap<string, WaitingLaunch>> {
  const found = new Map<string, WaitingLaunch>()
  for (const [name, launch] of held) if ((await own.get(`refused/${launch.id}`)) === undefined) found.set(name, launch)
  return found
}

/** An answer about a pin. */
interface PinAnswer {
  readonly upstream: string
  readonly tool: string
  readonly yes: boolean
  readonly by: string
  readonly id: string
}

/** Writes an answer about a pin into the audit log. */
async function noted(audit: Audit | undefined, { upstream, tool, yes, by, id }: PinAnswer): Promise<void> {
  const outcome = yes ? 'approved' : 'refused'
  await audit?.write(await gatewayNoteFacts({ client: '', upstream, tool, outcome, rule: 'pins', by, approval: id }, false))
}
