/** Sentences that several commands say. */
import type { Why } from '../../core/why.ts'
import type { Noted } from '../../host/audit/note.ts'
import type { Turn } from '../../host/loop/turn.ts'
import { brief, type Paint } from './paint.ts'

/** Turns are counted from 1 by people. */
export function turnName(turn: Pick<Turn, 'seq'>): string {
  return `turn ${turn.seq + 1}`
}

/** What a turn was about. */
export function turnTopic({ text, from }: Turn): string {
  return text === null ? (from.kind === 'event' ? `event ${from.eventId} of ${from.server}` : '') : `"${brief(text, 60)}"`
}

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

/** A reason, its rule and the way out. */
export function whyLines(paint: Paint, { code, rule, message, fix }: Why): readonly string[] {
  return [`  ${paint.plain(message)} ${paint.dim(`(${code}, rule ${rule})`)}`, `  ${paint.dim('→')} ${paint.plain(fix)}`]
}

export function noteLines(paint: Paint, noted: Noted): readonly string[] {
  const { at, server, featureSet, kind, outcome, detail, ms, why } = noted
  const mark = outcome === 'success' ? paint.good('✓') : paint.bad('✗')
  const who = featureSet === undefined ? server : `${server}/${featureSet}`
  const rest = [detail === undefined ? '' : brief(detail, 60), ms === undefined ? '' : `${ms} ms`].filter(text => text !== '')
  const line = `${paint.dim(timeText(at))} ${mark} ${paint.bold(kind.padEnd(12))} ${paint.name(who === '' ? 'host' : who)} ${paint.dim([...(outcome === 'success' ? [] : [outcome]), ...rest].join(', '))}`
  return why === undefined ? [line] : [line, ...whyLines(paint, why)]
}

/** By the clock on the wall. */
export function timeText(at: number): string {
  const date = new Date(at)
  const two = (n: number): string => String(n).padStart(2, '0')
  const day = `${two(date.getMonth() + 1)}-${two(date.getDate())}`
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
}
