/**
 * Rows for clients and hosts: as those for servers (`../define.ts`), but for a play instead of steps, and one table of expectations
 * about all that the play has shown.
 *
 * ```ts
 * const row = clientTable('client/lists/', { revisions: official })
 *
 * export const lists = [
 *   row('endless MCP server/utilities/pagination', 'A list that gives the same cursor for ever is given up').by(endless, {
 *     'The client was still asking after 2,000 pages': seen => seen.requests('tools/list').length < 2_000,
 *   }),
 * ]
 * ```
 */

import { beforeClause, eras } from '../define.ts'
import {
  type CheckResult,
  type Expectation,
  fitsPattern,
  hold,
  type JsonPattern,
  type Judging,
  objectIn,
} from '../expectations.ts'
import { Failed, type Frame, type Heading, type Json, type RevisionId } from '../scenario.ts'
import { extensionId } from '../tools.ts'
import type { LoggedMessage, Observation, Reported } from './log.ts'
import { type Play, textResult } from './play.ts'

/** A scenario for a client or a host: what a play must have shown. */
export interface ClientScenario extends Heading {
  readonly play: Play
  /** Why this client cannot be judged by it, as it declares itself; undefined: it can. */
  readonly needs?: ClientNeed
  /** Throws `Failed` where the client is wrong, `Skipped` where there is nothing to judge. */
  readonly check: (seen: Observation, judging: Judging) => void
}

/** Why a scenario cannot be judged on what was seen; undefined: it can. */
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
type Check = Expectation<Observation, ClientJudging>
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

// ── which messages ──────────────────────────────────────────────────────────────────────────────────────────────────

/** Some messages of the client: requests of a method (`*`: all), or what a function finds. */
export type Select = string | ((seen: Observation) => readonly LoggedMessage[])

function selected(select: Select, seen: Observation): readonly LoggedMessage[] {
  return typeof select === 'function' ? select(seen) : seen.requests(select === '*' ? undefined : select)
}

/** All that the client sent. */
export function everything(seen: Observation): readonly LoggedMessage[] {
  return seen.fromClient
}

/** Calls of `test-tool`. */
export function calls(seen: Observation): readonly LoggedMessage[] {
  return seen.calls('test-tool')
}

/** What the client answered when it was asked. */
export function answers(seen: Observation): readonly LoggedMessage[] {
  return seen.answers
}

// ── what they must be ───────────────────────────────────────────────────────────────────────────────────────────────

type MessageCheck = (message: LoggedMessage, seen: Observation) => CheckResult

/** At least one of these was sent. */
export function some(select: Select): Check {
  return seen => selected(select, seen).length > 0
}

/** None of these was sent. */
export function none(select: Select, fits: (message: LoggedMessage, seen: Observation) => boolean = () => true): Check {
  return (seen, { show }) => {
    const odd = selected(select, seen).filter(message => fits(message, seen))
    show(odd.slice(0, 2))
    return odd.length === 0
  }
}

/** Each of these is right. */
export function each(select: Select, check: MessageCheck): Check {
  return (seen, { show }) => {
    for (const message of selected(select, seen)) {
      const result = check(message, seen)
      show([message])
      if (result === false || typeof result === 'string') return result
    }
    return true
  }
}

/** The first of these, which must be there, is right. */
export function first(select: Select, check: MessageCheck): Check {
  return (seen, { show }) => {
    const [message] = selected(select, seen)
    show([message])
    return message !== undefined && check(message, seen)
  }
}

/** So many were sent. */
export function times(select: Select, right: number | ((count: number) => boolean), says?: (count: number) => string): Check {
  return (seen, { show }) => {
    const found = selected(select, seen)
    const { length } = found
    show(found.slice(-4))
    return (typeof right === 'number' ? length === right : right(length)) || (says?.(length) ?? false)
  }
}

/** It holds of all that was seen, which these messages show. */
export function shownBy(select: Select, check: Check): Check {
  return (seen, x, says) => {
    x.show(selected(select, seen).slice(-4))
    return check(seen, x, says)
  }
}

/** What the client reports of a step, where it does, is right. */
export function reported(step: string, check: (entry: Reported) => CheckResult): Check {
  return shownBy(
    seen => seen.calls(),
    seen => {
      const entry = seen.reported.get(step)
      return entry === undefined || check(entry)
    },
  )
}

/** The client never fetched what is at this path. */
export function unvisited(path: string): Check {
  return seen => seen.visits('GET', path).length === 0
}

/** Its parameters fit. */
export function params(pattern: JsonPattern): MessageCheck {
  return message => fitsPattern(pattern, message.params)
}

/** It has this header, or the header is as it must be. */
export function header(name: string, value: string | undefined): MessageCheck {
  return ({ headers }) => headers[name] === value
}

// ── what must be there to judge ─────────────────────────────────────────────────────────────────────────────────────

/** Needs that it holds. */
export function requires(ok: (seen: Observation) => boolean, why: string): ClientNeed {
  return seen => (ok(seen) ? undefined : why)
}

/** Needs that something of this was sent. */
export function sent(select: Select, why: string): ClientNeed {
  return requires(seen => selected(select, seen).length > 0, why)
}

/** Needs what the client must have declared. */
export function declares(path: string): ClientNeed {
  return requires(seen => seen.has(path), `the client does not declare ${path}`)
}

/** Needs that the client says what came of its steps. */
export const hasReport: ClientNeed = requires(seen => seen.reported.size > 0, 'the client does not report what came of its steps')

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

/** What a request says under the key of an extension. */
export function under(message: Pick<LoggedMessage, 'meta'> | undefined, extension: string): Json {
  return objectIn(message?.meta, extensionId(extension))
}

/** A problem as a tool's result carries it. */
export function problemResult(problem: Json): Json {
  return textResult(String(problem['message']), { isError: true, _meta: { [extensionId('problem')]: problem } })
}

/** Whether the client knows that a call was not done. */
export function isUndone({ ok, isError }: { readonly ok: boolean; readonly isError?: boolean }): boolean {
  return !ok || isError === true
}
