/** Judges a server: cell by cell it asks what the server offers, plans, runs, and writes down how it went. */
import type { AuthTrial } from './auth/trial.ts'
import { runOnBench } from './bench.ts'
import { allRevisions, type Cell, cellsOf, planFor } from './plan.ts'
import { scenarios as allScenarios } from './registry.ts'
import { type Report, type Result, resultOf, suiteVersion, summaryOf } from './report.ts'
import type { Advertised, Carrier, Frame, RevisionId, Scenario } from './scenario.ts'
import { advertisedBy, surveyServer } from './survey.ts'
import { Connector, type FrameOrigin } from './wire/connector.ts'
import { Guarded, NotSpoken } from './wire/hello.ts'
import { carriersOf, type JudgeTarget, type Places, placesOf } from './wire/places.ts'
import { writeGuard } from './write-guard.ts'

export interface JudgeOptions {
  /** Default: all seven. */
  readonly revisions?: readonly RevisionId[]
  /** Default: all that the target has a place for. */
  readonly carriers?: readonly Carrier[]
  /** Only scenarios whose id or statement fits. */
  readonly only?: RegExp
  /** Lets tools be called that may write. Default: only those that say they read, and known fixtures. */
  readonly allowWrites?: boolean
  /** Headers for everything over HTTP and WebSocket, such as `authorization`. */
  readonly headers?: Readonly<Record<string, string>>
  /** The longest time for one scenario. Default 30 s. */
  readonly scenarioMs?: number
  /** Cells judged at the same time. Default 2. */
  readonly parallel?: number
  /** Default: all of the kit. */
  readonly scenarios?: readonly Scenario[]
  /** Where the server guards itself: how tokens for it are made. Without it what needs one is skipped. */
  readonly auth?: AuthTrial
  /** Called with each result as soon as it is there. */
  onResult?(result: Result): void
  /** Told every frame of every connection, as it passes. */
  onFrame?(frame: Frame, on: FrameOrigin): void
  readonly signal?: AbortSignal
  readonly now?: () => Date
}

interface Run extends JudgeOptions {
  readonly places: Places
  readonly scenarios: readonly Scenario[]
  /** The first that was met: it names the report. */
  met?: Advertised
}

/**
 * Judges a server by what it says of itself, and never throws for what the peer does.
 *
 * @example const report = await judge('http://127.0.0.1:3000/mcp'); console.log(tableOf(report))
 */
export async function judge(target: JudgeTarget, options: JudgeOptions = {}): Promise<Report> {
  const { scenarios = allScenarios, now = () => new Date() } = options
  const places = placesOf(target)
  const run: Run = { ...options, ...(await credentials(options)), places, scenarios }
  const carriers = carriersOf(places).filter(carrier => options.carriers?.includes(carrier) ?? true)
  const cells = cellsOf(options.revisions ?? allRevisions, carriers)
  const began = now()
  const results = await inParallel(cells, options.parallel ?? 2, cell => judgeCell(run, cell))
  const all = results.flat()
  return {
    server_name: run.met?.name ?? 'unknown',
    server_version: run.met?.version ?? 'unknown',
    suite_version: suiteVersion,
    tested_at: began.toISOString(),
    role: 'server',
    results: all,
    summary: summaryOf(all),
  }
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
    const peer = await survey(connector)
    run.met ??= peer
    guard.learn(peer)
    return await runPlan(run, peer, connector)
  } catch (error) {
    const guards = error instanceof Guarded ? await judgeGuard(run, cell, connector) : []
    return [...guards, told(run, cellResult(cell, error))]
  } finally {
    await connector.close()
  }
}

async function survey(connector: Connector): Promise<Advertised> {
  const peer = await connector.open()
  try {
    return await surveyServer(peer)
  } finally {
    await connector.release(peer, {}, true)
  }
}

/** Whoever is not let in sees the guard alone. */
async function judgeGuard(run: Run, { revision, carrier }: Cell, connector: Connector): Promise<readonly Result[]> {
  const nothing = { hello: {}, capabilities: {}, tools: [], resources: [], templates: [], prompts: [] }
  const scenarios = run.scenarios.filter(({ id }) => id.startsWith('auth/'))
  return runPlan({ ...run, scenarios }, advertisedBy(revision, carrier, nothing), connector)
}

/** A cell that could not be judged is one line of the report, not one per scenario. */
function cellResult(cell: Cell, error: unknown): Result {
  const said = error instanceof Error ? error.message : String(error)
  const fault = error instanceof NotSpoken ? 'unspoken' : error instanceof Guarded ? 'guarded' : 'unreachable'
  const message = fault === 'unspoken' ? `It does not speak ${cell.revision}: ${said}` : said
  const scenario = {
    id: `cell/${cell.revision}/${cell.carrier}`,
    title: `The server speaks ${cell.revision} over ${cell.carrier}`,
    proves: [],
  }
  const status = fault === 'unspoken' ? 'skipped' : 'error'
  return { ...resultOf(scenario, cell, { status, message, frames: [] }, 0), fault }
}

async function runPlan(run: Run, peer: Advertised, connector: Connector): Promise<readonly Result[]> {
  const { only, allowWrites = false } = run
  const results: Result[] = []
  for (const { scenario, skip } of planFor(peer, run.scenarios, { only, allowWrites })) {
    if (run.signal?.aborted) break
    const began = performance.now()
    const limit = AbortSignal.timeout(run.scenarioMs ?? 30_000)
    const signal = run.signal === undefined ? limit : AbortSignal.any([limit, run.signal])
    const verdict =
      skip === undefined
        ? await runOnBench(scenario, { peer, allowWrites, signal, connector, auth: run.auth })
        : { status: 'skipped' as const, message: skip, frames: [] }
    results.push(told(run, resultOf(scenario, peer, verdict, performance.now() - began)))
  }
  return results
}

function told(run: Run, result: Result): Result {
  run.onResult?.(result)
  return result
}
