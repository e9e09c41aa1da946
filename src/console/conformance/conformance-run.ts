/** Runs of conformance from a console: one at a time, told result by result, with the report of the last one. */

import {
  allRevisions,
  scenarios as allScenarios,
  badgeOf,
  type Carrier,
  type Cell,
  cellsOf,
  type JudgeTarget,
  judge,
  junitOf,
  type Report,
  type Result,
  suiteVersion,
} from '../../conformance/index.ts'
import { summaryOf } from '../../conformance/report.ts'
import { scenariosFor } from '../../conformance/scenario.ts'
import { carriersOf, placesOf } from '../../conformance/wire/connector.ts'
import type { Cancel, Clock } from '../../core/clock.ts'
import { messageOf } from '../../stores/store.ts'
import type {
  Conformance,
  ConformanceCell,
  ConformanceDetail,
  ConformanceExport,
  ConformanceQuery,
  ConformanceResult,
  ConformanceWish,
} from '../contract/conformance.ts'
import { ConsoleFailure } from '../failure.ts'
import type { FrameRedaction } from '../frames/redaction.ts'

const mostResults = 20_000
const tellMs = 1_000

/** What is needed to judge the server of a playground. */
interface RunParts {
  readonly server: string
  readonly target: JudgeTarget
  /** The command that judges the server without a page, with further options. */
  command(options: string): string
  /** What goes with everything over HTTP. */
  headers(): Readonly<Record<string, string>>
  readonly redaction: FrameRedaction
  readonly clock: Clock
  changed(conformance: Conformance): void
  result(result: ConformanceResult): void
}

interface Stored {
  readonly row: ConformanceResult
  readonly result: Result
}

interface Running {
  readonly wish: ConformanceWish
  readonly by: string
  readonly startedAt: number
  readonly cells: readonly Cell[]
  readonly planned: number
  readonly end: AbortController
  readonly done: Promise<void>
}

/** The run of now, or the last one. */
export class ConformanceRun {
  readonly #parts: RunParts
  readonly #carriers: readonly Carrier[]
  #state: Conformance['state'] = 'idle'
  #run: Running | undefined
  #results: Stored[] = []
  #report: Report | undefined
  #endedAt: number | undefined
  #why: string | undefined
  #told: Cancel | undefined

  constructor(parts: RunParts) {
    this.#parts = parts
    this.#carriers = carriersOf(placesOf(parts.target))
  }

  get now(): Conformance {
    const { server, command } = this.#parts
    const { wish, by, startedAt, cells = [], planned = 0 } = this.#run ?? {}
    return {
      ...{ state: this.#state, server, command: command(flagsOf(wish ?? {})), suite: suiteVersion, planned },
      ...{ revisions: allRevisions, carriers: this.#carriers },
      ...(wish !== undefined && { wish }),
      ...(by !== undefined && { by }),
      ...(startedAt !== undefined && { startedAt }),
      ...(this.#endedAt !== undefined && { endedAt: this.#endedAt }),
      ...(this.#why !== undefined && { why: this.#why }),
      cells: cells.map(cell => this.#cell(cell)),
      summary: summaryOf(this.#results.map(({ result }) => result)),
    }
  }

  /** In the order in which they came. */
  results({ revision, carrier, status, text }: ConformanceQuery): readonly ConformanceResult[] {
    const wanted = text?.toLowerCase()
    return this.#results
      .map(({ row }) => row)
      .filter(row => (revision ?? row.revision) === row.revision && (carrier ?? row.carrier) === row.carrier)
      .filter(row => (status ?? row.status) === row.status)
      .filter(({ id, title, message }) => wanted === undefined || `${id} ${title} ${message}`.toLowerCase().includes(wanted))
  }

  /** One result with what shows it. `whole`: with its frames. */
  detail(n: number, whole: boolean): ConformanceDetail | undefined {
    const found = this.#results[n - 1]
    if (found === undefined) return undefined
    const { row, result } = found
    const { redaction, command } = this.#parts
    const frames = result.frames.map(frame => ({ ...frame, text: redaction.frame(frame.text).text }))
    const { revision, carrier, id } = row
    return {
      result: row,
      proves: result.proves.map(each => ({ id: each })),
      ...(whole && { frames }),
      command: command(`--revision ${revision} --carrier ${carrier} --only '^${id}$'`),
    }
  }

  /** The report of the last run as a file; undefined where none has ended. */
  export(as: 'json' | 'junit' | 'badge'): ConformanceExport | undefined {
    const report = this.#report
    if (report === undefined) return undefined
    if (as === 'junit') return { name: 'conformance.xml', type: 'application/xml', text: junitOf(report) }
    const value = as === 'badge' ? badgeOf(report) : report
    const name = as === 'badge' ? 'badge.json' : 'conformance.json'
    return { name, type: 'application/json', text: `${JSON.stringify(value, null, 2)}\n` }
  }

  /** Starts a run. Throws while one runs, and where nothing of it can be judged. */
  start(wish: ConformanceWish, by: string): Conformance {
    if (this.#state === 'running')
      throw new ConsoleFailure('JOB_RUNNING', 'A run of conformance has not ended.', 'Stop it, or wait until it ends.')
    const revisions = chosen('revisions', allRevisions, wish.revisions)
    const carriers = chosen('carriers', this.#carriers, wish.carriers)
    const scenarios = scenariosNamed(wish.only)
    const cells = cellsOf(revisions, carriers)
    const planned = cells.reduce((sum, cell) => sum + scenariosFor('server', cell, scenarios).length, 0)
    if (planned === 0)
      throw new ConsoleFailure('INVALID_INPUT', 'No scenario fits.', 'Choose more revisions or carriers, or another text.', {
        member: 'only',
      })
    const end = new AbortController()
    this.#results = []
    this.#report = undefined
    this.#endedAt = undefined
    this.#why = undefined
    this.#state = 'running'
    const done = judge(this.#parts.target, {
      ...{ revisions, carriers, scenarios, headers: this.#parts.headers(), signal: end.signal },
      allowWrites: wish.allowWrites === true,
      onResult: result => this.#add(result),
    }).then(
      report => this.#ended(end.signal.aborted ? 'stopped' : 'done', { report }),
      (error: unknown) => this.#ended('failed', { why: this.#parts.redaction.text(messageOf(error)) }),
    )
    this.#run = { wish, by, startedAt: this.#parts.clock.now(), cells, planned, end, done }
    this.#tell()
    return this.now
  }

  /** Stops the run, where there is one. */
  stop(): void {
    if (this.#state === 'running') this.#run?.end.abort(new Error('Stopped in the console'))
  }

  async close(): Promise<void> {
    this.stop()
    this.#told?.()
    await this.#run?.done
    this.#told?.()
  }

  #add(result: Result): void {
    if (this.#results.length >= mostResults) return
    const { test_id: id, title, revision, carrier, status, message, duration_ms: ms } = result
    const said = this.#parts.redaction.text(message)
    const row = { n: this.#results.length + 1, id, title, revision, carrier, status, message: said, ms }
    this.#results.push({ row, result })
    this.#parts.result(row)
    this.#told ??= this.#parts.clock.setTimeout(() => this.#tell(), tellMs, true)
  }

  #ended(state: Conformance['state'], { report, why }: { readonly report?: Report; readonly why?: string }): void {
    this.#state = state
    this.#report = report
    this.#why = why
    this.#endedAt = this.#parts.clock.now()
    this.#tell()
  }

  #tell(): void {
    this.#told?.()
    this.#told = undefined
    this.#parts.changed(this.now)
  }

  #cell({ revision, carrier }: Cell): ConformanceCell {
    const own = this.#results.filter(({ row }) => row.revision === revision && row.carrier === carrier)
    const broken = own.find(({ result }) => result.fault !== undefined)
    return {
      ...{ revision, carrier, ...summaryOf(own.map(({ result }) => result)) },
      ...(broken?.result.fault !== undefined && { fault: broken.result.fault, why: broken.row.message }),
    }
  }
}

function chosen<T extends string>(member: string, known: readonly T[], wanted: readonly string[] | undefined): readonly T[] {
  if (wanted === undefined || wanted.length === 0) return known
  const other = wanted.find(each => !known.some(one => one === each))
  if (other === undefined) return known.filter(each => wanted.includes(each))
  throw new ConsoleFailure('INVALID_INPUT', `${member} has a value that is not known here.`, `Give ${known.join(', ')}.`, {
    member,
  })
}

/** By parts of ids, titles and statements. Not by patterns: whoever writes one could make the process think for minutes. */
function scenariosNamed(only = ''): typeof allScenarios {
  const parts = only
    .toLowerCase()
    .split(',')
    .map(part => part.trim())
    .filter(part => part !== '')
  if (parts.length === 0) return allScenarios
  return allScenarios.filter(({ id, title, proves }) => {
    const words = [id, title, ...proves].join('\n').toLowerCase()
    return parts.some(part => words.includes(part))
  })
}

function flagsOf({ revisions = [], carriers = [], allowWrites }: ConformanceWish): string {
  const flags = [
    ...revisions.map(each => `--revision ${each}`),
    ...carriers.map(each => `--carrier ${each}`),
    ...(allowWrites === true ? ['--allow-writes'] : []),
  ]
  return flags.join(' ')
}
