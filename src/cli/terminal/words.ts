/** Sentences that several commands say. */
import type { Why } from '../../core/suggestion.ts'
import type { Turn } from '../../host/loop/turn.ts'
import type { Noted } from '../../policy/audit/host-audit.ts'
import type { Screen } from './screen.ts'
import { brief, say } from './text.ts'

/** Turns are counted from 1 by people. */
export function turnName(turn: Pick<Turn, 'seq'>): string {
  return `turn ${turn.seq + 1}`
}

/** What a turn was about. */
export function turnTopic({ text, from }: Turn): string {
  return text === null ? (from.kind === 'event' ? `event ${from.eventId} of ${from.server}` : '') : `"${brief(text, 60)}"`
}

/** What a turn cost, in a line. */
export function costLine(turn: Turn): string {
  const { inputTokens, outputTokens, inferences, injected, units, money } = turn.cost
  const added = [...injected].map(([server, tokens]) => `${server} added ${tokens}`)
  return [
    turnName(turn),
    `${inferences} inference${inferences === 1 ? '' : 's'}`,
    `${inputTokens} + ${outputTokens} tokens`,
    ...added,
    ...(units > 0 ? [`${units} units`] : []),
    ...(money === undefined || money === 0 ? [] : [`${money.toFixed(4)} $`]),
  ].join(' · ')
}

/** Shows a reason, its rule and the way out, where there is one. */
export function showWhy(screen: Screen, why: Why | undefined, indent = ' '): void {
  if (why === undefined) return
  const { code, rule, message, fix } = why
  screen.line(say`${indent}  ${message} ${screen.paint.dim(`(${code}, rule ${rule})`)}`)
  screen.line(say`${indent}  ${screen.paint.dim('→')} ${fix}`)
}

/** Shows a note of the audit log, and its reason. */
export function showNote(screen: Screen, noted: Noted): void {
  const { at, server, featureSet, kind, outcome, detail, ms, rule, why } = noted
  const { paint } = screen
  const mark = outcome === 'success' ? paint.good('✓') : paint.bad('✗')
  const who = featureSet === undefined ? server : `${server}/${featureSet}`
  const by = rule === undefined ? '' : `by ${brief(rule, 60)}`
  const rest = [detail === undefined ? '' : brief(detail, 60), ms === undefined ? '' : `${ms} ms`, by].filter(text => text !== '')
  const said = [...(outcome === 'success' ? [] : [outcome]), ...rest].join(', ')
  screen.line(
    say` ${paint.dim(clockText(at))} ${mark} ${paint.bold(kind.padEnd(12))} ${paint.name(who === '' ? 'host' : who)} ${paint.dim(said)}`,
  )
  showWhy(screen, why)
}

/** By the clock on the wall. */
export function clockText(at: number): string {
  const date = new Date(at)
  const two = (n: number): string => String(n).padStart(2, '0')
  const day = `${two(date.getMonth() + 1)}-${two(date.getDate())}`
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
}

/** Units of time, the longest first. */
const spans = [
  ['year', 366 * 86_400_000],
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
] as const

/** A time in a unit that people use: `1 hour`, `90 minutes`, `2.5 hours`. */
export function spanText(ms: number): string {
  const [unit, length] = spans.find(([, each]) => ms === each || ms >= 2 * each) ?? ['second', 1_000]
  const count = Number((ms / length).toFixed(1))
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}
