/** A good POST with one thing spoiled, and whether the tool that it calls ran. */
import type { Verdict } from '../case.ts'
import { type Arena, badly, judge, well } from './attack.ts'
import { type Answer, fire } from './raw.ts'
import { call, headLines, mirrored, posted } from './wire.ts'

export interface Spoiled {
  /** Lines to leave out, by the names of their headers. */
  readonly without?: readonly string[]
  readonly lines?: readonly string[]
  readonly host?: string
  readonly path?: string
  readonly length?: string
  readonly body?: string | Buffer
  readonly keepAlive?: boolean
}

export function echoBody(arena: Arena, text = 'never'): string {
  return JSON.stringify(call(arena.era, 'echo', { text }))
}

export function shot(arena: Arena, spoiled: Spoiled = {}): Buffer {
  const { era, home } = arena
  const { without = [], lines = [], body = echoBody(arena), ...rest } = spoiled
  const good = headLines(era, home.session, mirrored(call(era, 'echo')))
  const kept = good.filter(line => !without.some(name => line.toLowerCase().startsWith(`${name.toLowerCase()}:`)))
  return posted({ path: home.path, ...rest, lines: [...kept, ...lines], body })
}

/** Fires, and holds that none of it ran and that it was refused with one of these; 0 stands for a closed line. */
export async function turnedAway(arena: Arena, data: string | Buffer, statuses: readonly number[], ms = 3_000): Promise<Verdict> {
  const before = (await arena.target.facts()).runs
  const answer = await fire(arena.port, data, ms)
  const { runs } = await arena.target.facts()
  if (runs > before) return badly(`${said(answer)}, and the tool ran`)
  if (!statuses.includes(answer.status)) return badly(`${said(answer)} instead of ${statuses.join(' or ')}`)
  return judge(answer.bytes < 2_048, said(answer))
}

/** Each of several is turned away. */
export async function allTurnedAway(
  arena: Arena,
  shots: readonly (string | Buffer)[],
  statuses: readonly number[],
): Promise<Verdict> {
  const seen = new Set<string>()
  for (const data of shots) {
    const verdict = await turnedAway(arena, data, statuses)
    if (!verdict.well) return verdict
    seen.add(verdict.detail)
  }
  return well([...seen].join(', '))
}

export function said(answer: Answer): string {
  return answer.status === 0 ? 'closed without an answer' : `${answer.status}`
}
