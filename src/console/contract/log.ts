/** The log of the process, standard error of its servers, and mistakes of its config. */

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** A line of the log. Secrets were removed before it was stored. */
export interface LogLine {
  /** Its number since the start of the process, from 1 on. */
  readonly n: number
  /** When it was written. */
  readonly at: number
  /** How severe it is. */
  readonly level: LogLevel
  /** The server whose standard error it is, or that it is about. */
  readonly server?: string
  /** The name of the event; `stderr` for lines of servers. */
  readonly event: string
  /** The line, without control characters. */
  readonly text: string
}

/** `GET /log`: newest first; `after` is a line number. */
export interface LogQuery {
  /** This level and more severe ones. */
  readonly level?: LogLevel
  /** Lines about this server. */
  readonly server?: string
  /** Lines of this event. */
  readonly event?: string
  /** Without regard to case; at most 200 characters. */
  readonly text?: string
}

/** A mistake of the config. `GET /faults` lists those of the last reading of the file. */
export interface Fault {
  /** The file with the mistake. */
  readonly file: string
  /** The line of the mistake, from 1 on. */
  readonly line: number
  /** The option or rule that it is about. */
  readonly rule: string
  /** What is wrong. */
  readonly message: string
  /** What to write instead. */
  readonly fix: string
}
