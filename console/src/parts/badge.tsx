/** A word about a state. Its shape and word say the same as its colour. */
import type { ReactNode } from 'react'

export type Tone = 'good' | 'warn' | 'danger' | 'plain'

const tones: Readonly<Record<Tone, string>> = {
  good: 'bg-good-soft text-good',
  warn: 'bg-warn-soft text-warn',
  danger: 'bg-danger-soft text-danger',
  plain: 'bg-hover text-muted',
}

export function Badge({ tone = 'plain', children }: { readonly tone?: Tone; readonly children: ReactNode }): ReactNode {
  return <span className={`inline-block rounded px-1.5 text-[0.86rem] whitespace-nowrap ${tones[tone]}`}>{children}</span>
}
