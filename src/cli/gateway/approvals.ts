/** `vivarium gateway approvals` and `pins`: what waits for whoever runs the gateway, and his answers. */
import { userInfo } from 'node:os'
import { createInterface } from 'node:readline/promises'
import { Problem } from '../../core/problem.ts'
import type { GatewayConfig } from '../../gateway/index.ts'
import type { Approval } from '../../gateway/trust/approvals.ts'
import type { TrustSettings } from '../../gateway/trust/settings.ts'
import { CliError } from '../exit.ts'
import type { Io } from '../io.ts'
import { type Printer, printerOf } from '../print.ts'
import { brief } from '../terminal/paint.ts'
import { say } from '../terminal/text.ts'
import { changesIn, cutIn } from './changes.ts'
import { shownJson, shownText } from './foreign-text.ts'
import { type Waiting, withWaiting } from './waiting.ts'

export interface AnswerOptions {
  readonly approve?: readonly string[]
  readonly refuse?: readonly string[]
  readonly show?: readonly string[]
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
  const { approve = [], refuse = [], show: whole = [], as: by = userName(), format } = options
  const print = printerOf(io)
  return withWaiting(config, async found => {
    const shown = found.approvals.filter(({ kind }) => !pins || kind !== 'call')
    const named = (ids: readonly string[]): readonly string[] => (pins && ids.includes('all') ? shown.map(({ id }) => id) : ids)
    const seen = named(whole)
    for (const id of seen) show(found, waitingAs(found, id), print, true)
    if (approve.length + refuse.length > 0) {
      for (const id of named(approve)) {
        if (!seen.includes(id)) seenWhole(found, id, config.file)
        await settle(found, id, true, by, print)
      }
      for (const id of named(refuse)) await settle(found, id, false, by, print)
      return 0
    }
    if (whole.length > 0) return 0
    if (format === 'json') print.json(shown)
    else if (shown.length === 0) print.line('Nothing waits')
    else if (io.interactive) await ask(found, shown, by, io, print)
    else for (const each of shown) show(found, each, print, false)
    return 0
  })
}

async function settle(found: Waiting, id: string, yes: boolean, by: string, { line }: Printer): Promise<void> {
  const answered = await found.answer(id, yes, by).catch(error => {
    throw error instanceof Problem ? new CliError(1, error.message, error.suggestion) : error
  })
  if (!answered) throw nothing(id)
  line(`${yes ? 'Approved' : 'Refused'} by ${shownText(by)}: ${shownText(id)}`)
}

function nothing(id: string): CliError {
  const fix = 'It is over, or was answered before; without --approve all are listed'
  return new CliError(1, `Nothing waits under ${brief(shownText(id))}`, fix)
}

function waitingAs({ approvals: all }: Waiting, id: string): Approval {
  const found = all.find(each => each.id === id)
  if (found === undefined) throw nothing(id)
  return found
}

/** Of longer arguments the list shows only the beginning. */
const previewed = 4_000

/** What was seen in part is not approved: what is harmful may stand in the rest. */
function seenWhole({ approvals: all, tools }: Waiting, id: string, file: string): void {
  const found = all.find(each => each.id === id)
  const kept = tools.get(id)
  const cut = found?.kind === 'call' && found.arguments !== undefined && found.length > previewed ? found.length : undefined
  const length = kept === undefined ? cut : cutIn(kept)
  if (length === undefined) return
  throw new CliError(
    1,
    `${kept === undefined ? 'The arguments of this call' : 'The changes of this tool'} have ${length} characters, which the list does not show whole`,
    `Look at all of them and approve it: vivarium gateway approvals ${file} --show ${id} --approve ${id}`,
  )
}

async function ask(found: Waiting, shown: readonly Approval[], by: string, io: Io, print: Printer): Promise<void> {
  const reader = createInterface({ input: io.input, output: io.output })
  try {
    for (const each of shown) {
      show(found, each, print, true)
      const said = (await reader.question('  Approve it? y: yes, n: no, anything else: later  ', { signal: io.signal })).trim()
      if (/^(y|yes|n|no)$/i.test(said)) await settle(found, each.id, /^y/i.test(said), by, print)
    }
  } finally {
    reader.close()
  }
}

/** `whole`: with all of its arguments. */
function show({ tools }: Waiting, each: Approval, { line, paint }: Printer, whole: boolean): void {
  line(say`${paint.name(shownText(each.id))}`)
  if (each.kind === 'call') {
    const { rule, server, tool = '', client } = each.about ?? {}
    const who = [client, each.principal].filter(name => name !== undefined && name !== '').join(', ')
    const at = server === undefined ? '' : ` (${shownText(tool)} of ${shownText(server)})`
    line(`  A call of ${shownText(each.tool)}${at}, risk ${each.risk}`)
    line(`  by ${shownText(who || 'somebody unknown')}${rule ? `, asked about by the rule ${shownText(rule)}` : ''}`)
    line(`  since ${new Date(each.askedAt).toISOString()}, until ${new Date(each.expires).toISOString()}`)
    for (const text of argumentLines(each, whole)) line(`  ${text}`)
    return
  }
  line(`  ${shownText(each.message)}${each.kind === 'tool' ? `, since ${new Date(each.since).toISOString()}` : ''}`)
  const kept = tools.get(each.id)
  for (const change of kept === undefined ? each.changes.map(shownText) : changesIn(kept, whole)) line(`  ${change}`)
  if (!whole && kept !== undefined && cutIn(kept) !== undefined)
    line(`  ${cutIn(kept)} characters in all: see them whole with --show ${shownText(each.id)}, before you approve it`)
}

function argumentLines(call: Extract<Approval, { readonly kind: 'call' }>, whole: boolean): readonly string[] {
  const { arguments: given, length } = call
  if (given === undefined)
    return [`Its arguments have ${length} characters, which is too long to be kept and shown: it can only be refused`]
  const text = shownJson(given)
  if (whole || length <= previewed) return [text]
  return [
    `${text.slice(0, previewed)}…`,
    `${length} characters in all: see them whole with --show ${call.id}, before you approve it`,
  ]
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    return 'somebody'
  }
}
