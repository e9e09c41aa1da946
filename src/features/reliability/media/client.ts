/**
 * Client side of media: checks arguments before a call is sent, and results before they are decoded. The inspection is loaded on first
 * use.
 */
import { defineClientFeature, extend } from '../../../engine/client-feature.ts'
import { declaration, declared } from '../../../engine/extensions.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import type { Peer } from '../../../revisions/index.ts'
import {
  type CallToolResult,
  type ClientTools,
  clientToolsPort,
  type Tool,
  type ToolCallExtension,
  toolCalls,
} from '../../mcp/tools/messages.ts'
import { mediaExtension, mediaOf, warningsIn } from './messages.ts'

/** What an answer says about its media. */
export interface MediaAnswer {
  /** Warnings about the result, such as media of an undeclared type. */
  readonly warnings: readonly string[]
}

const views: NonNullable<ToolCallExtension['views']> = {
  warnings: ({ found, meta }) => found ?? warningsIn(meta),
}

/** The client feature: checks media in both directions. */
export const mediaClient = defineClientFeature({
  name: 'media',
  uses: [clientToolsPort],
  options: {},
  setup(kit) {
    const looked: ToolCallExtension = {
      name: 'media',
      declares: { extension: mediaExtension },
      before: (name, args, signal) =>
        hasMedia(kit.session.opened.conversation.peer) ? checkCall(kit.port(clientToolsPort), name, args, signal) : undefined,
      after: (name, _, result) => {
        const tool = kit.port(clientToolsPort).known(name)
        return saysMedia(tool) ? checkResult(tool, result) : undefined
      },
      views,
    }
    return {
      // On stateless wires each tool call declares the extension.
      side: { capabilities: revision => (revision.era === 'session' ? declaration(revision, mediaExtension) : {}) },
      extensions: [extend(toolCalls, looked)],
    }
  },
})

/** Refuses media that the tool does not accept. If the tool list cannot be read, the server checks. */
async function checkCall(
  tools: ClientTools,
  name: string,
  args: Params | undefined,
  signal: AbortSignal | undefined,
): Promise<void> {
  await tools.learn(name, signal).catch(() => {})
  const tool = tools.known(name)
  if (saysMedia(tool)) await checkArguments(tool, args)
}

/** Whether the server declares the extension; then a tool must be known before it is called. */
function hasMedia(peer: Peer | undefined): boolean {
  return peer !== undefined && declared(peer, mediaExtension) !== undefined
}

/** Whether there is anything to check. Must be fast, because it runs for every call. */
function saysMedia(tool: Tool | undefined): tool is Tool {
  return tool?._meta?.[mediaExtension] !== undefined
}

const works = () => import('./runtime.ts')

/** Throws the problem that the server would report. */
async function checkArguments(tool: Tool, args: Params | undefined): Promise<void> {
  const media = mediaOf(tool._meta)
  if (media !== undefined) (await works()).inspectArguments(media, tool.inputSchema, args)
}

/** Returns warnings about a result. Throws if a block is not what it claims to be. */
async function checkResult(tool: Tool, { content, isError, _meta }: CallToolResult): Promise<readonly string[]> {
  const media = mediaOf(tool._meta)
  if (media === undefined || isError === true || !Array.isArray(content)) return warningsIn(_meta)
  return (await works()).inspectContent(media, content).map(({ message }) => message)
}
