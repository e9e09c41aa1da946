/** A tool of the host by which the model says something in a channel of a server: in another one than it was asked in, or more than once. */
import { problem } from '../../core/problem.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { own } from './blocks.ts'
import type { HostTool } from './host-tools.ts'
import { permit } from './permit.ts'
import type { LoopServer } from './ports.ts'

export const publishTool = 'publish_to_channel'
/** Channels that an error names. */
const named = 20

export const publishHostTool: HostTool = {
  tool: {
    name: publishTool,
    description:
      'Writes a message in a channel of a server. Your answer to a message of a channel is posted there by itself: use this for other channels, or to post there yourself instead.',
    inputSchema: {
      type: 'object',
      properties: {
        server: { type: 'string' },
        channel: { type: 'string', description: 'The id of the channel' },
        text: { type: 'string' },
      },
      required: ['server', 'channel', 'text'],
    },
  },
  shown: servers => servers.some(({ live }) => live !== undefined && live.channels.size > 0),
  run: async (args, { servers, policy, begunBy, conversation, permitted, signal }) => {
    const { server, channel, text } = args
    if (typeof server !== 'string' || typeof channel !== 'string' || typeof text !== 'string' || text === '')
      throw problem('INVALID_INPUT', 'server, channel and text must be texts', { suggestion: 'Give all three' })
    const live = servers.find(({ name }) => name === server)?.live
    if (live?.channels.has(channel) !== true) throw unknownChannel(servers, server, channel)
    const payload = { channel, text }
    await permit(permitted, policy, { kind: 'tool', server, tool: 'channels/publish', payload, begunBy, conversation })
    await live.publish(channel, [{ type: 'text', text }], { conversationId: conversation, signal })
    return [own(`Published in ${clip(channel)}.`)]
  },
}

function unknownChannel(servers: readonly LoopServer[], server: string, channel: string): Error {
  const all = servers.flatMap(({ name, live }) => [...(live?.channels.keys() ?? [])].map(id => `${name} ${id}`))
  const known = all.length === 0 ? 'There are no channels now' : `There are ${clip(all.slice(0, named).join(', '), 1_000)}`
  return problem('RESOURCE_NOT_FOUND', `${clip(server)} has no channel ${clip(channel)}`, { suggestion: known })
}
