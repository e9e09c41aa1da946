/** Judges a server: cell by cell it asks what the server offers, plans, runs, and writes down how it went. */
import type { AuthTrial } from './auth/issuer.ts'
import { runOnBench, stoppedWhy, type Verdict, writeGuard } from './bench.ts'
import { scenarios as allScenarios } from './registry.ts'
import { type Report, type Result, reportOf, resultOf } from './report.ts'
import {
  type Advertised,
  allRevisions,
  type Carrier,
  type Cell,
  cellsOf,
  type Frame,
  type RevisionId,
  type Scenario,
  scenariosFor,
} from './scenario.ts'
import { advertisedBy, surveyServer } from './survey.ts'
import { Connector, carriersOf, type FrameOrigin, type JudgeTarget, type Places, placesOf } from './wire/connector.ts'
import { Guarded, NotSpoken } from './wire/envelope.ts'
import { letGo } from './wire/raw-peer.ts'

/** Options of `judge`. */
export interface JudgeOptions {
  /** The revisions to judge. Default: all seven. */
  readonly revisions?: readonly RevisionId[]
  /** The carriers to judge. Default: all that the target has an address for. */
  readonly carriers?: readonly Carrier[]
  /** Only scenarios whose id or statement matches. Default: all. */
  readonly only?: RegExp
  /** Whether tools that may write can be called. Default: only tools that declare that they only read, and known fixtures. */
  readonly allowWrites?: boolean
  /** Headers of everything over HTTP and WebSocket, for example `authorization`. Default: none. */
  readonly headers?: Readonly<Record<string, string>>
  /** The longest time for one scenario, in milliseconds. Default 30,000. */
  readonly scenarioMs?: number
  /** Cells that are judged at the same time. Default 2. */
  readonly parallel?: number
  /** The scenarios. Default: all of the kit. */
  readonly scenarios?: readonly Scenario[]
  /** How tokens for the server are made. Without it scenarios that need one are skipped. */
  readonly auth?: AuthTrial
  /** Called with each result as soon as it is known. */
  onResult?(result: Result): void
  /** Called with every frame of every connection. */
  onFrame?(frame: Frame, on: FrameOrigin): void
  /** Stops the run. */
  readonly signal?: AbortSignal
  /** Supplies the time of the report. Default: the system clock. */
  readonly now?: () => Date
}

interface Run extends JudgeOptions {
  readonly places: Places
  readonly scenarios: readonly Scenario[]
  /** The first that was met: it names the report. */
  met?: Advertised
}

/**
 * Judges a server, scenario by scenario, in every revision and on every carrier. Never throws because of what the server does.
 * @example
 * const report = await judge(url, { revisions: ['2025-11-25'], only: /tools\/list/ })
 * console.log(tableOf(report))
 */
export async function judge(target: JudgeTarget, options: JudgeOptions = {}): Promise<Report> {
  const { scenarios = allScenarios, now = () => new Date() } = options
  const places = placesOf(target)
  const run: Run = { ...options, ...(await credentials(options)), places, scenarios }
  const carriers = carriersOf(places).filter(carrier => options.carriers?.includes(carrier) ?? true)
  const cells = cellsOf(options.revisions ?? allRevisions, carriers)
  const began = now()
  const results = await inParallel(cells, options.parallel ?? 2, cell => judgeCell(run, cell))
  return reportOf('server', results.flat(), began, run.met)
}

/** Who can make tokens comes with one. */
async function credentials({ auth, headers = {} }: JudgeOptions): Promise<Pick<JudgeOptions, 'headers'>> {
  const given = Object.keys(headers).some(name => name.toLowerCase() === 'authorization')
  return auth === undefined || given ? { headers } : { headers: { ...headers, authorization: `Bearer ${await auth.token()}` } }
}

async function inParallel<T, R>(items: readonly T[], most: number, work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  let next = 0
  const worker = async (): Promise<void> => {
    for (let at = next++; at < items.length; at = next++) results[at] = await work(items[at] as T)
  }
  await Promise.all(Array.from({ length: most }, worker))
  return results
}

async function judgeCell(run: Run, cell: Cell): Promise<readonly Result[]> {
  const guard = writeGuard(run.allowWrites ?? false)
  const connector = new Connector({
    places: run.places,
    headers: run.headers ?? {},
    guard: guard.check,
    onFrame: run.onFrame?.bind(run),
    ...cell,
  })
  try {
    const peer = await survey(connector, limited(run, surveyMs))
    run.met ??= peer
    guard.learn(peer)
    return await runPlan(run, peer, connector)
  } catch (error) {
    if (error instanceof Guarded) return judgeGuard(run, cell, connector, error)
    return [told(run, cellResult(cell, error))]
  } finally {
    await connector.close()
  }
}

/** Whatever is opened after its time was over is closed, and nobody waits for it. */
async function survey(connector: Connector, signal: AbortSignal): Promise<Advertised> {
  const asking = letGo(asked(connector, signal))
  const over = new Promise<never>((_, reject) => {
    const stop = (): void => reject(new Error('The server did not list what it offers in time'))
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  })
  return Promise.race([asking, over])
}

async function asked(connector: Connector, signal: AbortSignal): Promise<Advertised> {
  const peer = await connector.open()
  try {
    return await surveyServer(peer, signal)
  } finally {
    await connector.release(peer, {}, true)
  }
}

/** Whoever is not let in sees the guard alone; how much it hides is said once. */
async function judgeGuard(run: Run, cell: Cell, connector: Connector, { message }: Guarded): Promise<readonly Result[]> {
  const { revision, carrier } = cell
  const nothing = { hello: {}, capabilities: {}, tools: [], resources: [], templates: [], prompts: [] }
  const [guards, inside] = [true, false].map(outside => run.scenarios.filter(({ id }) => id.startsWith('auth/') === outside))
  const results = await runPlan({ ...run, scenarios: guards ?? [] }, advertisedBy(revision, carrier, nothing), connector)
  const hidden = scenariosFor('server', cell, inside ?? [], run.only).length
  return hidden === 0
    ? results
    : [...results, told(run, cellResult(cell, new Guarded(`${message} (${hidden} scenarios were not run)`)))]
}

/** A cell that could not be judged is one line of the report, not one per scenario. */
function cellResult(cell: Cell, error: unknown): Result {
  const said = error instanceof Error ? error.message : String(error)
  const fault = error instanceof NotSpoken ? 'unspoken' : error instanceof Guarded ? 'guarded' : 'unreachable'
  const message = fault === 'unspoken' ? `The server does not speak ${cell.revision}: ${said}` : said
  const scenario = {
    id: `cell/${cell.revision}/${cell.carrier}`,
    title:
      fault === 'guarded'
        ? `The server accepts the credentials of the kit over ${cell.carrier}`
        : `The server speaks ${cell.revision} over ${cell.carrier}`,
    proves: [],
  }
  const status = fault === 'unreachable' ? 'error' : 'skipped'
  return { ...resultOf(scenario, cell, { status, message, frames: [] }, 0), fault }
}

/** The longest time for finding out what a server offers: a process may have to start, and a list may have many pages. */
const surveyMs = 60_000

/** So many in a row that could not even open a connection, and the server is taken for gone. */
const mostUnmet = 5

/** Each planned scenario has one result, whatever becomes of the server meanwhile. */
async function runPlan(run: Run, peer: Advertised, connector: Connector): Promise<readonly Result[]> {
  const results: Result[] = []
  let unmet = 0
  let gone = ''
  for (const scenario of scenariosFor(peer.role, peer, run.scenarios, run.only)) {
    const began = performance.now()
    const reached = unmet < mostUnmet
    const verdict = leftOut(run, scenario, peer) ?? (reached ? await verdictOn(run, scenario, peer, connector) : unreached(gone))
    if (verdict.unmet === true) gone = verdict.message
    unmet = verdict.unmet === true ? unmet + 1 : verdict.status === 'skipped' || unmet >= mostUnmet ? unmet : 0
    results.push(told(run, resultOf(scenario, peer, verdict, performance.now() - began)))
  }
  return results
}

/** Why it is not run; undefined: it is. */
function leftOut({ allowWrites }: Run, scenario: Scenario, peer: Advertised): Verdict | undefined {
  if (scenario.writes === true && allowWrites !== true)
    return { status: 'skipped', message: 'the scenario may write: use --allow-writes to run it', frames: [] }
  try {
    const why = scenario.needs(peer)
    return why === undefined ? undefined : { status: 'skipped', message: why, frames: [] }
  } catch (error) {
    return { status: 'error', message: error instanceof Error ? error.message : String(error), frames: [] }
  }
}

async function verdictOn(run: Run, scenario: Scenario, peer: Advertised, connector: Connector): Promise<Verdict> {
  if (run.signal?.aborted === true) return { status: 'skipped', message: stoppedWhy, frames: [] }
  const signal = limited(run, run.scenarioMs ?? 30_000)
  return runOnBench(scenario, { peer, allowWrites: run.allowWrites ?? false, signal, connector, auth: run.auth })
}

function unreached(why: string): Verdict {
  return { status: 'error', message: `Not run: the server could no longer be reached (${why})`, frames: [] }
}

function limited({ signal }: Run, ms: number): AbortSignal {
  const limit = AbortSignal.timeout(ms)
  return signal === undefined ? limit : AbortSignal.any([limit, signal])
}

function told(run: Run, result: Result): Result {
  run.onResult?.(result)
  return result
}
