/** MCP Live as a client feature: the option `live`, `client.live`, and the state that tool calls carry. */
import { type ClientKit, defineClientFeature, extend } from '../../engine/client-feature.ts'
import type { Params } from '../../jsonrpc/message.ts'
import { clientToolsPort, type ToolCallExtension, type ToolCallOptions, toolCalls } from '../mcp/tools/messages.ts'
import type { StateReport } from './checkpoints/messages.ts'
import type { LiveCall, LiveConnection, LiveHandlers } from './client-api.ts'
import { LiveClient } from './client-session.ts'

/** What the feature adds to a client. */
interface LiveClientApi {
  /** The live server; undefined if the server is not live or the option `live` is missing. */
  readonly live: LiveConnection | undefined
  /** The feature set of a listed tool, if known. */
  toolSet(name: string): string | undefined
}

/** Options of a tool call for live servers. */
export interface LiveCallOptions {
  /** State and scope of MCP Live; sent only to servers that are live. */
  readonly live?: LiveCall
}

/** What a tool answer says about state. */
export interface LiveAnswer {
  /** The state that the call has left. */
  readonly live: StateReport | undefined
}

const views: NonNullable<ToolCallExtension['views']> = { live: ({ found }) => found }

/** The client feature: hosts a server that may be live. */
export const liveClient = defineClientFeature<{ readonly live: LiveHandlers }>({
  name: 'live',
  uses: [clientToolsPort],
  options: { live: 'object' },
  setup(kit, { live: handlers }) {
    const live = new LiveClient(handlers, kit.clock)
    const client: LiveClientApi = {
      get live() {
        return live.connection
      },
      toolSet: name => live.toolSet(toolOf(kit, name)),
    }
    return {
      client,
      side: live.side,
      meta: () => live.meta,
      extensions: [extend(toolCalls, callsOf(kit, live))],
      opening: (session, signal) => live.open(session, signal),
      reopening: () => live.reopen(),
    }
  },
})

type LiveOptions = ToolCallOptions & LiveCallOptions

function callsOf(kit: ClientKit, live: LiveClient): ToolCallExtension {
  const reportIn = (result: unknown, name: string, call: LiveCall | undefined): StateReport | undefined =>
    live.reportIn(result as Params, call, toolOf(kit, name))
  return {
    name: 'live',
    sends: (send, name, { live: call }: LiveOptions) => {
      const sent = live.carrying(send, call, toolOf(kit, name))
      const told = call?.onLate
      if (told === undefined) return sent
      // A late result still counts: the call has changed the state, even if nobody waits for it.
      const onLate = (result: unknown): void => {
        const report = reportIn(result, name, call)
        if (report !== undefined) told(report)
      }
      return { ...sent, onLate }
    },
    params: (name, { live: call }: LiveOptions) => ({ ...live.members(call, toolOf(kit, name)) }),
    after: (name, { live: call }: LiveOptions, result) => reportIn(result, name, call),
    views,
  }
}

// The definition of a listed tool.
function toolOf(kit: ClientKit, name: string): Params | undefined {
  return kit.port(clientToolsPort).known(name) as Params | undefined
}
