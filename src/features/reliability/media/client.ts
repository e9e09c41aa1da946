/** Using tools with media: what a server would refuse is not sent, and what it answers is looked at before anybody decodes it. */
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

/** What an answer says of its media. */
export interface MediaAnswer {
  /** What is odd about it though it was given, a sentence each: such as media of a type that the tool does not announce. */
  readonly warnings: readonly string[]
}

const views: NonNullable<ToolCallExtension['views']> = {
  warnings: ({ found, meta }) => found ?? warningsIn(meta),
}

/** Looks at media before they are sent and when they come. */
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
      // Where each request declares for itself, calls of tools do.
      side: { capabilities: revision => (revision.era === 'session' ? declaration(revision, mediaExtension) : {}) },
      extensions: [extend(toolCalls, looked)],
    }
  },
})

/** What is not taken is not sent. A list that cannot be read is no ground to stay silent: the server looks by itself. */
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

/** Whether a server has such tools: then each must be known before it is called. */
function hasMedia(peer: Peer | undefined): boolean {
  return peer !== undefined && declared(peer, mediaExtension) !== undefined
}

/** Whether there is anything to look at. Cheap: every call is asked. */
function saysMedia(tool: Tool | undefined): tool is Tool {
  return tool?._meta?.[mediaExtension] !== undefined
}

const works = () => import('./runtime.ts')

/** Throws the problem that the server would find in the arguments. */
async function checkArguments(tool: Tool, args: Params | undefined): Promise<void> {
  const media = mediaOf(tool._meta)
  if (media !== undefined) (await works()).inspectArguments(media, tool.inputSchema, args)
}

/** What is odd about a result. Throws where a block of it is not what it is said to be. */
async function checkResult(tool: Tool, { content, isError, _meta }: CallToolResult): Promise<readonly string[]> {
  const media = mediaOf(tool._meta)
  if (media === undefined || isError === true || !Array.isArray(content)) return warningsIn(_meta)
  return (await works()).inspectContent(media, content).map(({ message }) => message)
}
