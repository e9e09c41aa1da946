/** `vivarium gateway status`: how the gateway of a file is, as it says itself to whoever can read its store. */
import type { AuditLine } from '../../core/audit/line.ts'
import { realClock } from '../../core/clock.ts'
import type { GatewayConfig } from '../../gateway/index.ts'
import { operatorHeader, readOperatorKey } from '../../gateway/ops/health.ts'
import type { TrustSettings } from '../../gateway/trust/settings.ts'
import { given, isRecord } from '../../jsonrpc/message.ts'
import { auditIn } from '../../policy/audit/gateway-audit.ts'
import { CliError, type Io } from '../io.ts'
import { type Printer, printerOf } from '../print.ts'
import { brief, say, type TerminalText } from '../terminal/text.ts'
import { neededStore, storeIn } from './config.ts'

/** How long a gateway may take to say how it is. */
const waitMs = 5_000

/** Asks the gateway how it is and prints that. 0: it is ready. */
export async function showStatus(
  config: GatewayConfig<unknown>,
  { port = config.frame.listen.port ?? 7420, format }: { readonly port?: number; readonly format: 'text' | 'json' },
  io: Io,
): Promise<number> {
  const { host = '127.0.0.1' } = config.frame.listen
  const url = `http://${['0.0.0.0', '::', ''].includes(host) ? '127.0.0.1' : host}:${port}/ready`
  const said = await read(url, await keyOf(config))
  const { line, json, paint } = printerOf(io)
  const ready = said['ready'] === true
  if (format === 'json') json(said)
  else {
    line(ready ? paint.good('The gateway is ready') : paint.bad('The gateway is not ready'))
    if (said['store'] === false) line(say`  ${paint.bad('The store is unavailable')}`)
    if (said['looked'] === false) line('  It is connecting to its servers for the first time')
    const upstreams = Array.isArray(said['upstreams']) ? said['upstreams'].filter(isRecord) : []
    for (const upstream of upstreams) line(say`${paint.name(String(upstream['name']))} ${upstreamText(upstream)}`)
    if (said['upstreams'] === undefined)
      line('  For details, add store: sqlite:PATH to its file: only readers of the store get them')
  }
  return ready ? 0 : 4
}

/** Only what was said: one that is still being connected to has neither a revision nor a reason. */
function upstreamText({ status, revision, tools, resources, prompts, why, fix }: Readonly<Record<string, unknown>>): string {
  const counts = Object.entries({ tools, resources, prompts }).flatMap(([what, count]) =>
    typeof count === 'number' ? `${count} ${what}` : [],
  )
  const offers = [revision, counts.join(', ')].filter(Boolean).join(': ')
  const down = [why, fix].filter(Boolean).join('. ')
  return [String(status), status === 'up' ? offers : down].filter(Boolean).join('  ')
}

/** Undefined where the store holds none that could be read. */
async function keyOf(config: GatewayConfig<unknown>): Promise<string | undefined> {
  const store = await storeIn(config).catch(() => undefined)
  try {
    return store && (await readOperatorKey(store))
  } catch {
    return undefined
  } finally {
    await store?.close()
  }
}

/** What the gateway says. Throws where none answers. */
async function read(url: string, key: string | undefined): Promise<Readonly<Record<string, unknown>>> {
  const headers: Record<string, string> = key === undefined ? {} : { [operatorHeader]: key }
  try {
    const said: unknown = await (await fetch(url, { headers, signal: AbortSignal.timeout(waitMs) })).json()
    if (isRecord(said) && typeof said['ready'] === 'boolean') return said
  } catch (cause) {
    const why = brief(cause instanceof Error ? String(cause.cause ?? cause.message) : String(cause), 200)
    throw new CliError(
      `No gateway answers at ${url}: ${why}`,
      'Start the gateway, or pass --port if it listens at another port',
      {
        exit: 4,
        cause,
      },
    )
  }
  throw new CliError(`The program that answers at ${url} is not a gateway`, 'Pass the port of the gateway with --port', {
    exit: 4,
  })
}

// `vivarium gateway audit`: who did what, and whether anybody changed what was written down of it.

/** The options of `vivarium gateway audit`. */
export interface AuditReportOptions {
  /** In milliseconds since the epoch. */
  readonly since: number
  /** In milliseconds since the epoch. */
  readonly until?: number
  readonly client?: string
  /** Whom tokens name so. */
  readonly subject?: string
  readonly server?: string
  readonly tool?: string
  readonly outcome?: string
  /** The most lines, the last ones. */
  readonly limit: number
  /** Check the chain instead of listing lines. */
  readonly verify?: boolean
  readonly format: 'text' | 'json'
}

/** Lists lines of the audit log, or checks its chain. 1: the chain is broken. */
export async function showAudit(config: GatewayConfig<TrustSettings>, options: AuditReportOptions, io: Io): Promise<number> {
  const { since, limit, verify, format, ...filter } = options
  const store = await neededStore(config)
  const audit = auditIn(store, realClock, config.trust.audit, () => {})
  const print = printerOf(io)
  try {
    if (verify === true) {
      const verdict = await audit.verify()
      if (format === 'json') print.json(verdict, true)
      else if (verdict.ok) print.line(`${verdict.lines} lines are unchanged. Head of the chain: ${verdict.head}`)
      else print.line(print.paint.bad(`After line ${verdict.after}: ${verdict.why}`))
      return verdict.ok ? 0 : 1
    }
    // The last ones, in their order.
    const last: AuditLine[] = []
    for await (const line of audit.find({ since, ...given(filter) })) if (last.push(line) > limit) last.shift()
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

/** A line of the audit log, for people. */
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
