/** Judges a client: per revision and carrier each play is run once, and all scenarios look at what it has shown. */
import type { Carrier } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { RevisionId } from '../../revisions/index.ts'
import { stoppedWhy } from '../bench.ts'
import { inferenceScenarios } from '../hosts/inference.ts'
import { hello, openingScenarios } from '../hosts/opening.ts'
import { requestScenarios } from '../hosts/requests.ts'
import { type Report, type Result, reportOf, resultOf, type Status } from '../report.ts'
import { allRevisions, type Cell, cellsOf, Failed, type Role, Skipped, scenariosFor } from '../scenario.ts'
import { authScenarios } from './auth/sign-in.ts'
import { askingScenarios } from './base/asking.ts'
import { callScenarios } from './base/calls.ts'
import { httpScenarios } from './base/http.ts'
import { listScenarios } from './base/lists.ts'
import { roundScenarios } from './base/rounds.ts'
import { plainRun, runScenarios } from './base/run.ts'
import { type ClientScenario, frameOf } from './define.ts'
import { type ClientUnderTest, drive } from './drive.ts'
import { consentScenarios } from './extensions/consent.ts'
import { contentScenarios } from './extensions/content.ts'
import { ongoingScenarios } from './extensions/ongoing.ts'
import { Observation } from './log.ts'
import type { Play } from './play.ts'
import { openServer } from './server.ts'

/** Options of `judgeClient` and `judgeHost`. */
export interface JudgeClientOptions {
  /** The revisions to judge. A revision that is named here and not spoken is a failure, otherwise it is skipped. Default: all seven. */
  readonly revisions?: readonly RevisionId[]
  /** The carriers to judge. Default: `http`, or `sse` for revisions without it; for functions `stdio` too. */
  readonly carriers?: readonly Carrier[]
  /** Only scenarios whose id or statement matches. Default: all. */
  readonly only?: RegExp
  /** Plays that run at the same time. Default 4. */
  readonly parallel?: number
  /** The scenarios. Default: all of the kit. */
  readonly scenarios?: readonly ClientScenario[]
  /** Called with each result as soon as it is known. */
  onResult?(result: Result): void
  /** Stops the run. */
  readonly signal?: AbortSignal
  /** Supplies the time of the report. Default: the system clock. */
  readonly now?: () => Date
}

interface Trial extends JudgeClientOptions {
  readonly client: ClientUnderTest
  readonly role: Role
  readonly scenarios: readonly ClientScenario[]
  /** The play that every client of this role can do. */
  readonly first: Play
  met?: { readonly name: string; readonly version: string }
}

/** What a play has shown, how long it took, or why it could not be run. */
type PlayResult = { readonly seen: Observation; readonly ms: number } | { readonly fault: unknown }

/** The same for one role, with its scenarios. */
interface RoleOptions extends JudgeClientOptions {
  readonly role: Role
  readonly scenarios: readonly ClientScenario[]
  readonly first?: Play
}

const never = new AbortController().signal

/** For one role; `judgeClient` and `judgeHost` say which. */
async function judgeRole(client: ClientUnderTest, options: RoleOptions): Promise<Report> {
  const { now = () => new Date(), parallel = 4, first = plainRun } = options
  const trial: Trial = { ...options, client, first }
  const cells = cellsFor(client, options)
  const began = now()
  const results: Result[] = []
  for (const cell of cells) results.push(...(await judgeCell(trial, cell, parallel)))
  return reportOf(options.role, results, began, trial.met)
}

/** A URL alone is enough for HTTP; whoever wants a command or a socket says so. */
function cellsFor(client: ClientUnderTest, { revisions = allRevisions, carriers }: JudgeClientOptions): readonly Cell[] {
  if (carriers !== undefined) return cellsOf(revisions, carriers)
  const standard: readonly Carrier[] = typeof client === 'function' ? ['stdio', 'http', 'sse'] : ['http', 'sse']
  return cellsOf(revisions, standard).filter(({ carrier, revision }) => carrier !== 'sse' || revision === '2024-11-05')
}

async function judgeCell(trial: Trial, cell: Cell, parallel: number): Promise<readonly Result[]> {
  const chosen = scenariosFor(trial.role, cell, trial.scenarios, trial.only)
  if (chosen.length === 0) return []
  const first = await show(trial, trial.first, cell)
  const unspoken = 'seen' in first && !first.seen.opened
  if ('seen' in first && !unspoken) trial.met ??= named(first.seen)
  if (unspoken) return [told(trial, notSpoken(trial, cell, first.seen))]
  const shown = new Map<Play, PlayResult>([[trial.first, first]])
  const plays = [...new Set(chosen.map(({ play }) => play))].filter(play => play !== trial.first)
  const results: Result[] = []
  const judgeAll = (play: Play): void => {
    const about = shown.get(play)
    if (about === undefined) return
    for (const scenario of chosen) if (scenario.play === play) results.push(told(trial, judged(scenario, cell, about)))
  }
  judgeAll(trial.first)
  const work = async (queue: Play[]): Promise<void> => {
    for (let play = queue.shift(); play !== undefined && !trial.signal?.aborted; play = queue.shift()) {
      shown.set(play, await show(trial, play, cell))
      judgeAll(play)
    }
  }
  const [alone, beside] = [plays.filter(play => play.alone === true), plays.filter(play => play.alone !== true)]
  await Promise.all(Array.from({ length: parallel }, () => work(beside)))
  await work(alone)
  for (const scenario of chosen.filter(({ play }) => !shown.has(play))) {
    const verdict = { status: 'skipped' as const, message: stoppedWhy, frames: [] }
    results.push(told(trial, resultOf(scenario, cell, verdict, 0)))
  }
  return results
}

async function show({ client, signal = never }: Trial, play: Play, { revision, carrier }: Cell): Promise<PlayResult> {
  const began = performance.now()
  try {
    const server = await openServer(play, revision, carrier)
    try {
      const end = await drive(client, server, signal)
      await server.quiet()
      const [fault] = server.faults
      if (fault !== undefined) return { fault }
      return { seen: new Observation(server, end), ms: performance.now() - began }
    } finally {
      await server.close()
    }
  } catch (fault) {
    return { fault }
  }
}

function named({ info }: Observation): { name: string; version: string } {
  return { name: clip(String(info['name'] ?? 'unknown')), version: clip(String(info['version'] ?? 'unknown')) }
}

/** A revision that was not asked for by name need not be spoken. */
function notSpoken({ revisions, role }: Trial, cell: Cell, seen: Observation): Result {
  const asked = revisions?.includes(cell.revision) === true
  const scenario = {
    id: `cell/${cell.revision}/${cell.carrier}`,
    title: `The ${role} speaks ${cell.revision} over ${cell.carrier}`,
    proves: [],
  }
  const why = seen.end.error ?? (seen.end.timedOut ? 'it was killed' : 'it ended')
  const message = `The client sent no request after the handshake: ${why}`
  return resultOf(
    scenario,
    cell,
    { status: asked ? 'failed' : 'skipped', message, frames: seen.log.messages.slice(0, 6).map(frameOf) },
    0,
  )
}

function judged(scenario: ClientScenario, cell: Cell, shown: PlayResult): Result {
  if ('fault' in shown) return resultOf(scenario, cell, { status: 'error', message: words(shown.fault), frames: [] }, 0)
  const { seen, ms } = shown
  const remarks: string[] = []
  const result = (status: Status, message: string, frames: Failed['frames'] = []): Result =>
    resultOf(scenario, cell, { status, message, frames }, ms)
  try {
    const why = scenario.needs?.(seen)
    if (why !== undefined) return result('skipped', why)
    scenario.check(seen, {
      warn: says => void remarks.push(says),
      leave(why) {
        throw new Skipped(why)
      },
    })
  } catch (error) {
    if (error instanceof Skipped) return result('skipped', error.message)
    if (error instanceof Failed) return result('failed', error.message, error.frames)
    return result('error', words(error))
  }
  if (seen.end.timedOut)
    return result('failed', 'The client did not end and was killed', seen.log.messages.slice(-4).map(frameOf))
  return result('passed', remarks.join('; '))
}

function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function told({ onResult }: Trial, result: Result): Result {
  onResult?.(result)
  return result
}

// ── For clients: everything they are judged by, and the judge.

/** The scenarios for clients. Each applies if the client declares what it is about. */
export const clientScenarios: readonly ClientScenario[] = [
  ...runScenarios,
  ...listScenarios,
  ...callScenarios,
  ...askingScenarios,
  ...roundScenarios,
  ...httpScenarios,
  ...authScenarios,
  ...consentScenarios,
  ...ongoingScenarios,
  ...contentScenarios,
]

/**
 * Judges a client against scripted servers: a command that gets the address as its last argument, or a function. The client is
 * started once for each play.
 * @example const report = await judgeClient({ command: 'node my-client.js' })
 */
export function judgeClient(client: ClientUnderTest, options: JudgeClientOptions = {}): Promise<Report> {
  return judgeRole(client, { scenarios: clientScenarios, ...options, role: 'client' })
}

// ── For hosts of MCP Live: everything they are judged by, and the judge.

/** The scenarios for hosts of MCP Live. */
export const hostScenarios: readonly ClientScenario[] = [...openingScenarios, ...requestScenarios, ...inferenceScenarios]

/**
 * Judges a host of MCP Live against scripted servers: a command that gets the address as its last argument, or a function.
 * @example const report = await judgeHost({ command: 'node my-host.js' })
 */
export function judgeHost(host: ClientUnderTest, options: JudgeClientOptions = {}): Promise<Report> {
  return judgeRole(host, { scenarios: hostScenarios, ...options, role: 'host', first: hello })
}
