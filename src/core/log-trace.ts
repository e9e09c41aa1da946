/** From what the engine traces to records of the log: how severe an event is, and which secrets its caller brought along. */
import type { Caller } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import { isRecord } from '../jsonrpc/message.ts'
import { createLog, isLevel, isWanted, type Level, type Log, levels, type Severity } from './log.ts'
import { cleanFields, type LogFields } from './log-fields.ts'
import { secretValues } from './redact.ts'

/** Told what went wrong or was refused. The caller is the one whose message led to it, where there is one. */
export type Trace = (event: string, detail: unknown, caller?: Caller) => void

/** A level for the log on standard error, or a log of one's own. */
export type LogOption = Level | Log

/** What the compiler cannot see: a level that is none, or a log without its methods. */
export function checkLogOption(option: unknown): void {
  if (option === undefined || isLevel(option)) return
  const log: Partial<Log> = typeof option === 'object' && option !== null ? option : {}
  const missing = (['debug', 'info', 'warn', 'error', 'child'] as const).find(name => typeof log[name] !== 'function')
  if (missing !== undefined) throw new TypeError(`log has no method ${missing}: give ${levels}, or a log with all five`)
}

/** The log that an option asks for, else the variable VIVARIUM_LOG (`debug`, or `debug,json`), else this level. */
export function logFrom(option: LogOption | undefined, fallback: Level): Log {
  if (typeof option === 'object') return option
  if (option !== undefined) return createLog({ level: option })
  const [level = '', format] = variable('VIVARIUM_LOG')?.split(',', 2) ?? [fallback]
  const log = createLog({ level: isLevel(level) ? level : fallback, format: format === 'json' ? 'json' : 'text' })
  if (!isLevel(level)) log.error('log-level-unknown', { VIVARIUM_LOG: level, instead: `${levels}, each with ,json or without` })
  return log
}

export interface TraceOptions {
  /** Events that mean a mistake in our own code. */
  readonly mistakes: ReadonlySet<string>
  /** Values that must not be written, besides the secrets of the environment and of the caller. */
  readonly secrets?: readonly string[]
}

/** Feeds a log. Whatever log it is, it gets clean fields. */
export function traceInto(log: Log, { mistakes, secrets = [] }: TraceOptions): Trace {
  return (event, detail, caller) => {
    const fields = fieldsOf(detail)
    const severity = severityOf(mistakes.has(event), fields['error'])
    if (isWanted(log, severity)) log[severity](event, cleanFields(fields, [...secrets, ...knownOf(caller)]))
  }
}

/** What must not be repeated of a caller, nor of the process that it called. */
export function knownOf(caller?: Caller): string[] {
  const known = secretValues(environment())
  if (caller?.header === undefined) return known
  const header = (name: string): string | undefined => caller.header?.(name)
  for (const name of credentialHeaders) known.push(...secretValues({ [name]: header(name) }))
  for (const cookie of header('cookie')?.split(';') ?? []) known.push(cookie.slice(cookie.indexOf('=') + 1).trim())
  return known
}

const credentialHeaders = ['authorization', 'cookie', 'proxy-authorization', 'dpop', 'mcp-session-id', 'x-api-key']

/** Nothing on runtimes that have none, and on those that were told to show none (Deno without --allow-env). */
function environment(): Readonly<Record<string, string | undefined>> {
  try {
    return { ...globalThis.process?.env }
  } catch {
    return {}
  }
}

function variable(name: string): string | undefined {
  try {
    return globalThis.process?.env?.[name]
  } catch {
    return undefined
  }
}

function fieldsOf(detail: unknown): LogFields {
  if (detail instanceof Error) return { error: detail }
  if (isRecord(detail)) return detail
  return detail === undefined ? {} : { detail }
}

/** What came from the other side, or was thrown on purpose, is no mistake of ours, and is no trouble either. */
function severityOf(mistake: boolean, error: unknown): Severity {
  if (error instanceof McpError && error.cause === undefined) return 'info'
  if (mistake) return 'error'
  return error instanceof Error ? 'warn' : 'info'
}
