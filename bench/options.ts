/** Command line of the bench, and how long each part may take. */
import { parseArgs } from 'node:util'

export interface Timing {
  /** Length of one measured round. */
  roundMs: number
  rounds: number
  /** Warm-up before the first work of a server; later works get half of it, most of their path being warm already. */
  warmMs: number
  /** And calls before a gateway is compared with its server: in the same time it gets fewer, and its code would be measured half compiled. */
  warmCalls: number
  /** Requests in flight for `list200`; elsewhere always 32. 32 lists take the slow ones most of a second, more than a quick round. */
  listInFlight: number
  coldStarts: number
  /** Whether rows are measured that differ little from a neighbour: 2025-11-25 but for echo, cold start by `discover`, clients ×1. */
  allRows: boolean
  sessions: number
  clientRoundMs: number
  clientWarmMs: number
  clientRounds: number
  /** No section starts later than this: on a busy machine a quick run drops its last sections rather than its promise. */
  lastStartMs: number
  /** Ends a run that hangs, whatever the reason. */
  watchdogMs: number
}

export interface Options {
  quick: boolean
  json: string | undefined
  /** Another checkout, whose build is compared with this one. */
  against: string | undefined
  only: ReadonlySet<string>
  timing: Timing
}

const FULL: Timing = {
  roundMs: 1000,
  rounds: 5,
  warmMs: 2000,
  warmCalls: 20_000,
  listInFlight: 32,
  coldStarts: 11,
  allRows: true,
  sessions: 5000,
  clientRoundMs: 1000,
  clientWarmMs: 2000,
  clientRounds: 5,
  lastStartMs: Number.POSITIVE_INFINITY,
  watchdogMs: 30 * 60_000,
}

const QUICK: Timing = {
  roundMs: 120,
  rounds: 2,
  warmMs: 360,
  warmCalls: 0,
  listInFlight: 4,
  coldStarts: 2,
  allRows: false,
  sessions: 150,
  clientRoundMs: 100,
  clientWarmMs: 200,
  clientRounds: 2,
  lastStartMs: 46_000,
  watchdogMs: 2 * 60_000,
}

const AGAINST_WATCHDOG_MS = 90 * 60_000

const USAGE = `npm run bench -- [--quick] [--json FILE] [--only WORD,WORD] [--against DIR]
  --quick      short rounds, under a minute in all; good for a smoke test, too short for claims
  --json FILE  writes everything that was measured
  --against    compares this checkout with the one in DIR: both builds take turns in one run, so that
               differences of 5 % can be seen on a busy machine; sections server, cold, clients, sessions, idempotency,
               events, streaming, tasks and gateway
  --only       restricts by any of: section (server, cold, sessions, clients, idempotency,
               manifest, plain, state, rollback, events, references, streaming, tasks, gateway, console), carrier (stdio, http),
               revision (2025-11-25, 2026-07-28), work (echo, form20, echo100k, list200),
               contender (sdk-v1, sdk-v2, mcp-lite, vivarium, vivarium-json)`

const WORDS = [
  [
    ...['server', 'cold', 'sessions', 'clients', 'idempotency', 'manifest', 'plain', 'state', 'rollback', 'events'],
    ...['references', 'streaming', 'tasks', 'gateway', 'console'],
  ],
  ['stdio', 'http'],
  ['2025-11-25', '2026-07-28'],
  ['echo', 'form20', 'echo100k', 'list200'],
  ['sdk-v1', 'sdk-v2', 'mcp-lite', 'vivarium', 'vivarium-json'],
]

/** Reads the flags; a word it does not know ends the process with the usage. */
export function readOptions(argv: readonly string[]): Options {
  try {
    return parse(argv)
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`)
    process.exit(2)
  }
}

function parse(argv: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...argv],
    options: { quick: { type: 'boolean' }, json: { type: 'string' }, only: { type: 'string' }, against: { type: 'string' } },
  })
  const only = new Set((values.only ?? '').split(',').filter(word => word !== ''))
  for (const word of only) {
    if (!WORDS.flat().includes(word)) throw new Error(`--only does not know "${word}"`)
  }
  const quick = values.quick === true
  const timing = quick ? QUICK : FULL
  // Every row is four processes, and some are measured three times.
  const watchdogMs = values.against === undefined ? timing.watchdogMs : AGAINST_WATCHDOG_MS
  return { quick, json: values.json, against: values.against, only, timing: { ...timing, watchdogMs } }
}

/** Whether `--only` lets this word through: a kind of word that `--only` does not mention is not restricted. */
export function wanted(options: Options, word: string): boolean {
  const kind = WORDS.find(words => words.includes(word)) ?? []
  return options.only.has(word) || !kind.some(other => options.only.has(other))
}
