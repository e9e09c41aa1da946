/** What a handler returned → the canonical result. Plain values are enough; `reply` is for more control. */
import { Written } from '../../../engine/outcome.ts'
import { authored, eachAuthored } from '../../../engine/reserved.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Revision } from '../../../revisions/index.ts'
import { type ContentBlock, isWholeBlock, type TextContent } from '../content/messages.ts'
import { type CallToolResult, showsContent } from './messages.ts'
import { checkWritten, looksSpelledOut, Misreturned } from './misreturned.ts'

export interface ReplyParts {
  readonly content?: readonly ContentBlock[]
  readonly structured?: unknown
  readonly isError?: boolean
  readonly meta?: Readonly<Record<string, unknown>>
}

/** A result spelled out by its author. Made by `reply`. */
export class Reply {
  readonly parts: ReplyParts
  constructor(parts: ReplyParts) {
    this.parts = parts
  }
}

/** A result whose `_meta` is the runtime's own word, or was filtered before. Not for authors. */
export class RuntimeReply extends Reply {}

/**
 * Spells out a tool's result.
 * @example return reply({ content: [text('done'), image(png, 'image/png')], structured: { id } })
 */
export function reply(parts: ReplyParts): Reply {
  return new Reply(parts)
}

/** The most common result, which is the same on every official wire and therefore writes itself. */
class PlainText extends Written implements CallToolResult {
  readonly content: readonly [TextContent]

  constructor(text: string) {
    super()
    this.content = [{ type: 'text', text }]
  }

  override write(revision: Revision): string | undefined {
    return showsContent(revision) ? `"content":[{"type":"text","text":${JSON.stringify(this.content[0].text)}}]}` : undefined
  }
}

function textResult(text: string): CallToolResult {
  return new PlainText(text)
}

/** A string is text, unless the tool is `valued`: has an output schema; nothing is an empty answer; any other value is structured content with its JSON as text. `server`: how it names itself. */
export function toResult(value: unknown, server: string, valued = false): CallToolResult {
  if (typeof value === 'string' && !valued) return textResult(value)
  if (value === undefined) return { content: [] }
  if (!(value instanceof Reply)) {
    if (isWholeBlock(value)) return { content: eachAuthored([value], server) }
    if (!valued && looksSpelledOut(value))
      throw new Misreturned('to spell out a result return reply({ content: […] }), not a plain object with content')
    return { content: jsonText(value), structuredContent: value }
  }
  const { content, structured, isError, meta: said } = value.parts
  const meta = value instanceof RuntimeReply ? said : authored(said, server)
  const blocks = content === undefined ? undefined : eachAuthored(content, server)
  return {
    content: blocks === undefined ? (structured === undefined ? [] : jsonText(structured)) : withText(blocks, structured),
    ...(structured === undefined ? {} : { structuredContent: structured }),
    ...(isError === undefined ? {} : { isError }),
    ...(meta === undefined ? {} : { _meta: meta }),
  }
}

/** A value that is no object must be there as text too (2026-07-28 server/tools). */
function withText(content: readonly ContentBlock[], structured: unknown): readonly ContentBlock[] {
  if (structured === undefined || isRecord(structured) || content.some(({ type }) => type === 'text')) return content
  return [...content, ...jsonText(structured)]
}

/** Readers that know no structured content get the same value as text. */
function jsonText(value: unknown): readonly TextContent[] {
  return [{ type: 'text', text: checkWritten(value, JSON.stringify(value)) }]
}
