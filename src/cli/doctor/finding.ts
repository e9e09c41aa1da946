/** What was found out about a server: fine, odd or wrong, and what to do about it. */
import type { Exit } from '../exit.ts'

export interface Finding {
  readonly level: 'ok' | 'warn' | 'fail'
  /** What was looked at, in a word: `command`, `stdout`, `schema`. */
  readonly check: string
  readonly message: string
  readonly fix?: string
  /** With which code a failure ends the command. Default 1. */
  readonly exit?: Exit
}

export const ok = (check: string, message: string): Finding => ({ level: 'ok', check, message })
export const warn = (check: string, message: string, fix: string): Finding => ({ level: 'warn', check, message, fix })
export const fail = (check: string, message: string, fix: string, exit: Exit = 1): Finding => ({
  level: 'fail',
  check,
  message,
  fix,
  exit,
})

/** The code of the first failure; 0 where there is none. */
export function exitOf(findings: readonly Finding[]): number {
  const failed = findings.find(({ level }) => level === 'fail')
  return failed === undefined ? 0 : (failed.exit ?? 1)
}
