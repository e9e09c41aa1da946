/** Colours around words. Everything goes through `text.ts`, so that foreign words in a colour are as harmless as those without. */
import type { styleText } from 'node:util'
import { say, styled, type TerminalText, type Words } from './text.ts'

type Brush = (words: Words) => TerminalText

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

const plain: Brush = words => say`${words}`

export function painter(colours: boolean): Paint {
  const brush =
    (format: Parameters<typeof styleText>[0]): Brush =>
    words =>
      colours ? styled(format, words) : plain(words)
  return {
    plain,
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

/** On one line, and no longer than so. */
export function brief(text: string, length = 100): string {
  const line = text.replace(/\s+/g, ' ').trim()
  return line.length <= length ? line : `${line.slice(0, length - 1)}…`
}
