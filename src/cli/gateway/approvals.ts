/** `vivarium gateway approvals` and `pins`: what waits for whoever runs the gateway, and his answers. */
import { userInfo } from 'node:os'
import { createInterface } from 'node:readline/promises'
import type { GatewayConfig } from '../../gateway/index.ts'
import type { Approval } from '../../gateway/trust/approvals.ts'
import type { TrustSettings } from '../../gateway/trust/settings.ts'
import { CliError } from '../exit.ts'
import type { Io } from '../io.ts'
import { type Printer, printerOf } from '../print.ts'
import { brief, safe } from '../terminal/paint.ts'
import { changesIn } from './changes.ts'
import { type Waiting, withWaiting } from './waiting.ts'

export interface AnswerOptions {
  readonly approve?: readonly string[]
  readonly refuse?: readonly string[]
  readonly as?: string
  readonly format: 'text' | 'json'
}

/** `pins`: only of what is not as it was pinned. */
export async function approvals(
  config: GatewayConfig<TrustSettings>,
  pins: boolean,
  options: AnswerOptions,
  io: Io,
): Promise<number> {
  const { approve = [], refuse = [], as: by = userName(), format } = options
  const print = printerOf(io)
  return withWaiting(config, async found => {
    const shown = found.approvals.filter(({ kind }) => !pins || kind !== 'call')
    const named = (ids: readonly string[]): readonly string[] => (pins && ids.includes('all') ? shown.map(({ id }) => id) : ids)
    if (approve.length + refuse.length > 0) {
      for (const id of named(approve)) await settle(found, id, true, by, print)
      for (const id of named(refuse)) await settle(found, id, false, by, print)
      return 0
    }
    if (format === 'json') print.json(shown)
    else if (shown.length === 0) print.line('Nothing waits')
    else if (io.interactive) await ask(found, shown, by, io, print)
    else for (const each of shown) show(found, each, print)
    return 0
  })
}

async function settle(found: Waiting, id: string, yes: boolean, by: string, { line }: Printer): Promise<void> {
  if (!(await found.answer(id, yes, by)))
    throw new CliError(
      1,
      `Nothing waits under ${brief(id)}`,
      'It is over, or was answered before; without --approve all are listed',
    )
  line(safe(`${yes ? 'Approved' : 'Refused'} by ${by}: ${id}`))
}

async function ask(found: Waiting, shown: readonly Approval[], by: string, io: Io, print: Printer): Promise<void> {
  const reader = createInterface({ input: io.input, output: io.output })
  try {
    for (const each of shown) {
      show(found, each, print)
      const said = (await reader.question('  Approve it? y: yes, n: no, anything else: later  ', { signal: io.signal })).trim()
      if (/^(y|yes|n|no)$/i.test(said)) await settle(found, each.id, /^y/i.test(said), by, print)
    }
  } finally {
    reader.close()
  }
}

function show({ tools }: Waiting, each: Approval, { line, paint }: Printer): void {
  line(`${paint.name(safe(each.id))}`)
  if (each.kind === 'call') {
    const { rule, server, tool, client } = each.about ?? {}
    line(`  A call of ${safe(each.tool)}${server === undefined ? '' : safe(` (${tool} of ${server})`)}, risk ${each.risk}`)
    line(
      `  by ${safe([client, each.principal].filter(Boolean).join(', ') || 'somebody unknown')}${safe(rule ? `, asked about by the rule ${rule}` : '')}`,
    )
    line(`  since ${new Date(each.askedAt).toISOString()}, until ${new Date(each.expires).toISOString()}`)
    line(
      `  ${safe(each.arguments === undefined ? 'Its arguments are too long to be kept' : brief(JSON.stringify(each.arguments), 4_000))}`,
    )
    return
  }
  line(`  ${safe(each.message)}${each.kind === 'tool' ? `, since ${new Date(each.since).toISOString()}` : ''}`)
  const kept = tools.get(each.id)
  for (const change of kept === undefined ? each.changes : changesIn(kept)) line(safe(`  ${change}`))
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    return 'somebody'
  }
}
