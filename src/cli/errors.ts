/** How the command ends: one number for scripts, one sentence and its remedy for people, one line of JSON for programs. */
import { drawn, harmlessJson, say } from './terminal/text.ts'

/** 0 is success. 1: the words were wrong, or what was wanted failed. 3: sign in first. 4: nobody there. 5: the tool says no. */
export type Exit = 1 | 3 | 4 | 5

const names: Readonly<Record<Exit, string>> = { 1: 'failed', 3: 'auth_needed', 4: 'unreachable', 5: 'tool_error' }

/** A failure that the user can do something about. */
export class CliError extends Error {
  override readonly name = 'CliError'
  readonly exit: Exit
  /** The one thing to do about it. */
  readonly fix: string | undefined

  constructor(exit: Exit, message: string, fix?: string, options?: ErrorOptions) {
    super(message, options)
    this.exit = exit
    this.fix = fix
  }
}

/** What failed, as it is told: words of others are one line long and without control characters. */
export function failureText(error: unknown): string {
  const { message, fix } = cliFailureOf(error)
  return drawn(fix === undefined ? say`vivarium: ${message}\n` : say`vivarium: ${message}\n  → ${fix}\n`)
}

/** The same for programs: one line of JSON. */
export function failureJson(error: unknown): string {
  const { exit, message, fix } = cliFailureOf(error)
  return `${harmlessJson(JSON.stringify({ error: { code: names[exit], message, ...(fix !== undefined && { fix }), exit } }))}\n`
}

interface Failure {
  readonly exit: Exit
  readonly message: string
  readonly fix: string | undefined
}

/** Everything that is thrown, as a failure; what nobody foresaw counts as 1. */
export function cliFailureOf(error: unknown): Failure {
  const message = plain(error instanceof Error ? error.message : String(error))
  if (!(error instanceof CliError)) return { exit: 1, message, fix: undefined }
  return { exit: error.exit, message, fix: error.fix === undefined ? undefined : plain(error.fix) }
}

/** One line each, whoever's words stand in it. */
function plain(text: string): string {
  return text.replace(/\s*\n\s*/g, ' ')
}
