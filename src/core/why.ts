/**
 * Why something was refused, dropped, held or given up: the shape in which the runtime explains itself, the same on the wire
 * (`data`), in the audit log and in the API.
 */
import { clip } from '../jsonrpc/limits.ts'

export interface Why {
  /** What happened, in capitals and underscores, for programs. */
  readonly code: string
  /** The rule of the policy, or the built-in limit, that fired. */
  readonly rule: string
  readonly message: string
  /** The one thing that a user can do about it. */
  readonly fix: string
}

/** An answer to "why", for those who write one. Foreign names in it go through `quoted`. */
export function why(code: string, rule: string, message: string, fix: string): Why {
  return { code, rule, message, fix }
}

/** A name that a peer chose, short and in quotation marks. */
export function quoted(foreign: string): string {
  return JSON.stringify(clip(foreign))
}

/** All there is to say of it to readers of plain text. */
export function whyText(said: Why): string {
  return `${said.message} (${said.code}, rule ${said.rule}). ${said.fix}`
}
