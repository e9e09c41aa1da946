/**
 * How scenarios are written: as rows of tables. A table says what its rows have in common (where their ids begin, which clauses
 * they prove, at which revisions and on which carriers they hold, what the peer must offer), a row says what is peculiar to it,
 * and then either what is sent and what must come of it, step by step, or, where that is really a program, the program.
 *
 * ```ts
 * const row = extensionTable('idempotency')
 *
 * export const idempotency = [
 *   row('E5-2', 'A repeated call gets the stored result, and is not made again').by([
 *     callTool(callable, keyed).expect({ 'A call under a fresh key': isMade }),
 *     callTool(callable, keyed).expect({
 *       'The repetition': isMade,
 *       'The repetition is not marked was_replay: true': hasMeta('idempotency', { was_replay: true }),
 *       'The repetition has another result: the tool ran again': (it, { was }) => alike(it, was(0)),
 *     }),
 *   ]),
 * ]
 * ```
 *
 * Servers, clients and hosts share the head of a row (`Heading`), the choice of rows for a cell (`scenariosFor`) and the table of
 * what must hold (`expectations.ts`). What is peculiar to servers is how a row gets its answers: the steps of `steps.ts`. A row for
 * a client or a host has a play instead of steps, and one table of expectations about all that the play has shown.
 */
import { knowing } from './calls.ts'
import { missingIn, type Need } from './needs.ts'
import { allRevisions, type Bench, type Carrier, type OpenOptions, type RevisionId, type Scenario } from './scenario.ts'
import { attempted, ScenarioContext, type TableStep } from './steps.ts'

/** Where in `'E11-3 E5-2'` or `'ids MCP basic#requests RFC 6750 §3'` the next statement or clause begins. */
export const beforeClause = / (?=MCP |RFC |JSON-RPC |SEP-|[A-Z]{1,2}[\d-])/
/** Ids of rows that are ids of statements: `E5-3`, `L6.6-1`, `X8`. */
const isStatement = /^[A-Z]/

/** What a row, or all rows of a table, are given before anything is sent. */
export interface RowOptions {
  /** Statements and clauses, unless the row names its own after its id (`'E3-2 E3-8'`, `'missing MCP basic SEP-2164'`). Default: the id. */
  readonly proves?: readonly string[]
  readonly revisions?: readonly RevisionId[]
  /** Default: every carrier that the revision has. */
  readonly carriers?: readonly Carrier[]
  /** May have effects that stay. */
  readonly writes?: boolean
  /** Without which it says nothing. Those of the table come first; what steps need is known. */
  readonly needs?: readonly Need[]
  /** How its connection is opened; false: it opens its own, if any. */
  readonly open?: OpenOptions | ((bench: Bench) => OpenOptions) | false
  /** How often it may fail before it has: more than 1 where other users of the server can spoil what is seen. Default 1. */
  readonly tries?: number
}

/** What is done: steps, or a program. */
type Body<X extends ScenarioContext> = readonly TableStep[] | ((x: X) => Promise<void>)

/** Makes a scenario of a row: of its id and its title, then of what it needs or else is given, where that is anything, and of what is done. */
type RowDefiner<X extends ScenarioContext, G extends RowOptions> = (
  id: string,
  title: string,
) => {
  by(body: Body<X>): Scenario
  by(given: G | Need | readonly Need[], body: Body<X>): Scenario
}

/** A table of the base protocol, of an extension, or of anything else whose connections are opened by `enter`. */
export function table(prefix: string, common: RowOptions): RowDefiner<ScenarioContext, RowOptions>
/** The same with a scene of its own: `enter` opens it, and sees what the row is given. */
export function table<X extends ScenarioContext, G extends RowOptions>(
  prefix: string,
  common: G,
  enter: (bench: Bench, given: G) => Promise<X>,
): RowDefiner<X, G>
export function table<X extends ScenarioContext, G extends RowOptions>(
  prefix: string,
  common: G,
  enter?: (bench: Bench, given: G) => Promise<X>,
): RowDefiner<X, G> {
  const rowOf = (ids: string, title: string, given: G, body: Body<X>): Scenario => {
    const [id = '', ...clauses] = ids.split(beforeClause)
    const all: G = { ...common, ...given }
    const steps = typeof body === 'function' ? [] : body.flatMap(step => step.needs)
    const needs = [...(common.needs ?? []), ...(given.needs ?? []), ...steps]
    const begin = enter ?? ((bench: Bench) => openContext(bench, common, given) as Promise<X>)
    return {
      id: `${prefix}${id}`,
      role: 'server',
      title,
      proves: clauses.length > 0 && !isStatement.test(id) ? clauses : (all.proves ?? [id, ...clauses]),
      revisions: all.revisions ?? allRevisions,
      ...(all.carriers === undefined ? {} : { carriers: all.carriers }),
      ...(all.writes === undefined ? {} : { writes: all.writes }),
      needs: peer => missingIn(peer, needs),
      run: bench =>
        attempted(all.tries ?? 1, async () => {
          const x = await begin(bench, all)
          try {
            if (typeof body === 'function') await body(x)
            else for (const step of body) await step.run(x)
          } finally {
            await x.close()
          }
        }),
    }
  }
  return (ids, title) => ({
    by: (own: G | Need | readonly Need[] | Body<X>, body?: Body<X>) =>
      body === undefined
        ? rowOf(ids, title, {} as G, own as Body<X>)
        : rowOf(ids, title, givenBy(own as G | Need | readonly Need[]), body),
  })
}

/** A table of one extension, at the newest revision of both eras: run where it is advertised, by a client that knows them all. */
export function extensionTable(extension: string): RowDefiner<ScenarioContext, RowOptions> {
  return table('ext/', { revisions: eras, writes: true, needs: [extension], open: knowing })
}

/** Needs alone can be given as they are. */
function givenBy<G extends RowOptions>(given: G | Need | readonly Need[]): G {
  if (Array.isArray(given)) return { needs: given } as RowOptions as G
  return (typeof given === 'object' && !('find' in given) ? given : { needs: [given] }) as G
}

async function openContext(bench: Bench, ...given: readonly RowOptions[]): Promise<ScenarioContext> {
  const all = given.map(({ open = {} }) => (typeof open === 'function' ? open(bench) : open))
  return new ScenarioContext(bench, all.includes(false) ? undefined : await bench.open(Object.assign({}, ...all)))
}

const ages = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', 'draft-2026-v1', '2026-07-28'] as const

/** All revisions from one on, without the dialect. */
export function since(first: (typeof ages)[number]): readonly RevisionId[] {
  return ages.slice(ages.indexOf(first))
}

/** All revisions up to one, without the dialect. */
export function until(last: (typeof ages)[number]): readonly RevisionId[] {
  return ages.slice(0, ages.indexOf(last) + 1)
}

/** Those with a handshake and sessions. */
export const sessions = until('2025-11-25')
/** Those in which every request stands alone. */
export const stateless: readonly RevisionId[] = ['draft-2026-v1', '2026-07-28']
/** Both eras, each at its newest: the extensions are written for these. */
export const eras: readonly RevisionId[] = ['2025-11-25', '2026-07-28']
/** All but the dialect. */
export const official = since('2024-11-05')
/** Carriers on which both ends speak when they like. */
export const duplex: readonly Carrier[] = ['stdio', 'memory', 'websocket']
