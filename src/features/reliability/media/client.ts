/**
 * Client side of media: checks arguments before a call is sent, and results before they are decoded. The inspection is loaded on first
 * use.
 */
import { defineClientFeature, extend } from '../../../engine/client-feature.ts'
import { declaredSettings, extensionCapability } from '../../../engine/extensions.ts'
import type { Params } from '../../../jsonrpc/message.ts'
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

/** The client feature: checks media in both directions. */
export const mediaClient = defineClientFeature({
  name: 'media',
  uses: [clientToolsPort],
  options: {},
  setup(kit) {
    const calls: ToolCallExtension = {
      name: 'media',
      declares: { extension: mediaExtension },
      before: (name, args, signal) => {
        const { peer } = kit.session.opened.conversation
        if (peer === undefined || declaredSettings(peer, mediaExtension) === undefined) return undefined
        return checkCall(kit.port(clientToolsPort), name, args, signal)
      },
      after: (name, _, result) => {
        const tool = kit.port(clientToolsPort).known(name)
        return saysMedia(tool) ? checkResult(tool, result) : undefined
      },
      views: { warnings: ({ found, meta }) => found ?? warningsIn(meta) },
    }
    return {
      // On stateless wires each tool call declares the extension.
      side: { capabilities: revision => (revision.era === 'session' ? extensionCapability(revision, mediaExtension) : {}) },
      extensions: [extend(toolCalls, calls)],
    }
  },
})

/** Whether there is anything to check. Must be fast, because it runs for every call. */
function saysMedia(tool: Tool | undefined): tool is Tool {
  return tool?._meta?.[mediaExtension] !== undefined
}

const loadRuntime = () => import('./runtime.ts')

/** Throws the problem that the server would report. A tool must be known before it is called; if it cannot be, the server checks. */
async function checkCall(
  tools: ClientTools,
  name: string,
  args: Params | undefined,
  signal: AbortSignal | undefined,
): Promise<void> {
  await tools.learn(name, signal).catch(() => {})
  const tool = tools.known(name)
  const media = mediaOf(tool?._meta)
  if (tool !== undefined && media !== undefined) (await loadRuntime()).inspectArguments(media, tool.inputSchema, args)
}

/** Returns warnings about a result. Throws if a block is not what it claims to be. */
async function checkResult(tool: Tool, { content, isError, _meta }: CallToolResult): Promise<readonly string[]> {
  const media = mediaOf(tool._meta)
  if (media === undefined || isError === true || !Array.isArray(content)) return warningsIn(_meta)
  return (await loadRuntime()).inspectContent(media, content).map(({ message }) => message)
}
