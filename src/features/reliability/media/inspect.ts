/** Arguments and results, held against what their tool says of media: the same on both sides. Loaded with the first such call. */
import type { Params } from '../../../jsonrpc/message.ts'
import type { ContentBlock } from '../../mcp/content/messages.ts'
import { breachOf, refusedInput, refusedOutput, rulesFor, warningsOf } from './check.ts'
import type { WireMedia, WireWarning } from './messages.ts'
import { piecesOfArguments, piecesOfContent } from './pieces.ts'

/** Throws the problem in the arguments, if there is one. */
export function inspectArguments(media: WireMedia, schema: Params, args: Params | undefined): void {
  const breach = breachOf(piecesOfArguments(args, schema), rulesFor('input', media))
  if (breach !== undefined) throw refusedInput(breach)
}

/** What is odd about the content. Throws the problem in it, if there is one. */
export function inspectContent(media: WireMedia, content: readonly ContentBlock[]): readonly WireWarning[] {
  const pieces = piecesOfContent(content)
  const rules = rulesFor('output', media)
  const breach = breachOf(pieces, rules)
  if (breach !== undefined) throw refusedOutput(breach)
  return warningsOf(pieces, rules)
}
