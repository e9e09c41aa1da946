/**
 * Rows for clients and hosts: as those for servers (`../define.ts`), but for a play instead of steps, and one table of expectations
 * about all that the play has shown.
 *
 * ```ts
 * const row = clientTable('client/lists/', { revisions: official })
 *
 * export const lists = [
 *   row('endless MCP server/utilities/pagination', 'A list that repeats the same cursor endlessly is abandoned').by(endless, {
 *     'The client was still asking after 2,000 pages': seen => seen.requests('tools/list').length < 2_000,
 *   }),
 * ]
 * ```
 */

import { beforeClause, eras } from '../define.ts'
import { type Expectation, hold, type Judging } from '../expectations.ts'
import { extensionId } from '../said.ts'
import { Failed, type Frame, type Heading, type Json, type RevisionId } from '../scenario.ts'
import { requires } from './checks.ts'
import type { LoggedMessage, Observation } from './log.ts'
import { type Play, textResult } from './play.ts'

/** A scenario for a client or a host: what a play must show. */
export interface ClientScenario extends Heading {
  /** The run that the scenario looks at. */
  readonly play: Play
  /** Returns why the scenario does not apply to this client. Undefined: it applies. */
  readonly needs?: ClientNeed
  /** Throws `Failed` if the client is wrong, `Skipped` if there is nothing to judge. */
  readonly check: (seen: Observation, judging: Judging) => void
}

/** Returns why a scenario does not apply. Undefined: it applies. */
export type ClientNeed = (seen: Observation) => string | undefined

/** What a row, or all rows of a table, are given. */
interface ClientGiven extends Partial<Pick<ClientScenario, 'role' | 'play' | 'revisions' | 'carriers'>> {
  /** Added to those of the table. */
  readonly needs?: readonly ClientNeed[]
}

/** What checks have beside what was seen. */
export interface ClientJudging extends Judging {
  /** Fails with this explanation where the condition does not hold. */
  expect(condition: boolean, says: string, evidence?: Evidence): void
  /** What a failure of this check is shown by. Default: what was said last. */
  show(evidence: Evidence): void
}

type Evidence = readonly (LoggedMessage | undefined)[]
/** One thing that must hold of all that a play has shown. */
export type Check = Expectation<Observation, ClientJudging>
/** What must hold, by sentence; or a program, where a scenario is really one. */
export type ClientBody = Readonly<Record<string, Check>> | ((seen: Observation, judging: ClientJudging) => void)

/** A play, a play with what a client must have shown for it to say anything, or all that a row can be given. */
type Setting = Play | readonly [Play, ...ClientNeed[]] | ClientGiven

/** Makes a scenario of a row: its id and the clauses that it proves, its title, its play or what else it is given, and what must hold. */
export type ClientRowDefiner = (
  ids: string,
  title: string,
) => {
  by(body: ClientBody): ClientScenario
  by(given: Setting, body: ClientBody): ClientScenario
}

/** A table; without clauses a row proves the statement that its id begins with. */
export function clientTable(prefix: string, common: ClientGiven): ClientRowDefiner {
  const rowOf = (ids: string, title: string, given: ClientGiven, body: ClientBody): ClientScenario => {
    const [id = '', ...clauses] = ids.split(beforeClause)
    const { role = 'client', play, revisions, carriers } = { ...common, ...given }
    if (play === undefined || revisions === undefined) throw new Error(`The scenario ${id} has no play or no revisions`)
    const needs = [...(common.needs ?? []), ...(given.needs ?? [])]
    const statement = /^[EL][\d.]+-\d+/.exec(id)?.[0]
    return {
      ...{ id: `${prefix}${id}`, role, title, play, revisions },
      proves: statement === undefined ? clauses : [statement, ...clauses],
      ...(carriers === undefined ? {} : { carriers }),
      needs: seen => needs.reduce<string | undefined>((why, need) => why ?? need(seen), undefined),
      check: (seen, judging) => judge(body, seen, judging),
    }
  }
  return (ids, title) => ({
    by: (own: Setting | ClientBody, body?: ClientBody) =>
      body === undefined ? rowOf(ids, title, {}, own as ClientBody) : rowOf(ids, title, givenBy(own as Setting), body),
  })
}

function givenBy(setting: Setting): ClientGiven {
  if (!('steps' in setting) && !('length' in setting)) return setting
  const [play, ...needs] = 'steps' in setting ? [setting] : setting
  return { play, needs }
}

function judge(body: ClientBody, seen: Observation, judging: Judging): void {
  let shown: Evidence = []
  const broken = (says: string, evidence = shown): never => {
    const messages = evidence.filter(message => message !== undefined)
    throw new Failed(says, (messages.length > 0 ? messages : seen.log.messages.slice(-4)).map(frameOf))
  }
  const x: ClientJudging = {
    ...judging,
    expect(condition, says, evidence) {
      if (!condition) broken(says, evidence)
    },
    show(evidence) {
      shown = evidence
    },
  }
  if (typeof body === 'function') body(seen, x)
  else hold(body, seen, x, broken)
}

/** As the report shows it. */
export function frameOf({ from, at, text, frame }: LoggedMessage): Frame {
  return { way: from === 'client' ? 'in' : 'out', at: Math.round(at), text, value: frame }
}

/** Those with sessions over HTTP. */
export const httpSessions: readonly RevisionId[] = ['2025-03-26', '2025-06-18', '2025-11-25']

// ── What rows about extensions share: how the scripted server declares them, and what a client must know to be judged.

/** Rows about an extension that the client must know, at the newest revision of each era. */
export function knowing(name: string, more: Parameters<typeof clientTable>[1] = {}): ClientRowDefiner {
  const id = extensionId(name)
  const knows = requires(seen => seen.extension(id), `the client does not declare ${id}`)
  return clientTable('ext/client/', { revisions: eras, ...more, needs: [knows, ...(more.needs ?? [])] })
}

/** Capabilities of a server with tools and these extensions. */
export function offering(...extensions: readonly string[]): Json {
  return { tools: {}, extensions: Object.fromEntries(extensions.map(name => [extensionId(name), {}])) }
}

/** A problem as a tool's result carries it. */
export function problemResult(problem: Json): Json {
  return textResult(String(problem['message']), { isError: true, _meta: { [extensionId('problem')]: problem } })
}
