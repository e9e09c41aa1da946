/** What kind of question it is, and how much a mistake would cost. */
import type { ReactNode } from 'react'
import type { ApprovalKind, ApprovalRisk } from '#contract'
import { Badge, type Tone } from '../../parts/badge.tsx'

const kinds: Readonly<Record<ApprovalKind, string>> = {
  call: 'tool call',
  tool: 'tool definition',
  launch: 'changed command',
  form: 'form',
  page: 'web page',
  sampling: 'inference',
  set: 'feature set',
  access: 'wish of a server',
  config: 'changed config',
}

const risks: Readonly<Record<ApprovalRisk, readonly [word: string, tone: Tone]>> = {
  safe: ['reads only', 'good'],
  reversible: ['can be undone', 'plain'],
  destructive: ['destructive', 'danger'],
  unknown: ['risk not stated', 'warn'],
}

export function RiskBadge({ kind, risk }: { readonly kind: ApprovalKind; readonly risk: ApprovalRisk }): ReactNode {
  const [word, tone] = risks[risk]
  return (
    <>
      <Badge>{kinds[kind]}</Badge>
      {kind === 'call' && <Badge tone={tone}>{word}</Badge>}
    </>
  )
}
