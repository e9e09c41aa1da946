/** Scenarios of one extension: run where it is advertised and the tools are there that they need. */
import { isRecord } from '../../jsonrpc/message.ts'
import type { Advertised, Bench, Carrier, Frame, Json, OpenOptions, RevisionId, Scenario } from '../scenario.ts'
import { extensionId, type Finder, type FoundTool } from '../tools.ts'
import { attempted, found, lacking } from './attempts.ts'
import { type Called, openTalk, type Talk } from './talk.ts'

/** Both eras; the extensions are written for these. */
export const eras: readonly RevisionId[] = ['2025-11-25', '2026-07-28']

/** What a scenario is given. */
export interface Stage<T extends string> {
  readonly bench: Bench
  readonly talk: Talk
  readonly tools: Readonly<Record<T, FoundTool>>
  readonly modern: boolean
  expect(condition: boolean, says: string, frames?: readonly (Frame | undefined)[]): void
  /** The same of a text that must be there, which is given back. */
  text(value: unknown, says: string, frames?: readonly (Frame | undefined)[]): string
  /** Of an object. */
  object(value: unknown, says: string, frames?: readonly (Frame | undefined)[]): Json
  /** There is nothing to judge. */
  leave(why: string): never
  /** Fails unless the call was refused by a problem of this code, with words for those who see no more. */
  refused(called: Called, code: string, says: string): void
  /** Fails unless the call was made. */
  made(called: Called, says: string): void
}

export interface Part<T extends string> {
  readonly id: string
  /** Further statements that it proves. */
  readonly also?: readonly string[]
  readonly title: string
  /** Extensions without which it says nothing. */
  readonly wants?: readonly string[]
  readonly open?: OpenOptions
  readonly tools?: Readonly<Record<T, Finder>>
  readonly needs?: (peer: Advertised) => string | undefined
  /** Default true: calls of tools may have effects. */
  readonly writes?: boolean
  readonly revisions?: readonly RevisionId[]
  readonly carriers?: readonly Carrier[]
  /** How often it may fail before it has: more than 1 where other users of the server can spoil what is seen. Default 1. */
  readonly tries?: number
  run(stage: Stage<T>): Promise<void>
}

/** @example const scenario = scenariosOf('idempotency'); export const all = [scenario({ id: 'E5-2', … })] */
export function scenariosOf(extension: string): <const T extends string = never>(part: Part<T>) => Scenario {
  return part => {
    const wanted = [extension, ...(part.wants ?? [])]
    return {
      id: `ext/${part.id}`,
      proves: [part.id, ...(part.also ?? [])],
      role: 'server',
      title: part.title,
      revisions: part.revisions ?? eras,
      ...(part.carriers === undefined ? {} : { carriers: part.carriers }),
      writes: part.writes ?? true,
      needs: peer => missing(peer, wanted, part),
      run: bench => attempted(part.tries ?? 1, async () => part.run(stageOf(bench, await openTalk(bench, part.open), part))),
    }
  }
}

function missing<T extends string>(peer: Advertised, extensions: readonly string[], part: Part<T>): string | undefined {
  for (const name of extensions)
    if (peer.extension(extensionId(name)) === undefined) return `The server does not advertise ${extensionId(name)}`
  return lacking(peer, part.tools) ?? part.needs?.(peer)
}

function stageOf<T extends string>(bench: Bench, talk: Talk, part: Part<T>): Stage<T> {
  return {
    bench,
    talk,
    tools: found(bench.peer, part.tools),
    modern: bench.revision === '2026-07-28',
    expect: (condition, says, frames) => bench.expect(condition, says, frames),
    leave: bench.leave,
    text: (value, says, frames) => (isString(value) ? value : bench.fail(says, frames)),
    object: (value, says, frames) => (isRecord(value) ? value : bench.fail(says, frames)),
    refused: (called, code, says) => {
      bench.expect(called.problem['code'] === code, `${says}: expected a problem ${code}, ${got(called)}`, called.frames)
      const words = called.isError ? called.text : called.answer.error?.message
      bench.expect(typeof words === 'string' && words !== '', `The refusal ${code} has no words for a reader`, called.frames)
    },
    made: (called, says) =>
      bench.expect(
        called.answer.error === undefined && !called.isError && called.answer.result !== undefined,
        `${says}: ${got(called)}`,
        called.frames,
      ),
  }
}

function got({ answer, problem, isError, text }: Called): string {
  if (answer.error !== undefined) return `got error ${String(answer.error.code)} ${JSON.stringify(answer.error.message)}`
  if (problem['code'] !== undefined) return `got ${String(problem['code'])}`
  return isError
    ? `got a failed result (${JSON.stringify(text.slice(0, 80))})`
    : `got ${JSON.stringify(answer.result)?.slice(0, 120)}`
}

export function isString(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

export function listOf(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}

/** An ISO 8601 time with its zone. */
export function isTime(value: unknown): value is string {
  return (
    typeof value === 'string' &&
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(value) &&
    !Number.isNaN(Date.parse(value))
  )
}

export function newKey(): string {
  return `kit-${crypto.randomUUID()}`
}
