/**
 * A call that somebody suggests, beside the result of another one or with an event; and the names that a misspelt one may mean.
 */
import { clip } from '../jsonrpc/limits.ts'
import type { Params } from '../jsonrpc/message.ts'

/** A call that may serve better. It is only a suggestion: nothing is called automatically. */
export interface Suggestion {
  /** The tool to call. */
  readonly tool: string
  /** Why it may serve better, in a sentence. */
  readonly reason: string
  /** The arguments of the suggested call. */
  readonly arguments?: Params
}

/** Characters of a reason. */
const longestReason = 1000
const longestTool = 128

/** For what authors write: throws where it is none. */
export function checkSuggestion(value: { readonly [Member in keyof Suggestion]?: unknown }, where: string): void {
  if (typeof value.tool !== 'string' || typeof value.reason !== 'string')
    throw new TypeError(`${where} needs a tool and a reason, such as { tool: 'find', reason: 'It searches all of them at once' }`)
}

/** Of a length that others take. */
export function clipSuggestion({ tool, reason, arguments: args }: Suggestion): Suggestion {
  return { tool, reason: clip(reason, longestReason), ...(args === undefined ? {} : { arguments: args }) }
}

/** Of what a peer suggests: bounded, and without what would hide or turn what stands beside it. */
export function plainSuggestion(tool: string, reason: string, args: Params | undefined): Suggestion {
  return {
    tool: plain(tool, longestTool),
    reason: plain(reason, longestReason),
    ...(args === undefined ? {} : { arguments: args }),
  }
}

/** Without control and format characters, line breaks too. */
function plain(text: string, length: number): string {
  return clip(text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, ' ').toWellFormed(), length)
}

// Which words somebody may have meant.

/** Those that are at most a third of their letters away, the nearest first; at most three. */
export function nearest(word: string, words: readonly string[]): readonly string[] {
  return words
    .map(each => ({ each, away: distance(word.toLowerCase(), each.toLowerCase()) }))
    .filter(({ each, away }) => away <= Math.max(1, Math.ceil(each.length / 3)) || (word.length > 2 && each.includes(word)))
    .sort((a, b) => a.away - b.away)
    .slice(0, 3)
    .map(({ each }) => each)
}

/** The question whether the nearest of the words was meant; undefined where none is near. */
export function meantText(word: string, words: readonly string[]): string | undefined {
  const near = nearest(word, words).map(each => clip(each))
  return near.length === 0 ? undefined : `Did you mean ${near.join(' or ')}?`
}

/** Longer words are not compared letter by letter. */
const longest = 64

/** Letters to change, add, leave out or swap. */
function distance(a: string, b: string): number {
  if (a.length > longest || b.length > longest) return longest
  let [before, row] = [new Array<number>(b.length + 1).fill(0), Array.from({ length: b.length + 1 }, (_, at) => at)]
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      next[j] = Math.min(
        (row[j] ?? 0) + 1,
        (next[j - 1] ?? 0) + 1,
        (row[j - 1] ?? 0) + same,
        swapped ? (before[j - 2] ?? 0) + 1 : longest,
      )
    }
    before = row
    row = next
  }
  return row[b.length] ?? longest
}

// Why something was refused, dropped, held or given up: the shape in which the runtime explains itself, the same on the wire
// (`data`), in the audit log and in the API.

/** Why something was decided, for programs and for people. */
export interface Why {
  /** What happened, in capitals and underscores, for programs. */
  readonly code: string
  /** The rule of the policy, or the built-in limit, that decided. */
  readonly rule: string
  /** What happened and why, in a sentence for people. */
  readonly message: string
  /** What the user can do about it, in a sentence. */
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

/** Formats a reason as plain text: what happened, the rule and the fix. */
export function whyText(said: Why): string {
  return `${said.message} (${said.code}, rule ${said.rule}). ${said.fix}`
}

// Commands that are suggested, so that they can be typed as they stand.

/** A word as a shell takes it: in quotes where it would be read as something else. */
export function shellWord(word: string): string {
  // A tilde is a home wherever a shell finds it, and zsh reads an equals sign in front as the path of a program.
  return /^(?!=)[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}
