/** The scripted server: a play at one revision on one carrier, ready for a client. */
import type { Carrier, Connection } from '../../jsonrpc/connection.ts'
import type { Json, RevisionId } from '../scenario.ts'
import { isStateless, keys, wireVersion } from '../wire/envelope.ts'
import { openListener } from './carriers.ts'
import { MessageLog } from './log.ts'
import { type Play, type ServedMethods, testTool, textResult } from './play.ts'
import { Refusal, Script } from './script.ts'

/** What a client connects to: a URL, a command, or a connection. */
export type ClientTarget =
  | string
  | {
      /** The program to start. */
      readonly command: string
      /** The arguments of the program. */
      readonly args: readonly string[]
    }
  | Connection

/** The address of a scripted server. */
export interface Listener {
  /** The address or command to which the client connects. */
  readonly target: ClientTarget
  /** Its HTTP origin, for addresses that a client must not visit. */
  readonly origin: string
  /** Sends something unasked; false: there is nobody to hear it. */
  unasked(text: string): boolean
  /** Resolves when what the client has sent is read. */
  quiet(ms: number): Promise<void>
  /** Closes the listener and its connections. */
  close(): Promise<void>
}

/** A scripted server, as plays see it. */
export interface ScriptedServer extends Pick<Listener, 'target' | 'origin' | 'close'> {
  /** The play that the server follows. */
  readonly play: Play
  /** The revision that the server speaks. */
  readonly revision: RevisionId
  /** The version string of the revision on the wire. */
  readonly wire: string
  /** The carrier on which it is reached. */
  readonly carrier: Carrier
  /** All messages of the play so far. */
  readonly log: MessageLog
  /** Sends an unsolicited message. False if nobody receives it. */
  unasked(message: Json): boolean
  /** Sends an unsolicited request, and resolves with its answer. */
  ask(method: string, params: Json | undefined, id?: unknown): Promise<Json | undefined>
  /** Errors in the script itself. */
  readonly faults: readonly unknown[]
  /** Resolves when everything that the client has sent was read. */
  quiet(): Promise<void>
}

const QUIET_MS = 500

/** The client may come as soon as it resolves. */
export async function openServer(play: Play, revision: RevisionId, carrier: Carrier): Promise<ScriptedServer> {
  const log = new MessageLog()
  const script = new Script({ log, revision, waitMs: play.waitMs ?? 2_000 })
  const faults: unknown[] = []
  const fault = (error: unknown): void => {
    faults.push(error)
    log.wake()
  }
  const listener = await openListener({
    log,
    play,
    revision,
    carrier,
    fault,
    // The play may name addresses of the server, which is there only now.
    server: () => server,
    take: (text, reply, http) => void script.take(log.received(text, reply.line, http), reply).catch(fault),
  })
  const server: ScriptedServer = {
    ...{ play, revision, carrier, log, faults },
    wire: wireVersion(revision),
    target: listener.target,
    origin: listener.origin,
    unasked: message => listener.unasked(JSON.stringify({ jsonrpc: '2.0', ...message })),
    ask: (method, params, id) => script.ask({ write: text => void listener.unasked(text) }, method, params, id),
    quiet: () => listener.quiet(QUIET_MS),
    close: async () => {
      await Promise.all([listener.close(), beside?.close()])
    },
  }
  const beside = await play.beside?.(server)
  script.serves = servedBy(server)
  return server
}

const reportTool: Json = {
  name: 'test-report',
  description: 'Takes what came of each step',
  inputSchema: { type: 'object', properties: { steps: { type: 'array', items: { type: 'object' } } }, required: ['steps'] },
}

/** The opening of the revision, the tools, and what the play says beside or instead. */
function servedBy(server: ScriptedServer): ServedMethods {
  const { play, revision } = server
  const tools = [...(play.tools ?? [testTool]), ...(play.report === true ? [reportTool] : [])]
  const served: ServedMethods = {
    ...opening(server),
    'tools/list': () => (revision === 's3' ? tools : { tools }),
    'tools/call': textResult('done'),
    'tools/invoke': revision === 's3' ? { status: 'success', output: 'done' } : undefined,
    ...(typeof play.on === 'function' ? play.on(server) : play.on),
  }
  const called = served['tools/call']
  return {
    ...served,
    'tools/call': request => {
      if (request.params['name'] === 'test-report') return textResult('thanks')
      if (called instanceof Refusal) throw called
      return typeof called === 'function' ? called(request) : called
    },
  }
}

/** What the scripted server calls itself. */
export const serverInfo = { name: 'scripted', version: '1.0.0' }

/** How a server of each revision opens, by hand. */
function opening({ revision, play, wire, carrier }: ScriptedServer): ServedMethods {
  const { capabilities: declared = { tools: {} } } = play
  const capabilities = typeof declared === 'function' ? declared(revision) : declared
  if (revision === 's3') return dialect
  if (isStateless(revision)) {
    const named = revision === '2026-07-28' ? { _meta: { [keys.serverInfo]: serverInfo } } : { serverInfo }
    const code = revision === '2026-07-28' ? -32022 : -32602
    return {
      'server/discover': { supportedVersions: [wire], capabilities, ...named },
      // A server without a handshake names its versions when somebody begins with one.
      initialize: ({ params }) => {
        throw new Refusal(code, 'No handshake here', { supported: [wire], requested: params['protocolVersion'] }, 400)
      },
    }
  }
  return {
    initialize: ({ log }) => {
      if (carrier === 'http') log.notes.set('session', `session-${log.of('initialize').length}`)
      return { protocolVersion: wire, capabilities, serverInfo }
    },
    ping: {},
  }
}

const dialect: ServedMethods = {
  initialize: ({ params }) => {
    if (typeof params['protocolVersion'] === 'string') throw new Refusal(-32602, 'mcpVersion is missing')
    return {
      server: serverInfo,
      serverCapabilities: { supportsToolDiscovery: true, supportsResourceDiscovery: false, supportsNotifications: true },
    }
  },
  shutdown: () => null,
}
