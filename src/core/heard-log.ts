/** A log that is listened to: whoever listens gets records from `info` on, whatever the log itself writes. */
import { type CleanFields, cleanFields, type Log } from './log.ts'

/** A record as listeners of a log get it: with clean fields. */
export interface LogRecord {
  /** How severe it is. */
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  /** The name of the event. */
  readonly event: string
  /** What varies, without secrets. */
  readonly fields: CleanFields
}

/** The same log, of which every record from `info` on is told too, whatever the log itself writes. */
export function heardLog(
  log: Log,
  hear: ((record: LogRecord) => void) | undefined,
  base: Readonly<Record<string, unknown>> = {},
): Log {
  if (hear === undefined) return log
  const told =
    (level: LogRecord['level']) =>
    (event: string, fields: Readonly<Record<string, unknown>> = {}): void => {
      if (level !== 'debug') hear({ level, event, fields: cleanFields({ ...base, ...fields }) })
      log[level](event, fields)
    }
  return {
    debug: told('debug'),
    info: told('info'),
    warn: told('warn'),
    error: told('error'),
    child: fields => heardLog(log.child(fields), hear, { ...base, ...fields }),
    level: log.level === 'debug' ? 'debug' : 'info',
  }
}
