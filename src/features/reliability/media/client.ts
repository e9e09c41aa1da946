/** Using tools with media: what a server would refuse is not sent, and what it answers is looked at before anybody decodes it. */
import { declaration, declared } from '../../../engine/extensions.ts'
import type { Side } from '../../../engine/plan.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import type { Peer } from '../../../revisions/index.ts'
import type { CallToolResult, Tool } from '../../mcp/tools/messages.ts'
import { mediaExtension, mediaOf, warningsIn } from './messages.ts'

/** Where each request declares for itself, calls of tools do. */
export function mediaClient(): Side {
  return { capabilities: revision => (revision.era === 'session' ? declaration(revision, mediaExtension) : {}) }
}

/** Whether a server has such tools: then each must be known before it is called. */
export function hasMedia(peer: Peer | undefined): boolean {
  return peer !== undefined && declared(peer, mediaExtension) !== undefined
}

/** Whether there is anything to look at. Cheap: every call is asked. */
export function saysMedia(tool: Tool | undefined): tool is Tool {
  return tool?._meta?.[mediaExtension] !== undefined
}

const works = () => import('./inspect.ts')

/** Throws the problem that the server would find in the arguments. */
export async function checkArguments(tool: Tool, args: Params | undefined): Promise<void> {
  const media = mediaOf(tool._meta)
  if (media !== undefined) (await works()).inspectArguments(media, tool.inputSchema, args)
}

/** What is odd about a result. Throws where a block of it is not what it is said to be. */
export async function checkResult(tool: Tool, { content, isError, _meta }: CallToolResult): Promise<readonly string[]> {
  const media = mediaOf(tool._meta)
  if (media === undefined || isError === true || !Array.isArray(content)) return warningsIn(_meta)
  return (await works()).inspectContent(media, content).map(({ message }) => message)
}
