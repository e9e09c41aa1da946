/**
 * A server that knows nothing of this library: tests write its frames by hand and judge those of its host. The same script runs on
 * every carrier; on the stateless one requests and answers travel inside the listen binding, and are judged there.
 */
import type { ConnectOptions } from '../../../src/client/api.ts'
import type { Target } from '../../../src/client/target.ts'
import type { Id } from '../../../src/jsonrpc/message.ts'
import { stdioServer, webSocketServer } from './duplex.ts'
import { sessionHttpServer, statelessHttpServer } from './http.ts'
import type { Answer, Frame, Refusal, Script } from './script.ts'

export type Carrier = 'stdio' | 'websocket' | 'http 2025-11-25' | 'http 2026-07-28'

export interface RawServer {
  readonly carrier: Carrier
  readonly target: Target
  /** What `connect` needs to speak with it as the test wants. */
  readonly options: ConnectOptions
  readonly script: Script
  /** Sends a request by itself, and gives its id. */
  begin(method: string, params: unknown, id?: Id): Id
  /** The response to it. */
  answerTo(id: Id): Promise<Frame>
  /** Both. */
  ask(method: string, params: unknown, id?: Id): Promise<Frame>
  tell(method: string, params: Frame): void
  /** Sends text as it is. */
  write(text: string): void
  close(): Promise<void>
  /** Ends the stream on which it speaks. */
  hangUp?(): void
  /** It opens the stream without a word. */
  mute?: boolean
  /** It refuses to open one. */
  refuse?: Refusal
}

const makers: Readonly<Record<Carrier, (answers: Readonly<Record<string, Answer>>) => Promise<RawServer>>> = {
  stdio: stdioServer,
  websocket: webSocketServer,
  'http 2025-11-25': sessionHttpServer,
  'http 2026-07-28': statelessHttpServer,
}

export const carriers = Object.keys(makers) as readonly Carrier[]
/** Those where the server sends requests itself. */
export const sessionCarriers = carriers.filter(carrier => carrier !== 'http 2026-07-28')

export interface RawOptions {
  /** What it says under `experimental.mcpl`; undefined: it is not live. */
  readonly mcpl?: unknown
  readonly capabilities?: Frame
  /** Members of the hello beside its capabilities. */
  readonly beside?: Frame
  readonly answers?: Readonly<Record<string, Answer>>
}

/** A receipt, as servers give that take a selection as a request. */
export const receipt = { accepted: true, unavailableFeatures: [], notes: [] }

export function rawServer(carrier: Carrier, options: RawOptions = {}): Promise<RawServer> {
  const { mcpl, beside = {}, answers = {} } = options
  const live =
    mcpl === undefined
      ? {}
      : {
          experimental: { mcpl },
          ...(carrier === 'http 2026-07-28' ? { extensions: { 'dev.vivarium/live': mcpl } } : {}),
        }
  const capabilities = { tools: {}, ...live, ...options.capabilities }
  const serverInfo = { name: 'raw', version: '1' }
  return makers[carrier]({
    initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities, serverInfo, ...beside }),
    'server/discover': () => ({ supportedVersions: ['2026-07-28'], capabilities, ttlMs: 0, cacheScope: 'private', serverInfo }),
    'notifications/initialized': () => {},
    'tools/list': () => ({ tools: [], ttlMs: 0, cacheScope: 'private' }),
    'featureSets/update': () => receipt,
    ...answers,
  })
}
