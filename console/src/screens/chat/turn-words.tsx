/** A turn in words: where it came from, how it stands, what it cost. */
import type { ReactNode } from 'react'
import type { TurnCallStatus, TurnCost, TurnDetail, TurnRow, TurnStatus } from '#contract'
import { Badge, type Tone } from '../../parts/badge.tsx'

const statuses: Readonly<Record<TurnStatus, readonly [word: string, tone: Tone]>> = {
  waiting: ['waiting', 'plain'],
  running: ['running', 'plain'],
  done: ['done', 'good'],
  failed: ['failed', 'danger'],
  cancelled: ['stopped', 'warn'],
  interrupted: ['interrupted', 'warn'],
  undone: ['undone', 'plain'],
}

export function TurnBadge({ status }: { readonly status: TurnStatus }): ReactNode {
  const [word, tone] = statuses[status]
  return <Badge tone={tone}>{word}</Badge>
}

/** Whether it still works or will. */
export function isOpen({ status }: Pick<TurnRow, 'status'>): boolean {
  return status === 'waiting' || status === 'running'
}

/** A call in a sign and a word. */
export const callSigns: Readonly<Record<TurnCallStatus, readonly [sign: string, word: string]>> = {
  planned: ['…', 'runs'],
  done: ['✓', 'done'],
  failed: ['✕', 'failed'],
  refused: ['⊘', 'refused'],
  unknown: ['?', 'outcome unknown'],
}

/** `2,410 tokens · 0.012`: what the model used, and its price where the model has one. */
export function costText({ inputTokens, outputTokens, money, units }: TurnCost): string {
  const tokens = inputTokens + outputTokens
  const words = [`${tokens.toLocaleString('en')} tokens`]
  if (money !== undefined && money > 0) words.push(`price ${moneyText(money)}`)
  if (units > 0) words.push(`${units.toLocaleString('en')} units of tools`)
  return words.join(' · ')
}

/** As many digits as it takes to see it. */
function moneyText(money: number): string {
  return money.toLocaleString('en', { maximumSignificantDigits: 3 })
}

/** `woken by calendar/reminders`, or who wrote. */
export function originText({ from }: Pick<TurnRow | TurnDetail, 'from'>): string {
  if (from.kind === 'user') return 'your message'
  const through = from.through === undefined || from.through.length === 0 ? '' : ` through ${from.through.join(', ')}`
  return `woken by ${from.server}/${from.featureSet}${through}`
}
