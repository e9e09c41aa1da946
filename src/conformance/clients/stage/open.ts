/** Opens a stage: a play at one revision on one carrier, ready for a client. */
import type { Carrier, Connection } from '../../../jsonrpc/connection.ts'
import type { RevisionId } from '../../../revisions/index.ts'
import { webSocketUpgrade } from '../../../transports/websocket/server.ts'
import { type Play, reportTool, testTool, said as toolResult } from '../play.ts'
import { Book, type Frame, type Http } from './book.ts'
import { attach, Lines, memoryStage, stdioStage } from './duplex.ts'
import { opening, wireOf } from './hello.ts'
import { listen } from './http.ts'
import type { StageResponse } from './response.ts'
import { type Handler, isStateless, Script, type Way } from './script.ts'

/** What a client is given to connect to. */
export type ClientTarget = string | { readonly command: string; readonly args: readonly string[] } | Connection

export interface Stage {
  readonly play: Play
  readonly revision: RevisionId
  /** What the revision calls itself. */
  readonly wire: string
  readonly carrier: Carrier
  readonly book: Book
  readonly target: ClientTarget
  /** Where this stage can be reached by HTTP, for addresses that a client must not visit. */
  readonly origin: string
  readonly script: Script
  /** Says something unasked; false: there is nobody to hear it. */
  unasked(frame: Frame): boolean
  /** A request unasked. */
  ask(method: string, params: Frame | undefined, id?: unknown): Promise<Frame | undefined>
  hangUp(): void
  /** Resolves when what the client has sent is read. */
  quiet(): Promise<void>
  close(): Promise<void>
}

const QUIET_MS = 500

interface Mouth {
  readonly target: ClientTarget
  readonly origin: string
  unasked(text: string): boolean
  hangUp(): void
  quiet(ms: number): Promise<void>
  close(): Promise<void>
}

export async function openStage(play: Play, revision: RevisionId, carrier: Carrier): Promise<Stage> {
  const book = new Book()
  const handlers = new Map<string, Handler>()
  const script = new Script({ book, revision, handlers, patienceMs: play.patienceMs ?? 2_000 })
  const faults: unknown[] = []
  book.notes.set('faults', faults)
  const fault = (error: unknown): void => {
    faults.push(error)
    book.stir()
  }
  const take = (text: string, way: Way, http?: Http): void => {
    script.take(book.heard(text, way.line, http), way).catch(fault)
  }
  const stage: { mouth?: Mouth } = {}
  const mouth = (): Mouth => {
    if (stage.mouth === undefined) throw new Error('The stage is not open yet')
    return stage.mouth
  }
  const self: Stage = {
    play,
    revision,
    wire: wireOf(revision),
    carrier,
    book,
    script,
    get target() {
      return mouth().target
    },
    get origin() {
      return mouth().origin
    },
    unasked: frame => mouth().unasked(JSON.stringify({ jsonrpc: '2.0', ...frame })),
    ask: (method, params, id) => script.ask({ write: text => void mouth().unasked(text) }, method, params, id),
    hangUp: () => mouth().hangUp(),
    quiet: () => mouth().quiet(QUIET_MS),
    close: async () => {
      await Promise.all([mouth().close(), beside?.close()])
    },
  }
  stage.mouth = await openMouth(self, take, fault)
  const beside = await play.beside?.(self)
  fill(handlers, self)
  return self
}

/** The opening of the revision, the tools, and what the play says beside or instead. */
function fill(handlers: Map<string, Handler>, stage: Stage): void {
  const { play } = stage
  const tools = [...(play.tools ?? [testTool]), ...(play.report === true ? [reportTool] : [])]
  const standing: Record<string, Handler | undefined> = {
    ...opening(stage),
    'tools/list': () => (stage.revision === 's3' ? tools : { tools }),
    'tools/call': () => toolResult('done'),
    'tools/invoke': stage.revision === 's3' ? () => ({ status: 'success', output: 'done' }) : undefined,
    ...play.on?.(stage),
  }
  const call = standing['tools/call']
  standing['tools/call'] = request =>
    request.params['name'] === 'test-report' ? toolResult('thanks') : call === undefined ? undefined : call(request)
  for (const [method, handler] of Object.entries(standing)) if (handler !== undefined) handlers.set(method, handler)
}

type Take = (text: string, way: Way, http?: Http) => void

async function openMouth(stage: Stage, take: Take, fault: (error: unknown) => void): Promise<Mouth> {
  const { book, carrier } = stage
  if (carrier === 'http' || carrier === 'sse') return httpMouth(stage, take, fault)
  // Addresses that nobody may visit are at an HTTP server of their own.
  const trap = await listen({ ...trapFor(stage), fault })
  const origin = `http://127.0.0.1:${trap.port}`
  if (carrier === 'websocket') return webSocketMouth(stage, take, fault)
  const duplex =
    carrier === 'stdio' ? await stdioStage({ book, take }) : { ...memoryStage({ book, take }), close: async () => {} }
  const { lines } = duplex
  return {
    target: duplex.target,
    origin,
    unasked: text => lines.unasked(text),
    hangUp: () => lines.hangUp(),
    quiet: ms => lines.quiet(ms),
    close: async () => {
      lines.close()
      await Promise.all([duplex.close(), trap.close()])
    },
  }
}

function trapFor({ book }: Stage) {
  const before = (_http: Http, response: StageResponse): boolean => {
    response.writeHead(404).end()
    return true
  }
  return { book, pair: false, listens: false, streams: false, before, endpoint: undefined, take: () => {} }
}

async function httpMouth(stage: Stage, take: Take, fault: (error: unknown) => void): Promise<Mouth> {
  const { book, play, carrier, revision } = stage
  const { http } = play
  const before = http === undefined ? undefined : http(stage)
  const pair = carrier === 'sse'
  const server = await listen({
    book,
    pair,
    listens: play.deaf !== true && (pair || !isStateless(revision)),
    streams: play.streams === true,
    before: (facts, response, body) => before?.(facts, response, body) === true,
    get endpoint() {
      return play.endpoint?.(stage)
    },
    take,
    fault,
  })
  const origin = `http://127.0.0.1:${server.port}`
  return { ...server, target: `${origin}/mcp`, origin }
}

async function webSocketMouth({ book }: Stage, take: Take, fault: (error: unknown) => void): Promise<Mouth> {
  const lines = new Lines({ book, take })
  const upgrade = await webSocketUpgrade(connection => attach(connection, lines))
  const server = await listen({
    book,
    pair: false,
    listens: false,
    streams: false,
    before: undefined,
    endpoint: undefined,
    upgrade,
    take: () => {},
    fault,
  })
  return {
    target: `ws://127.0.0.1:${server.port}`,
    origin: `http://127.0.0.1:${server.port}`,
    unasked: text => lines.unasked(text),
    hangUp: () => lines.hangUp(),
    quiet: ms => lines.quiet(ms),
    close: async () => {
      lines.close()
      await server.close()
    },
  }
}
