/**
 * A host made of bare frames: says what a test tells it to, and writes down what the server says. On wires with sessions what the
 * server says are its own frames; on stateless ones they come inside `live/deliver`, and are answered by `live/answer`.
 */
import { envelope, type Frame } from '../spec/wire.ts'
import { type Carrier, openPipe, type PipeOptions } from './pipes.ts'

export const places = ['stdio', 'websocket', 'http', 'stateless'] as const satisfies readonly Carrier[]
export const live = 'dev.vivarium/live'

/** A message of the server's own. */
export interface Said {
  readonly method: string
  readonly params: Frame
  /** The id that answers name; undefined for what wants none. */
  readonly id: string | number | undefined
  answer(result: Frame): Promise<void>
  refuse(code: number, message: string, data?: unknown): Promise<void>
  chunk(index: number, delta: string): Promise<void>
}

export interface RawHost {
  /** What the server declared of MCP Live. */
  readonly declared: Frame
  readonly capabilities: Frame
  /** Every frame that came, as it came. */
  readonly frames: readonly Frame[]
  /** What the server said by itself. */
  readonly said: readonly Said[]
  ask(method: string, params?: Frame): Promise<Frame>
  /** A request whose answer is waited for later; gives its id. */
  begin(method: string, params?: Frame): { readonly id: number; readonly answer: Promise<Frame> }
  /** As a notification, where the wire has those for hosts. */
  tell(method: string, params?: Frame): void
  call(tool: string, args?: Frame, more?: Frame): Promise<Frame>
  /** Selects by the form of the wire; settles when it holds. */
  select(selection: Frame): Promise<void>
  next(method: string): Promise<Said>
  /** Settles when whatever was said before has been answered. */
  quiet(): Promise<void>
  /** Listens anew; gives what the server says first. */
  relisten(after?: string): Promise<Frame>
  /** Lets go of its stream. */
  deafen(): void
  close(): Promise<void>
  /** The server ends as by a crash. */
  kill(): Promise<void>
}

export interface RawHostOptions extends PipeOptions {
  /** What it declares under `experimental.mcpl`; false: nothing. */
  readonly mcpl?: Frame | false
  /** Beside it. */
  readonly capabilities?: Frame
  /** Selected at once. Default: all. */
  readonly select?: Frame | false
  readonly clientInfo?: Frame
  /** Speaks the stateless wire on a carrier that could do both. */
  readonly stateless?: boolean
  /** Further members of `initialize`. */
  readonly hello?: Frame
}

export const everySet = [
  'memory.retrieval',
  'memory.extraction',
  'memory.consolidation',
  'memory.proactive',
  'memory.silent',
  'files.edit',
  'notes.edit',
  'git.commit',
]

export async function rawHost(carrier: Carrier, options: RawHostOptions = {}): Promise<RawHost> {
  const { mcpl = { version: '0.2' }, clientInfo = { name: 'raw', version: '1' } } = options
  const stateless = carrier === 'stateless' || options.stateless === true
  const frames: Frame[] = []
  const said: Said[] = []
  const taken = new Set<unknown>()
  const wake: (() => void)[] = []
  const hostId = crypto.randomUUID()
  let policy: Frame = {}
  let nextId = 1
  let listening: number | undefined
  const declares = mcpl === false ? {} : { extensions: { [live]: mcpl } }
  const pipe = await openPipe(carrier, options, frame => {
    frames.push(frame)
    hear(frame)
    for (const fn of wake.splice(0)) fn()
  })
  const find = async <T>(among: readonly T[], fits: (one: T) => boolean): Promise<T> => {
    for (;;) {
      const found = among.find(one => !taken.has(one) && fits(one))
      if (found !== undefined) {
        taken.add(found)
        return found
      }
      await new Promise<void>(resolve => wake.push(resolve))
    }
  }
  const hear = (frame: Frame): void => {
    const { id, method, params = {} } = frame as { id?: number; method?: string; params?: Frame }
    if (method === undefined || method === 'live/listening') return
    if (method !== 'live/deliver')
      return void said.push(speech(method, params, id, (kind, body) => pipe.send({ jsonrpc: '2.0', id, [kind]: body })))
    const { deliveryId, answer } = params as { deliveryId: string; answer: boolean }
    const reply = (kind: string, body: unknown): Promise<Frame> => host.ask('live/answer', { deliveryId, [kind]: body })
    said.push(speech(String(params['method']), params['params'] as Frame, answer ? deliveryId : undefined, reply))
  }
  const speech = (
    method: string,
    params: Frame,
    id: string | number | undefined,
    reply: (kind: string, body: unknown) => unknown,
  ): Said => ({
    method,
    params,
    id,
    answer: async result => void (await reply('result', result)),
    refuse: async (code, message, data) =>
      void (await reply('error', { code, message, ...(data === undefined ? {} : { data }) })),
    chunk: async (index, delta) => {
      if (stateless) await reply('chunks', [{ index, delta }])
      else pipe.send({ jsonrpc: '2.0', method: 'inference/chunk', params: { requestId: id, index, delta } })
    },
  })
  const withMeta = (params: Frame): Frame => {
    if (!stateless) return params
    const own = (params['_meta'] ?? {}) as Frame
    const mine = mcpl === false ? {} : { [live]: { hostId, policy, ...(own[live] as Frame | undefined) } }
    return { ...params, _meta: { ...own, ...envelope('2026-07-28', { ...options.capabilities, ...declares }), ...mine } }
  }
  const host: RawHost = {
    declared: {},
    capabilities: {},
    frames,
    said,
    begin: (method, params = {}) => {
      const id = nextId++
      pipe.send({ jsonrpc: '2.0', id, method, params: withMeta(params) })
      return { id, answer: find(frames, frame => frame['id'] === id && frame['method'] === undefined) }
    },
    ask: (method, params) => host.begin(method, params).answer,
    tell: (method, params = {}) => {
      if (stateless) host.begin(method, params).answer.catch(() => undefined)
      else pipe.send({ jsonrpc: '2.0', method, params })
    },
    call: (name, args = {}, more = {}) => host.ask('tools/call', { name, arguments: args, ...more }),
    select: async selection => {
      policy = selection
      host.tell('featureSets/update', selection)
      await host.quiet()
    },
    next: method => find(said, one => one.method === method),
    quiet: async () => void (await host.ask('no/such/method')),
    relisten: async after => {
      listening = host.begin('live/listen', { hostId, policy, host: mcpl || {}, ...(after === undefined ? {} : { after }) }).id
      const { params } = await find(frames, ({ method }) => method === 'live/listening')
      return params as Frame
    },
    deafen: () => pipe.drop(listening),
    close: () => pipe.close(),
    kill: async () => pipe.kill?.(),
  }
  const enabled = options.select === false ? {} : (options.select ?? { enabled: everySet, disabled: [] })
  if (stateless) {
    policy = enabled
    const { capabilities } = (await host.ask('server/discover'))['result'] as { capabilities: Frame }
    Object.assign(host, { capabilities, declared: (capabilities['extensions'] as Frame | undefined)?.[live] })
    if (mcpl !== false) await host.relisten()
    return host
  }
  const experimental = mcpl === false ? {} : { experimental: { mcpl } }
  const hello = {
    protocolVersion: '2025-11-25',
    capabilities: { ...options.capabilities, ...experimental },
    clientInfo,
    ...options.hello,
  }
  const { capabilities } = (await host.ask('initialize', hello))['result'] as { capabilities: Frame }
  Object.assign(host, { capabilities, declared: (capabilities['experimental'] as Frame | undefined)?.['mcpl'] })
  host.tell('notifications/initialized')
  await pipe.ready()
  if (mcpl !== false && options.select !== false) await host.select(enabled)
  return host
}

/** What a tool gave, or why it did not. */
export function given(frame: Frame): Frame {
  const result = (frame['result'] ?? {}) as Frame
  const [block] = (result['content'] ?? []) as { text?: string }[]
  return (result['structuredContent'] ?? { text: block?.text, isError: result['isError'] }) as Frame
}

export const turn = (userMessage: string | null, more: Frame = {}): Frame => ({
  inferenceId: 'inf_1',
  conversationId: 'conv_1',
  turnIndex: 0,
  userMessage,
  model: { id: 'm', vendor: 'v', contextWindow: 1000, capabilities: [] },
  ...more,
})
