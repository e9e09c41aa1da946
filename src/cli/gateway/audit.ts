/** `vivarium gateway audit`: who did what, and whether anybody changed what was written down of it. */
import type { AuditFilter, AuditLine } from '../../core/audit/audit.ts'
import { realClock } from '../../core/clock.ts'
import type { GatewayConfig } from '../../gateway/index.ts'
import type { TrustSettings } from '../../gateway/trust/settings.ts'
import { auditIn } from '../../policy/audit/call-notes.ts'
import type { Io } from '../io.ts'
import { type Printer, printerOf } from '../print.ts'
import { say, type TerminalText } from '../terminal/text.ts'
import { neededStore } from './config.ts'

export interface AuditOptions {
  readonly since: number
  readonly until?: number
  readonly client?: string
  readonly subject?: string
  readonly server?: string
  readonly tool?: string
  readonly outcome?: string
  readonly limit: number
  readonly verify?: boolean
  readonly format: 'text' | 'json'
}

export async function showAudit(config: GatewayConfig<TrustSettings>, options: AuditOptions, io: Io): Promise<number> {
  const { limit, verify, format, ...filter } = options
  const store = await neededStore(config)
  const audit = auditIn(store, realClock, config.trust.audit, () => {})
  const print = printerOf(io)
  try {
    if (verify === true) {
      const verdict = await audit.verify()
      if (format === 'json') print.json(verdict, true)
      else if (verdict.ok) print.line(`${verdict.lines} lines are as they were written. Head of the chain: ${verdict.head}`)
      else print.line(print.paint.bad(`After line ${verdict.after}: ${verdict.why}`))
      return verdict.ok ? 0 : 1
    }
    // The last ones, in their order.
    const last: AuditLine[] = []
    for await (const line of audit.find(filterOf(filter))) if (last.push(line) > limit) last.shift()
    for (const line of last) {
      if (format === 'json') print.json({ ...line, at: new Date(line.at).toISOString() }, true)
      else print.line(lineText(line, print.paint))
    }
    return 0
  } finally {
    await audit.close()
    await store.close()
  }
}

function filterOf(options: Omit<AuditOptions, 'limit' | 'verify' | 'format'>): AuditFilter {
  const { since, until, client, subject, server, tool, outcome } = options
  return {
    since,
    ...(until !== undefined && { until }),
    ...(client !== undefined && { client }),
    ...(subject !== undefined && { subject }),
    ...(server !== undefined && { server }),
    ...(tool !== undefined && { tool }),
    ...(outcome !== undefined && { outcome }),
  }
}

function lineText({ at, event, outcome, target, more = {}, correlation }: AuditLine, paint: Printer['paint']): TerminalText {
  const { client, subject, server, tool, ...rest } = more
  const who = [client, subject].filter(Boolean).join('/')
  const place = tool === undefined || tool === target ? server : `${tool} of ${server}`
  // What is about a server itself has no tool.
  const what = server === undefined ? target : [target, target === '' ? place : `(${place})`].filter(Boolean).join(' ')
  const small = Object.entries({ ...rest, correlation }).flatMap(([name, value]) =>
    value === undefined ? [] : `${name}=${value}`,
  )
  return say`${new Date(at).toISOString()} ${event} ${paint.name(outcome ?? '')} ${what} ${who} ${paint.dim(small.join(' '))}`
}
