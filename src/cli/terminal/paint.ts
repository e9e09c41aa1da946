/**
 * Colours, and what makes foreign words fit for a terminal. Everything that a server, a model or a file said goes through one of
 * these: whoever could write escape codes here could write over what the user reads before a yes.
 */
import { styleText } from 'node:util'

type Brush = (text: string) => string

export interface Paint {
  /** Foreign words without a colour. */
  readonly plain: Brush
  readonly bold: Brush
  readonly dim: Brush
  readonly good: Brush
  readonly bad: Brush
  readonly warn: Brush
  /** Servers, tools, commands. */
  readonly name: Brush
}

type Format = Parameters<typeof styleText>[0]

export function painter(colours: boolean): Paint {
  const brush =
    (format: Format): Brush =>
    text =>
      colours ? styleText(format, safe(text), { validateStream: false }) : safe(text)
  return {
    plain: safe,
    bold: brush('bold'),
    dim: brush('dim'),
    good: brush('green'),
    bad: brush('red'),
    warn: brush('yellow'),
    name: brush('cyan'),
  }
}

/** Whether somebody wants colours on this output (https://no-color.org: any value but an empty one). */
export function wantsColours(
  output: { readonly isTTY?: boolean | undefined },
  env: Readonly<Record<string, string | undefined>>,
): boolean {
  return output.isTTY === true && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb'
}

/** Control characters, and those that turn the direction of writing. */
const harmful = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g

/** Line ends and tabs stay; what a terminal would obey is shown as a replacement character. */
export function safe(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(harmful, '\ufffd')
}

/** On one line, and no longer than so. */
export function brief(text: string, length = 100): string {
  const line = text.replace(/\s+/g, ' ').trim()
  return line.length <= length ? line : `${line.slice(0, length - 1)}…`
}
