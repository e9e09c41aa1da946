/** A call that somebody suggests: beside the result of another one, or with an event. An opinion: nothing follows from it by itself. */
import { clip } from '../jsonrpc/limits.ts'
import type { Params } from '../jsonrpc/message.ts'

/** A call that may serve. Somebody's opinion: nothing follows from it by itself. */
export interface Suggestion {
  readonly tool: string
  /** Why, in a sentence. */
  readonly reason: string
  /** With what. */
  readonly arguments?: Params
}

/** Characters of a reason. */
const longestReason = 1000
const longestTool = 128

/** For what authors write: throws where it is none. */
export function checkSuggestion(value: { readonly [Member in keyof Suggestion]?: unknown }, where: string): void {
  if (typeof value.tool !== 'string' || typeof value.reason !== 'string')
    throw new TypeError(`${where} names a tool and a reason: { tool: 'find', reason: 'It looks at all of them at once' }`)
}

/** Of a length that others take. */
export function bounded({ tool, reason, arguments: args }: Suggestion): Suggestion {
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
