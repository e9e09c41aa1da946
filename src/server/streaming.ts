/** Streams in a server: which tools have one, how callers are told, and what lists say of it. */
import type { Catalog } from '../core/catalog.ts'
import type { ContentBlock } from '../features/mcp/content/messages.ts'
import { progressToken, sendAlong, sendProgress } from '../features/mcp/progress/server.ts'
import { reply } from '../features/mcp/tools/result.ts'
import type { ToolEntry } from '../features/mcp/tools/server.ts'
import { streamingExtension } from '../features/reliability/streaming/messages.ts'
import type { Telling } from '../features/reliability/streaming/server.ts'

/** How streams reach their callers. */
const tell: Telling = {
  asked: exchange => progressToken(exchange) !== undefined,
  progress: sendProgress,
  along: sendAlong,
}

/** In the `_meta` of a tool. */
export const streamsMeta = { [streamingExtension]: { supports_streaming: true } }

export function streamingTools(tools: () => Catalog<ToolEntry<never>>) {
  const used = (): boolean => {
    const { snapshot } = tools()
    return snapshot.memo('streaming tools', () => snapshot.entries.some(({ streams }) => streams))
  }
  return {
    tell,
    reply: (content: readonly ContentBlock[]) => reply({ content }),
    used,
    streams: (tool: string): boolean => used() && tools().get(tool)?.streams === true,
  }
}
